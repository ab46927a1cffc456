"""Export a space to plain files, and import them."""

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
tree = typer.Typer(help="Export a space to plain files, and import edited files.", no_args_is_help=True)
app.add_typer(tree, name="tree")

_LISTED_MAX = 10
_ENDS_MAX = 2

Ends = Annotated[
    list[str],
    typer.Argument(
        metavar="[SPACE] LOCATION",
        help="Space (default: --space), and a directory or URL: file://, az://, s3://, gs://.",
    ),
]
Directory = Annotated[
    str,
    typer.Option(
        "--prefix",
        metavar="FOLDER",
        help=f"Folder of memory files: {BEHAVIORAL} or {CLAUDE}.",
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
        typer.Option(
            "--ledger/--no-ledger", help="Include the ledger, from which the space can be restored exactly."
        ),
    ] = True,
) -> None:
    """Export a space to files. Edited files that were not imported yet are kept, with exit code 3."""
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
        bool, typer.Option("--forget-missing", help="Forget memories whose files were removed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, without changing it.")
    ] = False,
) -> None:
    """Import files, the ledger first. Exit code 3 if a file was rejected."""
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
    """Open the location, and set the space if an argument names it."""
    if len(ends) > _ENDS_MAX:
        raise InvalidRequest(f"expected [SPACE] LOCATION, not {len(ends)} arguments")
    call.name_space(ends[0] if len(ends) == _ENDS_MAX else None)
    return open_store(ends[-1], call.wiring.environment)


def _exported(report: WriteReport) -> Iterator[RenderableType]:
    yield pairs(
        [
            ("written", len(report.written)),
            ("unchanged", len(report.unchanged)),
            ("removed", len(report.removed)),
        ]
    )
    yield from _listed("kept", report.kept)


def _imported(report: TreeReport, *, dry_run: bool) -> Iterator[RenderableType]:
    yield pairs(
        [
            ("entries to add" if dry_run else "entries added", report.entries),
            ("files imported", len(report.taken)),
            ("unchanged", len(report.unchanged)),
            ("forgotten", len(report.forgotten)),
            ("missing", len(report.missing)),
            ("ignored", len(report.left)),
        ]
    )
    yield from _listed("imported", tuple((path, "") for path in report.taken))
    yield from _listed("conflict", report.conflicts)
    yield from _listed("missing", tuple((path, "") for path in report.missing))
    yield from _listed("rejected", report.rejected)


def _listed(word: str, rows: tuple[tuple[str, str], ...]) -> Iterator[RenderableType]:
    for path, why in rows[:_LISTED_MAX]:
        yield line((f"  {word} ", "dim"), path, f": {why}" if why else "")
    if len(rows) > _LISTED_MAX:
        yield line((f"  … and {len(rows) - _LISTED_MAX} more; --json lists all", "dim"))
