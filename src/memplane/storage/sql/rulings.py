"""`RulingReader` and `RulingWriter` in SQL."""

from collections.abc import Sequence

from memplane.clock import Instant
from memplane.storage.filter import Filter
from memplane.storage.rulings import ReviewDecision
from memplane.storage.sql.session import SqlSession
from memplane.types import Memory


class SqlRulingReader(SqlSession):
    """See `RulingReader`."""

    def ruling(self, id_: str) -> ReviewDecision:
        row = self._one("ruling", id=id_)
        return ReviewDecision() if row is None else ReviewDecision(released=bool(row[0]), pinned=bool(row[1]))

    def pinned_memories(self, where: Filter, *, limit: int) -> list[Memory]:
        return self._memories("pinned_memories", where, limit=limit)

    def quarantined_seqs(self, *, now: Instant, limit: int, offset: int = 0) -> list[int]:
        return [seq for (seq,) in self._all("quarantined_seqs", now=now, limit=limit, offset=offset)]

    def quarantine_size(self, *, now: Instant) -> int:
        return int(self._one("quarantine_size", now=now)[0])

    def quarantined_turns(self, *, limit: int) -> list[int]:
        return [n for (n,) in self._all("quarantined_turns", limit=limit)]

    def flagged_size(self, *, limit: int) -> int:
        return int(self._one("flagged_size", limit=limit)[0])

    def quarantined_among(self, ids: Sequence[str]) -> set[str]:
        return {id_ for (id_,) in self._all("quarantined_among", ids=self._list(ids))}


class SqlRulingWriter(SqlRulingReader):
    """See `RulingWriter`."""

    def rule(self, id_: str, ruling: ReviewDecision) -> None:
        self._ready()
        self._many("rule", [(id_, int(ruling.released), int(ruling.pinned))])
