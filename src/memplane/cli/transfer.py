"""Moving an installation into another database."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from memplane.config import Settings, is_url, settings_from
from memplane.errors import InvalidRequest
from memplane.terminal.call import CommandContext, Installation
from memplane.terminal.command import command
from memplane.terminal.exits import FOUND_WRONG, INTERRUPTED, NothingToImport
from memplane.terminal.output import counted, line
from memplane.transfer.move import MoveProgress, MoveReport

app = typer.Typer()

_PLAIN = {"MEMPLANE_EMBEDDING": "none", "MEMPLANE_LLM": "none"}
"""Vectors are copied: nothing is embedded, and no model is asked."""
_KEYS = frozenset({"MEMPLANE_KEY", "MEMPLANE_KEY_FILE"})
_COMPARED = "Compared"
_COMPARING = "Comparing"
_ROWS_PER_LINE = 100_000
_LINES_MAX = 100

_From = Annotated[
    str, typer.Argument(metavar="FROM", help="Where the memory is: a data directory, or postgresql://…")
]
_To = Annotated[str, typer.Argument(metavar="TO", help="Where it is to be; empty, or from an earlier run.")]


@command(
    app,
    examples=[
        "memplane migrate ~/.memplane postgresql://memplane@db.example.org/memplane",
        "memplane migrate postgresql://memplane@db.example.org/memplane ./data    # and back",
        "memplane migrate --check ~/.memplane postgresql://memplane@db.example.org/memplane",
    ],
)
def migrate(
    call: CommandContext,
    source: _From,
    target: _To,
    check: Annotated[
        bool, typer.Option("--check", help="Only compare every row, and write nothing.")
    ] = False,
) -> None:
    """Move every space of every tenant, and all keys, into another database; nothing about them changes.

    The source is only read, and may be in use. Cut off, or run again, it takes over what is missing. Exit code 3 if
    something differs in the end, or came in after it was copied: then stop whoever writes to the source and run it again.
    """
    _check_places(source, target)
    environment = {**call.wiring.environment, **_PLAIN}
    if is_url(target) and not check and _KEYS & environment.keys():
        call.out.warn("Memplane does not encrypt what is in a database; see that its disks are encrypted")
    with (
        _hint_on_interrupt(),
        _opened(call, source, environment) as here,
        _opened(call, target, environment) as there,
    ):
        if not here.holds_anything():
            raise NothingToImport(f"there is nothing in {_display_place(source)} to move", field="from")
        with _progress_bar(call, _COMPARING if check else "Moving") as progress:
            report = here.compare_with(there, progress) if check else here.move_to(there, progress)
    document = {
        "from": _display_place(source),
        "to": _display_place(target),
        "ok": report.ok,
        "checked": check,
        "report": report,
    }
    call.out.answer(document, *_lines(report, _display_place(target), done=_COMPARED if check else "Moved"))
    if not report.ok:
        raise typer.Exit(FOUND_WRONG)


@command(
    app,
    examples=[
        "memplane backup /backups/memplane                     # again tomorrow: only what changed is written",
        "memplane ledger verify --data /backups/memplane --space alice",
        "memplane migrate /backups/memplane ~/.memplane        # restore; or use it as it is, with --data",
    ],
)
def backup(
    call: CommandContext,
    target: Annotated[
        str, typer.Argument(metavar="TO", help="A directory of its own; empty, or with an earlier backup.")
    ],
) -> None:
    """Copy everything into another data directory while it is in use, and prove the copy by its chains.

    Each space is copied as of one moment. What was forgotten since the last backup is taken out of it as well. Under
    MEMPLANE_KEY, the copy is encrypted too.
    """
    environment = {**call.wiring.environment, **_PLAIN}
    source = call.data or settings_from(environment).data
    _check_places(source, target)
    with (
        _hint_on_interrupt(),
        _opened(call, source, environment) as here,
        _opened(call, target, environment) as there,
        _progress_bar(call, "Copying") as progress,
    ):
        report = here.move_to(there, progress, passes_max=1)
    document = {
        "from": _display_place(source),
        "to": _display_place(target),
        "ok": report.ok,
        "report": report,
    }
    call.out.answer(document, *_lines(report, _display_place(target), done="Copied"))
    if not report.ok:
        raise typer.Exit(FOUND_WRONG)


def _display_place(place: str) -> str:
    """A place without what is secret about it."""
    return Settings(data=place).place


def _check_places(source: str, target: str) -> None:
    for name, place in (("from", source), ("to", target)):
        if not place:
            raise InvalidRequest(f"{name.upper()} is empty; name a data directory or a database", field=name)
    if not is_url(source) and not Path(source).expanduser().is_dir():
        raise NothingToImport(f"there is no data directory {source}", field="from")
    if _same(source, target):
        raise InvalidRequest("FROM and TO are the same place; name another one to move to", field="to")


def _same(source: str, target: str) -> bool:
    if is_url(source) or is_url(target):
        return _display_place(source) == _display_place(target)
    return Path(source).expanduser().resolve() == Path(target).expanduser().resolve()


@contextmanager
def _opened(call: CommandContext, place: str, environment: Mapping[str, str]) -> Iterator[Installation]:
    if is_url(place):  # the key is that of files
        environment = {name: value for name, value in environment.items() if name not in _KEYS}
    plane = call.wiring.open(place, environment)
    try:
        yield plane
    finally:
        plane.close()


@contextmanager
def _hint_on_interrupt() -> Iterator[None]:
    """Whoever ends a long copy wonders what became of it."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(
            "memplane: ended before it was done; the source is as it was, run it again to go on\n"
        )
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _progress_bar(call: CommandContext, label: str) -> Iterator[Callable[[MoveProgress], None]]:
    """A bar on a terminal; elsewhere a line now and then."""
    if sys.stderr.isatty():
        with call.out.progress(label) as advance:
            yield lambda progress: advance(progress.spaces_done, progress.spaces)
        return
    said = (-1, 0)

    def tell(progress: MoveProgress) -> None:
        nonlocal said
        step = (progress.spaces_done * _LINES_MAX // progress.spaces, progress.rows // _ROWS_PER_LINE)
        if step != said:
            said = step
            spaces = f"{progress.spaces_done:,} of {counted(progress.spaces, 'space', 'spaces')}"
            rows = f", {progress.rows:,} rows written" if label != _COMPARING else ""
            sys.stderr.write(f"memplane: {label.lower()}: {spaces}{rows}\n")
            sys.stderr.flush()

    yield tell


def _lines(report: MoveReport, target: str, *, done: str) -> Iterator[RenderableType]:
    spaces = counted(report.spaces, "space", "spaces")
    if done == _COMPARED:
        word = ("Same", "green") if report.ok else ("Different", "red")
        yield line(word, f": {spaces} compared, {report.verified:,} of them proved by their chain")
    else:
        word = (done, "green") if report.ok else ("Not done", "red")
        yield line(
            word,
            f": {spaces} and the catalog, {report.rows:,} rows, to {target}; "
            f"{report.added:,} written, {report.removed:,} taken out, {counted(report.verified, 'space', 'spaces')} proved by "
            "chain and counts",
        )
    for table, count in report.different.items():
        yield line(f"  {table}: {counted(count, 'row differs', 'rows differ')}")
    for problem in report.problems:
        yield line(f"  {problem}")
    if report.to_wipe:
        yield line(
            f"  what was forgotten meanwhile may still be in files of {counted(report.to_wipe, 'space', 'spaces')} there; "
            "`memplane wipe` takes it out"
        )
    if report.behind:
        yield line(
            f"  something came into {', '.join(report.behind)} meanwhile; stop whoever writes and run it again"
        )
