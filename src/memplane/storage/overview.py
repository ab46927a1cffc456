"""Overview: figures that cost the same at any size, the facts around a subject, and what changed between two moments."""

import msgspec

from memplane.clock import DAY, Instant
from memplane.storage import conditions, rows
from memplane.storage.filter import Filter
from memplane.storage.session import SessionReader
from memplane.types import Memory

_ABOUT_MAX = 2_000
"""If a subject has more facts than this, only those among the newest memories are read."""
_WINDOW = 5_000


class SpaceSizes(msgspec.Struct, frozen=True):
    """How much a space holds."""

    entries: int
    erased: int
    turns: int
    memories: int
    active: int
    superseded: int
    expired: int
    keys: int
    tombstones: int
    audit: int


class TurnSpan(msgspec.Struct, frozen=True):
    """How many turns there are, and when the first and the last of them were said."""

    count: int
    first: Instant | None
    last: Instant | None


class OverviewReader(SessionReader):
    """Every list is bounded by the caller, and no method but `sizes` reads every row of a space."""

    def sizes(self, *, now: Instant) -> SpaceSizes:
        """Exact counts; may take time on a large space."""
        return SpaceSizes(*(self._session.one("sizes", now=now) or ()))

    def activity(self, first: int, last: int) -> list[int]:
        """The number of turns and memories of each day (UTC, counted from 1970), from first to last."""
        return [count for (count,) in self._session.all("activity", first=first, last=last, length=DAY)]

    def current_count(self) -> int:
        """The number of memories that are not superseded, including expired ones that were not swept yet."""
        return int(self._session.one("current_count")[0])

    def expired_count(self, *, now: Instant) -> int:
        """How many memories are expired and not swept yet."""
        return int(self._session.one("expired_count", now=now)[0])

    def conflict_count(self) -> int:
        """The number of conflicts."""
        return int(self._session.one("conflict_count")[0])

    def subjects(self, *, first: str, limit: int) -> list[str]:
        """Subjects of facts by name, from this one on."""
        return [subject for (subject,) in self._session.all("subjects", first=first, limit=limit)]

    def recent_subjects(self, *, limit: int) -> list[str]:
        """The subjects of the newest memories, newest first, with repetitions; `limit` is the number of
        memories."""
        return [subject for (subject,) in self._session.all("subjects_lately", limit=limit)]

    def facts_about(self, subject: str, where: Filter, *, limit: int) -> list[Memory]:
        """Memories with this subject and a predicate, newest first. For a subject with very many, only among
        the newest memories of the time in question."""
        (count,) = self._session.one("count_about", subject=subject, limit=_ABOUT_MAX + 1)
        wanted = conditions.of_memories(where)
        if count <= _ABOUT_MAX:
            found = self._session.filtered("facts_about", wanted, subject=subject, limit=limit)
        else:
            until = where.now if where.as_of is None else where.as_of
            found = self._session.filtered(
                "facts_about_lately", wanted, subject=subject, until=until, window=_WINDOW, limit=limit
            )
        return [rows.memory_from(row) for row in found]

    def learned(self, begin: Instant, end: Instant, *, limit: int, offset: int) -> list[Memory]:
        """Memories that are current at the end, not at the beginning, and did not supersede one that was;
        newest first."""
        found = self._session.all("learned", begin=begin, end=end, limit=limit, offset=offset)
        return [rows.memory_from(row) for row in found]

    def replaced(self, begin: Instant, end: Instant, *, limit: int, offset: int) -> list[Memory]:
        """Memories that are current at the beginning and superseded at the end, last superseded first."""
        found = self._session.all("replaced", begin=begin, end=end, limit=limit, offset=offset)
        return [rows.memory_from(row) for row in found]

    def first_moment(self) -> Instant | None:
        """The time of the first turn or of the first entry, whichever is earlier; None if there is none."""
        return min((at for at in self._session.one("first_moments") if at is not None), default=None)

    def turn_span(self, since: Instant) -> TurnSpan:
        """The turns since then."""
        return TurnSpan(*self._session.one("turn_span", since=since))

    def behavioral_count(self) -> int:
        """How many current memories are behavioral."""
        return int(self._session.one("behavioral_count")[0])
