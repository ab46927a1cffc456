"""Backup and migration of an installation."""

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
"""Vectors are copied, so no model is needed."""
_KEYS = frozenset({"MEMPLANE_KEY", "MEMPLANE_KEY_FILE"})
_COMPARED = "Compared"
_COMPARING = "Comparing"
_ROWS_PER_LINE = 100_000
_LINES_MAX = 100

_From = Annotated[str, typer.Argument(metavar="FROM", help="Source: a data directory, or postgresql://…")]
_To = Annotated[str, typer.Argument(metavar="TO", help="Target: empty, or from an earlier run.")]


@command(
    app,
    examples=[
        "memplane migrate ~/.memplane postgresql://memplane@db.example.org/memplane",
        "memplane migrate postgresql://memplane@db.example.org/memplane ./data    # back to files",
        "memplane migrate --check ~/.memplane postgresql://memplane@db.example.org/memplane",
    ],
)
def migrate(
    call: CommandContext,
    source: _From,
    target: _To,
    check: Annotated[bool, typer.Option("--check", help="Compare every row, and write nothing.")] = False,
) -> None:
    """Copy all spaces, tenants and keys to another data directory or database.

    The source is only read and can be in use. Run it again to continue or to copy new data. Exit code 3 if the two
    differ at the end, or if entries arrived during the copy: stop the writers and run it again.
    """
    _check_places(source, target)
    environment = {**call.wiring.environment, **_PLAIN}
    if is_url(target) and not check and _KEYS & environment.keys():
        call.out.warn("Memplane does not encrypt data in a database; encrypt the database's disks instead")
    with (
        _hint_on_interrupt(),
        _opened(call, source, environment) as here,
        _opened(call, target, environment) as there,
    ):
        if not here.has_data():
            raise NothingToImport(f"{_display_place(source)} is empty", field="from")
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
        "memplane backup /backups/memplane                     # repeat daily; writes only changes",
        "memplane ledger verify --data /backups/memplane --space alice",
        "memplane migrate /backups/memplane ~/.memplane        # restore; or use it directly with --data",
    ],
)
def backup(
    call: CommandContext,
    target: Annotated[
        str, typer.Argument(metavar="TO", help="Target directory: empty, or with an earlier backup.")
    ],
) -> None:
    """Copy everything to another data directory, while in use, and verify the copy.

    Each space is copied as of one point in time. Data forgotten since the last backup is also removed from the backup.
    With MEMPLANE_KEY, the copy is encrypted.
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
    """Return the location without its password."""
    return Settings(data=place).place


def _check_places(source: str, target: str) -> None:
    for name, place in (("from", source), ("to", target)):
        if not place:
            raise InvalidRequest(
                f"{name.upper()} is empty; give a data directory or a database URL", field=name
            )
    if not is_url(source) and not Path(source).expanduser().is_dir():
        raise NothingToImport(f"data directory {source} does not exist", field="from")
    if _same(source, target):
        raise InvalidRequest("FROM and TO are the same; give a different target", field="to")


def _same(source: str, target: str) -> bool:
    if is_url(source) or is_url(target):
        return _display_place(source) == _display_place(target)
    return Path(source).expanduser().resolve() == Path(target).expanduser().resolve()


@contextmanager
def _opened(call: CommandContext, place: str, environment: Mapping[str, str]) -> Iterator[Installation]:
    if is_url(place):  # keys encrypt files only
        environment = {name: value for name, value in environment.items() if name not in _KEYS}
    plane = call.wiring.open(place, environment)
    try:
        yield plane
    finally:
        plane.close()


@contextmanager
def _hint_on_interrupt() -> Iterator[None]:
    """On Ctrl-C, explain how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("memplane: interrupted; the source is unchanged, run it again to continue\n")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _progress_bar(call: CommandContext, label: str) -> Iterator[Callable[[MoveProgress], None]]:
    """Show a progress bar on a terminal, and occasional lines elsewhere."""
    if sys.stderr.isatty():
        with call.out.progress(label) as advance:
            yield lambda progress: advance(progress.spaces_done, progress.spaces)
        return
    said = (-1, 0)

    def report_progress(progress: MoveProgress) -> None:
        nonlocal said
        step = (progress.spaces_done * _LINES_MAX // progress.spaces, progress.rows // _ROWS_PER_LINE)
        if step != said:
            said = step
            spaces = f"{progress.spaces_done:,} of {counted(progress.spaces, 'space', 'spaces')}"
            rows = f", {progress.rows:,} rows written" if label != _COMPARING else ""
            sys.stderr.write(f"memplane: {label.lower()}: {spaces}{rows}\n")
            sys.stderr.flush()

    yield report_progress


def _lines(report: MoveReport, target: str, *, done: str) -> Iterator[RenderableType]:
    spaces = counted(report.spaces, "space", "spaces")
    if done == _COMPARED:
        word = ("Same", "green") if report.ok else ("Different", "red")
        yield line(word, f": {spaces} compared, {report.verified:,} verified")
    else:
        word = (done, "green") if report.ok else ("Incomplete", "red")
        yield line(
            word,
            f": {spaces} and the catalog, {report.rows:,} rows, to {target}; "
            f"{report.added:,} written, {report.removed:,} removed, {counted(report.verified, 'space', 'spaces')} verified",
        )
    for table, count in report.different.items():
        yield line(f"  {table}: {counted(count, 'row differs', 'rows differ')}")
    for problem in report.problems:
        yield line(f"  {problem}")
    if report.to_wipe:
        yield line(
            f"  files of {counted(report.to_wipe, 'space', 'spaces')} in the target may still contain forgotten data; "
            "run `memplane wipe` there"
        )
    if report.behind:
        yield line(f"  new entries arrived in {', '.join(report.behind)}; stop the writers and run it again")
