"""Pacing of enrichment: how much of it fits before a deadline, and where it makes way for requests."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from time import monotonic, thread_time

_SAMPLES = 16
_CALLS_TRUSTED = 2
_SLICE_S = 0.05
"""How long to compute before the next look at the clock, or at requests."""
_CHARS_PER_UNIT = 200


class Speed:
    """How long a unit of work takes: the shortest of the last times, so that one slow call does not make all later ones
    look slow. Of the first call, which may load a model, little can be learned, so the assumed time counts until there
    is a second one."""

    def __init__(self, assumed_s: float) -> None:
        self._samples = deque([(assumed_s, assumed_s)], maxlen=_SAMPLES)
        self._calls = 0

    def add(self, seconds: float, computing_s: float, units: float) -> None:
        self._calls += 1
        if self._calls == _CALLS_TRUSTED:
            self._samples.popleft()
        self._samples.append((seconds / units, computing_s / units))

    @property
    def is_measured(self) -> bool:
        return self._calls >= _CALLS_TRUSTED

    @property
    def unit_s(self) -> float:
        return min(seconds for seconds, _ in self._samples)

    @property
    def computing_s(self) -> float:
        """The part of it that uses this process's CPU; a remote model only makes it wait."""
        return min(computing_s for _, computing_s in self._samples)


class Pace:
    """Limits a step of enrichment by a deadline, by pieces between which requests come first, or not at all."""

    def __init__(
        self,
        *,
        seconds: float = inf,
        make_way: Callable[[], None] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock or monotonic
        self._until = self._clock() + seconds
        self._make_way = make_way

    @property
    def is_over(self) -> bool:
        return self._clock() >= self._until

    def fitting(self, weights: Sequence[float], speed: Speed) -> int:
        """How many of the next pieces, of these weights, to do before asking again; 0 if the first would end too late.
        They take at most half of the remaining time, so that a wrong estimate does not miss the deadline, and one by one
        while there is none."""
        if self._make_way is not None:
            self._make_way()
        elif self._until == inf:
            return len(weights)
        left = self._until - self._clock()
        unit_s, computing_s = speed.unit_s, speed.computing_s
        if not weights or left <= 0 or weights[0] * unit_s > left:
            return 0
        if not speed.is_measured:
            return 1
        weight = 0.0
        for count, more in enumerate(weights):
            weight += more
            if count and (weight * unit_s > left / 2 or weight * computing_s > _SLICE_S):
                return count
        return len(weights)

    @contextmanager
    def timed(self, speed: Speed, weight: float) -> Iterator[None]:
        """Measure work of this weight for the next estimate."""
        begun, computing = self._clock(), thread_time()
        yield
        speed.add(self._clock() - begun, thread_time() - computing, weight)


UNHURRIED = Pace()
"""Everything at once."""


def weight_of(chars: int) -> float:
    """What a text of this length costs: a fixed part, and a part that grows with it."""
    return 1 + chars / _CHARS_PER_UNIT
