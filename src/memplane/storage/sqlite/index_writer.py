"""`IndexWriter` over a SQLite connection: what enrichment writes."""

from collections.abc import Sequence

import msgspec

from memplane.clock import Instant
from memplane.storage.base import Evidence, MemoryVector, Rating, TurnVector, Untold
from memplane.storage.sqlite.index import SqliteIndexReader
from memplane.storage.sqlite.session import SQL
from memplane.types import State, Tier

_encode = msgspec.json.Encoder().encode


class SqliteIndexWriter(SqliteIndexReader):
    """See `IndexWriter`."""

    def use_model(self, model_id: str, dimension: int) -> int:
        found = self._one("model", id=model_id, dimension=dimension)
        if found is None:
            self._many("add_model", [(model_id, dimension)])
            found = self._one("model", id=model_id, dimension=dimension)
        number = int(found[0])
        before = self.current_model()
        if before != number:
            self._set_note("model", str(number))
            for query in ("embed_anew", "embed_spans_anew", "forget_embedded") + (
                ("grow_generation",) if before else ()
            ):
                self._connection.execute(SQL[query])
        return number

    def add_turn_vectors(self, model: int, vectors: Sequence[TurnVector], *, until: int) -> None:
        self._ready()
        self._many("drop_turn_vector", [(vector.n,) for vector in vectors])
        self._many(
            "add_turn_vector",
            [
                (vector.n, vector.words, int(vector.asks), model, vector.digest, vector.vector)
                for vector in vectors
            ],
        )
        self._set_note(f"embedded:{model}", str(until))

    def embed_again(self, numbers: Sequence[int]) -> None:
        self._ready()
        self._many("embed_turn_again", [(n,) for n in numbers])

    def add_memory_vectors(self, model: int, vectors: Sequence[MemoryVector]) -> None:
        self._ready()
        self._many("drop_memory_vector", [(vector.id,) for vector in vectors])
        self._many(
            "add_memory_vector", [(vector.id, model, vector.digest, vector.vector) for vector in vectors]
        )
        self._many("set_embedded", [(model, vector.id) for vector in vectors])

    def keep_memory_vectors(self, model: int, ids: Sequence[str]) -> None:
        self._ready()
        self._many("stamp_memory_vector", [(id_,) for id_ in ids])
        self._many("set_embedded", [(model, id_) for id_ in ids])

    def set_derived(self, seq: int) -> None:
        self._set_note("derived", str(seq))

    def add_evidence(self, evidence: Evidence) -> None:
        self._ready()
        own = evidence.own
        self._many("add_evidence", [(evidence.memory, own.seq, own.id, _encode(own).decode())])

    def set_untold(self, untold: Untold) -> None:
        self._ready()
        self._many("set_untold", [(untold.conversation, untold.first, untold.last_at)])

    def set_told(self, conversation: str) -> None:
        self._ready()
        self._many("set_told", [(conversation,)])

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
