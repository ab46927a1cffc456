"""What a door declares, what it is given when somebody knocks, and what it answers."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

import msgspec
from starlette.types import ASGIApp

from memplane.auth.limits import QuotaResource
from memplane.auth.principal import Principal, Right
from memplane.engine import Engine
from memplane.server.access import check_there, existing_space, open_space
from memplane.server.refusal import ErrorInfo
from memplane.space import Space

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
NDJSON = "application/x-ndjson"

_encode = msgspec.json.Encoder().encode


class Response(msgspec.Struct, kw_only=True):
    """An answer: bytes, or pieces of bytes that are made while they are sent."""

    status: int = 200
    body: bytes | Iterator[bytes] = b""
    media: str = JSON
    headers: dict[str, str] = {}


def json_response(
    value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None, newline: bool = False
) -> Response:
    body = _encode(value)
    return Response(
        status=status, body=body + b"\n" if newline else body, media=JSON, headers=dict(headers or {})
    )


def text_response(text: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status=status, body=text.encode(), media=TEXT, headers=dict(headers or {}))


class CallUsage(msgspec.Struct, gc=False):
    """What a call used, as far as only the door knows; the frame counts it for the tenant."""

    ingest_events: int = 0
    tokens: int = 0


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A query parameter. What does not fit its type is refused; parameters nobody declared are passed over."""

    name: str
    type: Any = str
    required: bool = False
    default: Any = None
    description: str = ""


class HttpCall:
    """One request, read and checked: who knocks, where, and with what."""

    __slots__ = (
        "_plane",
        "_principal",
        "body",
        "endpoint",
        "headers",
        "method",
        "path",
        "peer",
        "query",
        "raw",
        "request_id",
        "spent",
        "waited_s",
    )

    def __init__(
        self,
        plane: Engine,
        endpoint: "Endpoint",
        *,
        principal: Principal | None,
        method: str,
        path: Mapping[str, str],
        query: Mapping[str, Any],
        headers: Mapping[str, str],
        raw: bytes,
        body: Any,
        request_id: str,
        peer: str,
        waited_s: float = 0.0,
        spent: CallUsage | None = None,
    ) -> None:
        self._plane = plane
        self._principal = principal
        self.endpoint = endpoint
        self.method = method
        self.path = path
        """The parameters of the path, percent-decoded."""
        self.query = query
        """Every declared parameter, with its default where none was given."""
        self.headers = headers
        """By lower-case name; where one came twice, the first."""
        self.raw = raw
        self.body = body
        """Decoded to the endpoint's body type; None where there was none and none is required."""
        self.request_id = request_id
        self.peer = peer
        self.waited_s = waited_s
        """Since the request came in, until a thread was free for it."""
        self.spent = spent or CallUsage()
        """Add the tokens of what came in and of what is told."""

    @property
    def principal(self) -> Principal:
        """Who knocks. An open endpoint has nobody to ask for."""
        assert self._principal is not None, "an open endpoint has no principal"
        return self._principal

    @contextmanager
    def using(self, what: QuotaResource) -> Iterator[None]:
        """Do inside what a tenant may be allowed only so much of; raises `QuotaExceeded` or `RateLimited` instead. An ingest
        that succeeds is an event of the tenant's usage."""
        with self._plane.allowance.using(self.principal.tenant, what):
            yield
        self.spent.ingest_events += what is QuotaResource.INGEST

    def space(self, owner: str, right: Right | None = None, *, session: str = "") -> Space:
        """The space of an owner, once the credential was found to open it through this door."""
        asked = right or self._right
        return open_space(
            self._plane, self.principal, asked, door=self.endpoint.door, owner=owner, session=session
        )

    def existing_space(self, owner: str) -> Space | None:
        """As `space`; None where there is none yet, since a look must not create it."""
        return existing_space(self._plane, self.principal, self._right, door=self.endpoint.door, owner=owner)

    def check_opens(self, owner: str) -> None:
        """Raise `Forbidden` unless the credential opens that space, for what is not read in it."""
        self.principal.check(self._right, door=self.endpoint.door, space=owner)

    def opens(self, owner: str) -> bool:
        """Whether `space` would open it."""
        return self.principal.allows(self._right, door=self.endpoint.door, space=owner)

    @property
    def _right(self) -> Right:
        assert self.endpoint.right is not None, "an open endpoint opens no space"
        return self.endpoint.right

    def check_there(self, owner: str) -> None:
        """Before a space is opened that need not be there."""
        check_there(self._plane, self.principal, door=self.endpoint.door, owner=owner)


Handle = Callable[[HttpCall], Response]


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a door does. The frame checks the credential, reads and decodes, and runs `handle` in a thread."""

    method: str | tuple[str, ...]
    """`GET` also answers `HEAD`."""
    path: str
    """Segments; `{name}` stands for one segment, `{name:path}` for several: in the end for all that follow, before the end
    for as few as will do."""
    door: str
    summary: str
    handle: Handle
    right: Right | None
    """What the credential must allow; None is open to everybody."""
    body: Any = None
    """The type of the body: `bytes` is taken as it is, anything else is decoded from JSON; None is no body."""
    body_shown: Any = None
    """The type the description shows for a body that the endpoint decodes by itself."""
    body_required: bool = True
    body_bytes_max: int = 0
    """Where more must fit than the settings allow everywhere."""
    read: Callable[[bytes], Any] | None = None
    """How the body is read where clients write JSON in a manner of their own; None reads strict JSON."""
    media: tuple[str, ...] | None = (JSON,)
    """Content types that are taken; a body without one is taken too. None takes any."""
    answer: Any = None
    """The type of the answer, for the description."""
    answer_media: str = JSON
    answer_status: int = 200
    more_answers: dict[int, Any] = {}
    """Types of answers with another status, in the same media type."""
    query: tuple[Query, ...] = ()
    statuses: tuple[int, ...] = ()
    """Refusals of its own, besides those that every endpoint may answer."""
    credential: Callable[[Mapping[str, str]], str] | None = None
    """Where its clients put a credential of ours, if not where everybody does."""
    described: bool = True
    """Whether it is a call for programs, and stands in the description of all calls."""
    refuse: Callable[[Exception], ErrorInfo | None] | None = None
    """A door whose clients expect other statuses, codes or words; None leaves it to the frame's table."""

    @property
    def methods(self) -> tuple[str, ...]:
        return (self.method,) if isinstance(self.method, str) else self.method


class AsgiRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A stream, a websocket, or anything else that is more than a call. Who knocks is in `scope["memplane.principal"]`,
    and `await scope["memplane.again"]()` raises once their credential ended, which a connection must not outlive. Who has
    the engine work in a thread does so within `async with scope["memplane.turn"]`, or one caller could have all of
    them. The request's id is in `scope["memplane.request_id"]`, parameters of the path in `scope["path_params"]`."""

    path: str
    door: str
    summary: str
    app: ASGIApp
    right: Right | None
    methods: tuple[str, ...] = ("GET",)
    websocket: bool = False
    """It answers websockets instead of HTTP."""
    credential: Callable[[Mapping[str, str]], str] | None = None
    """Where its clients put a credential of ours, if not where everybody does."""
    lasting: bool = False
    """Its answers take as long as somebody else takes, so one caller may wait for many of them at once."""
    own_headers: frozenset[bytes] = frozenset()
    """Headers of every answer that it may set itself."""


Route = Endpoint | AsgiRoute


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """All a door brings."""

    name: str
    routes: tuple[Route, ...]
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None
    """Entered before the first request and left after the last, in the event loop."""
    degraded: Callable[[], tuple[str, ...]] | None = None
    """Codes of what does not get on at this door, for `/readyz`."""
