"""The frame all HTTP doors stand in: one ASGI application that checks, reads, runs the engine in a thread and answers."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from functools import partial

import anyio.to_thread
import msgspec
from starlette.types import Message, Receive, Scope, Send

from memplane.adapters.all import all_doors
from memplane.auth.principal import Authenticator, Principal, Right, Unauthenticated
from memplane.config import Settings
from memplane.engine import Engine
from memplane.server.body import ClientGone, check_media, decode_body, discard_body, is_small, read_body
from memplane.server.endpoint import Adapter, AsgiRoute, Endpoint, HttpCall, Response, Route
from memplane.server.envelope import envelope_of
from memplane.server.exchange import HttpExchange, Observer
from memplane.server.fairness import THREADS_MAX, CallerSlots
from memplane.server.guard import Guard, credential_of
from memplane.server.metering import Metering, tell_quota
from memplane.server.query import read_query
from memplane.server.refusal import refusal_of
from memplane.server.routes import RouteMatch, Routes
from memplane.types import TENANT_DEFAULT

ANYBODY = Principal(tenant=TENANT_DEFAULT, subject="default", rights=frozenset(Right))
"""Who knocks where no credential is asked for."""

_REFUSED_SECONDS_MAX = 5.0
_PREFLIGHT_SECONDS = 600
_LARGE_PER_CALLER_MAX = 4
_LARGE_LASTING_PER_CALLER_MAX = 64
_OPEN_THREADS = 4
"""For what is open to everybody: who asks whether the server lives must not wait behind those it serves."""


def build_app(
    plane: Engine,
    authenticator: Authenticator | None,
    settings: Settings,
    doors: Sequence[Adapter] | None = None,
    *,
    observers: Sequence[Observer] = (),
) -> "App":
    """The application. Without an authenticator everybody may do everything; without `doors`, all of them are open."""
    opened = all_doors(plane, settings, authenticator=authenticator) if doors is None else doors
    return App(plane, authenticator, settings, opened, observers)


class App:
    """Every door of one plane. `stopping` is set when the server is to end: streams then end, calls are finished."""

    def __init__(
        self,
        plane: Engine,
        authenticator: Authenticator | None,
        settings: Settings,
        doors: Sequence[Adapter],
        observers: Sequence[Observer],
    ) -> None:
        self.doors = doors
        self.stopping = asyncio.Event()
        self._plane = plane
        self._authenticator = authenticator
        self._settings = settings
        self._observers = (*observers, Metering(plane.meter))
        self._routes = Routes(route for door in doors for route in door.routes)
        self._guard = Guard(settings.hosts, settings.origins)
        self._turns = CallerSlots()
        self._large = CallerSlots(_LARGE_PER_CALLER_MAX)
        self._large_lasting = CallerSlots(_LARGE_LASTING_PER_CALLER_MAX)
        self._open_threads = anyio.CapacityLimiter(_OPEN_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        exchange = HttpExchange(scope, send, self._observers)
        with exchange.observed():
            try:
                await self._admit(exchange, receive)
            except ClientGone:
                exchange.gone = True
            except Exception as exc:  # noqa: BLE001 - the edge: whatever went wrong is told in the door's own shape
                await self._refuse(exchange, receive, exc)

    # ── one request ──────────────────────────────────────────────────────────────────────────────────────────

    async def _admit(self, exchange: HttpExchange, receive: Receive) -> None:
        self._guard.check(exchange.scope["headers"])
        origin = exchange.headers.get("origin")
        if origin is not None and self._guard.allows(origin):
            exchange.extra.append((b"access-control-allow-origin", origin.encode("latin-1")))
            exchange.extra.append((b"vary", b"origin"))
            if exchange.method == "OPTIONS" and "access-control-request-method" in exchange.headers:
                await exchange.answer(_preflight())
                return
        found = self._routes.find(exchange.method, exchange.scope["raw_path"])
        exchange.route = found.route
        if found.route.right is None:
            exchange.threads = self._open_threads
        else:
            exchange.turn = self._turns.of(_caller(exchange, found.route))
        async with self._room(exchange, found.route):
            if isinstance(found.route, Endpoint):
                await self._call(exchange, found, found.route, receive)
            else:
                await self._pass_on(exchange, found, found.route, receive)

    def _room(self, exchange: HttpExchange, route: Route) -> AbstractAsyncContextManager[object]:
        """A large body stays in memory until it is answered, so one caller has few of them there at once. The next is
        not read meanwhile, and its sender waits."""
        if is_small(exchange.headers):
            return nullcontext()
        lasting = isinstance(route, AsgiRoute) and route.lasting
        large = self._large_lasting if lasting else self._large
        return large.of(exchange.peer if route.right is None else _caller(exchange, route))

    def _let_in(self, exchange: HttpExchange, route: Route) -> Principal | None:
        """Who knocks, once the credential was found to open the door; nobody where the door is open. Asks the catalog, so
        it runs in a thread."""
        if route.right is None:
            return None
        if self._authenticator is None:
            principal = ANYBODY
        else:
            credential = _credential(exchange, route)
            principal = self._authenticator.authenticate(credential, peer=exchange.peer)
        exchange.principal = principal
        principal.check(route.right, door=route.door)
        return principal

    async def _call(
        self, exchange: HttpExchange, found: RouteMatch, endpoint: Endpoint, receive: Receive
    ) -> None:
        """Between threads a request loses more time than anywhere else in here. So a small body is read before anybody
        asks who sent it, and everything else happens in one go; for a large one, one must be let in first."""
        raw, principal, let_in = b"", None, False
        if not is_small(exchange.headers):
            principal = await exchange.in_thread(self._let_in, exchange, endpoint)
            let_in = True
        raw = await self._body(exchange, receive, endpoint.body_bytes_max)

        def carry_out() -> Response:
            caller = principal if let_in else self._let_in(exchange, endpoint)
            if endpoint.body is not None:
                check_media(endpoint, exchange.headers.get("content-type", ""))
            call = HttpCall(
                self._plane,
                endpoint,
                principal=caller,
                method=exchange.scope["method"],
                path=found.path,
                query=read_query(endpoint, exchange.scope["query_string"]),
                headers=exchange.headers,
                raw=raw,
                body=decode_body(endpoint, raw),
                request_id=exchange.request_id,
                peer=exchange.peer,
                waited_s=exchange.seconds,
                spent=exchange.spent,
            )
            return endpoint.handle(call)

        def work() -> Response:
            try:
                return carry_out()
            finally:
                tell_quota(self._plane, exchange)

        await exchange.answer(await exchange.in_thread(work))

    async def _pass_on(
        self, exchange: HttpExchange, found: RouteMatch, route: AsgiRoute, receive: Receive
    ) -> None:
        scope = exchange.scope
        scope["memplane.principal"] = await exchange.in_thread(self._let_in, exchange, route)
        scope["memplane.again"] = partial(exchange.in_thread, self._let_in, exchange, route)
        scope["memplane.turn"] = exchange.turn
        scope["memplane.request_id"] = exchange.request_id
        scope["path_params"] = found.path
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

    async def _refuse(self, exchange: HttpExchange, receive: Receive, error: Exception) -> None:
        exchange.error = error
        if exchange.started:
            exchange.broken = True
            raise error
        refusal = refusal_of(error)
        refuse = exchange.route.refuse if isinstance(exchange.route, Endpoint) else None
        own = None if refuse is None else refuse(error)
        if own is not None:  # in other words, but with the headers that its status needs
            needed = refusal.headers if own.status == refusal.status else {}
            refusal = msgspec.structs.replace(own, headers=needed | own.headers)
        exchange.code = refusal.code
        if exchange.scope["type"] == "http" and not exchange.body_read:
            finished = await discard_body(receive, seconds_max=_REFUSED_SECONDS_MAX)
            if not finished:  # nobody would listen any more, or ever hang up
                exchange.extra.append((b"connection", b"close"))
        await exchange.answer(
            envelope_of(exchange.scope["path"], exchange.headers, asked=exchange.asked)(
                refusal, exchange.request_id
            )
        )

    def _until_stopping(self, receive: Receive, kind: str) -> Receive:
        """A stream waits for its client to hang up. When the server is to end, it is told that the client did."""

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

    # ── from the first request to the last ───────────────────────────────────────────────────────────────────

    async def _live(self, receive: Receive, send: Send) -> None:
        """Doors begin one after the other and end the other way round."""
        await receive()
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS_MAX
        try:
            async with AsyncExitStack() as stack:
                for door in self.doors:
                    if door.lifespan is not None:
                        await stack.enter_async_context(door.lifespan())
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as exc:
            await send({"type": "lifespan.startup.failed", "message": str(exc)})
            raise
        await send({"type": "lifespan.shutdown.complete"})


def _credential(exchange: HttpExchange, route: Route) -> str:
    """What says who knocks, where the clients of this route put it."""
    return (route.credential or credential_of)(exchange.headers)


def _caller(exchange: HttpExchange, route: Route) -> str:
    """Whose turns these are, before anybody looked whether the credential is any good; without one, the address's."""
    try:
        return _credential(exchange, route)
    except Unauthenticated:
        return exchange.peer


def _preflight() -> Response:
    return Response(
        status=204,
        headers={
            "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE",
            "access-control-allow-headers": "authorization, x-api-key, content-type, x-request-id, mcp-protocol-version, mcp-session-id, "
            "anthropic-version, x-memplane-key, x-memplane-space, x-memplane-conversation, x-memplane-memory",
            "access-control-max-age": str(_PREFLIGHT_SECONDS),
        },
    )


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, then whatever comes after it."""
    given = False

    async def received() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received
