"""MCP over stdin and stdout, for a client on this machine that starts us. One process is one session."""

import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio.abc import TaskStatus
from anyio.lowlevel import EventLoopToken
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from memplane.doors.mcp.server import Context, build_server
from memplane.identity.principal import Right
from memplane.space import Space

_READ_BYTES = 65_536
_LINE_BYTES_MAX = 16 * 1024 * 1024
_FINISH_SECONDS = 10.0
_CHECKPOINTS = 20
_LINES_AHEAD = 64


class LocalVisitor:
    """Whoever started the process may do what its user may."""

    def __init__(self, space: Space) -> None:
        self._space = space

    def may(self, _right: Right) -> bool:
        return True

    def space(self, _right: Right) -> Space:
        return self._space


class _Busy:
    """How many requests are being answered: the end of stdin must not cut them off."""

    def __init__(self) -> None:
        self._count = 0
        self._idle = anyio.Event()
        self._idle.set()

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        self._count += 1
        if self._count == 1:
            self._idle = anyio.Event()
        try:
            return await call_next(ctx)
        finally:
            self._count -= 1
            if not self._count:
                self._idle.set()

    async def finished(self) -> None:
        """Everything that was read is answered, or it takes too long."""
        with anyio.move_on_after(_FINISH_SECONDS):
            for _ in range(_CHECKPOINTS):  # what was read last is on its way to us
                await anyio.lowlevel.checkpoint()
            await self._idle.wait()
            for _ in range(_CHECKPOINTS):  # and its answer on its way out
                await anyio.lowlevel.checkpoint()


class _Lines:
    """Lines of stdin, read by a thread that nobody waits for: a read that blocks must not hold up the end."""

    def __init__(self, descriptor: int, busy: _Busy) -> None:
        self._descriptor = descriptor
        self._busy = busy
        self._send, self._receive = anyio.create_memory_object_stream[bytes](_LINES_AHEAD)

    def start(self) -> None:
        token = anyio.lowlevel.current_token()
        threading.Thread(target=self._read, args=(token,), name="stdin", daemon=True).start()

    def _read(self, token: EventLoopToken) -> None:
        with suppress(Exception):  # the loop is gone: so are we
            for line in _lines_of(self._descriptor):
                anyio.from_thread.run(self._send.send, line, token=token)
            anyio.from_thread.run_sync(self._send.close, token=token)

    async def __aiter__(self) -> AsyncIterator[str]:
        async with self._receive:
            async for line in self._receive:
                yield line.decode("utf-8", "replace")
            await self._busy.finished()


def _lines_of(descriptor: int) -> Iterator[bytes]:
    """Whole lines; one that is too long is passed over, so that it cannot fill the memory."""
    held = bytearray()
    too_long = False
    while chunk := _read_some(descriptor):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            if not too_long and len(held) + len(part) <= _LINE_BYTES_MAX:
                yield bytes(held) + part
            held.clear()
            too_long = False
        held += rest
        if len(held) > _LINE_BYTES_MAX:
            held.clear()
            too_long = True
    if held and not too_long:
        yield bytes(held)


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _READ_BYTES)
    except OSError:
        return b""


def serve_stdio(space: Space) -> None:
    """Answer until stdin ends, or SIGTERM or SIGINT comes. Only protocol goes to stdout; what else is printed goes to
    stderr."""
    visitor = LocalVisitor(space)
    server = build_server(lambda _context: visitor)
    with suppress(BrokenPipeError):
        anyio.run(_serve, server, sys.stdin.fileno())


async def _serve(server: Server[Any], descriptor: int) -> None:
    busy = _Busy()
    server.middleware.append(busy)
    lines = _Lines(descriptor, busy)
    try:
        async with anyio.create_task_group() as tasks:
            await tasks.start(_end_on_signal, tasks.cancel_scope)
            async with stdio_server(stdin=cast("Any", lines)) as (reading, writing):
                lines.start()
                await server.run(reading, writing, server.create_initialization_options())
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if group.split(OSError)[1] is not None:
            raise
        raise BrokenPipeError from group  # the client went away while we were answering


async def _end_on_signal(
    scope: anyio.CancelScope, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        task_status.started()
        async for _ in received:
            scope.cancel()
            return
