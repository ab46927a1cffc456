"""The vectors of a space's memories: a cache like `TurnIndex`. What a memory says and whether it still holds is always
read from the store."""

import threading

import numpy as np
from numpy.typing import NDArray

from memplane.providers.embedding import Vector
from memplane.recall.vectors import VectorTable, unpacked
from memplane.storage.base import Marks, Reader

_LOAD = 10_000


class MemoryIndex:
    """The memories of one space. Safe to use from many threads."""

    def __init__(self, model: tuple[str, int]) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._marks: Marks | None = None
        self._forget_all()

    def _forget_all(self) -> None:
        self._ids: list[str] = []
        self._places: dict[str, int] = {}
        self._stamp = 0
        self._vectors = VectorTable(self._model[1])

    def nearest(self, reader: Reader, model: int, query: Vector, limit: int) -> list[tuple[str, float]]:
        """(id, deviations above what is usual) of the memories nearest to the question, nearest first."""
        with self._lock:
            self._refresh(reader, model)
            if not self._ids:
                return []
            if self._vectors.exact:
                scores = self._vectors.scores(query)
                chosen = np.flatnonzero(np.isfinite(scores))
            else:
                chosen = self._vectors.near(query, limit * 8)
            ids = [self._ids[place] for place in chosen]
        if not self._vectors.exact:
            return _compared(reader, model, ids, query, limit)
        return _nearest(ids, scores[chosen].astype(np.float64), limit)

    def _refresh(self, reader: Reader, model: int) -> None:
        marks = reader.marks()
        if self._marks is None or marks.generation > self._marks.generation:
            self._forget_all()
        while found := reader.memory_vectors(model, after=self._stamp, limit=_LOAD):
            rows = [row for _, row in found if row.vector is not None]
            for row in rows:
                if row.id not in self._places:
                    self._places[row.id] = len(self._ids)
                    self._ids.append(row.id)
            self._vectors.extend(len(self._ids))
            places = np.array([self._places[row.id] for row in rows], np.int64)
            self._vectors.put(places, [row.vector for row in rows if row.vector is not None])
            self._stamp = found[-1][0]
        self._marks = marks


def _compared(
    reader: Reader, model: int, ids: list[str], query: Vector, limit: int
) -> list[tuple[str, float]]:
    packed = reader.memory_vectors_of(model, ids)
    there = [id_ for id_ in ids if id_ in packed]
    if not there:
        return []
    return _nearest(there, (unpacked([packed[id_] for id_ in there]) @ query).astype(np.float64), limit)


def _nearest(ids: list[str], scores: NDArray[np.float64], limit: int) -> list[tuple[str, float]]:
    if not len(ids):
        return []
    deviation = float(scores.std()) or 1.0
    order = np.argsort(-scores, kind="stable")[:limit]
    return [(ids[at], float((scores[at] - scores.mean()) / deviation)) for at in order]
