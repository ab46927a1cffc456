"""What an adapter declares, and the request that its handlers are given."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager
from typing import Any

import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from memplane.auth.limits import QuotaResource
from memplane.auth.principal import Principal, Right
from memplane.engine import Engine
from memplane.server.access import check_space_exists, existing_space, open_space
from memplane.server.errors import NESTED, ErrorFormat, HttpError
from memplane.server.responses import JSON
from memplane.space import Space

_END = object()


class CallUsage(msgspec.Struct, gc=False):
    """Usage of a call that only its adapter knows; the server adds it to the tenant's."""

    ingest_events: int = 0
    tokens: int = 0


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A query parameter. Undeclared parameters are ignored."""

    name: str
    type: Any = str
    required: bool = False
    default: Any = None
    description: str = ""


class HttpCall(HTTPConnection):
    """One request, decoded and authenticated. Starlette's connection has its headers, cookies and path parameters."""

    def __init__(
        self,
        scope: Scope,
        plane: Engine,
        endpoint: "Endpoint",
        *,
        principal: Principal | None,
        query: Mapping[str, Any],
        raw: bytes,
        body: Any,
        request_id: str = "",
        waited_s: float = 0.0,
        spent: CallUsage | None = None,
        in_thread: Callable[..., Awaitable[Any]] | None = None,
    ) -> None:
        super().__init__(scope)
        self._plane = plane
        self._principal = principal
        self._in_thread = in_thread
        self.endpoint = endpoint
        self.query = query
        """Every declared parameter, or its default."""
        self.raw = raw
        self.body = body
        """Decoded to the endpoint's body type; None where the body is empty and may be."""
        self.request_id = request_id
        self.waited_s = waited_s
        """From the arrival of the request until a thread was free for it."""
        self.spent = spent or CallUsage()

    @property
    def peer(self) -> str:
        return self.client.host if self.client else ""

    @property
    def principal(self) -> Principal:
        """The authenticated caller. An open endpoint has none."""
        assert self._principal is not None, "an open endpoint has no principal"
        return self._principal

    def stream(self, pieces: Iterator[bytes], *, media: str, headers: Mapping[str, str]) -> StreamingResponse:
        """A response that is produced while it is sent, in the caller's share of the threads."""
        assert self._in_thread is not None, "only the server streams"
        return ProducedResponse(_produced(pieces, self._in_thread), 200, headers, media)

    @contextmanager
    def using(self, what: QuotaResource) -> Iterator[None]:
        """Count the block against the tenant's limits; raise `QuotaExceeded` or `RateLimited` where they are used up. An
        ingest that succeeds is an event of the tenant's usage."""
        with self._plane.quota.using(self.principal.tenant, what):
            yield
        self.spent.ingest_events += what is QuotaResource.INGEST

    def space(self, owner: str, right: Right | None = None, *, session: str = "") -> Space:
        """The space of an owner. Raise `Forbidden` unless the credential opens it through this adapter."""
        asked = right or self._right
        return open_space(
            self._plane, self.principal, asked, adapter=self.endpoint.adapter, owner=owner, session=session
        )

    def existing_space(self, owner: str) -> Space | None:
        """Like `space`, but a space that does not exist is not created."""
        return existing_space(
            self._plane, self.principal, self._right, adapter=self.endpoint.adapter, owner=owner
        )

    def check_opens(self, owner: str) -> None:
        """Raise `Forbidden` unless the credential opens that space."""
        self.principal.check(self._right, adapter=self.endpoint.adapter, space=owner)

    def opens(self, owner: str) -> bool:
        """Whether `space` would open it."""
        return self.principal.allows(self._right, adapter=self.endpoint.adapter, space=owner)

    @property
    def _right(self) -> Right:
        assert self.endpoint.right is not None, "an open endpoint opens no space"
        return self.endpoint.right

    def check_space_exists(self, owner: str) -> None:
        """Raise where a caller who may only read names a space that does not exist."""
        check_space_exists(self._plane, self.principal, adapter=self.endpoint.adapter, owner=owner)


class ProducedResponse(StreamingResponse):
    """Ends its iterator with the response, also where the client is gone before the end."""

    body_iterator: AsyncGenerator[bytes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self.body_iterator):
            await super().__call__(scope, receive, send)


async def _produced(
    pieces: Iterator[bytes], in_thread: Callable[..., Awaitable[Any]]
) -> AsyncGenerator[bytes]:
    while (piece := await in_thread(next, pieces, _END)) is not _END:
        yield piece


Handler = Callable[[HttpCall], Response]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One operation. The server checks the credential, reads and decodes the body, and runs `handle` in a thread."""

    method: str | tuple[str, ...]
    """`GET` also answers `HEAD`."""
    path: str
    """`{name}` matches one segment, `{name:path}` several: all that follow at the end of the path, else as few as possible."""
    adapter: str
    summary: str
    handle: Handler
    right: Right | None
    """What the credential must allow; None needs no credential."""
    body: Any = None
    """The type of the body: `bytes` is not decoded, anything else is decoded from JSON; None is no body."""
    body_shown: Any = None
    """The type that the description shows for a body that the handler decodes."""
    body_required: bool = True
    body_bytes_max: int = 0
    """A limit above the one in the settings."""
    read: Callable[[bytes], Any] | None = None
    """Decodes the body where clients write another JSON than the strict one."""
    media: tuple[str, ...] | None = (JSON,)
    """Accepted content types; a body without a content type is accepted too. None accepts all."""
    answer: Any = None
    """The type of the response, for the description."""
    answer_media: str = JSON
    answer_status: int = 200
    more_answers: dict[int, Any] = {}
    """Types of responses with another status, in the same media type."""
    query: tuple[Query, ...] = ()
    statuses: tuple[int, ...] = ()
    """Error statuses in addition to those of every endpoint."""
    credential: Callable[[Mapping[str, str]], str] | None = None
    """Reads the credential where clients do not send it in the usual headers."""
    described: bool = True
    """Whether it is part of the OpenAPI description."""
    refuse: Callable[[Exception], HttpError | None] | None = None
    """Replaces the status, code or message of an error; None keeps them."""
    example: Any = None
    """Of the body, for the description."""

    @property
    def methods(self) -> tuple[str, ...]:
        return (self.method,) if isinstance(self.method, str) else self.method


class AsgiRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A stream, a websocket or another ASGI application. In its scope it finds `memplane.principal`; `memplane.again`, an
    async function that raises once the credential has ended; `memplane.turn`, an async context manager to hold while a
    thread works for the caller; `memplane.request_id`; and `path_params`."""

    path: str
    adapter: str
    summary: str
    app: ASGIApp
    right: Right | None
    methods: tuple[str, ...] = ("GET",)
    websocket: bool = False
    """It serves websockets instead of HTTP."""
    credential: Callable[[Mapping[str, str]], str] | None = None
    """Reads the credential where clients do not send it in the usual headers."""
    lasting: bool = False
    """Its responses take as long as another server takes, so one caller may have many requests open."""
    own_headers: frozenset[bytes] = frozenset()
    """Response headers of the server that it may set itself."""


Operation = Endpoint | AsgiRoute


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an adapter adds to the server."""

    name: str
    routes: tuple[Operation, ...]
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
    """Entered before the first request and left after the last, in the event loop."""
    degraded: Callable[[], tuple[str, ...]] | None = None
    """Codes of problems, for `/readyz`."""
    title: str = ""
    """Its name in the OpenAPI description."""
    paths: tuple[str, ...] = ()
    """Paths whose errors have the adapter's format; with a slash at the end, everything below."""
    errors: ErrorFormat = NESTED
    hint: str = "/docs lists every call"
    """What to try instead of a path that does not exist."""
