"""The Helmdeck API: all paths and their requirements."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from memplane.adapters.helmdeck import qmd, tools
from memplane.adapters.helmdeck.caller import ADAPTER, CallerFacts
from memplane.adapters.helmdeck.errors import FORMAT
from memplane.adapters.helmdeck.login import LogIn
from memplane.adapters.helmdeck.packs import FORGET, STORE, pack_named, run_pack
from memplane.adapters.helmdeck.relay import SessionRelay
from memplane.adapters.helmdeck.sessions import SseSessions
from memplane.adapters.helmdeck.streams import KEEPALIVE_SECONDS, SEND_SECONDS_MAX, Streams
from memplane.adapters.helmdeck.wire import (
    BridgeVersion,
    Callers,
    DefaultsAnswer,
    FactHistory,
    ForgetArguments,
    HelmdeckFact,
    HelmdeckFactList,
    HelmdeckForgotten,
    LoggedIn,
    Login,
    PackForgotten,
    PackStored,
    StoreArguments,
    StoreBody,
    StoreResponse,
    read_body,
    read_json,
)
from memplane.auth.principal import Authenticator, Principal, Right
from memplane.config import Settings
from memplane.engine import Engine
from memplane.errors import StorageError
from memplane.server.endpoint import Adapter, AsgiRoute, Endpoint, HttpCall, Query
from memplane.server.errors import HttpError, http_error
from memplane.server.responses import json_response

PREFIX = "/api/v1"
MEMORY = f"{PREFIX}/memory"
SSE = f"{PREFIX}/mcp/sse"
QMD = f"{PREFIX}/mcp/qmd/sse"
WEBSOCKET = f"{PREFIX}/mcp/ws"

_LIMIT_DEFAULT, _LIMIT_MAX = 100, 10_000
_Limit = Annotated[int, msgspec.Meta(ge=1, le=_LIMIT_MAX)]
_STORE_EXAMPLE = {"key": "preferences/theme", "value": "dark", "category": "preferences", "tags": ["ui"]}
_FORGET_EXAMPLE = {"scope": "key:preferences/theme"}
_MIN_RECOMMENDED = "v0.2.0"
_CALLER = Query(
    name="caller", description="The caller whose facts are read; ignored unless an administrator calls."
)


class StreamTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """The interval between keep-alive messages, and the timeout for a client that does not read."""

    keepalive_seconds: float = KEEPALIVE_SECONDS
    send_seconds_max: float = SEND_SECONDS_MAX


def adapter(
    plane: Engine,
    settings: Settings,
    authenticator: Authenticator | None = None,
    *,
    bounds: StreamTimeouts | None = None,
) -> Adapter:
    facts = HelmdeckAdapter(plane, LogIn(authenticator, settings), bounds or StreamTimeouts())
    return Adapter(
        name=ADAPTER,
        title="Helmdeck: user facts",
        routes=(*facts.endpoints(), *facts.streams()),
        lifespan=facts.lifespan,
        paths=(f"{PREFIX}/",),
        errors=FORMAT,
    )


class HelmdeckAdapter:
    """Handles requests of Helmdeck's clients, one caller at a time."""

    def __init__(self, plane: Engine, log_in: LogIn, bounds: StreamTimeouts) -> None:
        self._plane = plane
        self._log_in = log_in
        self._bounds = bounds
        self.sessions = SseSessions()
        folder = plane.settings.folder / "run"
        self._relay = SessionRelay(folder, self.sessions.worker, self.sessions.deliver)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        await self._relay.open()
        try:
            yield
        finally:
            await self._relay.close()

    # ── paths ────────────────────────────────────────────────────────────────────────────────────────────────

    def endpoints(self) -> tuple[Endpoint, ...]:
        return (*self._writing(), *self._all_reading(), *self._packs(), *self._open())

    def _writing(self) -> tuple[Endpoint, ...]:
        return (
            Endpoint(
                method="POST",
                path=f"{MEMORY}/store",
                adapter=ADAPTER,
                summary="Store a fact under a key",
                example=_STORE_EXAMPLE,
                handle=self._store,
                right=Right.WRITE,
                body=StoreBody,
                read=partial(read_body, shape=StoreArguments),
                media=None,
                answer=StoreResponse,
                refuse=_refuse_store,
            ),
            Endpoint(
                method="POST",
                path=f"{MEMORY}/forget",
                adapter=ADAPTER,
                summary="Forget facts and runs by scope; without a scope, all of them",
                example=_FORGET_EXAMPLE,
                handle=self._forget,
                right=Right.WRITE,
                body=ForgetArguments,
                read=_read_forget,
                body_required=False,
                media=None,
                answer=HelmdeckForgotten,
                refuse=_refuse,
            ),
        )

    def _all_reading(self) -> tuple[Endpoint, ...]:
        return (
            self._reading(
                "defaults", "Get defaults learned from earlier runs", self._defaults, DefaultsAnswer
            ),
            self._reading(
                "callers",
                "List the callers that have facts; only administrators see others",
                self._callers,
                Callers,
                (),
            ),
            self._reading(
                "facts",
                "List facts, newest first",
                self._facts,
                HelmdeckFactList,
                (
                    _CALLER,
                    Query(name="prefix", default="", description="Only keys with this prefix."),
                    Query(name="key", description="Only this key, exactly."),
                    Query(name="category", description="Only facts of this category."),
                    Query(
                        name="limit",
                        type=_Limit,
                        default=_LIMIT_DEFAULT,
                        description="Maximum number of facts.",
                    ),
                ),
            ),
            self._reading(
                "facts/{key:path}",
                "Get a fact; its key may contain slashes",
                self._fact,
                HelmdeckFact,
                missing=True,
            ),
            self._reading(
                "history/{key:path}",
                "List every value of a key, past and present",
                self._history,
                FactHistory,
                missing=True,
            ),
        )

    def _packs(self) -> tuple[Endpoint, ...]:
        return (
            self._pack(STORE, StoreBody, PackStored, _STORE_EXAMPLE),
            self._pack(FORGET, ForgetArguments, PackForgotten, _FORGET_EXAMPLE),
            Endpoint(
                method="POST",
                path=f"{PREFIX}/packs/{{pack}}",
                adapter=ADAPTER,
                summary="Run a pack by any of its names",
                example=_STORE_EXAMPLE,
                handle=self._run_named,
                right=Right.READ,
                body=bytes,
                body_required=False,
                media=None,
                statuses=(404,),
                refuse=_refuse,
            ),
        )

    def _open(self) -> tuple[Endpoint, ...]:
        """Endpoints that need no credential."""
        return (
            Endpoint(
                method="POST",
                path=f"{PREFIX}/auth/login",
                adapter=ADAPTER,
                summary="Log in with a username and password, and get a token",
                example={"username": "alice", "password": "correct horse battery staple"},
                handle=self._log_in,
                right=None,
                body=Login,
                read=_unread,
                media=None,
                answer=LoggedIn,
                statuses=(401, 503),
            ),
            Endpoint(
                method="GET",
                path=f"{PREFIX}/bridge/version",
                adapter=ADAPTER,
                summary="Get the platform version, for the bridge",
                handle=_bridge_version,
                right=None,
                answer=BridgeVersion,
            ),
        )

    def streams(self) -> tuple[AsgiRoute, ...]:
        main = self._streams(tools.methods_for, f"{SSE}/message")
        corpus = self._streams(qmd.methods_for, f"{QMD}/message")
        return (
            _stream(SSE, "MCP over server-sent events", main.events),
            _stream(f"{SSE}/message", "Send a message to an event stream", main.message, method="POST"),
            _stream(QMD, "The QMD corpus over server-sent events", corpus.events),
            _stream(f"{QMD}/message", "Send a message to a QMD event stream", corpus.message, method="POST"),
            AsgiRoute(
                path=WEBSOCKET,
                adapter=ADAPTER,
                summary="MCP over a websocket",
                app=main.websocket,
                right=Right.READ,
                websocket=True,
            ),
        )

    def _reading(
        self,
        path: str,
        summary: str,
        handle: Callable[[HttpCall], Response],
        answer: Any,
        query: tuple[Query, ...] = (_CALLER,),
        *,
        missing: bool = False,
    ) -> Endpoint:
        return Endpoint(
            method="GET",
            path=f"{MEMORY}/{path}",
            adapter=ADAPTER,
            summary=summary,
            handle=handle,
            right=Right.READ,
            answer=answer,
            query=query,
            statuses=(404,) if missing else (),
            refuse=_refuse,
        )

    def _pack(self, name: str, takes: Any, gives: Any, example: Any) -> Endpoint:
        return Endpoint(
            method="POST",
            path=f"{PREFIX}/packs/{name}",
            adapter=ADAPTER,
            summary=f"Run the pack {name}",
            handle=partial(self._run, name),
            right=Right.WRITE,
            body=takes,
            example=example,
            read=_read_input,
            body_required=False,
            media=None,
            answer=gives,
            refuse=_refuse,
        )

    def _streams(self, methods_for: Callable[[CallerFacts], Any], message_path: str) -> Streams:
        def of(principal: Principal) -> Any:
            return methods_for(CallerFacts(self._plane, principal))

        return Streams(
            self.sessions,
            self._relay,
            of,
            message_path=message_path,
            keepalive_seconds=self._bounds.keepalive_seconds,
            send_seconds_max=self._bounds.send_seconds_max,
        )

    # ── handlers ─────────────────────────────────────────────────────────────────────────────────────────────

    def _store(self, call: HttpCall) -> Response:
        return _answer(self._caller(call).store(call.body))

    def _forget(self, call: HttpCall) -> Response:
        return _answer(self._caller(call).forget(call.body or ForgetArguments()))

    def _defaults(self, call: HttpCall) -> Response:
        return _answer(self._arguments(call).defaults())

    def _callers(self, call: HttpCall) -> Response:
        return _answer(self._caller(call).callers())

    def _facts(self, call: HttpCall) -> Response:
        query = call.query
        return _answer(
            self._arguments(call).facts(
                query["prefix"], key=query["key"], category=query["category"], limit=query["limit"]
            )
        )

    def _fact(self, call: HttpCall) -> Response:
        return _answer(self._arguments(call).fact(call.path_params["key"]))

    def _history(self, call: HttpCall) -> Response:
        return _answer(self._arguments(call).history(call.path_params["key"]))

    def _run_named(self, call: HttpCall) -> Response:
        return self._run(call.path_params["pack"], call)

    def _run(self, name: str, call: HttpCall) -> Response:
        pack = pack_named(name)
        if pack is None:
            raise HttpError(404, "not_found", f"unknown pack: {name}")
        given = _read_input(call.raw)
        return _answer(run_pack(pack, self._caller(call), given))

    def _caller(self, call: HttpCall) -> CallerFacts:
        return CallerFacts(self._plane, call.principal)

    def _arguments(self, call: HttpCall) -> CallerFacts:
        return CallerFacts(self._plane, call.principal, asked=call.query["caller"])


def _stream(path: str, summary: str, app: Any, *, method: str = "GET") -> AsgiRoute:
    return AsgiRoute(
        path=path, adapter=ADAPTER, summary=summary, app=app, right=Right.READ, methods=(method,)
    )


def _answer(value: Any) -> Response:
    return json_response(value, newline=True)


def _read_forget(raw: bytes) -> ForgetArguments:
    return read_body(raw, ForgetArguments) if raw.strip() else ForgetArguments()


def _unread(_raw: bytes) -> None:
    """The handler parses the body, because it has its own error messages."""


def _read_input(raw: bytes) -> Any:
    """An empty body is an empty object; other invalid bodies are rejected."""
    return read_json(raw) if raw.strip() else {}


def _refuse(error: Exception) -> HttpError | None:
    """Helmdeck has one error code for a failed store. A busy store gets another, because a retry helps."""
    if not isinstance(error, StorageError) or error.retryable:
        return None
    return HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", http_error(error).message)


def _refuse_store(error: Exception) -> HttpError | None:
    """The code is `invalid_input` even if the store failed; the status distinguishes the two."""
    failed = _refuse(error)
    return failed and HttpError(failed.status, "invalid_input", f"store: {failed.message}")


def _bridge_version(_call: HttpCall) -> Response:
    return _answer(
        BridgeVersion(platform_version=f"v{version('memplane')}", min_recommended=_MIN_RECOMMENDED)
    )
