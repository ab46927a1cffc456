"""After a turn: write it to the ledger before the client gets the end of the response, or as soon as the ledger is
writable.

A client never waits longer than `proxy_retain_ms` for this, and never sees a failure. A turn that is not written in
time is queued in memory and in a file, and retried until it is written, also after a restart.
"""

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

# Turns that are not written yet: each is queued in its own file, so that the next process finds it.


DIRECTORY = "proxy-pending"


class PendingTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn to write to the ledger."""

    tenant: str
    owner: str
    actor: str
    conversation: str
    model: str = ""
    """The agent's own name for the space."""
    line: bytes
    """The ledger entry. It excludes the upstream request, which contains memories that may be forgotten later."""
    history: bytes
    """The session history entry, with the same id."""
    pins: PinnedTexts | None = None
    """Injections to repeat word for word. They are not in the file, because the conversation has ended when another
    process reads it."""


_FILE: msgspec.msgpack.Decoder[PendingTurn] = msgspec.msgpack.Decoder(PendingTurn)
_encode = msgspec.msgpack.Encoder().encode


class PendingTurns:
    """The queue files of a data directory. No method raises: a turn that cannot be queued in a file is queued in
    memory."""

    def __init__(self, folder: Path | None) -> None:
        """None writes no files, for an encrypted data directory."""
        self._folder = folder

    def put(self, kept: PendingTurn) -> Path | None:
        """Write a queue file for a turn; None if that fails too."""
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
        with suppress(OSError):  # duplicate writes are deduplicated
            file.unlink(missing_ok=True)

    def orphaned(self) -> Iterator[tuple[Path, PendingTurn]]:
        """Files of processes that no longer run; this process takes them over."""
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
    """Whether another process has this pid. This process itself has no earlier files."""
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
"""Builds the stored turn. It may be slow, so it runs in a thread, and it may run again."""

THREADS = 8
_RETRY_S = (0.25, 1.0, 2.0, 5.0, 15.0)
_CLOSING_S = 5.0
_log = logging.getLogger("memplane.proxy")


class TurnRecorder:
    """Writes turns, and queues those that are not written yet. Bound to one event loop."""

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
        # If the data directory is encrypted, queue files must not be plain text.
        self._pending = PendingTurns(None if settings.key else settings.folder / DIRECTORY)

    async def record(self, turn: TurnFactory) -> bool:
        """Wait until the turn is durable or the timeout passes. Returns whether it is durable."""
        first = self._attempt(turn)
        done, _ = await asyncio.wait({first}, timeout=self._seconds)
        if done and first.exception() is None:
            return True
        self._track(asyncio.ensure_future(self._later(turn, first)))
        return False

    def degraded(self) -> tuple[str, ...]:
        return ("proxy_retain",) if self._late else ()

    def resume(self) -> None:
        """Load the turns that an earlier process left."""
        for file, kept in self._pending.orphaned():
            self._track(asyncio.ensure_future(self._retried(partial(_as_it_is, kept), file)))

    async def close(self) -> None:
        """Wait briefly for queued turns. Turns that are not written by then stay in their files."""
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
                except InvalidRequest as exc:  # can never be written, so it is not retried
                    _log.error("a turn of %s cannot be recorded: %s", turn().owner, exc)
                    break
                except Exception as exc:  # noqa: BLE001 - a memory failure must not lose the turn
                    code = exc.code if isinstance(exc, MemplaneError) else type(exc).__name__
                    _log.warning("a turn is queued for recording: %s", code)
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
        # A directory there belongs to the pod's agent, not to a space of that name in another tenant.
        if kept.tenant == TENANT_DEFAULT:
            with suppress(
                OSError, MemplaneError
            ):  # the ledger has the turn; the session history is best effort
                self._record(kept.owner, kept.history)

    @contextmanager
    def _reporting(self, kept: PendingTurn) -> Iterator[None]:
        """Log one `memory_op` per attempt."""
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
