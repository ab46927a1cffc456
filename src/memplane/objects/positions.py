"""Sets of positions in a replica's own chain, kept as runs: what is pushed and pulled in order is one run, however long."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

Run = tuple[int, int]
"""The first and the last of positions without a gap."""


class Positions:
    """A set of positive whole numbers. Never changed: what is added or taken away gives another one."""

    __slots__ = ("_runs",)

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        """Runs in any order, and they may overlap."""
        self._runs = _joined(sorted(runs))

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "Positions":
        return cls((number, number) for number in numbers)

    @property
    def runs(self) -> Sequence[Run]:
        """In order, apart from each other."""
        return self._runs

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._runs, number, key=lambda run: run[0]) - 1
        return place >= 0 and number <= self._runs[place][1]

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self._runs)

    def __iter__(self) -> Iterator[int]:
        for first, last in self._runs:
            yield from range(first, last + 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Positions) and self._runs == other._runs

    def __hash__(self) -> int:
        return hash(self._runs)

    def __or__(self, other: "Positions") -> "Positions":
        return Positions((*self._runs, *other._runs))

    def missing(self, last: int) -> "Positions":
        """Those from 1 to `last` that are not among these."""
        ends = ((0, 0), *self._runs, (last + 1, last + 1))
        return Positions(
            (before[1] + 1, min(after[0] - 1, last))
            for before, after in pairwise(ends)
            if before[1] + 1 <= min(after[0] - 1, last)
        )

    def __sub__(self, other: "Positions") -> "Positions":
        last = self._runs[-1][1] if self._runs else 0
        return self & other.missing(last)

    def __and__(self, other: "Positions") -> "Positions":
        found: list[Run] = []
        left, right = 0, 0
        while left < len(self._runs) and right < len(other._runs):
            mine, theirs = self._runs[left], other._runs[right]
            first, last = max(mine[0], theirs[0]), min(mine[1], theirs[1])
            if first <= last:
                found.append((first, last))
            if mine[1] < theirs[1]:
                left += 1
            else:
                right += 1
        return Positions(found)

    def __repr__(self) -> str:
        return f"Positions({list(self._runs)!r})"


def _joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    found: list[Run] = []
    for first, last in runs:
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def union(sets: Iterable[Positions]) -> Positions:
    """All of them in one."""
    return Positions(run for one in sets for run in one.runs)
