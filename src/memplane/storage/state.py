"""The state of a space: how far each step of processing is, small named values, and pinned recall texts."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from memplane.clock import Instant
from memplane.storage.session import SessionReader, WriteSession

PINS_MAX = 512
"""More conversations than are active in one space at once."""
_PROJECTED = (
    *("turn", "memory", "memory_tag", "hidden", "evidence", "conflict", "cited", "untold"),
    *("overruled", "purged"),
    *("document", "section", "span", "collection", "member", "shelf_entry"),
    *("promoted", "promoted_from", "judgement", "verdict", "ruling"),
)
CLEARING = {f"clear_{table}": f"DELETE FROM {table}" for table in _PROJECTED}
"""Statements that empty the derived tables."""


class Marks(msgspec.Struct, frozen=True):
    """How far a space is. Cheap to read: a cache compares it with what it saw."""

    generation: int
    """Grows whenever rows are removed: a cache from before may contain forgotten rows."""
    cursor: int
    """The last seq the projection includes."""
    indexed: int
    """The last turn number in the word index."""
    derived: int
    """The last seq that memories were derived from."""
    turn_stamp: int
    memory_stamp: int
    """The last vector of each kind."""
    last_turn: int
    """The number of the last turn."""

    def was_reset_since(self, before: "Marks | None") -> bool:
        """Whether a cache that saw a space as it was `before` must be dropped: some of it may be forgotten."""
        return before is None or self.generation > before.generation

    def continues(self, before: "Marks | None") -> bool:
        """Whether such a cache has something new to read. From an older snapshot it has not: what was forgotten since must
        not come back."""
        return before is None or (self.generation == before.generation and self != before)


class ErasureStep(StrEnum):
    """What is left to do when a forget is committed."""

    DISK = "disk"
    """Rewrite the files, so that no erased byte is left in them."""
    CATALOG = "catalog"
    """Drop the ids of erased documents from the catalog."""


class ErasureMark(msgspec.Struct, frozen=True):
    """How far a step is: it is done for so many erasures, up to this position of the ledger."""

    erasures: int = 0
    position: int = 0


class StateReader(SessionReader):
    """Reads of a space's state."""

    def cursor(self) -> int:
        """The last seq the projection includes."""
        return int(self._session.note("cursor") or 0)

    def note(self, name: str) -> str | None:
        """A small named value. A replay does not change it."""
        return self._session.note(f"note:{name}")

    def pinned(self, name: str) -> str | None:
        """The text pinned under this name; None if something was erased since."""
        found = self._session.one("pinned", name=name)
        return None if found is None else str(found[0])

    def erasures(self) -> int:
        """How often something was erased, by `erase`, `purge_superseded` or `clear_projection`. Each drops all
        pinned texts, since they may contain what was erased."""
        found = self._session.one("erasures")
        return int(found[0])

    def erased(self, step: ErasureStep) -> ErasureMark:
        """How far this step of erasing is; `erasures` counts more while it is pending."""
        noted = self._session.note(f"erased:{step}")
        return ErasureMark() if noted is None else ErasureMark(*map(int, noted.split()))

    def marks(self) -> Marks:
        """How far the space is; cheap at any size."""
        return Marks(*self._session.one("marks"))


class StateWriter(StateReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def set_derived(self, seq: int) -> None:
        """Record that memories are derived from every entry up to seq."""
        self._session.set_note("derived", str(seq))

    def cursor(self) -> int:
        """The last seq the projection includes."""
        return self._session.cursor

    def marks(self) -> Marks:
        """How far the space is; cheap at any size."""
        return msgspec.structs.replace(super().marks(), cursor=self._session.cursor)

    def set_cursor(self, seq: int) -> None:
        """Record that the projection includes every entry up to seq."""
        self._session.cursor = seq

    def clear_projection(self) -> None:
        """Remove everything derived, and set all progress to 0. Vectors and access counts stay, for the turns
        and memories that a replay brings back; so do notes."""
        self._session.set_note("indexed", "0")
        self._session.words.clear()
        for query in (*CLEARING, "forget_embedded", "grow_generation", "grow_library"):
            self._session.run(query)
        unpin(self._session)
        self._session.set_note("lost_vectors", "1")
        self.set_derived(0)
        self.set_cursor(0)

    def set_erased(self, done: Mapping[ErasureStep, ErasureMark]) -> None:
        """Record that these steps are done up to these marks."""
        for step, mark in done.items():
            if mark.erasures >= self.erased(step).erasures:
                self._session.set_note(f"erased:{step}", f"{mark.erasures} {mark.position}")

    def set_note(self, name: str, value: str) -> None:
        """Store a small named value."""
        self._session.set_note(f"note:{name}", value)

    def pin(self, name: str, text: str, *, at: Instant) -> None:
        """Pin a text under a name, unless a later one is pinned there. Only the last `PINS_MAX` are kept."""
        self._session.many("pin", [(name, at, text)])
        self._session.many("drop_old_pins", [(PINS_MAX,)])


def unpin(session: WriteSession) -> None:
    """Drop every pinned text, since each may contain what was erased, and count the erasure."""
    session.run("drop_pins")
    session.run("count_erasure")


def grow_generation(session: WriteSession, gone: Sequence[Any]) -> None:
    """If rows were removed, make caches drop what they hold."""
    if gone:
        session.run("grow_generation")
