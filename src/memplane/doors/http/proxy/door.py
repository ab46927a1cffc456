"""The proxy: a client's request goes to its provider and the answer comes back, byte for byte, with memory around it."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import aiohttp
from starlette.types import Receive, Scope, Send

from memplane.config import Settings
from memplane.doors.http.body import ClientGone
from memplane.doors.http.endpoint import AsgiRoute, Door
from memplane.doors.http.proxy.answer import Answer
from memplane.doors.http.proxy.apis import Api, Asked, api_of
from memplane.doors.http.proxy.credentials import Credentials
from memplane.doors.http.proxy.headers import to_client, to_upstream
from memplane.doors.http.proxy.keeping import Keeper
from memplane.doors.http.proxy.passed import Heard, Passed
from memplane.doors.http.proxy.relay import Broken, Relay, next_piece, pieces_of, until_gone
from memplane.doors.http.proxy.splice import NotPlain
from memplane.doors.http.proxy.telling import Teller, Told
from memplane.doors.http.proxy.turn import ABORTED, Turn
from memplane.doors.http.proxy.upstreams import Upstream, Upstreams, speaks_anthropic
from memplane.doors.http.refusal import Refused
from memplane.doors.opening import open_space
from memplane.engine import Engine
from memplane.governance.events import Listener, log_event
from memplane.history import Recorder
from memplane.identity.principal import Principal, Right
from memplane.space import Space

DOOR = "proxy"

_ALL = ("GET", "POST", "PUT", "PATCH", "DELETE")
_OTHER_DOORS = frozenset({"usage", "deletion-receipts"})
"""Paths below `/v1` that belong to the v6 door."""
_SEND_SECONDS_MAX = 60.0
_END_SECONDS = 0.25
"""How long the end of a stream is waited for once the stream says that it is over."""
_OWN_HEADERS = frozenset({b"x-request-id"})
"""A provider's own id is what its support asks for."""
_CLOSING_S = 5.0


def door(
    plane: Engine,
    settings: Settings,
    *,
    authenticated: bool,
    listener: Listener = log_event,
    heard: Heard | None = None,
) -> Door:
    proxy = Proxy(plane, settings, authenticated=authenticated, listener=listener, heard=heard)

    def route(path: str, summary: str, *methods: str, right: Right = Right.WRITE) -> AsgiRoute:
        return AsgiRoute(
            path=path,
            door=DOOR,
            summary=summary,
            app=proxy,
            right=right,
            methods=methods or _ALL,
            credential=proxy.credentials.ours,
            own_headers=_OWN_HEADERS,
        )

    return Door(
        name=DOOR,
        routes=(
            route("/v1/chat/completions", "OpenAI's chat completions, with memory"),
            route("/v1/responses", "OpenAI's responses, with memory"),
            route("/v1/messages", "Anthropic's messages, with memory"),
            route("/v1/models", "The provider's models", "GET", right=Right.READ),
            route("/v1/embeddings", "The provider's embeddings", "POST"),
            route("/v1/{rest:path}", "Whatever else the provider has"),
            route("/proxy/{upstream}/{rest:path}", "The same of a named upstream"),
        ),
        lifespan=proxy.lifespan,
        degraded=proxy.degraded,
    )


class Passage:
    """One request on its way."""

    def __init__(self, scope: Scope, body: bytes | None) -> None:
        self.method: str = scope["method"]
        self.body = body
        self.principal: Principal = scope["memplane.principal"]
        self.raw_headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.headers = _by_name(self.raw_headers)
        self.query = scope["query_string"].decode("latin-1")
        self.upstream_name: str | None = scope["path_params"].get("upstream")
        self.path = scope["raw_path"].decode("latin-1")
        if self.upstream_name is not None:
            self.path = "/" + self.path.split("/", 3)[3]
        self.begun = time.perf_counter()
        _check_path(self.path)

    @property
    def memory(self) -> bool:
        """Whether the client wants it."""
        said = self.headers.get("x-memplane-memory", "on").strip().lower()
        if said not in {"on", "off"}:
            raise Refused(400, "invalid_request", "X-Memplane-Memory: say on or off")
        return said == "on"

    @property
    def speaks_anthropic(self) -> bool:
        return speaks_anthropic(self.path, self.headers)


class Proxy:
    """An ASGI application for all of the door's routes."""

    _relay: Relay
    _teller: Teller
    _keeper: Keeper

    def __init__(
        self,
        plane: Engine,
        settings: Settings,
        *,
        authenticated: bool,
        listener: Listener,
        heard: Heard | None,
    ) -> None:
        self.credentials = Credentials(settings)
        self._plane = plane
        self._settings = settings
        self._authenticated = authenticated
        self._listener = listener
        self._heard = heard
        self._upstreams = Upstreams(settings)
        self._tasks: set[asyncio.Future[None]] = set()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        settings = self._settings
        recorder = None
        if settings.session_history_dir is not None:
            recorder = Recorder(settings.session_history_dir, settings.session_history_max_bytes)
        self._relay = Relay(idle_seconds_max=settings.proxy_timeout_s)
        self._teller = Teller(self._plane, settings, self._listener)
        self._keeper = Keeper(self._plane, settings, DOOR, None if recorder is None else recorder.append)
        self._keeper.resume()
        try:
            yield
        finally:
            await self._relay.close()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_CLOSING_S)
            await self._keeper.close()
            await self._teller.close()

    def degraded(self) -> tuple[str, ...]:
        return self._keeper.degraded()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = None
        if scope["method"] not in {"GET", "HEAD"}:
            body = (await receive())["body"]
        passage = Passage(scope, body)
        api = api_of(passage.method, passage.path)
        asked = self._asked(passage, api)
        upstream, model = self._upstream(passage, asked)
        own_key = self._own_key(passage, upstream, api)
        remembering = asked is not None and passage.memory
        exchange = Exchange(self, passage, upstream, own_key, send)
        if asked is not None and remembering:
            space = self._space(passage, asked)
            done = await until_gone(receive, lambda: exchange.with_memory(asked, model, space))
        else:
            changes = asked.with_model(model) if asked is not None and model is not None else []
            content = asked.effective(changes) if asked is not None else body
            done = await until_gone(receive, lambda: exchange.without_memory(content))
        if not done:
            raise ClientGone

    def _asked(self, passage: Passage, api: Api | None) -> Asked | None:
        """The turn, if the request asks for one. What cannot be read is the provider's to refuse, in its own words; but
        only where nothing is to be kept of it."""
        if api is None:
            return None
        if passage.memory and passage.headers.get("content-encoding", "identity") != "identity":
            raise Refused(415, "unsupported_media_type", "send the body as it is, not compressed")
        try:
            return Asked(api, passage.body or b"")
        except NotPlain as exc:
            if passage.memory:
                raise Refused(400, "malformed_body", f"the body cannot be read: {exc}") from exc
            return None

    def _upstream(self, passage: Passage, asked: Asked | None) -> tuple[Upstream, str | None]:
        if passage.upstream_name is not None:
            return self._upstreams.named(passage.upstream_name), None
        return self._upstreams.chosen(passage.path, passage.headers, asked)

    def _own_key(self, passage: Passage, upstream: Upstream, api: Api | None) -> bool:
        """Whether the server's key is used, because the client brings none. It is lent for turns and the like; what a
        provider keeps for its customer, such as files, is for the owner: all who share the key would share that."""
        if self.credentials.providers(passage.headers, authenticated=self._authenticated):
            return False
        if upstream.key is not None and api is None and not _is_lent(passage.method, passage.path):
            if Right.ADMIN not in passage.principal.rights:
                raise Refused(403, "forbidden", "the server's key is not lent for this; send one of your own")
        return True

    def _space(self, passage: Passage, asked: Asked) -> Space:
        """Whose memory: that of a credential which opens only one; else as the request says, by header, metadata, user."""
        principal = passage.principal
        named = _text(passage.headers.get("x-memplane-space"))
        only = next(iter(principal.spaces)) if principal.spaces and len(principal.spaces) == 1 else None
        owner = named or only or asked.named_space()
        if owner is None and not self._authenticated:
            owner = principal.subject
        if owner is None:
            raise Refused(
                400, "space_required", "say whose memory: X-Memplane-Space, metadata.memplane_space or user"
            )
        conversation = _text(passage.headers.get("x-memplane-conversation")) or asked.named_conversation()
        return open_space(
            self._plane, principal, Right.WRITE, door=DOOR, owner=owner, session=conversation or ""
        )

    # ── for an exchange ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def plane(self) -> Engine:
        return self._plane

    @property
    def settings(self) -> Settings:
        return self._settings

    @property
    def relay(self) -> Relay:
        return self._relay

    @property
    def teller(self) -> Teller:
        return self._teller

    @property
    def keeper(self) -> Keeper:
        return self._keeper

    def provider_keys(self, passage: Passage) -> frozenset[str]:
        return self.credentials.providers(passage.headers, authenticated=self._authenticated)

    def tell(self, passed: Passed) -> None:
        if self._heard is not None:
            self._heard(passed)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Something that nobody waits for."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Exchange:
    """A request to a provider and its answer to the client."""

    def __init__(
        self, proxy: Proxy, passage: Passage, upstream: Upstream, own_key: bool, send: Send  # noqa: FBT001
    ) -> None:
        self._proxy = proxy
        self._passage = passage
        self._upstream = upstream
        self._own_key = own_key
        self._send = send

    async def without_memory(self, content: bytes | None) -> None:
        """Nothing but bytes."""
        async with await self._ask(content, readable=False) as response:
            await self._start(response)
            try:
                async for piece in pieces_of(response):
                    await self._body(piece)
            except Broken:
                return  # the connection ends without the end of the answer, as the provider's did
            await self._body(b"", more=False)

    async def with_memory(self, asked: Asked, model: str | None, space: Space) -> None:
        proxy = self._proxy
        at = proxy.plane.clock()
        conversation = space.caller.session
        may_read = self._passage.principal.allows(Right.READ, door=DOOR, space=space.owner)
        told = await proxy.teller.tell(space, asked, conversation or asked.opening, may_read=may_read)
        changes = asked.with_memory(told.brief, told.context)
        if model is not None:
            changes += asked.with_model(model)
        turn = Turn(
            asked,
            at=at,
            tenant=space.tenant,
            owner=space.owner,
            actor=space.caller.actor,
            conversation=conversation,
            path=self._passage.path,
            upstream=self._upstream.name,
            model=model or asked.model,
            effective=asked.effective(changes),
            entry_bytes_max=proxy.settings.entry_bytes_max,
        )
        await self._carry(turn, told)

    async def _carry(self, turn: Turn, told: Told) -> None:
        try:
            response = await self._ask(turn.effective, readable=True)
        except Refused:
            self._tell(turn, "failed")
            raise
        async with response:
            turn.status_code = response.status
            await self._start(response)
            if response.status // 100 != 2:  # noqa: PLR2004 - a turn that failed is not kept
                await self._pass_refusal(response)
                self._tell(turn, "refused")
                return
            turn.answer = Answer(
                media=response.headers.get("content-type", ""),
                encoding=response.headers.get("content-encoding", ""),
            )
            try:
                await self._pass_answer(response, turn, told)
            except Broken:
                turn.status = ABORTED
                await self._keep(turn, told)
            except (asyncio.CancelledError, ClientGone):
                if turn.answer.is_stream and not turn.status:
                    turn.status = ABORTED
                    self._proxy.later(self._keep(turn, told))
                raise

    async def _pass_refusal(self, response: aiohttp.ClientResponse) -> None:
        try:
            async for piece in pieces_of(response):
                await self._body(piece)
        except Broken:
            return
        await self._body(b"", more=False)

    async def _pass_answer(self, response: aiohttp.ClientResponse, turn: Turn, told: Told) -> None:
        """Pieces go on as they come, but for the last: the client sees that when the turn is kept. Of a stream the last is
        what says that it is over; of anything else, whatever comes last."""
        answer, held, over = turn.answer, list[bytes](), False
        while True:
            try:
                async with asyncio.timeout(_END_SECONDS if over else None):
                    piece = await next_piece(response)
            except TimeoutError:  # it said that it was over, and does not end
                break
            if not piece:
                break
            over = answer.add(piece) or over
            if not answer.is_stream and held:
                await self._body(held.pop())
            if over or not answer.is_stream:
                held.append(piece)
            else:
                await self._body(piece)
        await self._keep(turn, told)
        for piece in held:
            await self._body(piece)
        if over:
            async for piece in pieces_of(response):
                await self._body(piece)
        await self._body(b"", more=False)

    async def _keep(self, turn: Turn, told: Told) -> None:
        proxy = self._proxy
        kept = await proxy.keeper.keep(turn)
        self._tell(turn, turn.status or "ok", kept=kept)
        if told.backend is not None and turn.status in {"", ABORTED}:
            proxy.later(proxy.teller.retain(told, turn.kept.history, turn.asked.model))

    def _tell(self, turn: Turn, outcome: str, *, kept: bool = False) -> None:
        self._proxy.tell(
            Passed(
                upstream=turn.upstream,
                operation="chat",
                model=turn.model,
                status=turn.status_code,
                outcome=outcome,
                seconds=time.perf_counter() - self._passage.begun,
                spent=turn.spent,
                kept=kept,
            )
        )

    # ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _ask(self, content: bytes | None, *, readable: bool) -> aiohttp.ClientResponse:
        passage, upstream = self._passage, self._upstream
        own = upstream.credential(speaks_anthropic=passage.speaks_anthropic) if self._own_key else {}
        headers = to_upstream(
            passage.raw_headers,
            provider_keys=self._proxy.provider_keys(passage),
            own_key=own,
            readable=readable,
        )
        address = upstream.address(passage.path, passage.query)
        return await self._proxy.relay.ask(upstream, passage.method, address, headers, content)

    async def _start(self, response: aiohttp.ClientResponse) -> None:
        headers = to_client(response.raw_headers)
        await self._send({"type": "http.response.start", "status": response.status, "headers": headers})

    async def _body(self, piece: bytes, *, more: bool = True) -> None:
        """A client that takes nothing is dropped: what it asked for waits in memory meanwhile."""
        try:
            async with asyncio.timeout(_SEND_SECONDS_MAX):
                await self._send({"type": "http.response.body", "body": piece, "more_body": more})
        except TimeoutError as exc:
            raise ClientGone from exc


def _by_name(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return found


def _check_path(path: str) -> None:
    """What leads elsewhere at the provider's than it says is not passed on."""
    segments = unquote(path).replace("\\", "/").split("/")
    if ".." in segments or "." in segments or (path.startswith("/v1/") and segments[2] in _OTHER_DOORS):
        raise Refused(404, "not_found", "nothing is at this path; /docs lists every call")


_LENT = ("completions", "embeddings", "moderations", "rerank", "score", "tokenize", "count_tokens", "input_tokens")
_LENT_BELOW = ("audio", "images", "responses")


def _is_lent(method: str, path: str) -> bool:
    """Whether this is one of the calls that leave nothing behind at the provider's for others to find."""
    segments = [segment for segment in path.removeprefix("/v1").split("/") if segment]
    if not segments:
        return False
    if method in {"GET", "HEAD"} and segments[0] == "models":
        return True
    if segments[0] in _LENT_BELOW and len(segments) > 1:
        return True
    return method == "POST" and segments[-1] in _LENT


def _text(header: str | None) -> str | None:
    """Headers are bytes; names are usually UTF-8."""
    if header is None or not header.strip():
        return None
    try:
        return header.strip().encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return header.strip()
