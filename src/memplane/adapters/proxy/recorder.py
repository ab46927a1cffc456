"""After a turn: it is in the ledger before the client sees its end, or as soon as the ledger can be written again.

A client never waits longer for this than `proxy_retain_ms`, and never hears of it. What could not be written in time waits
in memory and in a file of its own, and is tried again until it is written, after a restart too."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from memplane.adapters.clawdapus.outcome import MemoryStatus, ServiceOutcome, event_of
from memplane.config import Settings
from memplane.engine import Engine
from memplane.entropy import random_bytes
from memplane.errors import InvalidRequest, MemplaneError
from memplane.safety.fence import SERVICE
from memplane.telemetry import Listener
from memplane.types import TENANT_DEFAULT, Caller, PinnedTexts

# Turns that could not be written yet: each waits in a file of its own, so that the next process finds it.


DIRECTORY = "proxy-pending"


class PendingTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn on its way into the ledger."""

    tenant: str
    owner: str
    actor: str
    conversation: str
    model: str = ""
    """As the agent named it."""
    line: bytes
    """As the ledger keeps it: without what went upstream, which holds memories that may have to be forgotten."""
    history: bytes
    """As the session history has it. Both have the same id."""
    pins: PinnedTexts | None = None
    """What was told for it and must be told again in the same words. Not in the file: by the time somebody finds that,
    the conversation is over."""


_FILE: msgspec.msgpack.Decoder[PendingTurn] = msgspec.msgpack.Decoder(PendingTurn)
_encode = msgspec.msgpack.Encoder().encode


class PendingTurns:
    """The files of one data directory. Nothing in here raises: a turn that cannot wait in a file waits in memory."""

    def __init__(self, folder: Path | None) -> None:
        """None keeps no files, for a directory in which everything is encrypted."""
        self._folder = folder

    def put(self, kept: PendingTurn) -> Path | None:
        """A file for a turn that waits; None where that is not possible either."""
        folder = self._folder
        if folder is None:
            return None
        name = folder / f"{os.getpid()}-{random_bytes(8).hex()}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(name.with_suffix(".new"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:  # noqa: PTH123
                file.write(_encode(msgspec.structs.replace(kept, pins=None)))
                file.flush()
                os.fsync(file.fileno())
            name.with_suffix(".new").rename(name)
        except OSError:
            return None
        return name

    def drop(self, file: Path) -> None:
        with suppress(OSError):  # what is written twice is kept once
            file.unlink(missing_ok=True)

    def orphaned(self) -> Iterator[tuple[Path, PendingTurn]]:
        """Files whose process is gone; they are ours from now on."""
        folder = self._folder
        if folder is None or not folder.is_dir():
            return
        for file in sorted(folder.iterdir()):
            pid = file.name.partition("-")[0]
            if file.suffix or not pid.isdecimal() or _lives(int(pid)):
                continue
            try:
                taken = file.rename(file.with_name(f"{os.getpid()}-{file.name.partition('-')[2]}"))
                yield taken, _FILE.decode(taken.read_bytes())
            except (OSError, msgspec.DecodeError):
                continue


def _lives(pid: int) -> bool:
    """Whether another process has this number; our own had nothing to keep before now."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


Record = Callable[[str, bytes], None]
"""Writes a line of an agent's session history."""
TurnFactory = Callable[[], PendingTurn]
"""A turn as it is kept. Making it may take a while, so it is called in a thread, and may be called again."""

THREADS = 8
_RETRY_S = (0.25, 1.0, 2.0, 5.0, 15.0)
_CLOSING_S = 5.0
_log = logging.getLogger("memplane.proxy")


class TurnRecorder:
    """Writes turns, and remembers those that are not written yet. Belongs to one event loop."""

    def __init__(
        self,
        plane: Engine,
        settings: Settings,
        listener: Listener,
        *,
        adapter: str,
        record: Record | None = None,
    ) -> None:
        self._plane = plane
        self._listener = listener
        self._adapter = adapter
        self._record = record
        self._seconds = settings.proxy_retain_ms / 1_000
        self._threads = ThreadPoolExecutor(THREADS, "memplane-keep")
        self._waiting: set[asyncio.Task[None]] = set()
        self._late = 0
        # Where everything on disk is encrypted, a file beside it must not be plain.
        self._pending = PendingTurns(None if settings.key else settings.folder / DIRECTORY)

    async def record(self, turn: TurnFactory) -> bool:
        """Wait until it is durable, or until it is clear that this takes longer; whether it is."""
        first = self._attempt(turn)
        done, _ = await asyncio.wait({first}, timeout=self._seconds)
        if done and first.exception() is None:
            return True
        self._track(asyncio.ensure_future(self._later(turn, first)))
        return False

    def degraded(self) -> tuple[str, ...]:
        return ("proxy_retain",) if self._late else ()

    def resume(self) -> None:
        """Take up what a process before this one did not get to."""
        for file, kept in self._pending.orphaned():
            self._track(asyncio.ensure_future(self._retried(partial(_as_it_is, kept), file)))

    async def close(self) -> None:
        """Give what waits a little time. What is not written by then is in its file."""
        if self._waiting:
            await asyncio.wait(self._waiting, timeout=min(_CLOSING_S, self._seconds))
        for task in self._waiting:
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _track(self, task: asyncio.Task[None]) -> None:
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _later(self, turn: TurnFactory, first: "asyncio.Future[None]") -> None:
        file = await asyncio.get_running_loop().run_in_executor(None, lambda: self._pending.put(turn()))
        await self._retried(turn, file, first)

    async def _retried(
        self, turn: TurnFactory, file: Path | None, attempt: "asyncio.Future[None] | None" = None
    ) -> None:
        self._late += 1
        try:
            for wait_s in _retry_delays():
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

    def _attempt(self, turn: TurnFactory) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().run_in_executor(self._threads, lambda: self._write(turn()))

    def _write(self, kept: PendingTurn) -> None:
        caller = Caller(kept.actor, self._adapter, kept.conversation)
        space = self._plane.space(kept.owner, tenant=kept.tenant, caller=caller).silent()
        with self._reporting(kept):
            retained = space.retain_entry(kept.line, pins=kept.pins)
        if self._record is None or retained.deduped or retained.suppressed:
            return
        # A folder there is an agent's, whoever has a space of that name elsewhere.
        if kept.tenant == TENANT_DEFAULT:
            with suppress(OSError, MemplaneError):  # the ledger has it; what is beside it is best effort
                self._record(kept.owner, kept.history)

    @contextmanager
    def _reporting(self, kept: PendingTurn) -> Iterator[None]:
        """One `memory_op` for each attempt."""
        started, error = time.perf_counter(), ""
        try:
            yield
        except Exception as exc:
            error = exc.code if isinstance(exc, MemplaneError) else type(exc).__name__
            raise
        finally:
            outcome = ServiceOutcome(
                operation="retain",
                status=MemoryStatus.FAILED if error else MemoryStatus.SUCCEEDED,
                latency_ms=int((time.perf_counter() - started) * 1_000),
                error=error,
            )
            now = self._plane.clock()
            self._listener(event_of(outcome, service=SERVICE, agent=kept.owner, model=kept.model, now=now))


def _as_it_is(kept: PendingTurn) -> PendingTurn:
    return kept


def _retry_delays() -> Iterator[float]:
    yield from _RETRY_S
    while True:
        yield _RETRY_S[-1]
