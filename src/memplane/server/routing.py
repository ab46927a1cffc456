"""Starlette's router, over what the adapters declare.

Starlette matches the decoded path. Here the path is matched percent-encoded and each parameter is decoded afterwards, so
that an encoded slash belongs to a name and never separates two segments.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any
from urllib.parse import quote, unquote

from starlette import routing
from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Lifespan, Receive, Scope, Send

from memplane.server.endpoint import AsgiRoute, Operation
from memplane.server.errors import HttpError

Serve = Callable[[Operation, Scope, Receive, Send], Awaitable[None]]
"""Runs an operation."""


class PathRouter(routing.Router):
    """Starlette's router with a dictionary of the fixed paths: a fixed path wins over one with parameters, whatever the
    method, and finding it takes the same time however many routes there are."""

    def __init__(
        self,
        operations: Iterable[Operation],
        serve: Serve,
        *,
        hint: Callable[[str], str] = lambda _path: "",
        lifespan: Lifespan[Any] | None = None,
    ) -> None:
        """`hint` says what to try instead of a path that does not exist."""
        by_path: dict[str, list[Operation]] = {}
        self._sockets: dict[str, AsgiRoute] = {}
        for operation in operations:
            if isinstance(operation, AsgiRoute) and operation.websocket:
                self._sockets[operation.path] = operation
            else:
                by_path.setdefault(operation.path, []).append(operation)
        routes = [PathRoute(path, found, serve, self._methods_at) for path, found in by_path.items()]
        self._fixed = {route.path: route for route in routes if not route.param_convertors}
        self._serve = serve
        self._hint = hint
        self._patterns = [route for route in routes if route.param_convertors]
        super().__init__(self._patterns, redirect_slashes=False, default=self._not_found, lifespan=lifespan)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan(scope, receive, send)
            return
        path = encoded_path(scope["raw_path"])
        scope["path_params"] = {}
        if scope["type"] == "websocket":
            if (socket := self._sockets.get(path)) is not None:
                await self._serve(socket, scope, receive, send)
                return
            scope = {**scope, "type": "http", "method": _WEBSOCKET}
        scope["path"] = path
        if (fixed := self._fixed.get(path)) is not None:
            await fixed.handle(scope, receive, send)
        else:
            await super().app(scope, receive, send)

    async def _not_found(self, scope: Scope, _receive: Receive, _send: Send) -> None:
        if scope["path"] in self._sockets:
            raise HttpError(426, "upgrade_required", "this path speaks websockets", {"upgrade": "websocket"})
        raise HttpError(404, "not_found", f"nothing is at this path; {self._hint(scope['path'])}")

    def has(self, path: str) -> bool:
        return path in self._fixed

    def _methods_at(self, path: str) -> list[str]:
        """The methods of every route that matches, for an error: several patterns may match one path."""
        fixed = self._fixed.get(path)
        matching = (
            [route for route in self._patterns if route.path_regex.match(path)] if fixed is None else [fixed]
        )
        return sorted({method for route in matching for method in route.methods or ()})


class PathRoute(routing.Route):
    """All operations on one path."""

    def __init__(
        self,
        path: str,
        operations: Sequence[Operation],
        serve: Serve,
        methods_at: Callable[[str], list[str]],
    ) -> None:
        self._operations = {method: one for one in operations for method in one.methods}
        if "GET" in self._operations:
            self._operations.setdefault("HEAD", self._operations["GET"])
        self._serve = serve
        self._methods_at = methods_at
        super().__init__(_template(path), self.handle, methods=self._operations)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operations.get(scope["method"])
        if operation is None:
            allowed = ", ".join(self._methods_at(scope["path"]))
            refused = "speaks no websockets; it takes" if scope["method"] == _WEBSOCKET else "takes"
            raise HttpError(405, "method_not_allowed", f"this path {refused} {allowed}", {"allow": allowed})
        await self._serve(operation, scope, receive, send)


class _Segment(Convertor[str]):
    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


class _Segments(_Segment):
    """As few as possible."""

    regex = ".+?"

    def to_string(self, value: str) -> str:
        return quote(value)


class _Rest(_Segments):
    """What follows in the path, with the slash before it; or nothing at all."""

    regex = "(?:/.*)?"

    def convert(self, value: str) -> str:
        return unquote(value[1:])

    def to_string(self, value: str) -> str:
        return f"/{quote(value)}"


register_url_convertor("segment", _Segment())
register_url_convertor("segments", _Segments())
register_url_convertor("rest", _Rest())

_WEBSOCKET = "WEBSOCKET"
"""The method of a websocket on a path that serves none; no operation has it."""
_AT_THE_END = re.compile(r"/\{(\w+):path\}$")
_UNRESERVED = re.compile(rb"[A-Za-z0-9_.~/-]*")


def _template(path: str) -> str:
    """The path with the convertors of this module in the place of Starlette's."""
    path = _AT_THE_END.sub(r"{\1:rest}", path)
    path = re.sub(r"\{(\w+):path\}", r"{\1:segments}", path)
    return re.sub(r"\{(\w+)\}", r"{\1:segment}", path)


def encoded_path(raw_path: bytes) -> str:
    """The path with every segment percent-encoded in the same way, whichever way the client chose."""
    if _UNRESERVED.fullmatch(raw_path):
        return raw_path.decode("ascii")
    try:
        segments = [unquote(part, errors="strict") for part in raw_path.decode("latin-1").split("/")]
    except UnicodeDecodeError as exc:
        raise HttpError(400, "malformed_path", "the path is not percent-encoded UTF-8") from exc
    return "/".join(quote(segment, safe="") for segment in segments)
