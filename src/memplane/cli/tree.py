"""A space as a tree of plain files: written out, and taken in."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import RenderableType

from memplane.cli.sync import require_something
from memplane.errors import InvalidRequest
from memplane.sync.opening import open_store
from memplane.sync.store import ObjectStore
from memplane.sync.tree import BEHAVIORAL, CLAUDE, PREFIXES, TreeReport, WriteReport, read_tree, write_tree
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.exits import FOUND_WRONG
from memplane.terminal.output import line, pairs

app = typer.Typer()
tree = typer.Typer(help="A space as plain files that people and other programs edit.", no_args_is_help=True)
app.add_typer(tree, name="tree")

_LISTED_MAX = 10
_ENDS_MAX = 2

Ends = Annotated[
    list[str],
    typer.Argument(
        metavar="[SPACE] PLACE",
        help="Whose memory, else --space; and a directory, or a URL: file://, az://, s3://, gs://.",
    ),
]
Directory = Annotated[
    str,
    typer.Option(
        "--prefix",
        metavar="FOLDER",
        help=f"The folder of memories: {BEHAVIORAL} or {CLAUDE}.",
        autocompletion=lambda: list(PREFIXES),
    ),
]


@command(
    tree,
    examples=[
        "memplane tree export alice ~/alice-memory",
        "memplane tree export alice s3://bucket/alice --prefix claude_memory",
    ],
)
def export(
    call: CommandContext,
    ends: Ends,
    prefix: Directory = BEHAVIORAL,
    ledger: Annotated[
        bool,
        typer.Option("--ledger/--no-ledger", help="With the ledger, from which all of it can be restored."),
    ] = True,
) -> None:
    """Write a space as files. What was edited there and not imported yet is left alone: exit code 3."""
    store = _opened(call, ends)
    report = write_tree(call.existing_space(), store, prefix=prefix, ledger=ledger)
    call.out.answer(report, *_exported(report))
    if report.kept:
        raise typer.Exit(FOUND_WRONG)


@command(
    tree,
    "import",
    examples=[
        "memplane tree import alice ~/alice-memory --dry-run",
        "memplane tree import alice az://account/container",
        "memplane tree import alice ~/alice-memory --forget-missing",
    ],
)
def import_(
    call: CommandContext,
    ends: Ends,
    prefix: Directory = BEHAVIORAL,
    forget_missing: Annotated[
        bool, typer.Option("--forget-missing", help="Forget memories and files whose file was removed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
) -> None:
    """Take files in, the ledger among them first. Exit code 3 if something was rejected."""
    store = _opened(call, ends)
    require_something(store)
    report = read_tree(
        store,
        call.space(),
        prefix=prefix,
        forget_missing=forget_missing,
        dry_run=dry_run,
    )
    call.out.answer(report, *_imported(report, dry_run=dry_run))
    if report.rejected:
        raise typer.Exit(FOUND_WRONG)


def _opened(call: CommandContext, ends: list[str]) -> ObjectStore:
    """The place; the space is named before it, or by the option that every command has."""
    if len(ends) > _ENDS_MAX:
        raise InvalidRequest(f"give a space and a place, not {len(ends)} arguments: [SPACE] PLACE")
    call.name_space(ends[0] if len(ends) == _ENDS_MAX else None)
    return open_store(ends[-1], call.wiring.environment)


def _exported(report: WriteReport) -> Iterator[RenderableType]:
    yield pairs(
        [
            ("written", len(report.written)),
            ("as it was", len(report.unchanged)),
            ("removed", len(report.removed)),
        ]
    )
    yield from _listed("kept", report.kept)


def _imported(report: TreeReport, *, dry_run: bool) -> Iterator[RenderableType]:
    yield pairs(
        [
            ("entries to add" if dry_run else "entries added", report.entries),
            ("files taken", len(report.taken)),
            ("as it was", len(report.unchanged)),
            ("forgotten here", len(report.forgotten)),
            ("missing", len(report.missing)),
            ("not ours", len(report.left)),
        ]
    )
    yield from _listed("taken", tuple((path, "") for path in report.taken))
    yield from _listed("conflict", report.conflicts)
    yield from _listed("missing", tuple((path, "") for path in report.missing))
    yield from _listed("rejected", report.rejected)


def _listed(word: str, rows: tuple[tuple[str, str], ...]) -> Iterator[RenderableType]:
    for path, why in rows[:_LISTED_MAX]:
        yield line((f"  {word} ", "dim"), path, f": {why}" if why else "")
    if len(rows) > _LISTED_MAX:
        yield line((f"  … and {len(rows) - _LISTED_MAX} more; --json lists all", "dim"))
