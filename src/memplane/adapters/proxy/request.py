"""One relayed request: the proxy's settings from its path and headers."""

import time
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple
from urllib.parse import unquote

import anyio.to_thread
from starlette.types import Scope

from memplane.adapters.proxy.apis import api_of
from memplane.adapters.proxy.credentials import is_credential_header
from memplane.adapters.proxy.errors import is_anthropic
from memplane.adapters.proxy.headers import RECALL_HEADER, SHOW
from memplane.auth.principal import Principal
from memplane.server.errors import HttpError

_OTHER_ADAPTERS = frozenset({"usage", "deletion-receipts"})
"""Paths below `/v1` that belong to the CLAIV API."""
_SHARED_KEY_PATHS = (
    "completions",
    "embeddings",
    "moderations",
    "rerank",
    "score",
    "tokenize",
    "count_tokens",
    "input_tokens",
)
_COUNTED = {"completions": "text_completion", "embeddings": "embeddings"}
_SHARED_KEY_PREFIXES = ("audio", "images", "responses")
_LARGE_BYTES = 64 << 10

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ProxyRequest:
    """One relayed request."""

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
            self.path = "/" + self.path.removeprefix("/proxy/").partition("/")[2]
        self.begun = time.perf_counter()
        _check_path(self.path)

    def leave_behind(self, stays: Callable[[str], bool]) -> None:
        """Drop credentials from other headers. A credential in the URL is rejected instead, because URLs are logged
        on the way."""
        if stays(unquote(f"{self.path}?{self.query}")):
            raise HttpError(
                400, "invalid_request", "keys are not allowed in the URL; send the key in a header"
            )
        self.raw_headers = [
            (name, value)
            for name, value in self.raw_headers
            if is_credential_header(name.decode("latin-1")) or not stays(value.decode("latin-1"))
        ]

    @property
    def memory(self) -> bool:
        """Whether the client enabled memory."""
        said = self.headers.get("x-memplane-memory", "on").strip().lower()
        if said not in {"on", "off"}:
            raise HttpError(400, "invalid_request", "X-Memplane-Memory must be on or off")
        return said == "on"

    @property
    def shows(self) -> bool:
        """Whether the client asked for the recalled memory."""
        return self.headers.get(RECALL_HEADER, "").strip().lower() == SHOW

    @property
    def is_anthropic(self) -> bool:
        return is_anthropic(self.path, self.headers)

    @property
    def operation(self) -> str | None:
        """The OpenTelemetry operation name if the provider counts tokens for the call; None otherwise."""
        if self.method != "POST":
            return None
        if api_of(self.method, self.path) is not None:
            return "chat"
        return _COUNTED.get(self.path.rpartition("/")[2])

    @property
    def uses_shared_key(self) -> bool:
        """Whether the call leaves no data at the provider that others with the same key could find."""
        segments = [segment for segment in self.path.removeprefix("/v1").split("/") if segment]
        if not segments:
            return False
        if self.method in {"GET", "HEAD"} and segments[0] == "models":
            return True
        if segments[0] in _SHARED_KEY_PREFIXES and len(segments) > 1:
            return True
        return self.method == "POST" and segments[-1] in _SHARED_KEY_PATHS

    @property
    def space(self) -> str | None:
        return _text(self.headers.get("x-memplane-space"))

    @property
    def conversation(self) -> str | None:
        return _text(self.headers.get("x-memplane-conversation"))


async def decoded(body: bytes | None, read: Callable[[*Ts], T], *args: *Ts) -> T:
    """Read a body: a large one in a thread, because decoding it would stop every other request for as long."""
    if len(body or b"") <= _LARGE_BYTES:
        return read(*args)
    return await anyio.to_thread.run_sync(read, *args)


def _by_name(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return found


def _check_path(path: str) -> None:
    """Reject a path that the provider would resolve to another one."""
    segments = unquote(path).replace("\\", "/").split("/")
    if ".." in segments or "." in segments or (path.startswith("/v1/") and segments[2] in _OTHER_ADAPTERS):
        raise HttpError(404, "not_found", "path not found; see /docs")
    if path.startswith("/v1/v1/"):
        raise HttpError(404, "not_found", "the path contains the version twice: remove /v1 from the base URL")


def _text(header: str | None) -> str | None:
    """Decode a header; names are usually UTF-8."""
    if header is None or not header.strip():
        return None
    try:
        return header.strip().encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return header.strip()
