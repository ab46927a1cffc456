"""`memplane eval`: measure quality on labelled datasets, compared with baselines."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from memplane.config import settings_from
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.output import cell, line, table
from memplane_eval.files import DataMissing, data_directory, usual_files
from memplane_eval.report import EvaluationRequest, Report, Row
from memplane_eval.returned.cases import bundled
from memplane_eval.run import run

app = typer.Typer()


class CaseHalf(StrEnum):
    """A half of the cases that come with Memplane."""

    CALIBRATION = "calibration"
    UNTOUCHED = "untouched"


group = typer.Typer(no_args_is_help=True)
app.add_typer(group, name="eval", help="Measure quality on labelled datasets that you downloaded.")

File = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="Dataset in its published JSON format, gzipped or not (default: its usual name in MEMPLANE_EVAL_DATA).",
    ),
]
Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE…",
        help="LoCoMo, LongMemEval, case files, or folders of case files (default: the cases that come with Memplane).",
    ),
]
Half = Annotated[
    CaseHalf | None, typer.Option("--half", help="Use only this half of the cases that come with Memplane.")
]
Compare = Annotated[
    str,
    typer.Option("--compare", metavar="NAMES", help="Baselines to compare with: bm25,dense."),
]
Limit = Annotated[
    int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="Use only the first N questions.")
]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", metavar="DIR", help="Cache embeddings in this directory for later runs."),
]
Embeddings = Annotated[
    bool, typer.Option("--embeddings/--no-embeddings", help="Use embeddings, or keywords only.")
]


@command(
    group, examples=["memplane eval locomo --compare bm25,dense", "memplane eval locomo locomo10.json -n 50"]
)
def locomo(
    call: CommandContext,
    file: File = None,
    compare: Compare = "",
    limit: Limit = None,
    cache: Cache = None,
    embeddings: Embeddings = True,
) -> None:
    """LoCoMo: measure which turns and sessions are found in long conversations of two people."""
    _measure(call, "locomo", file, compare=compare, limit=limit, cache=cache, embeddings=embeddings)


@command(group, examples=["memplane eval longmemeval --cache ~/.cache/memplane-eval"])
def longmemeval(
    call: CommandContext,
    file: File = None,
    compare: Compare = "",
    limit: Limit = None,
    cache: Cache = None,
    embeddings: Embeddings = True,
) -> None:
    """LongMemEval: measure which turns and sessions are found in sessions with an assistant."""
    _measure(call, "longmemeval", file, compare=compare, limit=limit, cache=cache, embeddings=embeddings)


@command(
    group,
    examples=["memplane eval multihop --limit 100 --compare bm25", "memplane eval multihop --no-embeddings"],
)
def multihop(
    call: CommandContext,
    file: File = None,
    compare: Compare = "",
    limit: Limit = None,
    cache: Cache = None,
    embeddings: Embeddings = True,
) -> None:
    """MultiHop-RAG: measure found documents and passages, and unanswerable questions."""
    _measure(call, "multihop", file, compare=compare, limit=limit, cache=cache, embeddings=embeddings)


@command(
    group,
    examples=["memplane eval conflicts", "memplane eval conflicts fact-consolidation.json --compare bm25"],
)
def conflicts(
    call: CommandContext,
    file: File = None,
    compare: Compare = "",
    limit: Limit = None,
    cache: Cache = None,
    embeddings: Embeddings = True,
) -> None:
    """Measure whether recall returns the current value after statements that replace each other."""
    _measure(call, "conflicts", file, compare=compare, limit=limit, cache=cache, embeddings=embeddings)


@command(group, examples=["memplane eval msc", "memplane eval msc msc-facts.json --limit 100 --json"])
def msc(call: CommandContext, file: File = None, limit: Limit = None) -> None:
    """Multi-Session Chat: compare what is kept and extracted with human-written facts."""
    _measure(call, "msc", file, limit=limit)


@command(group, examples=["memplane eval temporal", "memplane eval temporal temporal-ctparse.json"])
def temporal(call: CommandContext, file: File = None, limit: Limit = None) -> None:
    """Measure the accuracy of parsing time expressions."""
    _measure(call, "temporal", file, limit=limit)


@command(
    group,
    examples=[
        "memplane eval returned --half untouched",
        "memplane eval returned locomo10.json longmemeval_oracle.json --cache ~/.cache/memplane-eval",
    ],
)
def returned(
    call: CommandContext,
    files: Files = None,
    half: Half = None,
    limit: Limit = None,
    cache: Cache = None,
    embeddings: Embeddings = True,
) -> None:
    """Measure what an agent receives: memory in the text of a recall and in blocks, and its tokens."""
    environment = call.wiring.environment
    paths = files or [bundled(each.value) for each in ([half] if half else CaseHalf)]
    try:
        filler = usual_files("locomo", data_directory(environment))[0]
    except DataMissing:
        filler = None
    requests = [
        EvaluationRequest(
            subject="returned",
            path=path,
            limit=limit,
            cache=cache,
            embeddings=embeddings,
            filler=filler,
            settings=settings_from(environment),
        )
        for path in paths
    ]
    _run(call, requests)


@command(
    group,
    examples=["memplane eval changes", "memplane eval changes --limit 50 --cache ~/.cache/memplane-eval"],
)
def changes(
    call: CommandContext,
    file: File = None,
    limit: Limit = None,
    cache: Cache = None,
    embeddings: Embeddings = True,
) -> None:
    """Measure whether the text of a recall says what is current after statements that change it or do not."""
    paths = [file] if file else sorted(bundled("changes").glob("*.json"))
    _measure(call, "changes", *paths, limit=limit, cache=cache, embeddings=embeddings)


@command(group, examples=["memplane eval languages", "memplane eval languages --no-embeddings"])
def languages(
    call: CommandContext,
    file: File = None,
    limit: Limit = None,
    cache: Cache = None,
    embeddings: Embeddings = True,
) -> None:
    """Measure how often a memory comes first for a question in the same language and in another one."""
    paths = [file] if file else sorted(bundled("languages").glob("*.json"))
    _measure(call, "languages", *paths, limit=limit, cache=cache, embeddings=embeddings)


def _measure(
    call: CommandContext,
    subject: str,
    *files: Path | None,
    compare: str = "",
    limit: int | None,
    cache: Path | None = None,
    embeddings: bool = True,
) -> None:
    named = [file for file in files if file is not None]
    paths = named or usual_files(subject, data_directory(call.wiring.environment))
    baselines = tuple(name.strip() for name in compare.split(",") if name.strip())
    requests = [
        EvaluationRequest(
            subject=subject,
            path=path,
            compare=baselines,
            limit=limit,
            cache=cache,
            embeddings=embeddings,
            settings=settings_from(call.wiring.environment),
        )
        for path in paths
    ]
    _run(call, requests)


def _run(call: CommandContext, requests: Sequence[EvaluationRequest]) -> None:
    reports = []
    for request in requests:
        with call.out.progress(f"Measuring with {request.path.name}") as advance:
            reports.append(run(request, advance))
    call.out.answer({"reports": reports}, *(part for report in reports for part in _rendered(report)))


def _rendered(report: Report) -> Iterator[RenderableType]:
    yield line((f"{report.subject}: {report.file}", "bold"))
    yield table("", "metric", "questions", *report.systems, rows=list(_rows(report)))
    for note in report.notes:
        yield line((f"  {note}", "dim"))
    yield Text()


def _rows(report: Report) -> Iterator[Sequence[object]]:
    before = None
    for row in report.rows:
        group_cell = cell(row.group if row.group != before else "", style="bold")
        before = row.group
        yield (group_cell, row.metric, f"{row.questions:,}", *(_figure(row, name) for name in report.systems))


def _figure(row: Row, system: str) -> str:
    value = row.values.get(system)
    if value is None:
        return ""
    return f"{value:,.1f} {row.unit}" if row.unit else f"{value:.3f}"
