"""MCP over streamable HTTP at `/mcp`. Requests are stateless, so any worker process can handle any of them.

Session limits need a session, and the newest protocol revision has none. In order of preference, the session is the
one that the client names in `_meta`, the `Mcp-Session-Id` that an older client got at initialization, or the current
hour. In the last case, the session limits apply per credential and hour.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from memplane.adapters.mcp.server import Context, build_server
from memplane.auth.principal import Principal, Right
from memplane.clock import Clock, iso, system_clock
from memplane.config import Settings
from memplane.engine import Engine
from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.server.access import check_space_exists, open_space
from memplane.server.endpoint import Adapter, AsgiRoute
from memplane.server.errors import HttpError
from memplane.server.request import check_depth
from memplane.server.responses import JSON
from memplane.space import Space

PATH = "/mcp"
ADAPTER = "mcp"
SESSION_META = "io.memplane/session"

_BEGUN = "memplane.mcp_session"
_SESSION_HEADER = "mcp-session-id"
_SESSION = re.compile(r"[\x21-\x7e]{1,128}")
_HOUR_CHARS = len("2026-11-15T08")
_VALUES_MAX = 50_000


def adapter(plane: Engine, settings: Settings, *, clock: Clock = system_clock) -> Adapter:
    mcp = McpOverHttp(plane, settings, clock)
    route = AsgiRoute(
        path=PATH,
        adapter=ADAPTER,
        summary="The Model Context Protocol over streamable HTTP.",
        app=mcp,
        right=Right.READ,
        methods=("POST",),
    )
    return Adapter(name=ADAPTER, title="MCP", routes=(route,), lifespan=mcp.running)


class McpOverHttp:
    """An ASGI application. `running` is its lifespan, and it may be started again."""

    def __init__(self, plane: Engine, settings: Settings, clock: Clock) -> None:
        self._plane = plane
        self._settings = settings
        self._clock = clock
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = build_server(lambda context: HttpMcpCaller(self._plane, context, self._clock))
        server.middleware.append(_assign_session)
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=self._settings.body_bytes_max
        )
        async with manager.run():
            self._manager = manager
            try:
                yield
            finally:
                self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._manager is not None, "the application is not running"
        _check_media(Request(scope))
        arrived = await receive()  # the server has read the whole body
        await anyio.to_thread.run_sync(_check_size, arrived.get("body", b""))
        receive = _again(arrived, receive)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and _BEGUN in scope:
                header = (_SESSION_HEADER.encode(), scope[_BEGUN].encode())
                message = {**message, "headers": [*message.get("headers", ()), header]}
            await send(message)

        async with scope["memplane.turn"]:
            await self._manager.handle_request(scope, receive, sending)


async def _assign_session(ctx: Context, call_next: CallNext) -> HandlerResult:
    """An older client begins with a handshake and repeats its session id, so the server stores nothing."""
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(ctx.request, Request):
        ctx.request.scope[_BEGUN] = uuid4().hex
    return result


class HttpMcpCaller:
    """The caller, from the credential that the server has checked."""

    def __init__(self, plane: Engine, context: Context, clock: Clock) -> None:
        request = context.request
        assert isinstance(request, Request)
        self._plane = plane
        self._principal: Principal = request.scope["memplane.principal"]
        self._owner = _owner(request, self._principal)
        self._principal.check(Right.READ, adapter=ADAPTER, space=self._owner)
        self._session = f"mcp:{self._principal.subject}:{_session(context, request, clock)}"

    def may(self, right: Right) -> bool:
        return self._principal.allows(right, adapter=ADAPTER, space=self._owner)

    def space(self, right: Right) -> Space:
        check_space_exists(self._plane, self._principal, adapter=ADAPTER, owner=self._owner)
        return open_space(
            self._plane, self._principal, right, adapter=ADAPTER, owner=self._owner, session=self._session
        )


def _check_media(request: Request) -> None:
    """Reject the media type before the SDK does, whose error has another format and does not say what to send."""
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != JSON:
        raise HttpError(
            415, "unsupported_media_type", f"the body must be {JSON}, not {given[:100] or 'untyped'}"
        )


def _check_size(body: bytes) -> None:
    """The SDK decodes in the event loop and builds every value, so what is expensive is refused before."""
    try:
        gojson.check_values(body, _VALUES_MAX)
    except gojson.NotJson as exc:
        raise HttpError(400, "malformed_body", f"the body has {exc}; send it in parts") from exc
    check_depth(body)


def _again(first: Message, receive: Receive) -> Receive:
    """The message that was received already, then the others."""
    waiting = [first]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def _owner(request: Request, principal: Principal) -> str:
    """`/mcp?space=alice`, or the credential's own space."""
    given = request.query_params.getlist("space")
    if len(given) > 1:
        raise InvalidRequest("space is given more than once", field="space")
    return given[0] if given and given[0] else principal.subject


def _session(context: Context, request: Request, clock: Clock) -> str:
    meta: dict[str, Any] = dict(context.meta or {})
    for given in (meta.get(SESSION_META), request.headers.get(_SESSION_HEADER)):
        if isinstance(given, str) and _SESSION.fullmatch(given):
            return given
    return iso(clock())[:_HOUR_CHARS]
