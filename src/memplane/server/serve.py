"""One server process: a plane, the frame around it, and uvicorn; from the first request to an orderly end."""

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
from memplane.telemetry import Listener, MemoryOp, PassedListener, ProviderCall, log_event

_TRACING = "memplane.server.tracing"
_KEEP_ALIVE_S = 75
"""Longer than the usual reverse proxy keeps an idle connection, so that it is the proxy who closes it."""

_SWITCH_S = 0.0005
"""How long a thread that computes may keep the others waiting. A request passes between threads several times, and with
Python's usual 5 ms each of them could cost that much while enrichment works."""

OpenServed = Callable[[Listener], Memplane]
"""Opens the engine with enrichment in the background; the listener gets its events."""


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
    """The settings of one server process, and what its parent process passes to it."""

    settings: Settings
    adapters: AdapterFactory
    listening: socket.socket
    auth: bool = True
    metrics_directory: Path | None = None
    """Shared by all processes of one server; None where there is one."""
    greet: Callable[[], None] = lambda: None
    """Called as soon as the process handles signals."""
    lifeline: int | None = None
    """A pipe that ends when the supervisor does, however it does."""


def run_process(process: ServerProcess, open_plane: OpenServed) -> None:
    """Serve until SIGTERM or SIGINT: requests are finished, then enrichment stops and the files are closed."""
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
        server = Server(uvicorn_config(app, settings), app)
        if process.lifeline is not None:
            ending.watch(process.lifeline)
        ending.stop(server)
        server.run([process.listening])


def uvicorn_config(app: App, settings: Settings) -> uvicorn.Config:
    """Fast parts where they are installed; logs, limits and errors are the frame's."""
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
    """uvicorn's server; it notifies the application of a shutdown and leaves signals to `ShutdownSignals`."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.stopping.set()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ShutdownSignals:
    """SIGTERM and SIGINT from the first moment on. uvicorn would hear them only while it serves, and then end the
    process with the same signal before anything is closed."""

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
        """This one is to end; perhaps before it began."""
        self._server = server
        server.should_exit = self._asked

    def watch(self, lifeline: int) -> None:
        """Also shut down when the other end of that pipe is closed."""

        def wait() -> None:
            os.read(lifeline, 1)
            self._on_signal(signal.SIGTERM, None)

        threading.Thread(target=wait, name="memplane-lifeline", daemon=True).start()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if self._server is not None:
            self._server.handle_exit(number, frame)


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections at once; they wait for a process to answer them."""
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
        raise SettingsInvalid(
            f"{host} port {port} cannot be listened on: {why}; choose another {other}"
        ) from exc
    return listening


def _is_foreign(error: Exception) -> bool:
    """Whether the address is no address of this machine."""
    return isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL


def _tracing(settings: Settings) -> Any:
    """Tracing where an exporter is set; its libraries are optional and not loaded otherwise."""
    if not settings.otlp_endpoint:
        return None
    try:
        return import_module(_TRACING).Tracing(settings.otlp_endpoint)
    except ImportError as exc:
        raise SettingsInvalid(
            "otlp_endpoint: spans need OpenTelemetry; install memplane[otel], or unset OTEL_EXPORTER_OTLP_ENDPOINT"
        ) from exc
