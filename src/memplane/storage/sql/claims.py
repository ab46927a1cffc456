"""`ClaimReader` and `ClaimWriter` in SQL: what was read out of turns."""

from collections.abc import Sequence
from operator import itemgetter

import msgspec

from memplane.clock import Instant
from memplane.storage.claims import Evidence, PurgedMemory, Rating
from memplane.storage.filter import Filter
from memplane.storage.sql import rows
from memplane.storage.sql.session import SqlSession
from memplane.types import Memory, State, Tier

_encode = msgspec.json.Encoder().encode
_decode_memory = msgspec.json.Decoder(Memory).decode


class SqlClaimReader(SqlSession):
    """See `ClaimReader`."""

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
        about = {"subject": subject, "within": within, "limit": limit}
        found = self._all("rivals", predicate=predicate, **about)
        if topic and len(found) == limit:
            found += self._all("rivals_by_topic", predicate=predicate, topic=topic, **about)
        found += self._all("newest_rivals", **about)
        if words:
            found += self._all("rivals_by_words", match=self._words.matching("memory", words), **about)
        return list({row[0]: rows.memory_from(row) for row in found}.values())

    def claimed(self, predicates: Sequence[str], where: Filter, *, limit: int) -> list[Memory]:
        found = (self._memories("claimed", where, predicate=name, limit=limit) for name in predicates)
        return [memory for memories in found for memory in memories]

    def told_between(self, begin: Instant, until: Instant, where: Filter, *, limit: int) -> list[Memory]:
        return self._memories("told_between", where, time_from=begin, time_until=until, limit=limit)

    def hot(self, where: Filter, *, limit: int) -> list[Memory]:
        pinned = self._memories("pinned_memories", where, limit=limit) if self._one("ruled")[0] else []
        hot = self._memories("hot", where, limit=limit)
        told = {memory.id: memory for memory in (*pinned, *hot) if not memory.quarantined}
        return list(told.values())[:limit]

    def conflicts(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        found = self._all("conflicts", ids=self._list(ids)) if ids else self._all("all_conflicts")
        return [(left, right) for left, right in found]

    def evidence(self, memory_ids: Sequence[str]) -> list[Evidence]:
        return [
            Evidence(memory, _decode_memory(body))
            for memory, body in self._all("evidence", ids=self._list(memory_ids))
        ]

    def memories_from(self, seqs: Sequence[int]) -> list[Memory]:
        # Put in order here: told to, a database reads a whole space in that order to find these few.
        found = sorted(self._all("memories_from", seqs=self._list(seqs)), key=itemgetter(-1))
        return [rows.memory_from(row[:-1]) for row in found]

    def heirs(self, ids: Sequence[str]) -> dict[str, str]:
        return dict(self._all("heirs", ids=self._list(ids)))

    def all_replaced(self, seqs: Sequence[int]) -> list[int]:
        return [seq for (seq,) in self._all("all_replaced", seqs=self._list(seqs))]

    def replaced_by(self, ids: Sequence[str]) -> list[str]:
        return sorted(id_ for (id_,) in self._all("replaced_by", ids=self._list(ids)))

    def displaced_by(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        return [(old, new) for old, new in self._all("displaced_by", ids=self._list(ids))]

    def purged_by(self, ids: Sequence[str]) -> list[PurgedMemory]:
        return [PurgedMemory(*row) for row in self._all("purged_by", ids=self._list(ids))]

    def rated_by(self, seqs: Sequence[int]) -> bool:
        return bool(self._one("rated_by", seqs=self._list(seqs))[0])

    def overruled(self, ids: Sequence[str]) -> list[str]:
        return [id_ for (id_,) in self._all("overruled", ids=self._list(ids))]

    def accesses(self, ids: Sequence[str]) -> dict[str, int]:
        return dict(self._all("accesses", ids=self._list(ids)))


class SqlClaimWriter(SqlClaimReader):
    """See `ClaimWriter`."""

    def set_derived(self, seq: int) -> None:
        self._set_note("derived", str(seq))

    def add_evidence(self, evidence: Evidence) -> None:
        self._ready()
        own = evidence.own
        self._many("add_evidence", [(evidence.memory, own.seq, own.id, _encode(own).decode())])

    def note_overruled(self, memory_id: str, by: Sequence[str]) -> None:
        self._ready()
        self._many("note_overruled", [(memory_id, each) for each in by])

    def contest(self, left: str, right: str) -> None:
        self._ready()
        self._many("add_conflict", [(min(left, right), max(left, right))])
        self._many("set_state", [(left, State.CONTESTED), (right, State.CONTESTED)])

    def settle(self, memory_id: str) -> None:
        others = self._all("at_odds", id=memory_id)
        if others:
            self._many("drop_conflicts", [(memory_id,)])
            self._many("uncontest", [*others, (memory_id,)])

    def rate(self, rating: Rating) -> None:
        self._ready()
        self._many("rate", [msgspec.structs.astuple(rating)])

    def set_tiers(self, tiers: Sequence[tuple[str, Tier]]) -> None:
        self._ready()
        self._many("set_tier", tiers)

    def add_accesses(self, ids: Sequence[str], *, at: Instant) -> None:
        self._ready()
        self._many("add_access", [(id_, at) for id_ in ids])
