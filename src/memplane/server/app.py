"""The ASGI application: it admits a request, reads it, runs the operation in a thread and answers."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial

import anyio.to_thread
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from memplane.auth.principal import Authenticator, Principal, Right, Unauthenticated
from memplane.config import Settings
from memplane.engine import Engine
from memplane.server.endpoint import Adapter, AsgiRoute, Endpoint, HttpCall, Operation
from memplane.server.errors import NESTED, ErrorContext, ErrorFormat, http_error
from memplane.server.exchange import HttpExchange, Observer
from memplane.server.guard import Guard, credential_of
from memplane.server.limits import THREADS_MAX, CallerSlots
from memplane.server.metering import Metering, quota_headers
from memplane.server.request import check_media, decode_body, discard_body, read_body, read_query
from memplane.server.routing import PathRouter
from memplane.types import TENANT_DEFAULT

ANYONE = Principal(tenant=TENANT_DEFAULT, subject="default", rights=frozenset(Right))
"""The caller where authentication is disabled."""

_EXCHANGE = "memplane.exchange"
_DISCARD_SECONDS_MAX = 5.0
_PREFLIGHT_SECONDS = 600
_LARGE_PER_CALLER_MAX = 4
_LARGE_LASTING_PER_CALLER_MAX = 64
_OPEN_THREADS = 4
"""For endpoints without a credential: a health check must not wait for the callers that the server works for."""


class App:
    """All adapters of one engine. Set `stopping` to shut down: streams end, and calls are completed."""

    def __init__(
        self,
        plane: Engine,
        authenticator: Authenticator | None,
        settings: Settings,
        adapters: Sequence[Adapter],
        observers: Sequence[Observer],
    ) -> None:
        self.adapters = adapters
        self.stopping = asyncio.Event()
        self._plane = plane
        self._authenticator = authenticator
        self._settings = settings
        self._observers = (*observers, Metering(plane.meter))
        self._router = PathRouter(
            (route for adapter in adapters for route in adapter.routes),
            self._serve,
            hint=self._hint,
            lifespan=self._lifespan,
        )
        self._guard = Guard(settings.hosts, settings.origins)
        self._turns = CallerSlots()
        self._large = CallerSlots(_LARGE_PER_CALLER_MAX)
        self._large_lasting = CallerSlots(_LARGE_LASTING_PER_CALLER_MAX)
        self._open_threads = anyio.CapacityLimiter(_OPEN_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._router(scope, receive, send)
            return
        exchange = scope[_EXCHANGE] = HttpExchange(scope, send, self._observers)
        with exchange.observed():
            try:
                await self._admit(exchange, receive)
            except ClientDisconnect:
                exchange.gone = True
            except Exception as exc:  # noqa: BLE001 - the edge: every error is answered in the adapter's format
                await self._fail(exchange, receive, exc)

    # ── one request ──────────────────────────────────────────────────────────────────────────────────────────

    async def _admit(self, exchange: HttpExchange, receive: Receive) -> None:
        """Check the host and the origin before anything else is looked at."""
        self._guard.check(exchange.scope["headers"])
        origin = exchange.headers.get("origin")
        if origin is not None and self._guard.allows(origin):
            exchange.extra.append((b"access-control-allow-origin", origin.encode("latin-1")))
            exchange.extra.append((b"vary", b"origin"))
            if exchange.method == "OPTIONS" and "access-control-request-method" in exchange.headers:
                await exchange.answer(_preflight(), receive)
                return
        await self._router(exchange.scope, receive, exchange.send)

    async def _serve(self, operation: Operation, scope: Scope, receive: Receive, _send: Send) -> None:
        exchange: HttpExchange = scope[_EXCHANGE]
        exchange.route = operation
        if operation.right is None:
            exchange.threads = self._open_threads
        else:
            exchange.turn = self._turns.of(_caller(exchange, operation))
        async with self._room(exchange, operation):
            if isinstance(operation, Endpoint):
                await self._call(exchange, operation, scope, receive)
            else:
                await self._pass_on(exchange, operation, scope, receive)

    def _room(self, exchange: HttpExchange, operation: Operation) -> AbstractAsyncContextManager[object]:
        """A large body stays in memory until it is answered, so a caller may send only a few at once. Further ones are not
        read, and their clients wait."""
        if exchange.small:
            return nullcontext()
        lasting = isinstance(operation, AsgiRoute) and operation.lasting
        large = self._large_lasting if lasting else self._large
        return large.of(exchange.peer if operation.right is None else _caller(exchange, operation))

    def _authenticate(self, exchange: HttpExchange, operation: Operation) -> Principal | None:
        """The caller, or None for an open operation. Reads the catalog, so it runs in a thread."""
        if operation.right is None:
            return None
        if self._authenticator is None:
            principal = ANYONE
        else:
            credential = _credential(exchange, operation)
            principal = self._authenticator.authenticate(credential, peer=exchange.peer)
        exchange.principal = principal
        principal.check(operation.right, adapter=operation.adapter)
        return principal

    async def _call(self, exchange: HttpExchange, endpoint: Endpoint, scope: Scope, receive: Receive) -> None:
        """A request loses most time on its way between threads. So a small body is read before authentication, and
        everything else runs in one thread; a large body is read only after authentication."""
        small = exchange.small
        principal = None if small else await exchange.in_thread(self._authenticate, exchange, endpoint)
        raw = await self._body(exchange, receive, endpoint.body_bytes_max)

        def carry_out() -> Response:
            caller = self._authenticate(exchange, endpoint) if small else principal
            if endpoint.body is not None:
                check_media(endpoint, exchange.headers.get("content-type", ""))
            call = HttpCall(
                scope,
                self._plane,
                endpoint,
                principal=caller,
                query=read_query(endpoint, scope["query_string"]),
                raw=raw,
                body=decode_body(endpoint, raw),
                request_id=exchange.request_id,
                waited_s=exchange.seconds,
                spent=exchange.spent,
                in_thread=exchange.in_thread,
            )
            return endpoint.handle(call)

        def work() -> Response:
            try:
                return carry_out()
            finally:
                exchange.extra += quota_headers(self._plane, exchange)

        await exchange.answer(await exchange.in_thread(work), receive)

    async def _pass_on(
        self, exchange: HttpExchange, route: AsgiRoute, scope: Scope, receive: Receive
    ) -> None:
        scope["memplane.principal"] = await exchange.in_thread(self._authenticate, exchange, route)
        scope["memplane.again"] = partial(exchange.in_thread, self._authenticate, exchange, route)
        scope["memplane.turn"] = exchange.turn
        scope["memplane.request_id"] = exchange.request_id
        if scope["type"] == "http" and scope["method"] not in {"GET", "HEAD"}:
            receive = _replay(await self._body(exchange, receive), receive)
        else:
            receive = self._until_stopping(receive, scope["type"])
        await route.app(scope, receive, exchange.send)

    async def _body(self, exchange: HttpExchange, receive: Receive, bytes_max: int = 0) -> bytes:
        exchange.body_read = True
        body = await read_body(
            receive,
            exchange.headers,
            bytes_max=max(bytes_max, self._settings.body_bytes_max),
            seconds_max=self._settings.body_seconds_max,
        )
        exchange.request_bytes = len(body)
        return body

    async def _fail(self, exchange: HttpExchange, receive: Receive, error: Exception) -> None:
        exchange.error = error
        if exchange.started:
            exchange.broken = True
            raise error
        answer = http_error(error)
        if isinstance(exchange.route, Endpoint) and exchange.route.refuse is not None:
            answer = answer.replaced(exchange.route.refuse(error))
        exchange.code = answer.code
        if exchange.scope["type"] == "http" and not exchange.body_read:
            finished = await discard_body(receive, seconds_max=_DISCARD_SECONDS_MAX)
            if not finished:  # the client would wait for the end of a body that is not read
                exchange.extra.append((b"connection", b"close"))
        context = ErrorContext(
            request_id=exchange.request_id,
            path=exchange.path,
            headers=exchange.headers,
            page=exchange.page,
        )
        await exchange.answer(error_format(self.adapters, exchange.path).render(answer, context), receive)

    def _until_stopping(self, receive: Receive, kind: str) -> Receive:
        """A stream waits for its client to disconnect. At shutdown it receives a disconnect from the server."""

        async def received() -> Message:
            arriving = asyncio.ensure_future(receive())
            stopping = asyncio.ensure_future(self.stopping.wait())
            try:
                done, _ = await asyncio.wait({arriving, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if arriving in done:
                    return arriving.result()
                return {"type": f"{kind}.disconnect", "code": 1001}
            finally:
                arriving.cancel()
                stopping.cancel()

        return received

    def _hint(self, path: str) -> str:
        if self._router.has(f"/v1{path}"):
            return f"/v1{path} is there, so end the base URL in /v1"
        adapter = _adapter_for(self.adapters, path)
        return "/docs lists every call" if adapter is None else adapter.hint

    # ── start and shutdown ───────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def _lifespan(self, _app: object) -> AsyncIterator[None]:
        """Adapters start in order and stop in reverse order."""
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS_MAX
        async with AsyncExitStack() as stack:
            for adapter in self.adapters:
                if adapter.lifespan is not None:
                    await stack.enter_async_context(adapter.lifespan())
            yield


def error_format(adapters: Sequence[Adapter], path: str) -> ErrorFormat:
    """By path, so that it is the same for every error: those of the adapter, of the server, and bugs."""
    adapter = _adapter_for(adapters, path)
    return NESTED if adapter is None else adapter.errors


def _adapter_for(adapters: Sequence[Adapter], path: str) -> Adapter | None:
    """The adapter with the longest path that fits."""
    owned = [
        (len(own), adapter)
        for adapter in adapters
        for own in adapter.paths
        if path == own or (own.endswith("/") and path.startswith(own))
    ]
    return max(owned, key=lambda found: found[0])[1] if owned else None


def _credential(exchange: HttpExchange, operation: Operation) -> str:
    return (operation.credential or credential_of)(exchange.headers)


def _caller(exchange: HttpExchange, operation: Operation) -> str:
    """Whose share of the threads the request uses: the credential's, before it is verified, else the address's."""
    try:
        return _credential(exchange, operation)
    except Unauthenticated:
        return exchange.peer


def _preflight() -> Response:
    return Response(
        status_code=204,
        headers={
            "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
            "access-control-allow-headers": "authorization, x-api-key, content-type, x-request-id, mcp-protocol-version, mcp-session-id, "
            "anthropic-version, x-memplane-key, x-memplane-space, x-memplane-conversation, x-memplane-memory",
            "access-control-max-age": str(_PREFLIGHT_SECONDS),
        },
    )


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, then the rest of the messages."""
    given = False

    async def received() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received
