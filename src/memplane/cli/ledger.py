"""Verify, export, import and replay the ledger."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
import typer
from rich.console import RenderableType

from memplane.adapters.importers import FORMATS, ImportReport, count_excluded, export_lines, import_file
from memplane.errors import InvalidRequest
from memplane.ledger.verify import Verification
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.exits import FOUND_WRONG
from memplane.terminal.options import read_expected
from memplane.terminal.output import counted, line, pairs, path_text, write_line

# Files the CLI writes: private, and either whole or not there.


_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_OWNER_ONLY = 0o600


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """Write a file that replaces the old one only when the block succeeds."""
    target = path.resolve()
    special = target.exists() and not target.is_file()
    aside = target if special else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(aside, _FLAGS, _OWNER_ONLY), "wb") as file:
            yield file
        if not special:
            aside.replace(target)
    except OSError as exc:
        raise InvalidRequest(f"cannot write {path}: {exc.strerror or exc}") from exc
    finally:
        if not special:
            with suppress(OSError):
                aside.unlink()


app = typer.Typer()
ledger = typer.Typer(help="Verify, export and import the ledger.", no_args_is_help=True)
app.add_typer(ledger, name="ledger")

_REASONS_LISTED = 5


@command(
    ledger,
    examples=[
        "memplane ledger verify",
        "memplane ledger verify --expect 12:3f9c…      # from an earlier verify or a receipt",
    ],
)
def verify(
    call: CommandContext,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            "--expect", metavar="SEQ:DIGEST", help="Digest that the chain must contain; repeatable."
        ),
    ] = None,
) -> None:
    """Verify that no ledger entry was changed, reordered or dropped. Exit code 3 on a problem."""
    expected = read_expected(expect or [])
    space = call.existing_space()
    with call.out.progress("Verifying") as advance:
        found = space.ledger.verify(expected=expected, progress=lambda seq: advance(seq, None))
    call.out.answer(found, *_verification(found))
    if not found.ok:
        raise typer.Exit(FOUND_WRONG)


@command(
    ledger,
    examples=[
        "memplane ledger export > history.jsonl",
        "memplane ledger export --format full --output alice.jsonl --space alice",
    ],
)
def export(
    call: CommandContext,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="history (turns, as history.jsonl) or full (everything).",
            autocompletion=lambda: list(FORMATS),
        ),
    ] = "history",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Output file (default: stdout).")
    ] = None,
) -> None:
    """Export the ledger as JSON lines."""
    space = call.existing_space()
    lines = export_lines(space, format_)
    missing = count_excluded(space) if format_ == "history" else 0
    if output is None or str(output) == "-":
        for exported in lines:
            write_line(exported)
    else:
        count = _export_to(output, lines)
        document = {"format": format_, "lines": count, "left_out": missing, "output": path_text(output)}
        call.out.answer(
            document, line(("Exported", "green"), f" {counted(count, 'line', 'lines')} to {output}")
        )
    if missing:
        call.out.warn(
            f"{counted(missing, 'entry that is not a turn was', 'entries that are not turns were')} skipped; `--format full` exports everything"
        )


@command(
    ledger,
    "import",
    examples=[
        "memplane ledger import history.jsonl",
        "memplane ledger import ~/.carapace/memory.db --space alice",
        "memplane ledger import old.jsonl --rejects rejected.jsonl",
    ],
)
def import_(
    call: CommandContext,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A history.jsonl, its folder, a full export or a Carapace database."
        ),
    ],
    trust_ids: Annotated[
        bool, typer.Option("--trust-ids", help="Accept the ids of a history without checking them.")
    ] = False,
    rejects: Annotated[
        Path | None,
        typer.Option("--rejects", metavar="FILE", help="Write rejected lines to this file as JSON lines."),
    ] = None,
) -> None:
    """Import entries. Known and forgotten ones are skipped. Exit code 3 if lines were rejected."""
    space = call.space()
    with call.out.progress(f"Importing {path.name}") as advance:
        report = import_file(space, path, trust_ids=trust_ids, progress=advance)
    if rejects is not None:
        _write_rejects(rejects, report)
    call.out.answer(_imported(report), *_import_report(report))
    if report.rejected_count:
        raise typer.Exit(FOUND_WRONG)


@command(app, examples=["memplane replay"])
def replay(call: CommandContext) -> None:
    """Rebuild all memories and indexes from the ledger, with the same ids."""
    space = call.existing_space()
    with call.out.progress("Replaying") as advance:
        count = space.ledger.replay(progress=lambda seq: advance(seq, None))
    call.out.answer(
        {"replayed": count}, line(("Replayed", "green"), f" {counted(count, 'entry', 'entries')}")
    )


def _verification(found: Verification) -> Iterator[RenderableType]:
    verdict = ("The ledger is intact", "bold green") if found.ok else ("The ledger is NOT intact", "bold red")
    yield line(
        verdict,
        f": {counted(found.entries, 'entry', 'entries')}, {found.erased:,} erased, "
        f"{counted(found.audit_records, 'audit record', 'audit records')}",
    )
    yield from (line(("  " + problem, "red")) for problem in found.problems)
    yield line("Head ", (f"{found.seq}:{found.digest}", "bold"))


def _export_to(output: Path, lines: Iterator[bytes]) -> int:
    count = 0
    with writing(output) as file:
        for count, exported in enumerate(lines, start=1):  # noqa: B007 - the last count is the result
            file.write(exported + b"\n")
    return count


def _imported(report: ImportReport) -> dict[str, Any]:
    """Return the report with excerpts as text, because JSON has no bytes."""
    document: dict[str, Any] = {name: getattr(report, name) for name in report.__struct_fields__}
    return document | {"rejected": _rejected(report)}


def _rejected(report: ImportReport) -> list[dict[str, Any]]:
    return [
        {
            "source": it.source,
            "number": it.number,
            "reason": it.reason,
            "excerpt": it.excerpt.decode("utf-8", "replace"),
        }
        for it in report.rejected
    ]


def _write_rejects(path: Path, report: ImportReport) -> None:
    with writing(path) as file:
        for rejected in _rejected(report):
            file.write(msgspec.json.encode(rejected) + b"\n")


def _import_report(report: ImportReport) -> Iterator[RenderableType]:
    yield pairs(
        [
            ("format", report.format),
            ("read", report.read),
            ("added", report.added),
            ("already known", report.known),
            ("forgotten", report.forgotten),
            ("rejected", report.rejected_count),
        ]
    )
    for it in report.rejected[:_REASONS_LISTED]:
        yield line((f"  {it.source} line {it.number}: {it.reason}", "red"))
    if report.rejected_count > _REASONS_LISTED:
        yield line(
            (
                f"  … and {report.rejected_count - _REASONS_LISTED} more; use `--rejects FILE` to save them",
                "dim",
            )
        )
