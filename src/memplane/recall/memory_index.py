"""The vectors of a space's memories: a cache like `TurnIndex`. Texts and states are always read from the store."""

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memplane.models.embedding import Vector
from memplane.models.vectors import Comparison, Ints, VectorTable, dots, stored_dots, unpacked
from memplane.recall.large_spaces import LargeIndex
from memplane.storage.filter import EVERYWHERE, Audience
from memplane.storage.recall_reads import IndexChanges
from memplane.storage.state import Marks
from memplane.storage.store import Reader
from memplane.storage.vectors import MemoryVector, VectorSearch

_LOAD = 10_000
_SCANNED_PER_RESULT = 8
_STORED_MAX = 40
_GROUP_MIN = 8


class SimilarMemory(NamedTuple):
    """A memory whose vector is near the query's."""

    id: str
    turn: int | None
    """The number of its source turn."""
    deviations: float
    """Deviations above the mean of this space."""
    nearness: float
    """The dot product."""


def _deviations(scores: NDArray[np.float64], of: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How far each is above the mean of its kind, or of all if its kind is rare."""
    usual = scores[of] if int(of.sum()) >= _GROUP_MIN else scores
    spread = float(usual.std())
    return (scores - float(usual.mean())) / (spread or 1.0)


_ROW_BYTES = 200
"""An id, its place and its scope."""


class MemoryIndex:
    """The memories of one space. Thread-safe."""

    def __init__(self, model: tuple[str, int]) -> None:
        self._model = model
        self.large = LargeIndex()
        """Used instead of everything else if the space is too large to load."""
        self._lock = threading.Lock()
        self._forget_all()

    def _forget_all(self) -> None:
        self._marks: Marks | None = None
        self._ids: list[str] = []
        self._turns: list[int | None] = []
        self._stored_count = 0
        self._within: list[str | None] = []
        self._scoped = False
        self._places: dict[str, int] = {}
        self._stamp = 0
        self._vectors = VectorTable(self._model[1])

    @property
    def nbytes(self) -> int:
        """Memory used, about."""
        return self._vectors.nbytes + _ROW_BYTES * len(self._ids)

    @property
    def stamp(self) -> int:
        """The stamp of the last vector that was read."""
        return self._stamp

    def refresh(self, reader: Reader, changes: IndexChanges | None = None) -> None:
        """Bring the cache up to date."""
        with self._lock:
            self._refresh(reader, changes)

    def nearest(
        self, reader: Reader, model: int, query: Vector, limit: int, audience: Audience | None = EVERYWHERE
    ) -> list[SimilarMemory]:
        """The nearest memories within this audience's scope, nearest first, and the nearest stored ones in addition: a space has few of
        them and thousands that were read from turns."""
        search = reader.vectors.search(model)
        if search is not None:
            return self._searched(reader, search, model, query, limit, audience)
        with self._lock:
            self._refresh(reader)
            if not self._ids:
                return []
            vectors, ids, turns = self._vectors, self._ids, self._turns
            heard = self._visible_to(audience)
            stored = self._stored()
            if vectors.exact:
                places = np.arange(len(ids)) if heard is None else np.flatnonzero(heard)
            else:
                wanted = stored if heard is None else stored & heard
                places = np.union1d(
                    vectors.near(query, limit * _SCANNED_PER_RESULT, heard),
                    vectors.near(query, _STORED_MAX * _SCANNED_PER_RESULT, wanted),
                )
            kept = vectors.scores(query, places)
            if kept is not None:
                scores = kept.astype(np.float64)
            else:
                packed = reader.vectors.memories_of(model, [ids[place] for place in places])
                places = np.array([place for place in places if ids[place] in packed], np.int64)
                scores = dots(unpacked([packed[ids[place]] for place in places]), query).astype(np.float64)
            there = np.isfinite(scores)
            places, scores = places[there], scores[there]
            if not len(places):
                return []
            on_purpose = stored[places]
            deviations = np.where(
                on_purpose, _deviations(scores, on_purpose), _deviations(scores, ~on_purpose)
            )
            order = np.argsort(-scores, kind="stable")
            order = np.concatenate([order[:limit], order[limit:][on_purpose[order[limit:]]][:_STORED_MAX]])
            return [
                SimilarMemory(ids[at], turns[at], above, score)
                for at, above, score in zip(
                    places[order].tolist(), deviations[order].tolist(), scores[order].tolist(), strict=True
                )
            ]

    @property
    def stored_count(self) -> int:
        """How many memories with a vector were not read from a turn."""
        return self._stored_count

    def _stored(self) -> NDArray[np.bool_]:
        return np.fromiter((turn is None for turn in self._turns), np.bool_, len(self._turns))

    def compare(
        self,
        reader: Reader,
        model: int,
        query: Vector,
        *,
        limit: int,
        audience: Audience | None,
        among: Sequence[str] | None,
    ) -> tuple[list[str], Comparison]:
        """Compare these memories, or about `limit` of those nearest to the query, for a space that is small enough to be
        loaded. The ids are those of the compared places."""

        def read(places: Ints) -> NDArray[np.float32]:
            packed = reader.vectors.memories_of(model, [ids[at] for at in places])
            return stored_dots([packed.get(ids[at]) for at in places], query)

        with self._lock:
            self._refresh(reader)
            ids = self._ids
            chosen = (
                None
                if among is None
                else np.array([self._places[id_] for id_ in among if id_ in self._places], np.int64)
            )
            found = self._vectors.compare(
                query, limit, visible=self._visible_to(audience), among=chosen, read=read
            )
            return [ids[at] for at in found.places], found

    def _searched(
        self,
        reader: Reader,
        search: VectorSearch,
        model: int,
        query: Vector,
        limit: int,
        audience: Audience | None,
    ) -> list[SimilarMemory]:
        """For a space too large to load."""
        found = search.memories(query, limit=limit, audience=audience)
        if not found:
            return []
        usual, deviation = self.large.usual_nearness(reader, search, model, query)
        return [
            SimilarMemory(near.id, near.turn, (near.nearness - usual) / deviation, near.nearness)
            for near in found
        ]

    def _visible_to(self, audience: Audience | None) -> NDArray[np.bool_] | None:
        """Which memories are in scope; None if all are."""
        if audience is None or not self._scoped:
            return None
        return np.fromiter((audience.hears(within) for within in self._within), np.bool_, len(self._within))

    def _refresh(self, reader: Reader, changes: IndexChanges | None = None) -> None:
        marks = reader.state.marks()
        if marks.was_reset_since(self._marks):
            self._forget_all()
        elif not marks.continues(self._marks):
            return
        more = True
        while more:
            found = self._stamped(reader, changes)
            if not found:
                break
            rows = [row for _, row in found if row.vector is not None]
            for row in rows:
                if row.id not in self._places:
                    self._places[row.id] = len(self._ids)
                    self._ids.append(row.id)
                    self._turns.append(row.turn)
                    self._stored_count += row.turn is None
                    self._within.append(row.within)
                    self._scoped = self._scoped or row.within is not None
            self._vectors.extend(len(self._ids))
            places = np.array([self._places[row.id] for row in rows], np.int64)
            self._vectors.put(places, [row.vector for row in rows if row.vector is not None])
            self._stamp = found[-1][0]
            more = len(found) == _LOAD
        self._marks = marks

    def _stamped(self, reader: Reader, changes: IndexChanges | None) -> list[tuple[int, MemoryVector]]:
        if changes is not None and changes.since.memory_stamp == self._stamp:
            return changes.memory_vectors
        model = reader.vectors.model(*self._model)
        return [] if model is None else reader.vectors.memories(model, after=self._stamp, limit=_LOAD)
