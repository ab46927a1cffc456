"""Vectors in memory: compared exhaustively while they are few, preselected by codes when they are many.

A code has one bit per number of a vector: whether it is above the mean. Codes take a sixteenth of the space, and
comparing them is very fast; they only preselect candidates, which are compared exactly. In a very large space vectors
are not kept in memory at all: those of the candidates are read from the store.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memplane.models.embedding import Vector, Vectors

Floats = NDArray[np.float64]

Ints = NDArray[np.int64]

DEVIATIONS_MIN = 1.0
"""How many deviations above the mean a score must be to count as related."""
DEVIATION_MIN = 1e-9
"""A smaller deviation is rounding, not a difference."""

Usual = tuple[float, float]
"""The mean and the deviation of a channel."""


EXACT_MAX = 4_096
"""Up to this many vectors are compared exhaustively."""
CACHED_MAX = 400_000
"""Up to this many are kept in memory, one byte per number: 150 MB."""
_GROWTH = 1.5
_ROWS_MIN = 256
_WORD_BITS = 64

Codes = NDArray[np.uint64]
Places = NDArray[np.int64]
Small = NDArray[np.int8]
_STEPS = 127
_SAMPLE = 500


class Comparison(NamedTuple):
    """How near places are to a query, and how near the others are."""

    places: Ints
    scores: Floats
    """The dot product of each of the places."""
    sample: Floats
    """The dot products of a sample of all."""
    total: int
    """How many vectors there are."""


class VectorTable:
    """One row per place; a row may be missing. Rows are appended and may be replaced."""

    def __init__(self, dimension: int, *, exact_max: int = EXACT_MAX, kept_max: int = CACHED_MAX) -> None:
        self.dimension = dimension
        self._exact_max = exact_max
        self._kept_max = kept_max
        self._count = 0
        self._rows: Vectors | None = np.zeros((0, dimension), np.float32)
        """Used while all are compared."""
        self._small: Small | None = None
        """Used once codes preselect: one byte per number, and the scale of each row."""
        self._scale = np.zeros(0, np.float32)
        self._there = np.zeros(0, np.bool_)
        self._codes: list[Codes] | None = None
        """Word by word: the first 64 bits of every code, then the next."""
        self._middle: Vector = np.zeros(dimension, np.float32)

    @property
    def nbytes(self) -> int:
        """Memory used, about."""
        arrays = [self._rows, self._small, self._scale, self._there, *(self._codes or ())]
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def exact(self) -> bool:
        """Whether all are compared; else codes preselect."""
        return self._codes is None

    def extend(self, count: int) -> None:
        """Grow to `count` places; new ones have no vector yet."""
        if count > self._exact_max and self._codes is None:
            self._make_codes()
        if count > self._kept_max:
            self._small = None
        if self._rows is not None:
            self._rows = grown(self._rows, count)
        if self._small is not None:
            self._small, self._scale = grown(self._small, count), grown(self._scale, count)
        if self._codes is not None:
            self._codes = [grown(words, count) for words in self._codes]
        self._there = grown(self._there, count)
        self._count = count

    def put(self, places: Places, packed: Sequence[bytes]) -> None:
        """Set the vectors of these places, as stored."""
        if not len(places):
            return
        vectors = unpacked(packed)
        if self._rows is not None:
            self._rows[places] = vectors
        if self._codes is not None:
            if not self._middle.any():
                self._middle = vectors.mean(axis=0)
            for words, new in zip(self._codes, self._code(vectors), strict=True):
                words[places] = new
        if self._small is not None:
            self._small[places], self._scale[places] = _compressed(vectors)
        self._there[places] = True

    def scores(self, query: Vector, places: Places | None = None) -> NDArray[np.float32] | None:
        """The dot product with these places, or with all; NaN without a vector; None if only codes are kept."""
        chosen = slice(self._count) if places is None else places
        rows, small, scale = self._rows, self._small, self._scale  # a larger table may replace it at any time
        if rows is not None:
            scores = dots(rows[chosen], query)
        elif small is not None:
            scores = dots(small[chosen].astype(np.float32), query) * scale[chosen]
        else:
            return None
        return np.where(self._there[chosen], scores, np.float32(np.nan))

    def near(self, query: Vector, limit: int, among: NDArray[np.bool_] | None = None) -> Places:
        """The places whose codes differ least from the query's, unordered; limited to `among` if given."""
        assert self._codes is not None
        count, there = self._count, self._there
        if among is not None:
            there = there.copy()
            there[: len(among)] &= among
        differing = np.zeros(count, np.int16)
        for words, asked in zip(self._codes, self._code(query[None, :]), strict=True):
            differing += np.bitwise_count(words[:count] ^ asked)
        differing[~there[:count]] = np.iinfo(np.int16).max
        chosen: Places = np.argpartition(differing, limit)[:limit] if limit < count else np.arange(count)
        near: Places = chosen[there[chosen]]
        return near

    def compare(
        self,
        query: Vector,
        limit: int,
        *,
        visible: NDArray[np.bool_] | None,
        among: Places | None,
        read: Callable[[Places], NDArray[np.float32]],
    ) -> "Comparison":
        """Compare these places, or those nearest to the query, and a sample of all visible ones. `read` returns the dot
        products of places whose vectors are not kept here."""
        there = self._there[: self._count if visible is None else len(visible)]
        there = there if visible is None else there & visible
        everything: Places = np.flatnonzero(there)
        sample = everything if self.exact else everything[:: max(1, len(everything) // _SAMPLE)]
        if among is not None:
            places = among[self._there[among]]
        elif self.exact:
            places = everything
        else:
            places = self.near(query, limit, there)
            places = places[places < len(there)]
        wanted = np.concatenate([places, sample])
        kept = self.scores(query, wanted)
        scores = (read(wanted) if kept is None else kept).astype(np.float64)
        return Comparison(places, scores[: len(places)], scores[len(places) :], len(everything))

    def _make_codes(self) -> None:
        """Switch to codes. The current mean stays the threshold."""
        assert self._rows is not None
        rows, there = self._rows[: self._count], self._there[: self._count]
        if there.any():
            self._middle = rows[there].mean(axis=0)
        codes = self._code(rows)
        self._small, self._scale = _compressed(rows)
        self._codes, self._rows = codes, None

    def _code(self, vectors: Vectors) -> list[Codes]:
        """Which numbers are above the mean: without subtracting the mean, most bits would be equal in all codes."""
        bits = np.packbits(vectors > self._middle, axis=1)
        padded = np.zeros((len(vectors), -(-self.dimension // _WORD_BITS) * 8), np.uint8)
        padded[:, : bits.shape[1]] = bits
        return list(np.ascontiguousarray(padded.view(np.uint64).T))


def dots(vectors: Vectors, query: Vector) -> NDArray[np.float32]:
    """The dot product of every row with the query. Row by row: `@` would start threads, whose synchronisation takes
    twenty times as long as the product."""
    products: NDArray[np.float32] = np.vecdot(vectors, query)
    return products


def stored_dots(packed: Sequence[bytes | None], query: Vector) -> NDArray[np.float32]:
    """The dot product of each vector as stored; NaN without one."""
    scores = np.full(len(packed), np.nan, np.float32)
    there = [at for at, vector in enumerate(packed) if vector is not None]
    if there:
        scores[there] = dots(unpacked([vector for vector in packed if vector is not None]), query)
    return scores


def unpacked(packed: Sequence[bytes]) -> Vectors:
    return np.frombuffer(b"".join(packed), np.float16).reshape(len(packed), -1).astype(np.float32)


def _compressed(vectors: Vectors) -> tuple[Small, NDArray[np.float32]]:
    scale = np.abs(vectors).max(axis=1, initial=1e-9) / _STEPS
    return np.rint(vectors / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def grown(rows: NDArray, count: int) -> NDArray:  # type: ignore[type-arg]
    """The same rows with room for `count`; capacity grows geometrically, so appending stays cheap."""
    if count <= len(rows):
        return rows
    grown = np.zeros((max(count, int(len(rows) * _GROWTH), _ROWS_MIN), *rows.shape[1:]), rows.dtype)
    grown[: len(rows)] = rows
    return grown


def standard(
    values: Floats | NDArray[np.float32],
    sample: NDArray[np.bool_] | None = None,
    known_usual: Usual | None = None,
) -> Floats:
    """Scale to mean 0 and deviation 1 over the sample, or over all, unless both are known. Missing values (NaN)
    become 0, and so does a constant channel."""
    numbers = np.asarray(values, np.float64)
    if known_usual is not None:
        moved: Floats = (numbers - known_usual[0]) / known_usual[1]
        moved[~np.isfinite(moved)] = 0.0
        return moved
    usual = numbers if sample is None else numbers[sample]
    known = None if np.isfinite(usual.sum()) else np.isfinite(usual)
    usual = usual if known is None else usual[known]
    deviation = float(usual.std()) if len(usual) else 0.0
    if deviation < DEVIATION_MIN:
        return np.zeros(len(numbers))
    scaled: Floats = (numbers - usual.mean()) / deviation
    scaled[~np.isfinite(scaled)] = 0.0
    return scaled
