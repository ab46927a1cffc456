"""An answer by a certain time: the thorough one, or else the quick one, or else none."""

import asyncio
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Generic, TypeVar, TypeVarTuple

T = TypeVar("T")
U = TypeVar("U")
Ts = TypeVarTuple("Ts")

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
        self._late: set[Future[Any]] = set()
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
        self._give_up((first, second))
        return _done_first((first, second))

    async def awaited(self, thorough: Callable[[], T], quick: Callable[[], T], *, seconds: float) -> T | None:
        """The same where many wait on one event loop, and none of them may take a thread for that."""
        until = self._clock() + seconds
        running = [first := self._thorough.submit(thorough)]
        try:
            await _until_done(first, seconds * _THOROUGH_SHARE)
            if not first.done():
                running.append(self._quick.submit(quick))
                await _until_done(first, max(0.0, until - self._clock()))
        finally:  # whoever asked may have hung up
            self._give_up(running)
        return _done_first(running)

    async def glance(self, work: Callable[[*Ts], U], *args: *Ts, seconds: float) -> U | None:
        """Something quick, or None where that takes too long or fails."""
        looking = self._quick.submit(work, *args)
        try:
            await _until_done(looking, seconds)
        finally:
            self._give_up([looking])
        failed = not looking.done() or looking.cancelled() or looking.exception() is not None
        return None if failed else looking.result()

    def close(self) -> None:
        """What is late gets a little time to end, since the spaces it reads are about to be closed."""
        self._thorough.shutdown(wait=False, cancel_futures=True)
        self._quick.shutdown(wait=False, cancel_futures=True)
        wait(list(self._late), _CLOSING_S)

    def _give_up(self, running: Iterable[Future[Any]]) -> None:
        for late in running:
            if not late.done() and not late.cancel():
                self._late.add(late)
                late.add_done_callback(self._late.discard)


def _done_first(answers: Iterable[Future[T]]) -> T | None:
    for answer in answers:
        if answer.done() and not answer.cancelled():
            return answer.result()
    return None


async def _until_done(work: Future[Any], seconds: float) -> None:
    """Whether it went well is for whoever looks at it."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile, so nobody waits
            loop.call_soon_threadsafe(done.set)

    work.add_done_callback(tell)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await done.wait()
