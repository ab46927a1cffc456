"""One request from its first byte to the last of its response, for observers: metrics, logs, traces, usage."""

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from typing import Protocol, TypeVar, TypeVarTuple

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from memplane.auth.principal import Principal
from memplane.server.endpoint import AsgiRoute, CallUsage, Operation
from memplane.server.request import is_small

_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_SEND_SECONDS_MAX = 60.0
_DEFAULT_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_STARTS = frozenset({"http.response.start", "websocket.http.response.start", "websocket.accept"})

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Observer(Protocol):
    """Called twice for every request, in the task that answers it."""

    def begin(self, exchange: "HttpExchange") -> None: ...

    def end(self, exchange: "HttpExchange") -> None: ...


class HttpExchange:
    """What is known about a request while it is answered."""

    def __init__(self, scope: Scope, send: Send, observers: Sequence[Observer]) -> None:
        self.scope = scope
        self._send = send
        self._observers = observers
        self.method: str | None = scope.get("method") if scope["type"] == "http" else None
        """None is a websocket."""
        self.path: str = scope["path"]
        self.headers = Headers(scope=scope)
        self.request_id = self._request_id()
        self.route: Operation | None = None
        self.principal: Principal | None = None
        self.small = is_small(self.headers)
        """Whether the body fits into the buffer that the server reads anyway."""
        self.body_read = False
        self.request_bytes = 0
        self.response_bytes = 0
        self.spent = CallUsage()
        self.extra: list[tuple[bytes, bytes]] = [(b"x-request-id", self.request_id.encode())]
        """Headers of every response."""
        self.started = False
        self.status = 0
        self.gone = False
        self.error: Exception | None = None
        self.code = ""
        """Of the error in the response."""
        self.broken = False
        """The response had begun when an error occurred."""
        self.turn: AbstractAsyncContextManager[object] = nullcontext()
        """Held while a thread works for this request."""
        self.threads: anyio.CapacityLimiter | None = None
        """The threads that work for it; None is the default limiter."""
        self.begun = time.perf_counter()

    @property
    def peer(self) -> str:
        client = self.scope.get("client")
        return client[0] if client else ""

    @property
    def page(self) -> str:
        """Path and query as they were sent, of a GET request; empty for any other."""
        if self.method != "GET":
            return ""
        path, query = self.scope["raw_path"], self.scope["query_string"]
        return str((path + b"?" + query if query else path).decode("latin-1"))

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.begun

    async def in_thread(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run it in a thread, within the caller's share of the threads."""
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
        """Send a message of the response, with the headers of every response."""
        if message["type"] in _STARTS:
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

    async def answer(self, response: Response, receive: Receive) -> None:
        if self.method is None and "websocket.http.response" not in self.scope.get("extensions", {}):
            await self.send({"type": "websocket.close", "code": 1008})
            return
        given = {name for name, _ in response.raw_headers}
        response.raw_headers += [pair for pair in _DEFAULT_HEADERS if pair[0] not in given]
        if self.method == "HEAD":
            start = {"status": response.status_code, "headers": response.raw_headers}
            await self.send({"type": "http.response.start", **start})
            await self.send({"type": "http.response.body", "body": b""})
        else:
            whole = type(response) is Response
            await response(self.scope, receive, self.send if whole else self._send_in_time)

    async def _send_in_time(self, message: Message) -> None:
        """A client that reads nothing is dropped, because its response waits in memory."""
        try:
            async with asyncio.timeout(_SEND_SECONDS_MAX):
                await self.send(message)
        except TimeoutError as exc:
            raise ClientDisconnect from exc

    def _request_id(self) -> str:
        """The client's, where it has one that is safe to log."""
        given = self.headers.getlist("x-request-id")
        return next(filter(_SANE_ID.fullmatch, given), None) or secrets.token_hex(16)
