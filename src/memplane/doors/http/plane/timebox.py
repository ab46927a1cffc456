"""An answer by a certain time: the thorough one, or else the quick one, or else none."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

T = TypeVar("T")

THREADS = 3
"""Recalling is work for the processor: more at once are not faster together, and each of them takes longer."""
_THOROUGH_SHARE = 0.6
"""So much of the time is the thorough one alone; then the quick one starts beside it."""
_CLOSING_S = 5.0


class TimeBox(Generic[T]):
    """Runs what may take too long in threads of its own. What is late goes on, so that the next finds warm caches; what
    has not begun by then never does, so that nothing piles up."""

    def __init__(self, *, threads: int = THREADS, clock: Callable[[], float] = time.monotonic) -> None:
        self._thorough = ThreadPoolExecutor(threads, "memplane-recall")
        self._quick = ThreadPoolExecutor(threads, "memplane-recall-quick")
        self._late: set[Future[T]] = set()
        self._clock = clock

    def answer(self, thorough: Callable[[], T], quick: Callable[[], T], *, seconds: float) -> T | None:
        """The first that is there in time, the thorough one rather than the quick one; errors are the caller's."""
        until = self._clock() + seconds
        first = self._thorough.submit(thorough)
        try:
            return first.result(seconds * _THOROUGH_SHARE)
        except TimeoutError:
            if first.done():  # it did not take too long; this is what went wrong in it
                return first.result()
        second = self._quick.submit(quick)
        wait([first], max(0.0, until - self._clock()))
        for late in (first, second):
            if not late.done() and not late.cancel():
                self._late.add(late)
                late.add_done_callback(self._late.discard)
        for done in (first, second):
            if done.done() and not done.cancelled():
                return done.result()
        return None

    def close(self) -> None:
        """What is late gets a little time to end, since the spaces it reads are about to be closed."""
        self._thorough.shutdown(wait=False, cancel_futures=True)
        self._quick.shutdown(wait=False, cancel_futures=True)
        wait(list(self._late), _CLOSING_S)
