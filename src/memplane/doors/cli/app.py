"""The `memplane` command as a whole."""

import io
import os
import sys
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from typer.main import get_command

from memplane.doors.cli import (
    auditing,
    chat,
    compacting,
    demo,
    documents,
    encryption,
    entrabot,
    evaluation,
    facts,
    forget,
    ipc,
    keys,
    ledger,
    mcp,
    memories,
    pods,
    recalling,
    serving,
    spaces,
    syncing,
    tokens,
    trees,
)
from memplane.doors.cli.call import Wiring
from memplane.doors.cli.command import end_quietly, epilog
from memplane.doors.cli.exits import BUG
from memplane.doors.cli.options import Data, Json, SpaceName
from memplane.doors.cli.output import Output

PROGRAM = "memplane"

_EXAMPLES = [
    "memplane demo                                    # a tour in a minute",
    "memplane serve                                   # the server",
    'memplane store preference "Prefers tea" --space alice',
    'memplane recall "what does she drink?" --space alice',
    "memplane --install-completion                    # for your shell",
]

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True, epilog=epilog(_EXAMPLES))
def root(
    context: typer.Context,
    data: Data = None,  # noqa: ARG001 - commands read the three from the context
    space: SpaceName = None,  # noqa: ARG001
    json: Json = False,
    show_version: Annotated[bool, typer.Option("--version", help="Say which Memplane this is.")] = False,
) -> None:
    """Memplane remembers for AI agents: what was said, what holds, and what was forgotten for good."""
    if show_version:
        number = version("memplane")
        Output(json=json).answer_text({"version": number}, f"{PROGRAM} {number}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


def _add(part: typer.Typer, panel: str) -> None:
    """Take a subject's commands in, under one heading of the help."""
    for registered in part.registered_commands:
        registered.rich_help_panel = panel
    for group in part.registered_groups:
        group.rich_help_panel = panel
    app.add_typer(part)


_add(demo.app, "Start here")
_add(chat.app, "Start here")
_add(serving.app, "Start here")
_add(mcp.app, "Start here")
_add(ipc.app, "Start here")
_add(memories.app, "Remember and recall")
_add(recalling.app, "Remember and recall")
_add(facts.app, "Facts under a key")
_add(documents.app, "Documents")
_add(forget.app, "Forget")
_add(ledger.app, "Ledger")
_add(auditing.app, "Ledger")
_add(trees.app, "Ledger")
_add(spaces.app, "Look after")
_add(syncing.app, "Look after")
_add(compacting.app, "Look after")
_add(encryption.app, "Look after")
_add(keys.app, "Keys and tokens")
_add(tokens.app, "Keys and tokens")
_add(pods.app, "Clawdapus pods")
_add(entrabot.app, "EntraBot")
_add(evaluation.app, "Measure")


def main(wiring: Wiring, arguments: list[str] | None = None) -> int:
    """Run a command line and return how it ended. The process edge: a bug shows its traceback here."""
    _prepare_streams()
    try:
        get_command(app).main(arguments, prog_name=PROGRAM, obj=wiring)
    except SystemExit as exc:
        return _flushed(exc.code if isinstance(exc.code, int) else 0)
    except Exception:  # noqa: BLE001 - the one place that sees everything
        traceback.print_exc()
        return _flushed(BUG)
    return _flushed(0)


def _prepare_streams() -> None:
    """A stream the caller closed leads nowhere instead of to a crash, and a character that a terminal cannot show is
    shown as its escape."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except OSError as exc:
        return end_quietly(exc)
    return code
