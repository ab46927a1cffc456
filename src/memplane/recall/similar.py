"""What a search finds by meaning: memories and turns whose vectors are nearer to the query's than chance explains.

No similarity is high or low by itself: models differ, and so do queries. A text is therefore compared with the rest of
its space. The similarities of unrelated texts to a query are about normally distributed, so the number of deviations
above the mean says how many of them are expected to be as near (`_expected_by_chance`). A text is found if that number
is small compared with the number of related texts to expect, which depends on the query. A large space needs a nearer text for
this than a small one, and an unrelated query finds about as little in both.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from memplane.models.embedding import Vector, Vectors
from memplane.models.vectors import DEVIATION_MIN, Floats, dots, stored_dots
from memplane.recall.memory_index import MemoryIndex
from memplane.recall.turn_index import TurnColumns, TurnIndex
from memplane.storage.filter import Filter
from memplane.storage.numbers import turn_number
from memplane.storage.store import Reader
from memplane.storage.vectors import VectorSearch
from memplane.types import Memory, Turn

Key = TypeVar("Key")

UNRELATED_MAX = 3.0
"""A text is not found if more unrelated texts than this are expected to be as near, for each related one."""
REFERENCE_TEXTS = (
    "The train leaves at half past seven",
    "My brother bought a house by the lake",
    "The report is due on Friday",
    "She likes long walks in the forest",
    "The server was restarted last night",
    "We had pasta for dinner",
    "He studied history at university",
    "The meeting was moved to Tuesday",
    "The printer on the second floor is broken",
    "They are planning a trip to Norway",
    "The baby slept through the night",
    "Please send the invoice by email",
    "It rained all weekend",
    "The new version fixes three bugs",
    "I forgot my umbrella at the cinema",
    "Grandmother turned ninety in March",
)
"""A few texts have no meaningful mean and deviation. A smaller space than this is compared with these as well."""

_NEAREST = 1_000
_NEAREST_STORED = 200
"""Candidates in a space that is searched in the database."""
_MATCHING_MAX = 2_000
"""If no more rows than this pass the filter, all of them are compared. Else the nearest of the space are filtered."""
_READ = 100


class SimilarityQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query's vector, and what it is compared with."""

    vector: Vector
    model: int
    """The store's number of the embedding model."""
    reference: Callable[[], Vectors | None]
    """The vectors of `REFERENCE_TEXTS`; None if they cannot be embedded now."""
    expected: Callable[[float], float] = lambda _nearness: 1.0
    """How many related texts to expect, if the nearest one has this similarity."""


class _Usual(NamedTuple):
    """The similarities of all texts of a space."""

    mean: float
    deviation: float
    among: int
    """How many texts there are, as `_counted`."""


def similar_memories(
    reader: Reader, index: MemoryIndex, query: SimilarityQuery, where: Filter, limit: int
) -> list[tuple[Memory, float]]:
    """Memories that pass the filter, with how certainly each is related, from above 0 to 1; best first."""
    among = reader.memories.ids(where, limit=_MATCHING_MAX + 1) if where.is_narrow else None
    among = None if among is None or len(among) > _MATCHING_MAX else among
    if among is not None and not among:
        return []
    search = reader.vectors.search(query.model)
    if search is None:
        keys, compared = index.compare(
            reader, query.model, query.vector, limit=_NEAREST, audience=where.audience, among=among
        )
        usual, scores = _usual(compared.sample, compared.total, query), compared.scores
    else:
        keys, scores = _stored_memories(reader, search, query, where, among)
        mean, deviation = index.large.usual_nearness(reader, search, query.model, query.vector)
        usual = _Usual(mean, deviation, reader.state.marks().memory_stamp)
    usuals = [usual] if among is None else _of_filtered(scores, usual, query)
    ranked = _related(keys, scores, usuals, query)

    def read(ids: Sequence[str]) -> dict[str, Memory]:
        return {memory.id: memory for memory in reader.memories.get_many(ids, where)}

    return _first(ranked, read, limit)


def similar_turns(
    reader: Reader,
    indexes: tuple[TurnIndex, MemoryIndex],
    turns: TurnColumns,
    query: SimilarityQuery,
    where: Filter,
    limit: int,
) -> list[tuple[Turn, float]]:
    """As `similar_memories`, for turns."""
    among = reader.turns.numbers(where, limit=_MATCHING_MAX + 1) if where.is_narrow else None
    among = None if among is None or len(among) > _MATCHING_MAX else among
    if among is not None and not among:
        return []
    search = reader.vectors.search(query.model)
    if search is None:
        keys, scores, usual = _loaded_turns(reader, turns, query, where, among)
    else:
        keys, scores = _stored_turns(reader, search, query, where, among)
        turn_index, memory_index = indexes
        sample = memory_index.large.refresh(reader, search, query.model, turn_index.unindexed(reader)).sample
        usual = _usual(dots(sample.vectors, query.vector).astype(np.float64), sample.count, query)
    usuals = [usual] if among is None else _of_filtered(scores, usual, query)
    ranked = _related(keys, scores, usuals, query)

    def read(numbers: Sequence[int]) -> dict[int, Turn]:
        return {turn_number(turn.seq, turn.ordinal): turn for turn in reader.turns.at(numbers, where)}

    return _first(ranked, read, limit)


def _loaded_turns(
    reader: Reader, turns: TurnColumns, query: SimilarityQuery, where: Filter, among: Sequence[int] | None
) -> tuple[list[int], Floats, _Usual]:
    visible = turns.visible_to(where.audience)
    if visible is None:
        visible = np.ones(turns.count, np.bool_)
    chosen = None
    if among is not None:
        places, there = turns.find(np.array(sorted(among), np.int64))
        chosen = places[there]

    def read(
        places: np.ndarray[tuple[int], np.dtype[np.int64]],
    ) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        numbers = turns.n[places].tolist()
        packed = reader.vectors.turns_at(query.model, numbers)
        return stored_dots([packed.get(n) for n in numbers], query.vector)

    found = turns.vectors.compare(query.vector, _NEAREST, visible=visible, among=chosen, read=read)
    return turns.n[found.places].tolist(), found.scores, _usual(found.sample, found.total, query)


def _stored_memories(
    reader: Reader, search: VectorSearch, query: SimilarityQuery, where: Filter, among: Sequence[str] | None
) -> tuple[list[str], Floats]:
    """For a space too large to load."""
    if among is None:
        near = search.memories(query.vector, limit=_NEAREST_STORED, audience=where.audience)
        return [one.id for one in near], np.array([one.nearness for one in near], np.float64)
    packed = reader.vectors.memories_of(query.model, among)
    return list(packed), stored_dots(list(packed.values()), query.vector).astype(np.float64)


def _stored_turns(
    reader: Reader, search: VectorSearch, query: SimilarityQuery, where: Filter, among: Sequence[int] | None
) -> tuple[list[int], Floats]:
    if among is None:
        near = search.turns(query.vector, limit=_NEAREST_STORED, also=(), audience=where.audience)
        scores = [math.nan if nearness is None else nearness for _, nearness in near]
        return [head.n for head, _ in near], np.array(scores, np.float64)
    packed = reader.vectors.turns_at(query.model, among)
    return list(packed), stored_dots(list(packed.values()), query.vector).astype(np.float64)


def _usual(sample: Floats, count: int, query: SimilarityQuery) -> _Usual:
    values = sample[np.isfinite(sample)]
    if 0 < count < len(REFERENCE_TEXTS) and (others := query.reference()) is not None:
        values = np.concatenate([values, dots(others, query.vector).astype(np.float64)])
    if not len(values):
        return _Usual(0.0, 0.0, 0)
    return _Usual(float(values.mean()), float(values.std()), _counted(count))


def _counted(texts: int) -> int:
    """A few texts count as more, or every one of them would be found."""
    return texts if texts >= len(REFERENCE_TEXTS) else texts + len(REFERENCE_TEXTS)


def _of_filtered(scores: Floats, usual: _Usual, query: SimilarityQuery) -> list[_Usual]:
    """A text that passes a filter is compared with its space and with the other texts that pass. In a space about tea, a filter may
    let through one text about tea; in a conversation about tea, no text is nearer than the others."""
    count = len(scores)
    return [
        _Usual(usual.mean, usual.deviation, min(_counted(count), usual.among)),
        _usual(scores, count, query),
    ]


def _related(
    keys: Sequence[Key], scores: Floats, usuals: Sequence[_Usual], query: SimilarityQuery
) -> list[tuple[Key, float]]:
    """The related ones of these, best first: compared with each of `usuals`, and the best result counts."""
    known = scores[np.isfinite(scores)]
    expected = query.expected(float(known.max())) if len(known) else 0.0
    usuals = [usual for usual in usuals if usual.deviation >= DEVIATION_MIN]
    found = []
    for at in np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable").tolist():
        score = float(scores[at])
        by_chance = min((_expected_by_chance(score, usual) for usual in usuals), default=math.inf)
        if not by_chance <= UNRELATED_MAX * expected:  # also for one without a vector
            break
        found.append((keys[at], expected / (expected + by_chance)))
    return found


def _expected_by_chance(score: float, usual: _Usual) -> float:
    """How many unrelated texts are as near or nearer."""
    return usual.among * math.erfc((score - usual.mean) / usual.deviation / math.sqrt(2.0)) / 2.0


Found = TypeVar("Found")


def _first(
    ranked: Sequence[tuple[Key, float]], read: Callable[[Sequence[Key]], dict[Key, Found]], limit: int
) -> list[tuple[Found, float]]:
    """The first of these that the store returns: those that pass the filter and still exist."""
    found: list[tuple[Found, float]] = []
    for part in _parts(ranked):
        there = read([key for key, _ in part])
        found += [(there[key], certainty) for key, certainty in part if key in there]
        if len(found) >= limit:
            break
    return found[:limit]


def _parts(ranked: Sequence[tuple[Key, float]]) -> Iterator[Sequence[tuple[Key, float]]]:
    for begin in range(0, len(ranked), _READ):
        yield ranked[begin : begin + _READ]
