"""What a person ruled about memories and entries: released in spite of its flags, pinned."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.storage.filter import Filter
from memplane.types import Memory

APART_MAX = 100_000
"""So many flagged turns are kept apart."""
FLAGGED_MAX = 1_000
"""Flagged memories may be near in any number; so many more are looked at, that they keep nobody out."""


class ReviewDecision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was ruled last about a memory or an entry."""

    released: bool = False
    """It is told as any other. Of an entry, so is everything that was read out of it."""
    pinned: bool = False
    """It is always told."""


class RulingReader(Protocol):
    """What is kept apart, and what is always told, beside `Reader`."""

    def ruling(self, id_: str) -> ReviewDecision:
        """What was ruled about a memory or an entry, whether that is there or not."""

    def pinned_memories(self, where: Filter, *, limit: int) -> list[Memory]:
        """The newest first."""

    def quarantined_seqs(self, *, now: Instant, limit: int, offset: int = 0) -> list[int]:
        """Entries that were flagged, or of which a live memory was, and that nobody has released; the newest first."""

    def quarantine_size(self, *, now: Instant) -> int:
        """How many entries that are."""

    def quarantined_turns(self, *, limit: int) -> list[int]:
        """The numbers of turns that are flagged and not released, the newest first."""

    def flagged_size(self, *, limit: int) -> int:
        """How many memories carry a flag, released or not; counted no further than the limit."""

    def quarantined_among(self, ids: Sequence[str]) -> set[str]:
        """Of these memories, the ones that are flagged and not released."""


class RulingWriter(Protocol):
    """The same inside a write transaction."""

    def rule(self, id_: str, ruling: ReviewDecision) -> None:
        """What is ruled now takes the place of what was ruled before."""
