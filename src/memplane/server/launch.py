"""Start one server process, or several under a supervisor."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from memplane.config import Settings
from memplane.main import Memplane
from memplane.server.guard import check_names
from memplane.server.logs import set_up_logs
from memplane.server.metrics import forget_process
from memplane.server.serve import AdapterFactory, ServerProcess, listen, run_process
from memplane.server.supervisor import Supervisor
from memplane.telemetry import Listener
from memplane.terminal.call import Wiring

__all__ = ["ServeOptions", "alone", "check_names", "is_one_of_several", "listen", "one_of_several", "several"]

_METRICS_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""Directory that the metrics library reads from the environment on import."""
_HANDED = "MEMPLANE_SERVE_HANDED"
"""Passed to each of several processes: the file descriptors of the socket and of the lifeline."""
_PATIENCE_MORE_S = 5


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `memplane serve`."""

    wiring: Wiring
    settings: Settings
    adapters: AdapterFactory
    data: str | None
    auth: bool

    def open(self, listener: Listener) -> Memplane:
        assert self.wiring.open_served is not None, "this program cannot serve"
        return self.wiring.open_served(self.data, self.wiring.environment, listener)


def alone(start: ServeOptions, bound: socket.socket, greet: Callable[[], None]) -> int:
    """Serve in this process."""
    run_process(
        ServerProcess(
            settings=start.settings,
            adapters=start.adapters,
            listening=bound,
            auth=start.auth,
            greet=greet,
        ),
        start.open,
    )
    return 0


def is_one_of_several(start: ServeOptions) -> bool:
    return _HANDED in start.wiring.environment


def one_of_several(start: ServeOptions) -> None:
    """Serve in a process that `several` started; it inherits the socket."""
    listening, lifeline = map(int, start.wiring.environment[_HANDED].split())
    process = ServerProcess(
        settings=start.settings,
        adapters=start.adapters,
        listening=socket.socket(fileno=listening),
        auth=start.auth,
        metrics_directory=Path(start.wiring.environment[_METRICS_DIRECTORY]),
        lifeline=lifeline,
    )
    run_process(process, start.open)


def several(start: ServeOptions, bound: socket.socket, greet: Callable[[], None]) -> int:
    """Start this command several times. Each process inherits the socket and one end of a socket pair. Only the
    supervisor has the other end, so the processes notice when it exits for any reason."""
    set_up_logs(start.settings.log_level)
    theirs, ours = socket.socketpair()
    with tempfile.TemporaryDirectory(prefix="memplane-metrics-") as folder, bound, theirs, ours:
        arguments = ["serve", "--host", start.settings.host, *([] if start.auth else ["--no-auth"])]
        given = (
            {} if start.data is None else {"MEMPLANE_DATA": start.data}
        )  # not on the command line, which other users can list
        handed = f"{bound.fileno()} {theirs.fileno()}"

        def begin() -> "subprocess.Popen[bytes]":
            return subprocess.Popen(  # noqa: S603 - this program itself
                [sys.executable, "-m", "memplane", *arguments],
                pass_fds=(bound.fileno(), theirs.fileno()),
                stdin=subprocess.DEVNULL,
                env={**start.wiring.environment, **given, _METRICS_DIRECTORY: folder, _HANDED: handed},
            )

        supervisor = Supervisor(
            begin,
            start.settings.workers,
            patience_s=start.settings.shutdown_seconds_max + _PATIENCE_MORE_S,
            ended=lambda pid: forget_process(Path(folder), pid),
            ending=bound.close,  # or it would accept connections that no process answers
        )
        return supervisor.run(greet)
