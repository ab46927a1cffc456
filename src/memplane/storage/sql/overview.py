"""`OverviewReader` in SQL: what a person who looks at a space asks."""

from memplane.clock import DAY, Instant
from memplane.storage.base import LedgerRow
from memplane.storage.filter import Filter
from memplane.storage.sql import conditions, rows
from memplane.storage.sql.session import Session
from memplane.types import Entry, Memory

_ABOUT_MAX = 2_000
"""Of a subject with more facts than that, only those among the memories written last are looked at."""
_WINDOW = 5_000


class SqlOverviewReader(Session):
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

    def forgets_between(
        self, begin: Instant, end: Instant, *, limit: int, offset: int = 0
    ) -> list[LedgerRow]:
        found = self._all("forgets_between", begin=begin, end=end, limit=limit, offset=offset)
        return [rows.chained_from(row) for row in found]

    def forget_row(self, entry_id: str) -> LedgerRow | None:
        row = self._one("forget_row", id=entry_id)
        return None if row is None else rows.chained_from(row)

    def newest_ops(self, *, limit: int) -> list[Entry]:
        return [rows.entry_from(row) for row in self._all("newest_ops", limit=limit)]
