"""The program that the worker's crash tests kill: it enriches, and tells on a pipe after every step."""

import json
import os
from datetime import datetime, timedelta
from multiprocessing.connection import Connection

from tests.support.stub_embedder_enrich import BagOfWords

from memplane import Memplane
from memplane.clock import Instant, to_instant
from memplane.ledger.payloads import TurnPayload, encode
from memplane.types import NewEntry, Op

OWNER = "crash"
NOW = to_instant(datetime.fromisoformat("2026-11-15T08:30:00+00:00"))
PLACES = ("Lisbon", "Rome", "Oslo", "Bern", "Kyiv")
THINGS = ("jazz", "tea", "chess", "rain", "maps")


def clock() -> Instant:
    return NOW


def drafts(count: int) -> list[NewEntry]:
    """What people say over some weeks: again, otherwise, and in several conversations that pause and go on."""
    made = []
    for number in range(count):
        said = (
            f"I live in {PLACES[number // 7 % 5]}",
            f"I like {THINGS[number % 5]}, and the lamp number {number} flickers in the old hallway.",
            f"My favorite color is {('green', 'blue')[number // 11 % 2]}",
            f"Nobody expected the rain to last until day {number} of the journey.",
        )[number % 4]
        if number >= count - 2:
            said = f"My favorite food is {('soup', 'bread')[number % 2]}"
        at = NOW + int(timedelta(days=number // 9 - 60, minutes=number) / timedelta(microseconds=1))
        body = encode(TurnPayload(role="user", content=said, at=at, conversation=f"c{number // 9 % 3}"))
        made.append(NewEntry(f"said-{number}", Op.TURN, body))
    return made


def opened(data: str) -> Memplane:
    return Memplane.open(data, embedder=BagOfWords(dimension=8), clock=clock)


def enrich(data: str, pipe: Connection) -> None:
    with opened(data) as plane:
        os.write(pipe.fileno(), b'["begun"]\n')
        plane.space(OWNER).enrich(
            progress=lambda steps: os.write(pipe.fileno(), json.dumps([steps]).encode() + b"\n")
        )
        os.write(pipe.fileno(), b'["done"]\n')
