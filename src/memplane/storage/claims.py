"""What was read out of turns: where a claim was said, what it is at odds with, and what agents made of it."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.storage.filter import Filter
from memplane.types import Memory, Tier


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """One more place where a memory was said."""

    memory: str
    """The memory that was there already."""
    own: Memory
    """What this place alone would have made: it takes over when the first place is forgotten."""


class Rating(msgspec.Struct, frozen=True, gc=False):
    """What feedback made of a memory."""

    memory: str
    chosen: int
    passed_over: int
    leaning: float
    importance: float


class PurgedMemory(msgspec.Struct, frozen=True, gc=False):
    """What is left of a derived memory that was purged: whose place it had been taken by."""

    id: str
    by: str
    seq: int
    entry_id: str
    at: Instant


class ClaimReader(Protocol):
    """What settling, recall and forgetting ask about derived memories, beside `Reader`."""

    def rivals(
        self,
        subject: str,
        predicate: str,
        words: Sequence[str],
        *,
        limit: int,
        topic: str = "",
        within: str | None = None,
    ) -> list[Memory]:
        """Live claims about a subject that are told in the same place, `within`: those that have this predicate, and of
        these those of the topic; those that hold one of the words, as far as they are among the newest that do; and the
        newest. At most `limit` of each."""

    def claimed(self, predicates: Sequence[str], where: Filter, *, limit: int) -> list[Memory]:
        """Memories with one of these predicates: predicate by predicate, at most `limit` of each, the newest first."""

    def told_between(self, begin: Instant, until: Instant, where: Filter, *, limit: int) -> list[Memory]:
        """Memories that speak of a time in this range, the earliest first."""

    def hot(self, where: Filter, *, limit: int) -> list[Memory]:
        """Memories that are always told: the pinned ones first, then the newest. Nothing quarantined is among them."""

    def conflicts(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """The open conflicts that one of these memories is part of; all of them where no id is given."""

    def evidence(self, memory_ids: Sequence[str]) -> list[Evidence]:
        """Further places where these were said, in order."""

    def memories_from(self, seqs: Sequence[int]) -> list[Memory]:
        """Every memory of these entries, whatever its state."""

    def heirs(self, ids: Sequence[str]) -> dict[str, str]:
        """For each of these that was replaced, the last of its chain that is there."""

    def all_replaced(self, seqs: Sequence[int]) -> list[int]:
        """Of these entries, those of which there are memories, and all of them superseded."""

    def replaced_by(self, ids: Sequence[str]) -> list[str]:
        """The ids of derived memories that one of these replaced."""

    def displaced_by(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """(old, new) of memories that were stored on purpose and that one of these replaced."""

    def purged_by(self, ids: Sequence[str]) -> list[PurgedMemory]:
        """What was purged after one of these had replaced it."""

    def rated_by(self, seqs: Sequence[int]) -> bool:
        """Whether one of these entries is feedback."""

    def overruled(self, ids: Sequence[str]) -> list[str]:
        """What was passed over because of one of these."""

    def accesses(self, ids: Sequence[str]) -> dict[str, int]:
        """How often these were told."""


class ClaimWriter(Protocol):
    """The same inside a write transaction."""

    def set_derived(self, seq: int) -> None:
        """Memories are derived from everything up to seq."""

    def add_evidence(self, evidence: Evidence) -> None:
        """Adding again changes nothing."""

    def note_overruled(self, memory_id: str, by: Sequence[str]) -> None:
        """It was passed over because of these."""

    def contest(self, left: str, right: str) -> None:
        """Mark both contested and remember that they are at odds."""

    def settle(self, memory_id: str) -> None:
        """Take it out of every conflict; whoever is in none any more is active again."""

    def rate(self, rating: Rating) -> None:
        """Write down what feedback made of a memory; the importance it had before the first is kept as its base."""

    def set_tiers(self, tiers: Sequence[tuple[str, Tier]]) -> None:
        """Change how these surface."""

    def add_accesses(self, ids: Sequence[str], *, at: Instant) -> None:
        """They were told once more."""
