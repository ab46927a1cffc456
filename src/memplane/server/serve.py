"""One server process: the engine, the HTTP application and uvicorn, from start-up to graceful shutdown."""

import contextlib
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, Self

import msgspec
import uvicorn

from memplane.auth.principal import Authenticator
from memplane.config import Settings
from memplane.engine import Engine
from memplane.errors import SettingsInvalid
from memplane.main import Memplane
from memplane.server.app import App
from memplane.server.endpoint import Adapter
from memplane.server.exchange import Observer
from memplane.server.limits import WEBSOCKET_BYTES_MAX
from memplane.server.logs import RequestLog, set_up_logs, set_up_memory_log
from memplane.server.metrics import Metrics
from memplane.server.protocol import PROTOCOL
from memplane.server.watchdog import Watchdog
from memplane.telemetry import Listener, MemoryOp, PassedListener, ProviderCall, log_event

_TRACING = "memplane.server.tracing"
_KEEP_ALIVE_S = 75
"""Longer than a reverse proxy usually keeps an idle connection, so that the proxy closes it first."""

_SWITCH_S = 0.0005
"""Python's thread switch interval. A request switches threads several times; with the default of 5 ms, each switch
could take that long while enrichment runs."""

OpenServed = Callable[[Listener], Memplane]
"""Opens the engine with background enrichment; its events go to the listener."""


class AdapterFactory(Protocol):
    """Builds every adapter of the server; `adapters.all` has the list."""

    def __call__(
        self,
        plane: Engine,
        settings: Settings,
        metrics: Metrics | None = None,
        *,
        authenticator: Authenticator | None = None,
        listener: Listener = log_event,
        passed: PassedListener | None = None,
    ) -> list[Adapter]: ...


class ServerProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one server process."""

    settings: Settings
    adapters: AdapterFactory
    listening: socket.socket
    auth: bool = True
    metrics_directory: Path | None = None
    """Shared by all processes of one server; None for a single process."""
    greet: Callable[[], None] = lambda: None
    """Called once the process can be stopped."""
    lifeline: int | None = None
    """A pipe that closes when the supervisor exits for any reason."""


def run_process(process: ServerProcess, open_plane: OpenServed) -> None:
    """Serve until SIGTERM or SIGINT. Then finish requests, stop enrichment and close the files."""
    with ShutdownSignals() as ending:
        process.greet()
        _serve(process, open_plane, ending)


def _serve(process: ServerProcess, open_plane: OpenServed, ending: "ShutdownSignals") -> None:
    settings = process.settings
    sys.setswitchinterval(_SWITCH_S)
    set_up_logs(settings.log_level)
    set_up_memory_log(settings.memory_log)
    metrics = Metrics(process.metrics_directory)
    tracing = _tracing(settings)

    def listener(event: MemoryOp) -> None:
        metrics.on_event(event)
        log_event(event)
        if tracing is not None:
            tracing.on_event(event)

    def passed(turn: ProviderCall) -> None:
        metrics.on_turn(turn)
        if tracing is not None:
            tracing.on_turn(turn)

    with contextlib.ExitStack() as opened:
        if tracing is not None:
            opened.callback(tracing.close)
        plane = opened.enter_context(open_plane(listener))
        if settings.embedding == "local":
            plane.warm_up()
        identity = None
        if process.auth:
            identity = plane.identity()
            opened.callback(identity.close)
        observers: list[Observer] = [metrics, RequestLog()]
        if tracing is not None:
            observers.append(tracing)
        adapters = process.adapters(
            plane, settings, metrics, authenticator=identity, listener=listener, passed=passed
        )
        app = App(plane, identity, settings, adapters, observers)
        watchdog = None
        if process.lifeline is not None:
            ending.watch(process.lifeline)
            watchdog = Watchdog(settings.stuck_seconds_max) if settings.stuck_seconds_max else None
        server = Server(uvicorn_config(app, settings), app, watchdog)
        ending.stop(server)
        server.run([process.listening])


def uvicorn_config(app: App, settings: Settings) -> uvicorn.Config:
    """Configure uvicorn with its fast components where installed. Logs, limits and errors belong to our application."""
    return uvicorn.Config(
        app,
        http=PROTOCOL,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        ws_max_size=WEBSOCKET_BYTES_MAX,
        ws_per_message_deflate=False,  # a packet could expand to a thousand times its size before it is checked
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=settings.shutdown_seconds_max,
    )


class Server(uvicorn.Server):
    """uvicorn's server. It notifies the application of a shutdown and leaves signals to `ShutdownSignals`."""

    def __init__(self, config: uvicorn.Config, app: App, watchdog: Watchdog | None = None) -> None:
        super().__init__(config)
        self._app = app
        self._watchdog = watchdog

    async def on_tick(self, counter: int) -> bool:
        if self._watchdog is not None:
            self._watchdog.beat()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._watchdog is not None:
            self._watchdog.stop()  # the supervisor has a limit of its own for this
        self._app.stopping.set()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ShutdownSignals:
    """Handles SIGTERM and SIGINT from the start. uvicorn handles them only while it serves, and then ends the process
    with the same signal before files are closed."""

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._server: Server | None = None
        self._asked = False

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._on_signal) for number in self._SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stop(self, server: Server) -> None:
        """Set the server to stop; it may not have started yet."""
        self._server = server
        server.should_exit = self._asked

    def watch(self, lifeline: int) -> None:
        """Stop also when the other end of the pipe closes."""

        def wait() -> None:
            os.read(lifeline, 1)
            self._on_signal(signal.SIGTERM, None)

        threading.Thread(target=wait, name="memplane-lifeline", daemon=True).start()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if self._server is not None:
            self._server.handle_exit(number, frame)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; connections wait until a process accepts them."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(2_048)
    except (OSError, OverflowError) as exc:
        listening.close()
        why = getattr(exc, "strerror", None) or exc
        other = "--host" if isinstance(exc, socket.gaierror) or _is_foreign(exc) else "--port"
        raise SettingsInvalid(f"cannot listen on {host} port {port}: {why}; choose another {other}") from exc
    return listening


def _is_foreign(error: Exception) -> bool:
    """Whether the address does not belong to this machine."""
    return isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL


def _tracing(settings: Settings) -> Any:
    """Set up tracing if an exporter is configured; otherwise its libraries are not imported and may be missing."""
    if not settings.otlp_endpoint:
        return None
    try:
        return import_module(_TRACING).Tracing(settings.otlp_endpoint)
    except ImportError as exc:
        raise SettingsInvalid(
            "otlp_endpoint: spans need OpenTelemetry; install memplane[otel], or unset OTEL_EXPORTER_OTLP_ENDPOINT"
        ) from exc
