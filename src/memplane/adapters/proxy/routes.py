"""The proxy: relays a client's request to its provider and the response back, byte for byte, and adds memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from memplane.adapters.clawdapus.session_history import HistoryRecorder
from memplane.adapters.proxy.apis import Api, ChatRequest, NotPlain, api_of, model_in
from memplane.adapters.proxy.credentials import ProxyCredentials
from memplane.adapters.proxy.errors import FORMAT
from memplane.adapters.proxy.forward import ADAPTER, Carrier, ProxyServices
from memplane.adapters.proxy.injection import Injector
from memplane.adapters.proxy.prices import Prices
from memplane.adapters.proxy.recorder import TurnRecorder
from memplane.adapters.proxy.relay import ProviderClient, until_disconnect
from memplane.adapters.proxy.request import ProxyRequest, decoded
from memplane.adapters.proxy.upstreams import Upstream, Upstreams
from memplane.auth.principal import Right
from memplane.config import Settings
from memplane.engine import Engine
from memplane.server.access import open_space
from memplane.server.endpoint import Adapter, AsgiRoute
from memplane.server.errors import HttpError
from memplane.space import Space
from memplane.telemetry import Listener, PassedListener, log_event

_ALL = ("GET", "POST", "PUT", "PATCH", "DELETE")
_OWN_HEADERS = frozenset({b"x-request-id"})
"""The provider's request id is kept, because its support asks for it."""


def adapter(
    plane: Engine,
    settings: Settings,
    *,
    authenticated: bool,
    listener: Listener = log_event,
    passed: PassedListener | None = None,
) -> Adapter:
    proxy = Proxy(
        plane, settings, authenticated=authenticated, listener=listener, passed=passed or (lambda _: None)
    )

    def route(path: str, summary: str, *methods: str, right: Right = Right.WRITE) -> AsgiRoute:
        return AsgiRoute(
            path=path,
            adapter=ADAPTER,
            summary=summary,
            app=proxy,
            right=right,
            methods=methods or _ALL,
            credential=proxy.credentials.credential,
            own_headers=_OWN_HEADERS,
            lasting=True,
        )

    return Adapter(
        name=ADAPTER,
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
        title="OpenAI and Anthropic proxy",
        paths=("/v1/", "/proxy/"),
        errors=FORMAT,
        degraded=proxy.degraded,
    )


class Proxy:
    """An ASGI application for the proxy's routes."""

    _parts: ProxyServices

    def __init__(
        self,
        plane: Engine,
        settings: Settings,
        *,
        authenticated: bool,
        listener: Listener,
        passed: PassedListener,
    ) -> None:
        self.credentials = ProxyCredentials(settings)
        self._plane = plane
        self._settings = settings
        self._authenticated = authenticated
        self._listener = listener
        self._passed = passed
        self._upstreams = Upstreams(settings)
        self._prices = Prices(settings.proxy_prices)
        folder = settings.session_history_dir
        self._recorder = (
            None
            if folder is None
            else HistoryRecorder(Path(folder).expanduser(), settings.session_history_max_bytes)
        )

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        plane, settings = self._plane, self._settings
        record = None if self._recorder is None else self._recorder.append
        self._parts = ProxyServices(
            settings,
            plane.clock,
            self._passed,
            relay=ProviderClient(idle_seconds_max=settings.proxy_timeout_s),
            injector=Injector(plane, settings, self._listener),
            recorder=TurnRecorder(plane, settings, self._listener, adapter=ADAPTER, record=record),
            prices=self._prices,
        )
        self._parts.recorder.resume()
        try:
            yield
        finally:
            await self._parts.close()

    def degraded(self) -> tuple[str, ...]:
        return self._parts.recorder.degraded()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = None
        if scope["method"] not in {"GET", "HEAD"}:
            body = (await receive())["body"]
        request = ProxyRequest(scope, body)
        api = api_of(request.method, request.path)
        chat_request = await decoded(body, self._chat_request, request, api)
        upstream, model = self._upstream(request, chat_request)
        carrier = Carrier(self._parts, request, upstream, self._keys(request, upstream, api), send)
        if chat_request is not None and request.memory:
            space = self._space(request, chat_request)
            done = await until_disconnect(receive, lambda: carrier.with_memory(chat_request, model, space))
        else:
            changes = chat_request.with_model(model) if chat_request is not None and model is not None else []
            content = chat_request.effective(changes) if chat_request is not None else body
            counted = body if request.operation is not None else None
            in_body = await decoded(counted, model_in, counted)
            done = await until_disconnect(receive, lambda: carrier.without_memory(content, model or in_body))
        if not done:
            raise ClientDisconnect

    def _chat_request(self, request: ProxyRequest, api: Api | None) -> ChatRequest | None:
        """The turn, if the request is one. The provider rejects unreadable bodies in its own words, unless the turn
        must be recorded."""
        if api is None:
            return None
        if request.memory and request.headers.get("content-encoding", "identity") != "identity":
            raise HttpError(415, "unsupported_media_type", "send the body uncompressed")
        try:
            return ChatRequest(api, request.body or b"")
        except NotPlain as exc:
            if request.memory:
                raise HttpError(400, "malformed_body", f"the body cannot be read: {exc}") from exc
            return None

    def _upstream(
        self, request: ProxyRequest, chat_request: ChatRequest | None
    ) -> tuple[Upstream, str | None]:
        if request.upstream_name is not None:
            return self._upstreams.named(request.upstream_name), None
        return self._upstreams.chosen(request.path, request.headers, chat_request)

    def _keys(self, request: ProxyRequest, upstream: Upstream, api: Api | None) -> frozenset[str]:
        """The headers with the client's provider key, if any; otherwise the server's key is used. The server's key is
        for turns and similar calls only. Data that a provider stores per customer, such as files, would be shared by
        all users of the key."""
        keys = self.credentials.providers(request.headers, authenticated=self._authenticated)
        request.leave_behind(self.credentials.stays(request.headers, authenticated=self._authenticated))
        lent = keys or upstream.key is None or api is not None or request.uses_shared_key
        if not lent and Right.ADMIN not in request.principal.rights:
            raise HttpError(403, "forbidden", "the server's key cannot be used for this call; send your own")
        return keys

    def _space(self, request: ProxyRequest, chat_request: ChatRequest) -> Space:
        """The space of a credential that is limited to one; else from the request: header, metadata, user."""
        principal = request.principal
        only = next(iter(principal.spaces)) if principal.spaces and len(principal.spaces) == 1 else None
        owner = request.space or only or chat_request.named_space()
        if owner is None and not self._authenticated:
            owner = principal.subject
        if owner is None:
            raise HttpError(
                400,
                "space_required",
                "no space given: use a key for one space, X-Memplane-Space, metadata.memplane_space, or user "
                "(for Anthropic metadata.user_id)",
            )
        conversation = request.conversation or chat_request.named_conversation()
        return open_space(
            self._plane, principal, Right.WRITE, adapter=ADAPTER, owner=owner, session=conversation or ""
        )
