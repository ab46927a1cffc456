"""A cache of which turns or spans contain a word, for the words of the last queries."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

CACHED_MAX = 2_000_000
"""How many occurrences are cached: 32 MB."""

Numbers = NDArray[np.int64]
Counts = NDArray[np.float64]


class Postings:
    """By stem, the numbers that contain it and how often each does. Safe to use from many threads."""

    def __init__(self, *, kept_max: int = CACHED_MAX) -> None:
        self._kept_max = kept_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Hashable, Numbers, Counts]] = OrderedDict()
        self._size = 0

    @property
    def nbytes(self) -> int:
        """Memory used, about: a number and a count for each occurrence."""
        return 16 * self._size

    def __contains__(self, stem: str) -> bool:
        with self._lock:
            return stem in self._kept

    def unknown(self, stems: Iterable[str], state: Hashable) -> list[str]:
        """Those of these stems that are not cached."""
        with self._lock:
            return [stem for stem in stems if stem not in self._kept or self._kept[stem][0] != state]

    def of(self, stem: str, state: Hashable, read: Callable[[str], Sequence[int]]) -> tuple[Numbers, Counts]:
        """The numbers that contain a stem and how often. Read again if the `state` of the index has changed;
        `read` returns each number once for each occurrence."""
        with self._lock:
            known = self._kept.get(stem)
        if known is None or known[0] != state:
            numbers, counts = np.unique(np.array(read(stem), np.int64), return_counts=True)
            known = (state, numbers, counts.astype(np.float64))
            self._keep(stem, known)
        return known[1], known[2]

    def _keep(self, stem: str, found: tuple[Hashable, Numbers, Counts]) -> None:
        with self._lock:
            before = self._kept.pop(stem, None)
            self._kept[stem] = found
            self._size += _size(found) - (0 if before is None else _size(before))
            while self._size > self._kept_max and len(self._kept) > 1:
                self._size -= _size(self._kept.popitem(last=False)[1])


def _size(found: tuple[Hashable, Numbers, Counts]) -> int:
    """The size of a word in the cache; a word that does not occur has a size, too."""
    return len(found[1]) + 1


def places_of(numbers: Numbers, among: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """The position of each number in a sorted column, and whether the column contains it."""
    if not len(among):
        return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(among, numbers), len(among) - 1)
    return places, among[places] == numbers
