"""The program that the crash tests of compaction kill: it tells on a pipe that it began, and that it is done."""

import os
from datetime import datetime
from multiprocessing.connection import Connection

from memplane import Memplane, Settings
from memplane.clock import Instant, to_datetime, to_instant

OWNER = "crash"
NOW = to_instant(datetime.fromisoformat("2026-11-15T08:30:00+00:00"))
SAID = (
    "Hello!",
    "I prefer Teams over email.",
    "My sister Anna lives in Lisbon.",
    "We decided to use Postgres for billing.",
    "thanks",
    "My favorite color is {0}.",
    "The nightly import number {0} was slow.",
    "I like {0} and tea.",
)


def clock() -> Instant:
    return NOW


def opened(data: str) -> Memplane:
    options = Settings(retention="adr", compact_confirm="auto")
    return Memplane.open(data, embedder=None, clock=clock, settings=options)


def tell(data: str, count: int) -> None:
    """Some days, of which the last ones are not over."""
    words = ("green", "blue", "red", "grey")
    with opened(data) as plane:
        space = plane.space(OWNER)
        for number in range(count):
            space.retain(
                SAID[number % len(SAID)].format(words[number // 8 % 4]),
                id=f"said-{number}",
                at=to_datetime(NOW - (count - number) * 86_400_000_000 // 12),
                conversation=f"c{number // 20}",
            )


def compact(data: str, pipe: Connection) -> None:
    with opened(data) as plane:
        os.write(pipe.fileno(), b'["begun"]\n')
        plane.space(OWNER).compact()
        os.write(pipe.fileno(), b'["done"]\n')
