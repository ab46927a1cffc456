"""After a turn: it is in the ledger before the client sees its end, or as soon as the ledger can be written again.

A client never waits longer for this than `proxy_retain_ms`, and never hears of it. What could not be written in time waits
in memory and in a file of its own, and is tried again until it is written, after a restart too.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from memplane.config import Settings
from memplane.engine import Engine
from memplane.errors import InvalidRequest, MemplaneError
from memplane.governance.events import Listener
from memplane.governance.fence import SERVICE
from memplane.services.outcome import MemoryStatus, Outcome, event_of
from memplane.turns.pending import FOLDER, Kept, Pending
from memplane.types import TENANT_DEFAULT, Caller

Record = Callable[[str, bytes], None]
"""Writes a line of an agent's session history."""
Made = Callable[[], Kept]
"""A turn as it is kept. Making it may take a while, so it is called in a thread, and may be called again."""

THREADS = 8
_RETRY_S = (0.25, 1.0, 2.0, 5.0, 15.0)
_CLOSING_S = 5.0
_log = logging.getLogger("memplane.proxy")


class Keeper:
    """Writes turns, and remembers those that are not written yet. Belongs to one event loop."""

    def __init__(
        self,
        plane: Engine,
        settings: Settings,
        listener: Listener,
        *,
        door: str,
        record: Record | None = None,
    ) -> None:
        self._plane = plane
        self._listener = listener
        self._door = door
        self._record = record
        self._seconds = settings.proxy_retain_ms / 1_000
        self._threads = ThreadPoolExecutor(THREADS, "memplane-keep")
        self._waiting: set[asyncio.Task[None]] = set()
        self._late = 0
        # Where everything on disk is encrypted, a file beside it must not be plain.
        self._pending = Pending(None if settings.key else settings.folder / FOLDER)

    async def keep(self, turn: Made) -> bool:
        """Wait until it is durable, or until it is clear that this takes longer; whether it is."""
        first = self._attempt(turn)
        done, _ = await asyncio.wait({first}, timeout=self._seconds)
        if done and first.exception() is None:
            return True
        self._hold(asyncio.ensure_future(self._later(turn, first)))
        return False

    def degraded(self) -> tuple[str, ...]:
        return ("proxy_retain",) if self._late else ()

    def resume(self) -> None:
        """Take up what a process before this one did not get to."""
        for file, kept in self._pending.left_over():
            self._hold(asyncio.ensure_future(self._retried(partial(_as_it_is, kept), file)))

    async def close(self) -> None:
        """Give what waits a little time. What is not written by then is in its file."""
        if self._waiting:
            await asyncio.wait(self._waiting, timeout=min(_CLOSING_S, self._seconds))
        for task in self._waiting:
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _hold(self, task: asyncio.Task[None]) -> None:
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _later(self, turn: Made, first: "asyncio.Future[None]") -> None:
        file = await asyncio.get_running_loop().run_in_executor(None, lambda: self._pending.put(turn()))
        await self._retried(turn, file, first)

    async def _retried(
        self, turn: Made, file: Path | None, attempt: "asyncio.Future[None] | None" = None
    ) -> None:
        self._late += 1
        try:
            for wait_s in _waits():
                try:
                    await asyncio.shield(attempt or self._attempt(turn))
                    break
                except InvalidRequest as exc:  # it can never be written, however often it is tried
                    _log.error("a turn of %s cannot be kept: %s", turn().owner, exc)
                    break
                except Exception as exc:  # noqa: BLE001 - whatever is wrong with memory, the turn is not lost
                    code = exc.code if isinstance(exc, MemplaneError) else type(exc).__name__
                    _log.warning("a turn waits to be kept: %s", code)
                attempt = None
                await asyncio.sleep(wait_s)
        finally:
            self._late -= 1
        if file is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._pending.drop, file)

    def _attempt(self, turn: Made) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().run_in_executor(self._threads, lambda: self._write(turn()))

    def _write(self, kept: Kept) -> None:
        caller = Caller(kept.actor, self._door, kept.conversation)
        space = self._plane.space(kept.owner, tenant=kept.tenant, caller=caller).untold()
        with self._telling(kept):
            retained = space.retain_entry(kept.line, pins=kept.pins)
        if self._record is None or retained.deduped or retained.suppressed:
            return
        # A folder there is an agent's, whoever has a space of that name elsewhere.
        if kept.tenant == TENANT_DEFAULT:
            with suppress(OSError, MemplaneError):  # the ledger has it; what is beside it is best effort
                self._record(kept.owner, kept.history)

    @contextmanager
    def _telling(self, kept: Kept) -> Iterator[None]:
        """One `memory_op` for each attempt."""
        started, error = time.perf_counter(), ""
        try:
            yield
        except Exception as exc:
            error = exc.code if isinstance(exc, MemplaneError) else type(exc).__name__
            raise
        finally:
            outcome = Outcome(
                operation="retain",
                status=MemoryStatus.FAILED if error else MemoryStatus.SUCCEEDED,
                latency_ms=int((time.perf_counter() - started) * 1_000),
                error=error,
            )
            now = self._plane.clock()
            self._listener(event_of(outcome, service=SERVICE, agent=kept.owner, model=kept.model, now=now))


def _as_it_is(kept: Kept) -> Kept:
    return kept


def _waits() -> Iterator[float]:
    yield from _RETRY_S
    while True:
        yield _RETRY_S[-1]
