"""MCP over stdin and stdout, for a local client that starts the server. One process is one session."""

import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, cast

import anyio
import anyio.from_thread
import anyio.lowlevel
import msgspec
from anyio.abc import TaskStatus
from anyio.lowlevel import EventLoopToken
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse

from memplane.adapters.mcp.server import build_server
from memplane.auth.principal import Right
from memplane.ledger import gojson
from memplane.space import Space

_READ_BYTES = 65_536
_LINE_BYTES_MAX = 16 * 1024 * 1024
_FINISH_SECONDS = 10.0
_LINES_AHEAD = 64


class LocalMcpCaller:
    """The user that started the process has all permissions."""

    def __init__(self, space: Space) -> None:
        self._space = space

    def may(self, _right: Right) -> bool:
        return True

    def space(self, _right: Right) -> Space:
        return self._space


class _MessageHead(msgspec.Struct):
    """The fields of a message that show whether it needs a reply."""

    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: str = ""


class _Traffic:
    """Tracks requests and replies, so that the end of stdin does not cut off pending replies."""

    def __init__(self) -> None:
        self._owed = 0
        self._settled = anyio.Event()
        self._decoder = msgspec.json.Decoder(_MessageHead)

    def received(self, line: bytes) -> None:
        try:
            message = self._decoder.decode(line)
        except msgspec.MsgspecError:
            return
        if message.method and message.id is not msgspec.UNSET:
            self._owed += 1
        elif message.method == "notifications/cancelled":
            self.answered()

    def answered(self) -> None:
        self._owed -= 1
        if self._owed <= 0:
            self._settled.set()

    async def finished(self) -> None:
        """Wait until every request has a reply, or the timeout passes."""
        with anyio.move_on_after(_FINISH_SECONDS):
            if self._owed > 0:
                self._settled = anyio.Event()
                await self._settled.wait()


class _CountedWriter:
    """The output stream, with replies counted."""

    def __init__(self, stream: Any, traffic: _Traffic) -> None:
        self._stream = stream
        self._traffic = traffic

    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._traffic.answered()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        await self.aclose()
        return None


class _Lines:
    """Lines of stdin, read in a daemon thread, so that a blocking read does not delay shutdown."""

    def __init__(self, descriptor: int, traffic: _Traffic) -> None:
        self._descriptor = descriptor
        self._traffic = traffic
        self._send, self._receive = anyio.create_memory_object_stream[bytes](_LINES_AHEAD)

    def start(self) -> None:
        token = anyio.lowlevel.current_token()
        threading.Thread(target=self._read, args=(token,), name="stdin", daemon=True).start()

    def _read(self, token: EventLoopToken) -> None:
        with suppress(Exception):  # the event loop has ended
            for line in _lines_of(self._descriptor):
                anyio.from_thread.run(self._send.send, line, token=token)
            anyio.from_thread.run_sync(self._send.close, token=token)

    async def __aiter__(self) -> AsyncIterator[str]:
        async with self._receive:
            async for line in self._receive:
                self._traffic.received(line)
                yield line.decode("utf-8", "replace")
            await self._traffic.finished()


def _lines_of(descriptor: int) -> Iterator[bytes]:
    """Complete lines. A line that is too long or has too many values is skipped, so that it cannot exhaust memory."""
    held = bytearray()
    too_long = False
    while chunk := _read_some(descriptor):
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            if (
                not too_long
                and len(held) + len(part) <= _LINE_BYTES_MAX
                and _is_sane(line := bytes(held) + part)
            ):
                yield line
            held.clear()
            too_long = False
        held += rest
        if len(held) > _LINE_BYTES_MAX:
            held.clear()
            too_long = True
    if held and not too_long:
        yield bytes(held)


def _is_sane(line: bytes) -> bool:
    try:
        gojson.check_values(line)
    except gojson.NotJson:
        return False
    return True


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _READ_BYTES)
    except OSError:
        return b""


def serve_stdio(space: Space) -> None:
    """Serve until stdin ends or SIGTERM or SIGINT arrives. Only protocol messages go to stdout; other output goes to
    stderr."""
    visitor = LocalMcpCaller(space)
    server = build_server(lambda _context: visitor)
    with suppress(BrokenPipeError):
        anyio.run(_serve, server, sys.stdin.fileno())


async def _serve(server: Server[Any], descriptor: int) -> None:
    traffic = _Traffic()
    lines = _Lines(descriptor, traffic)
    try:
        async with anyio.create_task_group() as tasks:
            await tasks.start(_end_on_signal, tasks.cancel_scope)
            async with stdio_server(stdin=cast("Any", lines)) as (reading, writing):
                lines.start()
                counted = _CountedWriter(writing, traffic)
                await server.run(reading, counted, server.create_initialization_options())
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        if group.split(OSError)[1] is not None:
            raise
        raise BrokenPipeError from group  # the client disconnected during a reply


async def _end_on_signal(
    scope: anyio.CancelScope, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
        task_status.started()
        async for _ in received:
            scope.cancel()
            return
