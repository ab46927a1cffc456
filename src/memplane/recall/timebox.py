"""Answer within a time limit: the full result, else the quick one, else none."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Generic, TypeVar, TypeVarTuple

T = TypeVar("T")
U = TypeVar("U")
Ts = TypeVarTuple("Ts")

THREADS = 3
"""Recall is CPU-bound: more threads are not faster together, and each takes longer."""
_THOROUGH_SHARE = 0.3
"""The share of the time limit after which the quick result is computed in parallel."""
_SMOOTHING = 0.2
"""The weight of the last duration in the running average."""
_CLOSING_S = 5.0


class _Lane:
    """A thread pool, its queue length, and the recent duration of a task."""

    def __init__(self, threads: int, name: str, clock: Callable[[], float]) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._threads = threads
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting = 0
        self._seconds = 0.0

    def submit(self, work: Callable[[*Ts], U], *args: *Ts) -> "Future[U]":
        with self._lock:
            self._waiting += 1
        future = self._pool.submit(lambda: self._timed(work, *args))
        future.add_done_callback(self._release)
        return future

    def is_too_long(self, seconds: float) -> bool:
        """Whether a new task would not finish within this time. With an empty queue there is no prediction, so a slow
        phase ends by itself."""
        with self._lock:
            before = self._waiting // self._threads
            return before > 0 and before * self._seconds > seconds

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _timed(self, work: Callable[[*Ts], U], *args: *Ts) -> U:
        with self._lock:
            self._waiting -= 1
        started = self._clock()
        try:
            return work(*args)
        finally:
            took = self._clock() - started
            with self._lock:
                self._seconds += (took - self._seconds) * _SMOOTHING

    def _release(self, future: "Future[Any]") -> None:
        if future.cancelled():
            with self._lock:
                self._waiting -= 1


class TimeBox(Generic[T]):
    """Runs tasks with a time limit in its own threads. A late task still finishes, so the next finds warm caches; a
    task that has not begun in time is dropped, so nothing piles up."""

    def __init__(self, *, threads: int = THREADS, clock: Callable[[], float] = time.monotonic) -> None:
        self._thorough = _Lane(threads, "memplane-recall", clock)
        self._quick = _Lane(threads, "memplane-recall-quick", clock)
        self._late: set[Future[Any]] = set()
        self._clock = clock

    def answer(
        self, thorough: Callable[[], T], quick: Callable[[], T], *, seconds: float, late_s: float = 0.0
    ) -> T | None:
        """The first result in time, the full one preferred; errors go to the caller. If there is none, the first that
        is at most `late_s` late."""
        until = self._clock() + seconds
        first = self._thorough.submit(thorough)
        try:
            return first.result(max(0.0, seconds) * _THOROUGH_SHARE)
        except TimeoutError:
            if first.done():  # it was not late; it failed, and this is why
                return first.result()
        second = self._quick.submit(quick)
        wait([first], max(0.0, until - self._clock()))
        if not first.done() and not second.done():
            wait([first, second], late_s, FIRST_COMPLETED)
        self._give_up((first, second))
        return _done_first((first, second))

    async def awaited(self, thorough: Callable[[], T], quick: Callable[[], T], *, seconds: float) -> T | None:
        """The same on an event loop, without blocking a thread. A task that would be late because of the queue is not
        started."""
        until = self._clock() + seconds
        running: list[Future[T]] = []
        try:
            if not self._thorough.is_too_long(seconds):
                running.append(first := self._thorough.submit(thorough))
                await _until_done(first, seconds * _THOROUGH_SHARE)
                if first.done():
                    return first.result()
                if first.cancel():  # it has not begun, and would begin too late
                    running.clear()
            left = max(0.0, until - self._clock())
            if not self._quick.is_too_long(left):
                running.append(self._quick.submit(quick))
            if running:
                await _until_done(running[0], left)
        finally:  # the client may have disconnected
            self._give_up(running)
        return _done_first(running)

    async def quick(self, work: Callable[[*Ts], U], *args: *Ts, seconds: float) -> U | None:
        """A quick result, or None if it is late or fails."""
        looking = self._quick.submit(work, *args)
        try:
            await _until_done(looking, seconds)
        finally:
            self._give_up([looking])
        failed = not looking.done() or looking.cancelled() or looking.exception() is not None
        return None if failed else looking.result()

    def close(self) -> None:
        """Give late tasks a little time to finish, since the spaces they read are about to close."""
        self._thorough.close()
        self._quick.close()
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
    """The caller inspects the outcome."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def notify(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop was closed, so no one waits
            loop.call_soon_threadsafe(done.set)

    work.add_done_callback(notify)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await done.wait()
