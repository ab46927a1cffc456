"""`IndexReader` and `IndexWriter` in SQL: vectors and words."""

from collections.abc import Sequence

from memplane.clock import to_instant
from memplane.storage.filter import Filter
from memplane.storage.index import Marks, MemoryVector, TurnHead, TurnVector, VectorSearch, turn_number
from memplane.storage.sql import conditions, rows
from memplane.storage.sql.session import SqlSession
from memplane.types import Memory, Turn


class SqlIndexReader(SqlSession):
    """See `IndexReader`."""

    def marks(self) -> Marks:
        return Marks(*self._one("marks"))

    def model(self, model_id: str, dimension: int) -> int | None:
        numbers = {(id_, length): n for id_, length, n in self._all("models")}
        return numbers.get((model_id, dimension))

    def vector_search(self, model: int) -> VectorSearch | None:  # noqa: ARG002 - an engine that searches overrides it
        return None

    def current_model(self) -> int | None:
        number = self._note("model")
        return None if number is None else int(number)

    def embedded(self, model: int) -> int:
        return int(self._note(f"embedded:{model}") or 0) if model == self.current_model() else 0

    def turn_heads(self, *, after: int, until: int, limit: int) -> list[TurnHead]:
        found = self._all("turn_heads", after=after, until=until, limit=limit)
        return [TurnHead(*row) for row in found]

    def turn_vectors(self, model: int, *, after: int, limit: int) -> list[tuple[int, TurnVector]]:
        return [
            (stamp, TurnVector(n, words, bool(asks), digest, vector))
            for stamp, n, words, asks, digest, vector in self._all(
                "turn_vectors", model=model, after=after, limit=limit
            )
        ]

    def turn_vectors_at(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        return dict(self._all("turn_vectors_at", model=model, numbers=self._list(numbers)))

    def turn_digests(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        return dict(self._all("turn_digests", model=model, numbers=self._list(numbers)))

    def stale_turns(self, *, limit: int) -> list[int]:
        return [n for (n,) in self._all("stale_turns", limit=limit)]

    def memory_vectors(self, model: int, *, after: int, limit: int) -> list[tuple[int, MemoryVector]]:
        return [
            (stamp, MemoryVector(*row))
            for stamp, *row in self._all("memory_vectors", model=model, after=after, limit=limit)
        ]

    def memory_vectors_of(self, model: int, ids: Sequence[str]) -> dict[str, bytes]:
        return dict(self._all("memory_vectors_of", model=model, ids=self._list(ids)))

    def memory_digests(self, model: int, ids: Sequence[str]) -> dict[str, bytes]:
        return dict(self._all("memory_digests", model=model, ids=self._list(ids)))

    def occurrences(self, stem: str) -> list[int]:
        return self._words.holding("turn", stem)

    def occurrences_of(self, stems: Sequence[str]) -> dict[str, list[int]]:
        return self._words.holding_each("turn", stems) if stems else {}

    def common(self, words: Sequence[str], *, beyond: int) -> set[str]:
        return self._words.common("turn", words, beyond)

    def not_indexed(self, *, after: int, until: int, limit: int) -> list[tuple[int, str]]:
        first = max(after, self._indexed())
        return [(n, text) for n, text in self._all("not_indexed", after=first, until=until, limit=limit)]

    def turns_at(self, numbers: Sequence[int], where: Filter) -> list[Turn]:
        found = self._filtered("turns_at", conditions.of_turns(where), numbers=self._list(numbers))
        return [rows.turn_from(row) for row in found]

    def turns_between(self, first: int, last: int) -> list[Turn]:
        return [rows.turn_from(row) for row in self._all("turns_between", first=first, last=last)]

    def memories_of(self, ids: Sequence[str], where: Filter) -> list[Memory]:
        return self._memories("memories_of", where, ids=self._list(ids))

    def waiting_memories(self, *, limit: int) -> list[Memory]:
        return [rows.memory_from(row) for row in self._all("waiting_memories", limit=limit)]

    def waiting_count(self) -> int:
        return int(self._one("waiting_count")[0])

    def turn_before(self, turn: Turn) -> Turn | None:
        n = turn_number(turn.seq, turn.ordinal)
        if turn.conversation is None:
            row = self._one("turn_before_outside", n=n)
        else:
            row = self._one("turn_before", conversation=turn.conversation, at=to_instant(turn.at), n=n)
        return None if row is None else rows.turn_from(row)

    def turns_after(self, turn: Turn, *, limit: int, offset: int = 0) -> list[Turn]:
        n = turn_number(turn.seq, turn.ordinal)
        if turn.conversation is None:
            found = self._all("turns_after_outside", n=n, limit=limit, offset=offset)
        else:
            found = self._all(
                "turns_after",
                conversation=turn.conversation,
                at=to_instant(turn.at),
                n=n,
                limit=limit,
                offset=offset,
            )
        return [rows.turn_from(row) for row in found]


class SqlIndexWriter(SqlIndexReader):
    """See `IndexWriter`."""

    def use_model(self, model_id: str, dimension: int) -> int:
        number = self.model(model_id, dimension)
        if number is None:
            self._many("add_model", [(model_id, dimension)])
            number = self.model(model_id, dimension)
        assert number is not None
        before = self.current_model()
        if before != number:
            self._set_note("model", str(number))
            for query in ("embed_anew", "embed_spans_anew", "forget_embedded") + (
                ("grow_generation",) if before else ()
            ):
                self._run(query)
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
