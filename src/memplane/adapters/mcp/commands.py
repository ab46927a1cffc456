"""Serve MCP over stdio, and configure MCP clients."""

import secrets
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from memplane.adapters.mcp.install import (
    CLIENTS,
    FileChange,
    config_path,
    planned,
    server_entry,
    write_change,
)
from memplane.config import is_url
from memplane.errors import InvalidRequest
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command, default
from memplane.terminal.exits import MENDABLE
from memplane.terminal.options import Yes
from memplane.terminal.output import line
from memplane.types import Caller

app = typer.Typer()
mcp = typer.Typer(help="Serve memory over the Model Context Protocol.")
app.add_typer(mcp, name="mcp")

_RECALL_WORK_MS = "1000"
_PASSED_ON = ("MEMPLANE_KEY_FILE", "MEMPLANE_CATALOG")
"""Variables copied to a client's configuration: file locations, never secrets."""


@default(
    mcp,
    examples=[
        "memplane mcp --space alice                      # the command that a client runs",
        "memplane mcp install --client claude-code",
    ],
)
def serve(call: CommandContext) -> None:
    """Serve one MCP client on stdin and stdout. One process is one session."""
    call.use({"MEMPLANE_RECALL_WORK_MS": _RECALL_WORK_MS})
    caller = Caller(call.wiring.actor, "mcp", f"mcp-{secrets.token_hex(8)}")
    space = call.plane.space(call.space_name, caller=caller)
    from memplane.adapters.mcp.stdio import serve_stdio  # takes a second to import

    serve_stdio(space)


@command(
    mcp,
    examples=[
        "memplane mcp install --client claude-code --space alice",
        "memplane mcp install --client claude-desktop",
        "memplane mcp install --client cursor --yes",
    ],
)
def install(
    call: CommandContext,
    client: Annotated[
        str, typer.Option("--client", metavar="NAME", help=f"MCP client: {', '.join(CLIENTS)}.")
    ],
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Name of the server in the client.")
    ] = "memplane",
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Configuration file (default: the client's own)."),
    ] = None,
    yes: Yes = False,
) -> None:
    """Add Memplane to a client's configuration, after showing the change.

    Other servers are kept, and a backup of the file is saved next to it.
    """
    if client not in CLIENTS:
        raise typer.BadParameter(f"unknown client {client!r}; use one of {', '.join(CLIENTS)}")
    if not name.strip():
        raise typer.BadParameter("--name is empty; give a name or leave the option out")
    environment = call.wiring.environment
    path = config.expanduser() if config is not None else config_path(client, environment, sys.platform)
    change = planned(path, name, _entry(call, client))
    if not change.needed:
        call.out.answer(_document(change, None), line(f"{change.path} is already up to date"))
        return
    if not yes:
        _make_sure(call, change)
    backup = write_change(change)
    kept = f"; backup in {backup}" if backup else ""
    call.out.answer(
        _document(change, backup), line(("Written", "green"), f" to {change.path}{kept}. Restart the client.")
    )


def _entry(call: CommandContext, client: str) -> dict[str, Any]:
    """Use the current interpreter: a client started from a desktop does not see the virtual environment."""
    data = call.place if is_url(call.plane.settings.data) else str(call.directory.absolute())
    arguments = ["-m", "memplane", "mcp", "--data", data, "--space", call.space_name]
    variables = {
        variable: str(Path(call.wiring.environment[variable]).expanduser().absolute())
        for variable in _PASSED_ON
        if call.wiring.environment.get(variable)
    }
    return server_entry(client, sys.executable, arguments, variables)


def _make_sure(call: CommandContext, change: FileChange) -> None:
    sys.stderr.write(f"{change.diff}\n\n")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidRequest("not a terminal; add --yes to write the change shown above")
    if not call.out.confirm(f"Write this to {change.path}?"):
        call.out.note("Nothing was written.")
        raise typer.Exit(MENDABLE)


def _document(change: FileChange, backup: Path | None) -> dict[str, object]:
    return {
        "path": str(change.path),
        "changed": change.needed,
        "backup": None if backup is None else str(backup),
    }
