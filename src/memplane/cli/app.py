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
"""Options of the program itself that something belongs to."""

_TOUR = "demo"
"""Runs other commands."""

_EXAMPLES = [
    "memplane demo                                    # a tour in a minute",
    "memplane serve                                   # the server",
    'memplane store preference "Prefers tea" --space alice',
    'memplane recall "what does she drink?" --space alice',
    "memplane --install-completion                    # for your shell",
]


class CommandGroup(NamedTuple):
    """The commands of one subject, under one heading of the help."""

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
    _part("cli.facts", "Facts under a key", "put get facts history"),
    _part("cli.documents", "Documents", "document collection"),
    _part("cli.forget", "Forget", "delete forget receipts sweep wipe purge"),
    _part("cli.review", "Look after", "quarantine pin"),
    _part("cli.ledger", "Ledger", "replay ledger"),
    _part("cli.audit", "Ledger", "audit"),
    _part("cli.tree", "Ledger", "tree"),
    _part("cli.spaces", "Look after", "spaces stats doctor"),
    _part("cli.sync", "Look after", "sync"),
    _part("cli.compaction", "Look after", "compact retention budget summary"),
    _part("cli.encryption", "Look after", "encryption"),
    _part("cli.transfer", "Look after", "backup migrate"),
    _part("cli.keys", "Keys and tokens", "key"),
    _part("cli.tokens", "Keys and tokens", "token"),
    _part("adapters.clawdapus.commands", "Clawdapus pods", "up memory"),
    _part("adapters.entrabot.commands", "EntraBot", "entrabot"),
    _part("cli.evaluation", "Measure", "eval"),
)
"""A command line that names a command loads the part that has it; all of them take longer than most commands."""


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


def assembled(parts: Collection[CommandGroup] = PARTS) -> typer.Typer:
    """The program with these parts."""
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
    """Those that a command line may be about: all that have a command which it mentions. One that begins with something
    else is for help, or wrong; to say what is right, all are needed, and so they are for the tour."""
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
    """Run a command line and return how it ended. The process edge: a bug shows its traceback here."""
    _prepare_streams()
    try:
        given = sys.argv[1:] if arguments is None else arguments
        get_command(assembled(parts_for(given))).main(arguments, prog_name=PROGRAM, obj=wiring)
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
