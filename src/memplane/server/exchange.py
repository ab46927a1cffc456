"""One request from its first byte to its last: its id, its answer, and what is told of it afterwards."""

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Protocol, TypeVar, TypeVarTuple

import anyio.to_thread
import msgspec
from starlette.types import Message, Scope, Send

from memplane.adapters.proxy.answer import Charge
from memplane.auth.principal import Principal
from memplane.server.body import ClientGone
from memplane.server.endpoint import AsgiRoute, CallUsage, Response, Route

# What is told of a request that went upstream: for counters and spans, never what was said in it.


class ProviderCall(msgspec.Struct, frozen=True, kw_only=True):
    """One turn that a provider was asked for."""

    upstream: str
    operation: str
    """`chat`, whichever API it was asked through; `text_completion`, `embeddings`."""
    model: str
    status: int
    """Zero: there was no answer."""
    outcome: str
    """`ok`, `refused` by the provider, `failed` or `aborted` on the way."""
    seconds: float
    charge: Charge = Charge()
    kept: bool | None = None
    """Whether it was in the ledger when the client saw the end; None where it was not to be kept."""


PassedListener = Callable[[ProviderCall], None]


_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_NO_BODY = frozenset({204, 304})
_SEND_SECONDS_MAX = 60.0
_END = object()

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Observer(Protocol):
    """Hears of every request twice, in the task that answers it."""

    def begin(self, exchange: "HttpExchange") -> None: ...

    def end(self, exchange: "HttpExchange") -> None: ...


class HttpExchange:
    """What is known of a request while it is answered."""

    def __init__(self, scope: Scope, send: Send, observers: Sequence[Observer]) -> None:
        self.scope = scope
        self._send = send
        self._observers = observers
        self.method: str | None = scope.get("method") if scope["type"] == "http" else None
        """None is a websocket."""
        self.request_id = self._request_id()
        self.route: Route | None = None
        self.principal: Principal | None = None
        self.body_read = False
        self.request_bytes = 0
        self.response_bytes = 0
        self.spent = CallUsage()
        self.extra: list[tuple[bytes, bytes]] = [(b"x-request-id", self.request_id.encode())]
        self.started = False
        self.status = 0
        self.gone = False
        self.error: Exception | None = None
        self.code = ""
        """Of the refusal, if it was one."""
        self.broken = False
        """The answer had begun when something went wrong."""
        self.turn: AbstractAsyncContextManager[object] = nullcontext()
        """Held while a thread works for this request."""
        self.threads: anyio.CapacityLimiter | None = None
        """Which threads work for it; None is those that work for everybody."""
        self.begun = time.perf_counter()

    @cached_property
    def headers(self) -> dict[str, str]:
        """By lower-case name; where one came twice, the first."""
        found: dict[str, str] = {}
        for name, value in self.scope["headers"]:
            found.setdefault(name.decode("latin-1"), value.decode("latin-1"))
        return found

    @property
    def peer(self) -> str:
        client = self.scope.get("client")
        return client[0] if client else ""

    @property
    def asked(self) -> str:
        """Path and query as they were sent, of a request that may be made again; empty for any other."""
        if self.method != "GET":
            return ""
        path, query = self.scope["raw_path"], self.scope["query_string"]
        return str((path + b"?" + query if query else path).decode("latin-1"))

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begun

    async def in_thread(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Have it done when it is the caller's turn."""
        async with self.turn:
            return await anyio.to_thread.run_sync(work, *args, limiter=self.threads)

    @contextmanager
    def observed(self) -> Iterator[None]:
        for observer in self._observers:
            observer.begin(self)
        try:
            yield
        finally:
            for observer in reversed(self._observers):
                observer.end(self)

    async def send(self, message: Message) -> None:
        """For a route that answers by itself: adds what every answer has."""
        if message["type"] in {"http.response.start", "websocket.http.response.start", "websocket.accept"}:
            self.started = True
            self.status = message.get("status", 101)
            given = message.get("headers", [])
            own = self.route.own_headers if isinstance(self.route, AsgiRoute) else frozenset()
            own &= {name.lower() for name, _ in given}
            extra = [pair for pair in self.extra if pair[0] not in own]
            mine = {name for name, _ in extra}
            theirs = [pair for pair in given if pair[0].lower() not in mine]
            message = {**message, "headers": [*theirs, *extra]}
        elif message["type"] == "http.response.body":
            self.response_bytes += len(message.get("body", b""))
        elif message["type"] == "websocket.close" and not self.started:
            self.started, self.status = True, 403
        await self._send(message)

    async def answer(self, response: Response) -> None:
        if self.method is None:
            await self._answer_websocket(response)
            return
        body = response.body
        headers = [
            (b"content-type", response.media.encode("latin-1")),
            (b"x-content-type-options", b"nosniff"),
            (b"cache-control", b"no-store"),
            *(
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in response.headers.items()
            ),
        ]
        if isinstance(body, bytes) and response.status not in _NO_BODY:
            headers.append((b"content-length", str(len(body)).encode()))
        await self.send({"type": "http.response.start", "status": response.status, "headers": headers})
        if self.method == "HEAD" or response.status in _NO_BODY:
            body = b""
        if isinstance(body, bytes):
            await self.send({"type": "http.response.body", "body": body})
            return
        while (piece := await self.in_thread(next, body, _END)) is not _END:
            await self._send_in_time({"type": "http.response.body", "body": piece, "more_body": True})
        await self.send({"type": "http.response.body", "body": b""})

    async def _send_in_time(self, message: Message) -> None:
        """A client that takes nothing is dropped: what it asked for waits in memory meanwhile."""
        try:
            async with asyncio.timeout(_SEND_SECONDS_MAX):
                await self.send(message)
        except TimeoutError as exc:
            raise ClientGone from exc

    async def _answer_websocket(self, response: Response) -> None:
        if "websocket.http.response" not in self.scope.get("extensions", {}):
            await self.send({"type": "websocket.close", "code": 1008})
            return
        headers = [(b"content-type", response.media.encode("latin-1"))]
        headers += [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()
        ]
        body = response.body if isinstance(response.body, bytes) else b"".join(response.body)
        await self.send(
            {"type": "websocket.http.response.start", "status": response.status, "headers": headers}
        )
        await self.send({"type": "websocket.http.response.body", "body": body})

    def _request_id(self) -> str:
        for name, value in self.scope["headers"]:
            if name == b"x-request-id" and _SANE_ID.fullmatch(value.decode("latin-1")):
                return str(value.decode("latin-1"))
        return secrets.token_hex(16)
