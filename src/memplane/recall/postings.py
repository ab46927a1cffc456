"""Which turns or spans hold a word: what the store said last, for the words asked for last."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

_KEPT = 512

Numbers = NDArray[np.int64]
Counts = NDArray[np.float64]


class Postings:
    """By stem, the numbers that hold it and how often each does. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Hashable, Numbers, Counts]] = OrderedDict()

    def of(self, stem: str, state: Hashable, read: Callable[[str], Sequence[int]]) -> tuple[Numbers, Counts]:
        """Read anew where the index is in another `state` than when it was read; `read` gives each number once for each
        time it holds the stem."""
        with self._lock:
            known = self._kept.get(stem)
        if known is None or known[0] != state:
            numbers, counts = np.unique(np.array(read(stem), np.int64), return_counts=True)
            known = (state, numbers, counts.astype(np.float64))
            with self._lock:
                self._kept[stem] = known
                self._kept.move_to_end(stem)
                if len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
        return known[1], known[2]


def places_of(numbers: Numbers, among: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Where these numbers would stand in a column of ascending ones, and whether they do."""
    if not len(among):
        return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
    places = np.minimum(np.searchsorted(among, numbers), len(among) - 1)
    return places, among[places] == numbers
