"""`OverviewReader` in SQL: what a person who looks at a space asks."""

from bisect import bisect_left

from memplane.clock import DAY, INSTANT_MAX, Instant
from memplane.storage.base import LOOKED_THROUGH_MAX, LedgerRow
from memplane.storage.filter import EntryFilter, Filter
from memplane.storage.index import turn_number
from memplane.storage.overview import TurnSpan
from memplane.storage.sql import conditions, rows
from memplane.storage.sql.session import SqlSession
from memplane.types import Entry, Memory

_ABOUT_MAX = 2_000
"""Of a subject with more facts than that, only those among the memories written last are looked at."""
_WINDOW = 5_000
_TIME_WINDOW = 10_000
"""Of so many turns that were said in a time, and of so many entries that were recorded in it."""


class SqlOverviewReader(SqlSession):
    """See `OverviewReader`."""

    def activity(self, first: int, last: int) -> list[int]:
        return [count for (count,) in self._all("activity", first=first, last=last, length=DAY)]

    def current_count(self) -> int:
        return int(self._one("current_count")[0])

    def expired_count(self, *, now: Instant) -> int:
        return int(self._one("expired_count", now=now)[0])

    def conflict_count(self) -> int:
        return int(self._one("conflict_count")[0])

    def failed_document_count(self) -> int:
        return int(self._one("failed_document_count")[0])

    def subjects(self, *, first: str, limit: int) -> list[str]:
        return [subject for (subject,) in self._all("subjects", first=first, limit=limit)]

    def subjects_lately(self, *, limit: int) -> list[str]:
        return [subject for (subject,) in self._all("subjects_lately", limit=limit)]

    def facts_about(self, subject: str, where: Filter, *, limit: int) -> list[Memory]:
        (count,) = self._one("count_about", subject=subject, limit=_ABOUT_MAX + 1)
        wanted = conditions.of_memories(where)
        if count <= _ABOUT_MAX:
            found = self._filtered("facts_about", wanted, subject=subject, limit=limit)
        else:
            until = where.now if where.as_of is None else where.as_of
            found = self._filtered(
                "facts_about_lately", wanted, subject=subject, until=until, window=_WINDOW, limit=limit
            )
        return [rows.memory_from(row) for row in found]

    def learned(self, begin: Instant, end: Instant, *, limit: int, offset: int) -> list[Memory]:
        found = self._all("learned", begin=begin, end=end, limit=limit, offset=offset)
        return [rows.memory_from(row) for row in found]

    def replaced(self, begin: Instant, end: Instant, *, limit: int, offset: int) -> list[Memory]:
        found = self._all("replaced", begin=begin, end=end, limit=limit, offset=offset)
        return [rows.memory_from(row) for row in found]

    def predecessors(self, memory_id: str, *, limit: int) -> list[Memory]:
        return [rows.memory_from(row) for row in self._all("predecessors", id=memory_id, limit=limit)]

    def forgets_between(
        self, begin: Instant, end: Instant, *, limit: int, offset: int = 0
    ) -> list[LedgerRow]:
        found = self._all("forgets_between", begin=begin, end=end, limit=limit, offset=offset)
        return [rows.chained_from(row) for row in found]

    def forget_row(self, entry_id: str) -> LedgerRow | None:
        row = self._one("forget_row", id=entry_id)
        return None if row is None else rows.chained_from(row)

    def entries_before(self, seq: int, where: EntryFilter, *, limit: int) -> list[Entry]:
        wanted = conditions.of_entries(where)
        if where.conversation is None and (where.since is not None or where.until is not None):
            return self._entries_of_time(seq, where, wanted, limit)
        floor = 0 if where.conversation is not None else seq - LOOKED_THROUGH_MAX
        found = self._filtered("entries_before", wanted, before=seq, floor=floor, limit=limit)
        return [rows.entry_from(row) for row in found]

    def _entries_of_time(
        self, seq: int, where: EntryFilter, wanted: conditions.WhereClause, limit: int
    ) -> list[Entry]:
        """Looked for among the turns that were said last in that time, and among what was recorded last in it."""
        since = -INSTANT_MAX if where.since is None else where.since
        until = INSTANT_MAX if where.until is None else where.until
        last = min(seq, self.last_recorded_before(until) + 1)
        first = max(self.last_recorded_before(since) + 1, last - _TIME_WINDOW)
        times = {"since": since, "until": until, "turns": turn_number(seq, 0), "window": _TIME_WINDOW}
        places = {"first": first, "last": last, "before": seq}
        found = self._filtered("entries_of_time", wanted, **{**times, **places}, limit=limit)
        return [rows.entry_from(row) for row in found]

    def first_moment(self) -> Instant | None:
        return min((at for at in self._one("first_moments") if at is not None), default=None)

    def last_recorded_before(self, at: Instant) -> int:
        # Places are in the order of time, and there is no index of time.
        return bisect_left(range(1, self._last_place() + 1), at, key=self._recorded_at)

    def turn_span(self, since: Instant) -> TurnSpan:
        return TurnSpan(*self._one("turn_span", since=since))

    def behavioral_count(self) -> int:
        return int(self._one("behavioral_count")[0])

    def _last_place(self) -> int:
        row = self._one("last_entry")
        return 0 if row is None else int(row[0])

    def _recorded_at(self, seq: int) -> Instant:
        row = self._one("entry_from_place", seq=seq)
        return INSTANT_MAX if row is None else int(row[1])

    def newest_ops(self, *, limit: int) -> list[Entry]:
        return [rows.entry_from(row) for row in self._all("newest_ops", limit=limit)]
