"""MCP over server-sent events and websockets: two older transports, compatible with Helmdeck's server."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qs

import anyio
import anyio.to_thread
from starlette.types import Receive, Scope, Send

from memplane.adapters.helmdeck.relay import RelayedMessage, SessionRelay
from memplane.adapters.helmdeck.rpc import MESSAGE_BYTES_MAX, Method, answer
from memplane.adapters.helmdeck.sessions import DeliveryOutcome, SseSession, SseSessions, worker_of
from memplane.auth.principal import Principal
from memplane.errors import MemplaneError
from memplane.server.errors import HttpError

KEEPALIVE_SECONDS = 15.0
SEND_SECONDS_MAX = 30.0

MethodsFor = Callable[[Principal], Mapping[str, Method]]
"""The methods of a session, bound to its caller."""
Reauthenticate = Callable[[], Awaitable[object]]
"""Checks the credential again."""

_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_ERRORS = {
    DeliveryOutcome.UNKNOWN: (404, "unknown_session", "no such session; open the event stream again"),
    DeliveryOutcome.FULL: (500, "session_write", "too many queued messages in this session"),
}
_TOO_LARGE = 1009
_NOT_TEXT = 1003
_NOT_ALLOWED = 1008
_GOING_AWAY = 1001


class Streams:
    """One MCP server on its paths. A session belongs to the caller who opened it, and only that caller may post to
    it."""

    def __init__(
        self,
        sessions: SseSessions,
        relay: SessionRelay,
        methods_for: MethodsFor,
        *,
        message_path: str,
        keepalive_seconds: float = KEEPALIVE_SECONDS,
        send_seconds_max: float = SEND_SECONDS_MAX,
    ) -> None:
        self._sessions = sessions
        self._relay = relay
        self._methods_for = methods_for
        self._message_path = message_path
        self._keepalive_seconds = keepalive_seconds
        self._send_seconds_max = send_seconds_max

    async def events(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET …/sse`: send the URL for posts, then the replies, until either side closes."""
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await send({"type": "http.response.body"})
            return
        session = self._open(scope["memplane.principal"])
        try:
            await self._send(send, {"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await self._event(send, f"event: endpoint\ndata: {self._message_path}?sessionId={session.id}\n\n")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_until_disconnect, receive, tasks.cancel_scope)
                await self._answer_all(session, send, scope)
                tasks.cancel_scope.cancel()
            await self._send(send, {"type": "http.response.body"})
        except* TimeoutError:
            pass  # drop a client that does not read
        finally:
            self._sessions.close(session)

    async def message(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST …/sse/message?sessionId=…`: respond with 202 and send the reply on the stream."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("sessionId", [""])[0]
        if not given:
            raise HttpError(400, "missing_session", "sessionId query parameter required")
        message = (await receive()).get("body", b"")
        if len(message) > MESSAGE_BYTES_MAX:
            raise HttpError(400, "read_body", f"a message has at most {MESSAGE_BYTES_MAX:,} bytes")
        outcome = await self._deliver(given, scope["memplane.principal"], message)
        if outcome in _ERRORS:
            raise HttpError(*_ERRORS[outcome])
        await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    async def websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One JSON-RPC message per text frame, in both directions."""
        session = self._open(scope["memplane.principal"])
        try:
            await receive()
            await self._send(send, {"type": "websocket.accept"})
            while (frame := await receive())["type"] == "websocket.receive":
                text = frame.get("text")
                code = _refused(text) or (
                    None if await _still_valid(scope["memplane.again"]) else _NOT_ALLOWED
                )
                if code is not None:
                    await self._send(send, {"type": "websocket.close", "code": code})
                    return
                raw = (text or "").encode("utf-8", "replace")
                reply = await _answered(session, raw, scope)
                if reply is not None:
                    await self._send(send, {"type": "websocket.send", "text": reply.decode()})
            if frame.get("code") == _GOING_AWAY:
                await self._send(send, {"type": "websocket.close", "code": _GOING_AWAY})
        except OSError:
            pass  # the client is disconnected or does not read
        finally:
            self._sessions.close(session)

    # ── internals ────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self, principal: Principal) -> SseSession:
        methods = self._methods_for(principal)
        return self._sessions.open(self._message_path, principal, lambda raw: answer(raw, methods))

    async def _deliver(self, session_id: str, principal: Principal, message: bytes) -> DeliveryOutcome:
        worker = worker_of(session_id)
        if worker is None:
            return DeliveryOutcome.UNKNOWN
        if worker == self._sessions.worker:
            return self._sessions.deliver(session_id, self._message_path, principal, message)
        return await self._relay.deliver(
            worker, RelayedMessage(session_id, self._message_path, principal, message)
        )

    async def _answer_all(self, session: SseSession, send: Send, scope: Scope) -> None:
        """Process messages in order. A periodic keep-alive line stops intermediaries from closing the connection, and
        triggers a check that the credential is still valid. Posted messages bring their own credential."""
        while True:
            try:
                async with asyncio.timeout(self._keepalive_seconds):
                    message = await session.next()
            except TimeoutError:
                if not await _still_valid(scope["memplane.again"]):
                    return
                await self._event(send, ": keepalive\n\n")
                continue
            reply = await _answered(session, message, scope)
            if reply is not None:
                await self._event(send, f"event: message\ndata: {reply.decode()}\n\n")

    async def _event(self, send: Send, text: str) -> None:
        await self._send(send, {"type": "http.response.body", "body": text.encode(), "more_body": True})

    async def _send(self, send: Send, message: dict[str, object]) -> None:
        async with asyncio.timeout(self._send_seconds_max):
            await send(message)


def _refused(text: str | None) -> int | None:
    if text is None:
        return _NOT_TEXT
    return _TOO_LARGE if len(text) > MESSAGE_BYTES_MAX else None


async def _answered(session: SseSession, message: bytes, scope: Scope) -> bytes | None:
    async with scope["memplane.turn"]:
        return await anyio.to_thread.run_sync(session.answer, message)


async def _still_valid(again: Reauthenticate) -> bool:
    """Whether the credential that opened the stream is still valid. An unknown status counts as invalid."""
    try:
        await again()
    except MemplaneError:
        return False
    return True


async def _until_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
