"""Endpoints about the server itself: liveness, readiness, metrics and API documentation."""

import threading
import time
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any, Literal

import msgspec
from starlette.responses import Response

from memplane.auth.principal import Forbidden, Right
from memplane.config import Settings
from memplane.engine import Engine, Readiness
from memplane.errors import StorageError
from memplane.server import docs
from memplane.server.endpoint import Adapter, Endpoint, Handler, HttpCall
from memplane.server.metrics import MEDIA, Metrics
from memplane.server.openapi import describe
from memplane.server.responses import HTML, JSON, json_response
from memplane.storage.work import Backlog, WorkerCounts
from memplane.types import TENANT_DEFAULT

ADAPTER = "system"
VERSION = version("memplane")
CONSOLE = "/console"

_READINESS_SECONDS = 1.0
"""Readiness results are cached: the endpoint is public, and each check writes a file."""


class HealthResponse(msgspec.Struct):
    """The liveness response. Two clients expect two different words."""

    status: Literal["ok"]
    ok: bool
    version: str


class RootLinks(msgspec.Struct):
    """The entry points listed at the root."""

    name: str = "memplane"
    version: str = VERSION
    console: str = CONSOLE
    """The console."""
    docs: str = "/docs"
    """Interactive API documentation."""
    openapi: str = "/openapi.json"
    """The OpenAPI document."""
    mcp: str = "/mcp"
    health: str = "/healthz"
    ready: str = "/readyz"
    metrics: str = "/metrics"


def adapter(plane: Engine, settings: Settings, others: Sequence[Adapter], metrics: Metrics) -> Adapter:
    system = System(plane, others, metrics)
    made = Adapter(
        name=ADAPTER,
        title="Server",
        routes=(
            _open(
                "/", "List the entry points; browsers are redirected to the console", system.root, RootLinks
            ),
            _open("/healthz", "Liveness: the process answers", system.health, HealthResponse),
            _open(
                "/readyz",
                "Readiness: the engine can read and write",
                system.ready,
                Readiness,
                more={503: Readiness},
            ),
            Endpoint(
                method="GET",
                path="/metrics",
                adapter=ADAPTER,
                summary="Metrics for Prometheus",
                handle=system.figures,
                right=None if settings.metrics_open else Right.READ,
                answer=str,
                answer_media=MEDIA,
            ),
            _open("/openapi.json", "OpenAPI description", system.openapi, dict[str, Any]),
            _open(docs.PATH, "Interactive documentation of the API", docs.page, str, HTML),
            msgspec.structs.replace(
                _open(docs.FILES, "A file of the interactive documentation", docs.file, bytes),
                described=False,
            ),
        ),
    )
    system.adapters = [made, *others]
    return made


def _open(
    path: str,
    summary: str,
    handle: Handler,
    answer: Any,
    media: str = JSON,
    *,
    more: dict[int, Any] | None = None,
) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        adapter=ADAPTER,
        summary=summary,
        handle=handle,
        right=None,
        answer=answer,
        answer_media=media,
        more_answers=more or {},
    )


class System:
    """Handles the requests about the whole server."""

    def __init__(self, plane: Engine, adapters: Sequence[Adapter], metrics: Metrics) -> None:
        self.adapters = adapters
        self._plane = plane
        self._metrics = metrics
        self._lock = threading.Lock()
        self._looked = (0.0, Readiness())

    def root(self, call: HttpCall) -> Response:
        """Redirect browsers to the console; list the entry points for programs."""
        if "text/html" in call.headers.get("accept", ""):
            return Response(status_code=303, media_type=HTML, headers={"location": CONSOLE})
        return json_response(RootLinks(), newline=True)

    def health(self, _call: HttpCall) -> Response:
        return json_response(HealthResponse("ok", ok=True, version=VERSION), newline=True)

    def ready(self, _call: HttpCall) -> Response:
        with self._lock:
            at, found = self._looked
            if not at or time.monotonic() - at > _READINESS_SECONDS:
                found = self._plane.readiness()
                lagging = [
                    code for adapter in self.adapters if adapter.degraded for code in adapter.degraded()
                ]
                found = msgspec.structs.replace(found, degraded=(*found.degraded, *lagging))
                self._looked = (time.monotonic(), found)
        return json_response(found, status=200 if found.ready else 503, newline=True)

    def figures(self, call: HttpCall) -> Response:
        """The figures are those of all tenants, so they are for the installation's own."""
        if call.endpoint.right is not None:
            call.principal.check_whole()
            if call.principal.tenant != TENANT_DEFAULT:
                raise Forbidden("the metrics are those of all tenants; use a key of the default tenant")
        return Response(content=self._metrics.exposition(self._work()), media_type=MEDIA)

    def _work(self) -> tuple[Backlog, WorkerCounts] | None:
        """Return the queue of all workers, or None without workers or if the database is unavailable."""
        work = self._plane.work
        if work is None:
            return None
        try:
            return work.backlog(), work.worked()
        except StorageError:
            return None

    def openapi(self, _call: HttpCall) -> Response:
        return json_response(self._description)

    @cached_property
    def _description(self) -> dict[str, Any]:
        return describe(self.adapters, VERSION)
