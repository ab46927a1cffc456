"""The `memplane` command as a whole."""

import io
import os
import sys
import traceback
from collections.abc import Collection, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from typer.main import get_command

from memplane.terminal.call import Wiring
from memplane.terminal.command import end_quietly, epilog
from memplane.terminal.exits import BUG
from memplane.terminal.options import Data, Json, SpaceName
from memplane.terminal.output import Output

PROGRAM = "memplane"
_WITH_VALUE = frozenset({"--data", "--space", "-s"})
"""Program options that take a value."""

_TOUR = "demo"
"""Runs other commands, so it needs all of them."""

_EXAMPLES = [
    "memplane demo                                    # a one-minute tour",
    "memplane serve                                   # start the server",
    'memplane store preference "Prefers tea" --space alice',
    'memplane recall "what does she drink?" --space alice',
    "memplane --install-completion                    # shell completion",
]


class CommandGroup(NamedTuple):
    """A group of related commands, with the heading under which help lists them."""

    module: str
    panel: str
    commands: frozenset[str]


def _part(module: str, panel: str, commands: str) -> CommandGroup:
    return CommandGroup(f"memplane.{module}", panel, frozenset(commands.split()))


PARTS = (
    _part("cli.demo", "Start here", "demo"),
    _part("adapters.proxy.commands", "Start here", "chat"),
    _part("cli.serve", "Start here", "serve console"),
    _part("cli.worker", "Start here", "worker"),
    _part("adapters.mcp.commands", "Start here", "mcp"),
    _part("adapters.carapace.commands", "Start here", "ipc"),
    _part("cli.memories", "Remember and recall", "retain store search brief conversations memories"),
    _part("cli.recall", "Remember and recall", "recall enrich conflicts resolve feedback"),
    _part("cli.facts", "Keyed facts", "put get facts history"),
    _part("cli.documents", "Documents", "document collection"),
    _part("cli.forget", "Forget", "delete forget receipts sweep wipe purge"),
    _part("cli.review", "Maintenance", "quarantine pin names"),
    _part("cli.ledger", "Ledger", "replay ledger"),
    _part("cli.audit", "Ledger", "audit"),
    _part("cli.tree", "Ledger", "tree"),
    _part("cli.spaces", "Maintenance", "spaces stats doctor"),
    _part("cli.sync", "Maintenance", "sync"),
    _part("cli.compaction", "Maintenance", "compact retention budget summary"),
    _part("cli.encryption", "Maintenance", "encryption"),
    _part("cli.transfer", "Maintenance", "backup migrate"),
    _part("cli.keys", "Keys and tokens", "key"),
    _part("cli.tokens", "Keys and tokens", "token"),
    _part("adapters.clawdapus.commands", "Clawdapus pods", "up memory"),
    _part("adapters.entrabot.commands", "EntraBot", "entrabot"),
    _part("cli.evaluation", "Evaluation", "eval"),
)
"""A command line loads only the parts that it mentions: importing all of them takes longer than most commands."""


def root(
    context: typer.Context,
    data: Data = None,  # noqa: ARG001 - commands read these from the context
    space: SpaceName = None,  # noqa: ARG001
    json: Json = False,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Self-hosted memory for AI agents."""
    if show_version:
        number = version("memplane")
        Output(json=json).answer_text({"version": number}, f"{PROGRAM} {number}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


def assembled(parts: Collection[CommandGroup] = PARTS) -> typer.Typer:
    """Build the program from these parts."""
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True, epilog=epilog(_EXAMPLES))(root)
    for part in parts:
        loaded: typer.Typer = import_module(part.module).app
        for registered in loaded.registered_commands:
            registered.rich_help_panel = part.panel
        for group in loaded.registered_groups:
            group.rich_help_panel = part.panel
        app.add_typer(loaded)
    return app


def parts_for(arguments: Sequence[str]) -> Sequence[CommandGroup]:
    """Return the parts that have a command which the command line mentions.

    Help, an unknown command and the tour need all parts.
    """
    if arguments == ["--version"]:
        return ()
    words = iter(arguments)
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            if word == _TOUR or not any(word in part.commands for part in PARTS):
                break
            said = frozenset(arguments)
            return [part for part in PARTS if part.commands & said]
    return PARTS


def main(wiring: Wiring, arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit code. As the process edge, this prints the traceback of a bug."""
    _prepare_streams()
    try:
        given = sys.argv[1:] if arguments is None else arguments
        get_command(assembled(parts_for(given))).main(arguments, prog_name=PROGRAM, obj=wiring)
    except SystemExit as exc:
        return _flushed(exc.code if isinstance(exc.code, int) else 0)
    except Exception:  # noqa: BLE001 - the process edge
        traceback.print_exc()
        return _flushed(BUG)
    return _flushed(0)


def _prepare_streams() -> None:
    """Replace closed streams with the null device, and escape characters that the terminal cannot show."""
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
