"""Vectors of turns, memories and spans, the models that made them, and the search of spaces too large to be loaded."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.storage import conditions, rows
from memplane.storage.engine import Connection
from memplane.storage.filter import Audience, Filter
from memplane.storage.session import SessionReader, WriteSession
from memplane.storage.turns import TurnHead
from memplane.storage.words import index_key, is_prefix
from memplane.types import Memory

Vector = NDArray[np.float32]

_PREFIX_STEMS_MAX = 20
_REPLACED = "replaced"
"""The note with the number of the model whose vectors are being replaced; empty when that is done."""


class TurnVector(msgspec.Struct, frozen=True, gc=False):
    """What the worker found out about a turn. `vector` is None where there is no embedding model."""

    n: int
    words: int
    asks: bool
    digest: bytes
    """Of the text it was made from: the same text needs no second vector."""
    vector: bytes | None


class MemoryVector(msgspec.Struct, frozen=True, gc=False):
    """A memory's vector, by the memory's id."""

    id: str
    digest: bytes
    vector: bytes | None
    turn: int | None = None
    """The number of the turn it was derived from, if there is one."""
    within: str | None = None


class SpanVector(msgspec.Struct, frozen=True, gc=False):
    """A span's vector. `vector` is None where there is no embedding model."""

    n: int
    digest: bytes
    """Of the text it was made from: the same text needs no second vector."""
    vector: bytes | None


class NearMemory(msgspec.Struct, frozen=True, gc=False):
    """A memory that an engine found by its vector."""

    id: str
    turn: int | None
    nearness: float


class WordHolders(msgspec.Struct, frozen=True):
    """Which turns of a large space contain the words of a question."""

    counts: Mapping[str, int]
    """How many turns contain each stem; counting ends at a limit."""
    best: Mapping[int, Mapping[str, int]]
    """For the turns that contain most, how often each contains which stem."""
    total: float
    squares: float
    """The sum of the scores of all turns that contain any, and of their squares."""


class VectorsReader(SessionReader):
    """Reads of vectors."""

    def model(self, model_id: str, dimension: int) -> int | None:
        """The number of an embedding model; None if it was never used here."""
        numbers = {(id_, length): n for id_, length, n in self._session.all("models")}
        return numbers.get((model_id, dimension))

    def search(self, model: int) -> "VectorSearch | None":
        """The search of the engine among vectors of this model; None if they are few enough to be loaded."""
        dimension = self._session.note(searched(model))
        return None if dimension is None else VectorSearch(self._session.connection, model, int(dimension))

    def current_model(self) -> int | None:
        """The number of the model in use; None before the first vector."""
        number = self._session.note("model")
        return None if number is None else int(number)

    def model_id(self, number: int) -> str | None:
        """The id of the model with this number; None if it is the entry for recall without vectors."""
        return {n: id_ for id_, dimension, n in self._session.all("models") if dimension}.get(number)

    def replaced_model(self) -> str | None:
        """The id of the model whose vectors are being replaced by those of the current one; None if none are."""
        number = self._session.note(_REPLACED)
        return self.model_id(int(number)) if number else None

    def embedded(self, model: int) -> int:
        """Every turn up to this number has a vector of this model; 0 for a model that is not in use, because a
        turn has one vector only."""
        return int(self._session.note(f"embedded:{model}") or 0) if model == self.current_model() else 0

    def turns(self, model: int, *, after: int, limit: int) -> list[tuple[int, TurnVector]]:
        """(stamp, vector) of this model with a stamp after `after`, in the order of stamps."""
        return [
            (stamp, TurnVector(n, words, bool(asks), digest, vector))
            for stamp, n, words, asks, digest, vector in self._session.all(
                "turn_vectors", model=model, after=after, limit=limit
            )
        ]

    def turns_at(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """The vectors of these turns, as far as they have one."""
        return dict(self._session.all("turn_vectors_at", model=model, numbers=list(numbers)))

    def turn_digests(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """For those of these turns with a vector of this model, the digest of the text it was made from."""
        return dict(self._session.all("turn_digests", model=model, numbers=list(numbers)))

    def stale_turns(self, *, limit: int) -> list[int]:
        """Turns whose vector is out of date, in order."""
        return [n for (n,) in self._session.all("stale_turns", limit=limit)]

    def pending_turn_count(self, model: int | None, *, until: int) -> int:
        """How many turns up to this number have no vector of this model; None: of a model that was never used here."""
        after = 0 if model is None else self.embedded(model)
        return int(self._session.one("waiting_turns_count", model=model or 0, after=after, until=until)[0])

    def memories(self, model: int, *, after: int, limit: int) -> list[tuple[int, MemoryVector]]:
        """As `turns`, for memories whose vector is up to date."""
        return [
            (stamp, MemoryVector(*row))
            for stamp, *row in self._session.all("memory_vectors", model=model, after=after, limit=limit)
        ]

    def memories_of(self, model: int, ids: Sequence[str]) -> dict[str, bytes]:
        """The vectors of these memories, as far as they have one."""
        return dict(self._session.all("memory_vectors_of", model=model, ids=list(ids)))

    def memory_digests(self, model: int, ids: Sequence[str]) -> dict[str, bytes]:
        """As `turn_digests`, for memories."""
        return dict(self._session.all("memory_digests", model=model, ids=list(ids)))

    def pending_memories(self, *, limit: int) -> list[Memory]:
        """Memories without a vector of the current model."""
        return [rows.memory_from(row) for row in self._session.all("waiting_memories", limit=limit)]

    def pending_memory_count(self) -> int:
        """How many of them there are."""
        return int(self._session.one("waiting_count")[0])

    def spans(self, model: int, *, after: int, limit: int) -> list[tuple[int, SpanVector]]:
        """(stamp, vector) of this model with a stamp after `after`, in the order of stamps."""
        found = self._session.all("span_vectors", model=model, after=after, limit=limit)
        return [(stamp, SpanVector(n, digest, vector)) for stamp, n, digest, vector in found]

    def spans_at(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """The vectors of these spans, as far as they have one."""
        return dict(self._session.all("span_vectors_at", model=model, numbers=list(numbers)))

    def pending_spans(self, *, limit: int) -> list[tuple[int, str]]:
        """(n, text with the titles above it) of spans without a vector of the current model, in order."""
        return [(n, text) for n, text in self._session.all("spans_waiting", limit=limit)]

    def pending_span_count(self) -> int:
        """How many of them there are."""
        return int(self._session.one("spans_waiting_count")[0])

    def span_digests(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """As `turn_digests`, for spans."""
        return dict(self._session.all("span_digests", model=model, numbers=list(numbers)))


class VectorsWriter(VectorsReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def use_model(self, model_id: str, dimension: int) -> int:
        """Set the model in use; returns its number. With a new model, turns, memories and spans need new
        vectors. The old ones stay until they are replaced, and `replaced_model` names theirs until `end_replacement`."""
        number = self.model(model_id, dimension)
        if number is None:
            self._session.many("add_model", [(model_id, dimension)])
            number = self.model(model_id, dimension)
        assert number is not None
        before = self.current_model()
        if before != number:
            self._session.set_note("model", str(number))
            if before is not None and self.model_id(before) is not None:
                self._session.set_note(_REPLACED, str(before))
            for query in ("embed_anew", "embed_spans_anew", "forget_embedded") + (
                ("grow_generation",) if before else ()
            ):
                self._session.run(query)
        return number

    def end_replacement(self) -> None:
        """Everything has a vector of the current model."""
        self._session.set_note(_REPLACED, "")

    def add_turns(self, model: int, vectors: Sequence[TurnVector], *, until: int) -> None:
        """Add or replace vectors; every turn up to `until` has one then. Turns that no longer exist get none."""
        self._session.many("drop_turn_vector", [(vector.n,) for vector in vectors])
        self._session.many(
            "add_turn_vector",
            [
                (vector.n, vector.words, int(vector.asks), model, vector.digest, vector.vector)
                for vector in vectors
            ],
        )
        self._session.set_note(f"embedded:{model}", str(until))

    def reset_turns(self, numbers: Sequence[int]) -> None:
        """Remove the vectors of these turns, so that new ones are made."""
        self._session.many("embed_turn_again", [(n,) for n in numbers])

    def add_memories(self, model: int, vectors: Sequence[MemoryVector]) -> None:
        """Add or replace vectors. Memories that no longer exist get none."""
        self._session.many("drop_memory_vector", [(vector.id,) for vector in vectors])
        self._session.many(
            "add_memory_vector", [(vector.id, model, vector.digest, vector.vector) for vector in vectors]
        )
        self._session.many("set_embedded", [(model, vector.id) for vector in vectors])

    def keep_memories(self, model: int, ids: Sequence[str]) -> None:
        """Mark the existing vectors of these memories as up to date, with a new stamp."""
        self._session.many("stamp_memory_vector", [(id_,) for id_ in ids])
        self._session.many("set_embedded", [(model, id_) for id_ in ids])

    def add_spans(self, model: int, vectors: Sequence[SpanVector]) -> None:
        """Add or replace vectors. Spans that no longer exist get none."""
        self._session.many("drop_span_vector", [(vector.n,) for vector in vectors])
        self._session.many(
            "add_span_vector", [(vector.n, model, vector.digest, vector.vector) for vector in vectors]
        )
        self._session.many("set_span_embedded", [(model, vector.n) for vector in vectors])

    def keep_spans(self, model: int, numbers: Sequence[int]) -> None:
        """Mark the existing vectors of these spans as up to date, with a new stamp."""
        self._session.many("stamp_span_vector", [(n,) for n in numbers])
        self._session.many("set_span_embedded", [(model, n) for n in numbers])


class VectorSearch:
    """The vectors of a space that is too large to be loaded, found by an approximate index of the engine. The caller keeps a few
    kilobytes, and reads only what it asks for."""

    def __init__(self, connection: Connection, model: int, dimension: int) -> None:
        self._connection = connection
        self._model = {"model": model, "dimension": dimension}

    def memories(self, vector: Vector, *, limit: int, audience: Audience | None) -> list[NearMemory]:
        """The nearest that this audience may see, nearest first."""
        where = conditions.visible_to(audience) if audience is not None else conditions.WhereClause()
        found = self._execute("nearest_memories", where, limit=limit, query=_packed(vector), **self._model)
        return [NearMemory(*row) for row in found]

    def turns(
        self, vector: Vector | None, *, limit: int, also: Sequence[int], audience: Audience | None
    ) -> list[tuple[TurnHead, float | None]]:
        """The nearest that this audience may see, and those of these numbers, in the ledger's order, with how near each is;
        None for one without a vector."""
        where = conditions.of_turns(Filter(now=0, audience=audience))
        if vector is None:
            found = self._execute("large_heads", where, also=list(also))
        else:
            found = self._execute(
                "nearest_turns",
                where,
                limit=limit,
                query=_packed(vector),
                also=list(also),
                **self._model,
            )
        return [(TurnHead(*head), nearness) for *head, nearness in sorted(found)]

    def holders(self, stems: Sequence[str], *, turns: int, usual: float, each: int, best: int) -> WordHolders:
        """Turns that contain the stems. `turns` is about how many there are, `usual` how many words one has. A stem that `each`
        turns or more contain does not select."""
        names: dict[str, str] = {}
        for stem in stems:
            written = (
                self._connection.words.match("turn", [stem])[:_PREFIX_STEMS_MAX]
                if is_prefix(stem)
                else [index_key(stem)]
            )
            names.update(dict.fromkeys(written, stem))
        parameters = {"stems": list(names), "turns": turns, "usual": usual, "each": each, "best": best}
        found = self._connection.execute("large_holders", parameters)
        (_, written, counted, total, squares), *held = found
        counts = dict.fromkeys(stems, 0)
        for name, count in zip(written or (), counted or (), strict=True):
            counts[names[name]] += count
        by_turn: dict[int, dict[str, int]] = {}
        for n, stems_held, times, _, _ in held:
            of_turn = by_turn[n] = dict[str, int]()
            for name, count in zip(stems_held, times, strict=True):
                of_turn[names[name]] = of_turn.get(names[name], 0) + count
        return WordHolders(counts, by_turn, total or 0.0, squares or 0.0)

    def around(self, numbers: Sequence[int], *, reach: int) -> list[int]:
        """The turns just before and after these in their conversation."""
        found = self._connection.execute("large_around", {"numbers": list(numbers), "reach": reach})
        return [n for (n,) in found]

    def speakers(self, *, limit: int) -> list[str]:
        """The names of speakers."""
        return [name for (name,) in self._connection.execute("large_speakers", {"limit": limit})]

    def size(self) -> int:
        """How many turns there are, exactly; slow."""
        return int(self._connection.execute("large_size")[0][0])

    def some_turns(self, *, sittings: int, each: int, pause: int) -> list[int]:
        """Turns of some sittings, spread over the space, as a sample."""
        ((last, _),) = self._connection.execute("large_last")
        parameters = {"numbers": _spread(last, sittings), "each": each, "pause": pause}
        return [n for (n,) in self._connection.execute("large_sittings", parameters)]

    def some_memories(self, *, limit: int) -> list[str]:
        """Memories with a vector, spread over the space, as a sample."""
        ((_, last),) = self._connection.execute("large_last")
        parameters = {"numbers": _spread(last, limit), "model": self._model["model"]}
        return [id_ for (id_,) in self._connection.execute("large_memories", parameters)]

    def _execute(self, query: str, where: conditions.WhereClause, /, **parameters: Any) -> list[Any]:
        return self._connection.execute(query, {**where.parameters, **parameters}, str(where))


def _spread(last: int, count: int) -> list[int]:
    return [last * number // count for number in range(count)]


def _packed(vector: Vector) -> bytes:
    return vector.astype(np.float16).tobytes()


def searched(model: int) -> str:
    """The name of the note that says that the engine has an index for the vectors of this model."""
    return f"searched:{model}"
