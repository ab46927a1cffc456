"""After a turn: it is in the ledger before the client sees its end, or as soon as the ledger can be written again.

A client never waits longer for this than `proxy_retain_ms`, and never hears of it. What could not be written in time waits
in memory and in a file of its own, and is tried again until it is written, after a restart too.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from memplane.config import Settings
from memplane.doors.http.proxy.turn import Kept, Turn
from memplane.engine import Engine
from memplane.entropy import random_bytes
from memplane.errors import InvalidRequest, MemplaneError
from memplane.types import TENANT_DEFAULT, Caller

Record = Callable[[str, bytes], None]
"""Writes a line of an agent's session history."""

FOLDER = "proxy-pending"
THREADS = 8
_RETRY_S = (0.25, 1.0, 2.0, 5.0, 15.0)
_CLOSING_S = 5.0
_log = logging.getLogger("memplane.proxy")


_FILE: msgspec.msgpack.Decoder[Kept] = msgspec.msgpack.Decoder(Kept)
_encode = msgspec.msgpack.Encoder().encode


class Keeper:
    """Writes turns, and remembers those that are not written yet. Belongs to one event loop."""

    def __init__(self, plane: Engine, settings: Settings, door: str, record: Record | None) -> None:
        self._plane = plane
        self._door = door
        self._record = record
        self._seconds = settings.proxy_retain_ms / 1_000
        self._threads = ThreadPoolExecutor(THREADS, "memplane-keep")
        self._waiting: set[asyncio.Task[None]] = set()
        self._late = 0
        # Where everything on disk is encrypted, a file beside it must not be plain.
        self._folder = None if settings.key else Path(settings.data).expanduser() / FOLDER

    async def keep(self, turn: Turn) -> bool:
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
        for file, turn in _left_over(self._folder):
            self._hold(asyncio.ensure_future(self._retried(turn, file)))

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

    async def _later(self, turn: Turn | Kept, first: "asyncio.Future[None]") -> None:
        file = await asyncio.get_running_loop().run_in_executor(None, _put_aside, self._folder, turn)
        await self._retried(turn, file, first)

    async def _retried(
        self, turn: Turn | Kept, file: Path | None, attempt: "asyncio.Future[None] | None" = None
    ) -> None:
        self._late += 1
        try:
            for wait_s in _waits():
                try:
                    await asyncio.shield(attempt or self._attempt(turn))
                    break
                except InvalidRequest as exc:  # it can never be written, however often it is tried
                    _log.error("a turn of %s cannot be kept: %s", turn.owner, exc)
                    break
                except Exception as exc:  # noqa: BLE001 - whatever is wrong with memory, the turn is not lost
                    code = exc.code if isinstance(exc, MemplaneError) else type(exc).__name__
                    _log.warning("a turn waits to be kept: %s", code)
                attempt = None
                await asyncio.sleep(wait_s)
        finally:
            self._late -= 1
        if file is not None:
            await asyncio.get_running_loop().run_in_executor(None, _drop, file)

    def _attempt(self, turn: Turn | Kept) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().run_in_executor(self._threads, self._write, turn)

    def _write(self, turn: Turn | Kept) -> None:
        kept = turn.kept if isinstance(turn, Turn) else turn
        caller = Caller(kept.actor, self._door, kept.conversation)
        space = self._plane.space(kept.owner, tenant=kept.tenant, caller=caller)
        retained = space.retain_entry(kept.line)
        if self._record is None or retained.deduped or retained.suppressed:
            return
        if (
            kept.tenant == TENANT_DEFAULT
        ):  # a folder there is an agent's, whoever has a space of that name elsewhere
            with suppress(OSError, MemplaneError):  # the ledger has it; what is beside it is best effort
                self._record(kept.owner, kept.history)


def _waits() -> Iterator[float]:
    yield from _RETRY_S
    while True:
        yield _RETRY_S[-1]


def _put_aside(folder: Path | None, turn: Turn | Kept) -> Path | None:
    """A file for a turn that waits; None where that is not possible either."""
    if folder is None:
        return None
    name = folder / f"{os.getpid()}-{random_bytes(8).hex()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(name.with_suffix(".new"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:  # noqa: PTH123
            file.write(_encode(turn.kept if isinstance(turn, Turn) else turn))
            file.flush()
            os.fsync(file.fileno())
        name.with_suffix(".new").rename(name)
    except OSError:
        return None
    return name


def _drop(file: Path) -> None:
    with suppress(OSError):  # what is written twice is kept once
        file.unlink(missing_ok=True)


def _left_over(folder: Path | None) -> Iterator[tuple[Path, Kept]]:
    """Files whose process is gone."""
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
