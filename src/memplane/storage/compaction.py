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
    """Where compaction promotes something to, called as the op that records it."""

    LEARN = "learn"
    DIGEST = "digest"
    SUMMARY = "summarize"


class LearningStatus(StrEnum):
    """How a learning stands."""

    OPEN = "open"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"


class CompactionLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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


class LearningDecision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was said about a learning: once confirmed, it stays so."""

    learning: str
    confirmed: bool
    by: str
    at: datetime
    memory: str | None = None


class JudgementRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What compaction decided about one thing of a raw entry: a memory, or a turn that holds none."""

    day: str
    entry: str
    item: str
    outcome: str
    into: str = ""
    reason: str = ""


class RawEntryPosition(msgspec.Struct, frozen=True, gc=False):
    """An entry in which something was said, and when."""

    seq: int
    id: str
    at: Instant


class CompactionReader(Protocol):
    """What compaction, review and retention ask of a store, beside `Reader`."""

    def raw_between(self, since: Instant, until: Instant) -> list[RawEntryPosition]:
        """Turns and histories that show a turn said in this time, by when and seq."""

    def raw_days(self, before: Instant) -> list[Instant]:
        """The first moment of every day (UTC) on which such a turn was said before then, in order."""

    def judged(self, entry_ids: Sequence[str]) -> list[JudgementRow]:
        """What was decided about these entries, by entry and item."""

    def judged_on(self, day: str | None, *, limit: int, offset: int) -> list[JudgementRow]:
        """What was decided about a day, or about all; the newest day first, then by entry and item."""

    def lines(self, layer: Layer, day: str | None = None) -> list[CompactionLine]:
        """Everything that is kept there, or what is of one day, by day, then when it was said, then id."""

    def lines_at(self, ids: Sequence[str]) -> list[CompactionLine]:
        """Those of these that are there, whatever their layer, by seq."""

    def lines_from(self, entry_ids: Sequence[str]) -> list[CompactionLine]:
        """What was read from one of these entries at least, by seq."""

    def verdicts(self) -> dict[str, LearningDecision]:
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

    def add_line(self, line: CompactionLine) -> None:
        """A line goes when its entry is erased. Adding it again changes nothing."""

    def add_judged(self, judged: Sequence[JudgementRow]) -> None:
        """What was decided first about an item stays."""

    def add_decision(self, decision: LearningDecision) -> None:
        """A confirmation wins over a rejection; otherwise what was decided first stays."""
