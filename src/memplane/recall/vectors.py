"""Vectors in memory: all of them while that is fast, and one bit a number of each when a space outgrows it.

Codes need an eighth of a byte a number where vectors need four. They only choose whom to look at: the vectors of the
chosen are read from the store and compared exactly.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memplane.providers.embedding import Vector, Vectors

EXACT_MAX = 32_768
"""So many vectors are compared one by one; it takes 3 ms and 50 MB."""
_GROWTH = 1.5
_ROWS_MIN = 256
_WORD_BITS = 64

Codes = NDArray[np.uint64]
Places = NDArray[np.int64]


class VectorTable:
    """One row a place; a row may be missing. Rows are added at the end and may be replaced."""

    def __init__(self, dimension: int, *, exact_max: int = EXACT_MAX) -> None:
        self.dimension = dimension
        self._exact_max = exact_max
        self._count = 0
        self._rows: Vectors | None = np.full((0, dimension), np.nan, np.float32)
        self._codes: Codes = np.zeros((0, -(-dimension // _WORD_BITS)), np.uint64)
        self._coded = np.zeros(0, np.bool_)
        self._middle: Vector = np.zeros(dimension, np.float32)

    @property
    def exact(self) -> bool:
        """Whether every vector is here; else only codes are."""
        return self._rows is not None

    def extend(self, count: int) -> None:
        """Make room up to `count` places; new ones have no vector yet."""
        if count > self._exact_max and self._rows is not None:
            self._give_up_rows()
        if self._rows is not None:
            self._rows = _grown(self._rows, count, np.nan)
        else:
            self._codes = _grown(self._codes, count, 0)
            self._coded = _grown(self._coded, count, value=False)
        self._count = count

    def put(self, places: Places, packed: Sequence[bytes]) -> None:
        """Give these places their vectors, as they are stored."""
        if not len(places):
            return
        vectors = unpacked(packed)
        if self._rows is not None:
            self._rows[places] = vectors
        else:
            if not self._middle.any():
                self._middle = vectors.mean(axis=0)
            self._codes[places] = self._code(vectors)
            self._coded[places] = True

    def scores(self, query: Vector) -> NDArray[np.float32] | None:
        """The dot product with every place, NaN where there is no vector; None where only codes are here."""
        rows = self._rows
        if rows is None:
            return None
        scores: NDArray[np.float32] = rows[: self._count] @ query
        return scores

    def near(self, query: Vector, limit: int) -> Places:
        """The places whose codes differ least from the question's, in no order."""
        differing = np.bitwise_count(self._codes[: self._count] ^ self._code(query[None, :])).sum(
            axis=1, dtype=np.int64
        )
        differing[~self._coded[: self._count]] = self.dimension + 1
        if limit >= self._count:
            return np.flatnonzero(differing <= self.dimension)
        chosen: Places = np.argpartition(differing, limit)[:limit]
        near: Places = chosen[differing[chosen] <= self.dimension]
        return near

    def _give_up_rows(self) -> None:
        assert self._rows is not None
        rows = self._rows[: self._count]
        there = ~np.isnan(rows[:, 0]) if self.dimension else np.zeros(len(rows), np.bool_)
        if there.any():
            self._middle = rows[there].mean(axis=0)
        self._codes = self._code(np.nan_to_num(rows))
        self._coded = there
        self._rows = None

    def _code(self, vectors: Vectors) -> Codes:
        """Which numbers lie above the middle: without the middle taken out, most bits would be the same in all."""
        bits = np.packbits(vectors > self._middle, axis=1)
        padded = np.zeros((len(vectors), self._codes.shape[1] * 8), np.uint8)
        padded[:, : bits.shape[1]] = bits
        return padded.view(np.uint64)


def unpacked(packed: Sequence[bytes]) -> Vectors:
    return np.frombuffer(b"".join(packed), np.float16).reshape(len(packed), -1).astype(np.float32)


def _grown(rows: NDArray, count: int, value: float) -> NDArray:  # type: ignore[type-arg]
    """The same rows with room for `count`; room grows faster than rows, so that adding one by one stays cheap."""
    if count <= len(rows):
        return rows
    grown = np.full((max(count, int(len(rows) * _GROWTH), _ROWS_MIN), *rows.shape[1:]), value, rows.dtype)
    grown[: len(rows)] = rows
    return grown
