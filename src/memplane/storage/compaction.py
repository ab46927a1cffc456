"""What compaction keeps of raw days: learnings that wait for a decision, lines of weekly digests, and what was decided
about every raw entry."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.types import Memory

RETENTION = "retention"
"""The reason of tombstones that the retention policy sets; nobody else may give it."""


class Layer(StrEnum):
    """Where compaction promotes something to."""

    LEARN = "learn"
    DIGEST = "digest"


class Standing(StrEnum):
    """How a learning stands."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


class Line(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that compaction kept, with what it was read from."""

    id: str
    seq: int
    layer: Layer
    day: str
    kind: str
    text: str
    at: datetime
    sources: tuple[str, ...]
    recorded: Instant
    """When it was kept."""
    quote: str = ""
    conversation: str | None = None
    project: str | None = None
    within: str | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was said about a learning: once confirmed, it stays so."""

    learning: str
    confirmed: bool
    by: str
    at: datetime
    memory: str | None = None


class Judged(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What compaction decided about one thing of a raw entry: a memory, or a turn that holds none."""

    day: str
    entry: str
    item: str
    outcome: str
    into: str = ""
    reason: str = ""


class Raw(msgspec.Struct, frozen=True, gc=False):
    """An entry in which something was said, and when."""

    seq: int
    id: str
    at: Instant


class CompactionReader(Protocol):
    """What compaction, review and retention ask of a store, beside `Reader`."""

    def raw_between(self, since: Instant, until: Instant) -> list[Raw]:
        """Turns and histories that show a turn said in this time, by when and seq."""

    def raw_days(self, before: Instant) -> list[Instant]:
        """The first moment of every day (UTC) on which such a turn was said before then, in order."""

    def judged(self, entry_ids: Sequence[str]) -> list[Judged]:
        """What was decided about these entries, by entry and item."""

    def judged_on(self, day: str | None, *, limit: int, offset: int) -> list[Judged]:
        """What was decided about a day, or about all; the newest day first, then by entry and item."""

    def lines(self, layer: Layer) -> list[Line]:
        """Everything that is kept there, by day, then when it was said, then id."""

    def lines_at(self, ids: Sequence[str]) -> list[Line]:
        """Those of these that are there, whatever their layer, by seq."""

    def lines_from(self, entry_ids: Sequence[str]) -> list[Line]:
        """What was read from one of these entries at least, by seq."""

    def verdicts(self) -> dict[str, Decision]:
        """By learning, what was decided about it, also where it was forgotten since."""

    def payloads_left(self, entry_ids: Sequence[str]) -> set[str]:
        """Of these entries, the ones whose payload is still there."""

    def forgotten_by_someone(self, entry_ids: Sequence[str]) -> set[str]:
        """Of these ids, those with a tombstone that retention did not set."""

    def cited_by(self, memory_id: str) -> list[int]:
        """The seqs of the entries that an episode quotes."""

    def evidence_at(self, seqs: Sequence[int]) -> list[Memory]:
        """What these entries alone would have made of what others said before them, by seq and id."""


class CompactionWriter(Protocol):
    """The same inside a write transaction."""

    def add_line(self, line: Line) -> None:
        """A line goes when its entry is erased. Adding it again changes nothing."""

    def add_judged(self, judged: Sequence[Judged]) -> None:
        """What was decided first about an item stays."""

    def add_decision(self, decision: Decision) -> None:
        """A confirmation wins over a rejection; otherwise what was decided first stays."""
