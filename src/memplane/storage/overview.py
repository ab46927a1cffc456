"""What a person who looks at a space asks of a store: figures that cost the same at any size, the facts around a subject,
and what changed between two moments."""

from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.storage.filter import Filter
from memplane.types import Memory


class TurnSpan(msgspec.Struct, frozen=True):
    """How many turns there are, and when the first and the last of them were said."""

    count: int
    first: Instant | None
    last: Instant | None


class OverviewReader(Protocol):
    """Beside `Reader`. Every list is bounded by the caller, and no answer looks at every row of a space."""

    def activity(self, first: int, last: int) -> list[int]:
        """How many turns were said and memories written on each day (UTC, counted from 1970), from first to last."""

    def current_count(self) -> int:
        """Memories that nothing replaced, those that expired and were not swept yet among them."""

    def expired_count(self, *, now: Instant) -> int:
        """How many of these have expired."""

    def conflict_count(self) -> int:
        """Pairs of memories that are at odds."""

    def failed_document_count(self) -> int:
        """Documents that could not be told in short."""

    def subjects(self, *, first: str, limit: int) -> list[str]:
        """Subjects of facts in the order of their names, from this one on."""

    def subjects_lately(self, *, limit: int) -> list[str]:
        """The subjects of the memories written last, the newest first, as often as they occur; of so many memories."""

    def facts_about(self, subject: str, where: Filter, *, limit: int) -> list[Memory]:
        """Memories with this subject and a predicate, the newest first. Of a subject with very many, only among the
        memories written last before the time that is asked for."""

    def learned(self, begin: Instant, end: Instant, *, limit: int, offset: int) -> list[Memory]:
        """Memories that held at the end and did not at the beginning, and in whose place none held then; newest first."""

    def replaced(self, begin: Instant, end: Instant, *, limit: int, offset: int) -> list[Memory]:
        """Memories that held at the beginning and had been replaced by the end, those replaced last first."""

    def predecessors(self, memory_id: str, *, limit: int) -> list[Memory]:
        """Memories in whose place this one came, whether or not it is still there; the oldest first."""

    def first_moment(self) -> Instant | None:
        """When the first thing was said or recorded, whichever is earlier; None where nothing was."""

    def turn_span(self, since: Instant) -> TurnSpan:
        """Of what was said since then."""

    def behavioral_count(self) -> int:
        """How many of the current memories steer how an agent acts."""
