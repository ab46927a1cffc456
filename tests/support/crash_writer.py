"""The program that the crash tests kill. Each function runs in a process of its own and tells, on a pipe, what was
acknowledged to it: one JSON list a line, written in one piece, so that a line is there or is not."""

import json
import os
import random
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from memplane import Memplane, Space
from memplane.ledger.payloads import TurnPayload, encode
from memplane.types import NewEntry, Op

OWNER = "crash"
THREADS = 4
AT = 1_790_000_000_000_000

KEYS = ("11" * 32, "22" * 32)


def teller(pipe: Connection) -> Callable[..., None]:
    def tell(*what: Any) -> None:
        os.write(pipe.fileno(), json.dumps(what).encode() + b"\n")

    return tell


def draft(id_: str, text: str, conversation: str | None = None) -> NewEntry:
    return NewEntry(
        id_, Op.TURN, encode(TurnPayload(role="user", content=text, at=AT, conversation=conversation))
    )


class Scribbler:
    """One thread's share of the work. Its ids, keys and conversations are its own, so what it was told last holds."""

    def __init__(self, space: Space, name: str, seed: str, tell: Callable[..., None]) -> None:
        self._space = space
        self._name = name
        self._rng = random.Random(seed)
        self._report = tell
        self._number = 0
        self._stored: list[str] = []
        self._forgettable: list[str] = []

    def run(self) -> None:
        while True:
            self._rng.choices(
                (
                    self._retain,
                    self._store,
                    self._supersede,
                    self._put,
                    self._load,
                    self._forget,
                    self._load_pins,
                    self._purge,
                ),
                weights=(8, 4, 4, 4, 3, 6, 2, 1),
            )[0]()

    def _word(self) -> str:
        """Of nobody else, and at home in no language."""
        self._number += 1
        return f"q{self._name}x{self._number}z"

    def _id(self) -> str:
        """Ids stay when their entries are forgotten, so they hold no word."""
        return f"given-{self._name}-{self._number}"

    def _retain(self) -> None:
        word = self._word()
        given = self._rng.choice((None, self._id()))
        retained = self._space.retain(f"lantern {word}", id=given, conversation=f"talk-{self._name}")
        self._forgettable.append(retained.id)
        self._report("written", [[retained.id, word]])

    def _store(self) -> None:
        word = self._word()
        memory = self._space.store("preference", f"lantern {word}", tags=[f"tag{word}"])
        self._stored.append(memory.id)
        self._forgettable.append(memory.id)
        self._report("written", [[memory.id, word]])

    def _supersede(self) -> None:
        if not self._stored:
            return
        word = self._word()
        old = self._stored[-1]
        self._report("superseding", old)
        memory = self._space.store("correction", f"lantern {word}", supersedes=old)
        self._stored.append(memory.id)
        self._report("written", [[memory.id, word]])
        self._report("superseded", old)

    def _put(self) -> None:
        word = self._word()
        key = f"key/{self._name}/{self._rng.randrange(3)}"
        self._report("putting", key, word)
        memory = self._space.put(key, f"lantern {word}")
        self._report("written", [[memory.id, word]])
        self._report("put", key, word, memory.id)

    def _load(self) -> None:
        words = [self._word() for _ in range(self._rng.randrange(1, 30))]
        ids = [f"{self._id()}-{number}" for number in range(len(words))]
        self._space.ledger.load([draft(id_, f"lantern {word}") for id_, word in zip(ids, words, strict=True)])
        self._forgettable.append(ids[0])
        self._report("written", list(zip(ids, words, strict=True)))
        if self._rng.random() < 0.5:
            self._space.ledger.catch_up()

    def _forget(self) -> None:
        if not self._forgettable:
            return
        ids = [self._forgettable.pop(self._rng.randrange(len(self._forgettable)))]
        self._stored = [id_ for id_ in self._stored if id_ not in ids]
        self._report("forgetting", ids)
        receipt = self._space.forget(entries=ids)
        self._report("forgotten", ids, receipt.off_disk, receipt.seq, receipt.digest)

    def _load_pins(self) -> None:
        self._space.search("lantern")
        self._space.brief()

    def _purge(self) -> None:
        self._space.purge(days=0)


def scribble(data: str, key: str | None, run: int, pipe: Connection) -> None:
    """Write whatever there is to write from several threads, until killed."""
    tell = teller(pipe)
    space = Memplane.open(data, key=key, embedder=None).space(OWNER)
    scribblers = [Scribbler(space, f"{run}t{n}", f"{run}/{n}", tell) for n in range(THREADS)]
    threads = [threading.Thread(target=scribbler.run, daemon=True) for scribbler in scribblers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def replay(data: str, pipe: Connection) -> None:
    """Derive everything anew, again and again."""
    tell = teller(pipe)
    space = Memplane.open(data, embedder=None).space(OWNER)
    while True:
        space.ledger.replay(progress=lambda seq: tell("replayed", seq))


def bulk(data: str, drafts: int, chunk: int, pipe: Connection) -> None:
    """Import so many drafts, as an import does that was begun before: from the start."""
    tell = teller(pipe)
    space = Memplane.open(data, embedder=None).space(OWNER)
    for begin in range(0, drafts, chunk):
        numbers = range(begin, min(begin + chunk, drafts))
        space.ledger.load([bulk_draft(number) for number in numbers])
        tell("loaded", begin, numbers[-1])
    space.ledger.catch_up(progress=lambda ahead: tell("ahead", ahead))
    tell("done")


def merge(data: str, drafts: int, chunk: int, pipe: Connection) -> None:
    """Take in what another replica recorded before and after what is here, piece by piece, the last first; every third
    entry is forgotten there."""
    tell = teller(pipe)
    space = Memplane.open(data, embedder=None).space(OWNER)
    for begin in reversed(range(0, drafts, chunk)):
        came = [merge_draft(number) for number in range(begin, min(begin + chunk, drafts))]
        forgets = {"elsewhere": {draft.id: "asked" for draft in came[::3]}}
        tell("merging", begin)
        space.ledger.merge(came, forgets, origin="elsewhere")
        tell("merged", begin)
    tell("done")


def merge_draft(number: int) -> NewEntry:
    said = draft(f"far-{number}", f"lantern far{number}", f"c{number % 50}")
    return msgspec.structs.replace(said, recorded=number)


def bulk_draft(number: int) -> NewEntry:
    return draft(f"bulk-{number}", f"lantern number{number} cellar{number % 7}", f"c{number % 50}")


def create(data: str, key: str | None, run: int, pipe: Connection) -> None:
    """Make one space after the other."""
    tell = teller(pipe)
    plane = Memplane.open(data, key=key, embedder=None)
    number = 0
    while True:
        owner = f"{run}/{number}" if number % 3 else f"{run}/{number}/" + "Ü" * 200
        plane.space(owner).retain(f"lantern {number}")
        tell("created", owner)
        number += 1


def rotate(data: str, old: str | None, new: str | None, pipe: Connection) -> None:
    """Put everything under another key."""
    tell = teller(pipe)
    plane = Memplane.open(data, key=old, embedder=None)
    tell("rotating")
    plane.rotate_key(new, progress=lambda owner, changed: tell("rotated", owner, changed))
    tell("done")
