"""Pacing of enrichment: how much of it fits before a deadline, and where it makes way for requests."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from time import monotonic, process_time, thread_time

_SAMPLES = 16
_CALLS_TRUSTED = 2
_REFUSALS_MAX = 8
_SLICE_S = 0.05
"""How long to compute before the next look at the clock, or at requests."""
_STORING_SHARE = 0.05
"""The share of the time that is left for storing what was made."""
_MARGIN = 1.25
"""How much longer than usual a piece may take and still be in time."""


class Speed:
    """How long a unit of work takes: the lower quartile of the last times, since a busy machine makes calls slow and not
    quick. The first call may load a model, so the assumed time counts until there is a second one."""

    def __init__(self, assumed_s: float) -> None:
        self._assumed_s = assumed_s
        self._reset()

    def _reset(self) -> None:
        self._seconds = deque([self._assumed_s], maxlen=_SAMPLES)
        self._computing_s = deque([self._assumed_s], maxlen=_SAMPLES)
        self._calls = 0
        self._refused = 0

    def add(self, seconds: float, computing_s: float, units: float) -> None:
        self._calls += 1
        self._refused = 0
        for samples, took in ((self._seconds, seconds), (self._computing_s, computing_s)):
            if self._calls == _CALLS_TRUSTED:
                samples.popleft()
            samples.append(took / units)

    def refuse(self) -> None:
        """Not even one piece fits a budget. What is never done is never measured again, so after some time it is tried
        once more: the machine may just have been busy."""
        self._refused += 1
        if self._refused == _REFUSALS_MAX:
            self._reset()

    @property
    def is_measured(self) -> bool:
        return self._calls >= _CALLS_TRUSTED

    @property
    def unit_s(self) -> float:
        return _lower_quartile(self._seconds)

    @property
    def computing_s(self) -> float:
        """The part of it that this thread computes; a remote model only makes it wait."""
        return _lower_quartile(self._computing_s)


class Pace:
    """Limits a step of enrichment by the time it may take, by pieces between which requests come first, or not at all."""

    def __init__(
        self,
        *,
        seconds: float = inf,
        make_way: Callable[[], None] | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`is_stopped` ends a step between two pieces, as a deadline would."""
        self._clock = clock or time_spent()
        self._until = self._clock() + seconds * (1 - _STORING_SHARE)
        self._make_way = make_way
        self._is_stopped = is_stopped
        self._judged: set[Speed] = set()
        """Work that was done, or refused, within this time."""

    @property
    def is_over(self) -> bool:
        return self._clock() >= self._until

    def fitting(self, weights: Sequence[float], speed: Speed) -> int:
        """How many of the next pieces, of these weights, to do before asking again; 0 if the first would end too late.
        They take at most half of the remaining time, so that a wrong estimate does not miss the deadline, and one by one
        while there is none."""
        if self._is_stopped():
            return 0
        if self._make_way is not None:
            self._make_way()
        elif self._until == inf:
            return len(weights)
        if not weights or not self.has_time(speed, weights[0]):
            return 0
        left = self._until - self._clock()
        unit_s, computing_s = speed.unit_s, speed.computing_s
        if not speed.is_measured:
            return 1
        weight = 0.0
        for count, more in enumerate(weights):
            weight += more
            if count and (weight * unit_s > left / 2 or weight * computing_s > _SLICE_S):
                return count
        return len(weights)

    def has_time(self, speed: Speed, weight: float = 1.0) -> bool:
        """Whether a piece of this weight still fits."""
        left = self._until - self._clock()
        if left > 0 and weight * speed.unit_s * _MARGIN <= left:
            return True
        if speed not in self._judged:
            self._judged.add(speed)
            speed.refuse()
        return False

    @contextmanager
    def timed(self, speed: Speed, weight: float) -> Iterator[None]:
        """Measure work of this weight for the next estimate."""
        begun, computing = self._clock(), thread_time()
        yield
        self._judged.add(speed)
        speed.add(self._clock() - begun, thread_time() - computing, weight)


def _lower_quartile(samples: Sequence[float]) -> float:
    return sorted(samples)[(len(samples) - 1) // 4]


def time_spent() -> Callable[[], float]:
    """A clock that begins now: by the wall, or by the CPU where several cores work at once."""
    begun, begun_cpu = monotonic(), process_time()
    return lambda: max(monotonic() - begun, process_time() - begun_cpu)


UNHURRIED = Pace()
"""Everything at once."""
