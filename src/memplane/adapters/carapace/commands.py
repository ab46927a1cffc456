"""Serve Carapace's `ipc` client."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from memplane.adapters.carapace.audit import AuditLog
from memplane.adapters.carapace.groups import GROUP_DEFAULT, Groups, read_identity
from memplane.adapters.carapace.pipeline import Pipeline
from memplane.adapters.carapace.router import IpcRouter
from memplane.adapters.carapace.tools import PLUGIN, PLUGIN_FILES
from memplane.errors import InvalidRequest
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.output import line, path_text

app = typer.Typer()

_AUDIT_DIRECTORY = "audit"


@command(
    app,
    examples=[
        "memplane ipc --socket ipc:///run/user/1000/memplane.sock",
        "memplane ipc --socket ipc://memplane.sock --group family --identity 7f3c…=work",
        "memplane ipc --write-plugin plugins/memory",
        "CARAPACE_SOCKET=ipc://memplane.sock ipc tool.invoke.memory_brief '{}'",
    ],
)
def ipc(
    call: CommandContext,
    socket: Annotated[
        str | None,
        typer.Option(
            "--socket", metavar="ADDRESS", help="Address to listen on: ipc://FILE or tcp://127.0.0.1:PORT."
        ),
    ] = None,
    group: Annotated[
        str,
        typer.Option("--group", metavar="NAME", help="Group of connections without an --identity."),
    ] = GROUP_DEFAULT,
    identity: Annotated[
        list[str] | None,
        typer.Option("--identity", metavar="ID=GROUP", help="Group of one connection; repeatable."),
    ] = None,
    known_only: Annotated[
        bool, typer.Option("--known-only", help="Reject connections without an --identity.")
    ] = False,
    errors_in_result: Annotated[
        bool,
        typer.Option(
            "--errors-in-result", help="Return errors like Carapace's host: as results, with exit code 0."
        ),
    ] = False,
    audit: Annotated[
        Path | None,
        typer.Option(
            "--audit",
            metavar="DIR",
            help="Directory of the request log (default: audit in the data directory).",
        ),
    ] = None,
    write_plugin: Annotated[
        Path | None,
        typer.Option(
            "--write-plugin",
            metavar="DIR",
            help="Write the plugin's manifest and skill to this directory and exit.",
        ),
    ] = None,
) -> None:
    """Serve the memory tools to Carapace's `ipc` client, until SIGTERM or Ctrl-C."""
    if write_plugin is not None:
        written = _write(write_plugin)
        call.out.answer(
            {"written": [path_text(path) for path in written]}, *(line(str(path)) for path in written)
        )
        return
    if socket is None:
        raise typer.BadParameter("pass --socket or --write-plugin")
    groups = Groups(_identities(identity or []), default=None if known_only else group)
    plane = call.plane
    pipeline = Pipeline(
        plane,
        groups,
        audit=AuditLog(audit or call.directory / _AUDIT_DIRECTORY),
        errors_in_result=errors_in_result,
    )
    router = IpcRouter(pipeline, socket)

    def ready(address: str) -> None:
        served = {"socket": address, "group": None if known_only else group}
        call.out.answer(served, line("Serving ", address))
        sys.stdout.flush()

    with _stop_on_signal(router):
        router.serve(ready)


def _write(folder: Path) -> list[Path]:
    written = []
    for name in PLUGIN_FILES:
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(PLUGIN.joinpath(*name.split("/")).read_bytes())
        except OSError as exc:
            raise InvalidRequest(f"cannot write {path}: {exc.strerror}") from exc
        written.append(path)
    return written


def _identities(given: list[str]) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    for text in given:
        name, group = read_identity(text)
        if found.setdefault(name, group) != group:
            raise InvalidRequest(f"--identity {text}: this identity is already in group {found[name]!r}")
    return found


@contextmanager
def _stop_on_signal(router: IpcRouter) -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        router.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    woken = signal.set_wakeup_fd(router.wake_descriptor, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
