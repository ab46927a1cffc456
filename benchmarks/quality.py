"""What Memplane finds and understands, on all development data: `python -m benchmarks.quality [--only SUBJECT] [--json]`.

Runs every `memplane eval` beside its baselines and prints each table, then the figures that were asked for with what
was asked beside them. They are shown, not asserted. Data that is not there is skipped, and the reason said.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Figure, at_least, at_most, show
from memplane_eval.files import SOURCES, DataMissing, data_directory, usual_files
from memplane_eval.report import BASELINES, EvaluationRequest, Report
from memplane_eval.returned.cases import bundled
from memplane_eval.run import run

CACHE = Path(".eval-cache")
MULTIHOP_QUESTIONS = 200
"""All of them take the better part of an hour to embed; `--full` does."""

_SEARCHING = frozenset({"locomo", "longmemeval", "conflicts", "multihop"})
_BUNDLED = ("languages", "changes")
"""Measured with cases that come with Memplane alone."""
_SUBJECTS = [*SOURCES, "returned", *_BUNDLED]
_COLUMNS = 110


@dataclass(frozen=True)
class Floor:
    """A figure that was asked for."""

    subject: str
    part: str
    """What the name of the file holds."""
    group: str
    metric: str
    limit: float


FLOORS = (
    Floor("locomo", "locomo", "all", "turn@10", 0.84),
    Floor("locomo", "locomo", "all", "session@10", 0.96),
    Floor("longmemeval", "longmemeval", "all", "session@5", 0.80),
    Floor("longmemeval", "longmemeval", "all", "turn@10", 0.70),
    Floor("multihop", "multihop", "all", "document@5", 0.80),
    Floor("multihop", "multihop", "all", "document@10", 0.90),
    Floor("multihop", "multihop", "all", "all documents@10", 0.72),
    Floor("multihop", "multihop", "all", "evidence", 0.75),
    Floor("multihop", "multihop", "null_query", "nothing told", 0.50),
    Floor("conflicts", "consolidation", "factconsolidation_sh_6k", "first fact", 0.90),
    Floor("conflicts", "scenarios", "all", "active", 0.90),
    Floor("msc", "msc", "gate", "F1", 0.88),
    Floor("msc", "msc", "facts", "F1", 0.55),
    Floor("msc", "msc", "quotes", "exact", 1.0),
    Floor("temporal", "ctparse", "all", "accuracy", 0.85),
    Floor("temporal", "duckling", "past_or_neutral", "accuracy", 0.80),
    Floor("returned", "locomo", "budget 2,000", "evidence", 0.89),
    Floor("returned", "locomo", "budget 1,200", "evidence", 0.86),
    Floor("returned", "locomo", "8 blocks", "evidence", 0.82),
    Floor("returned", "longmemeval", "default", "evidence", 0.85),
    Floor("returned", "", "stored, small space, by language", "en: memory in the text, budget 400", 0.90),
    Floor("returned", "", "stored, space of 1,000, by language", "en: memory in the text", 0.80),
    Floor("returned", "", "repetition", "scheduled prompt: report in the text", 1.0),
    Floor("returned", "", "repetition", "scheduled prompt: at most one copy of the prompt", 1.0),
)
CEILINGS = (
    Floor("returned", "", "no memory needed: stored, small space, by language", "en: tokens, median", 0),
    Floor("returned", "", "no memory needed: stored, small space, by language", "en: tokens, p90", 80),
)
"""Figures that must not be larger."""


def reports(
    subjects: Sequence[str], folder: Path, *, limit: int | None, multihop: int | None, cache: Path | None
) -> Iterator[Report | str]:
    """A report a file, or why there is none."""
    for subject in subjects:
        try:
            paths = _files(subject, folder)
        except DataMissing as exc:
            yield f"{subject}: skipped, {exc}"
            continue
        for path in paths:
            yield run(
                EvaluationRequest(
                    subject=subject,
                    path=path,
                    compare=BASELINES if subject in _SEARCHING else (),
                    limit=multihop if subject == "multihop" and limit is None else limit,
                    cache=cache,
                    filler=_filler(folder),
                )
            )


def _files(subject: str, folder: Path) -> list[Path]:
    """`returned` measures the cases that come with Memplane, and the data sets that are there."""
    if subject in _BUNDLED:
        return sorted(bundled(subject).glob("*.json"))
    if subject != "returned":
        return usual_files(subject, folder)
    found = [path for half in ("calibration", "untouched") if (path := bundled(half)).is_dir()]
    for data in ("locomo", "longmemeval"):
        with suppress(DataMissing):
            found += usual_files(data, folder)
    return found


def _filler(folder: Path) -> Path | None:
    try:
        return usual_files("locomo", folder)[0]
    except DataMissing:
        return None


def figures(found: Sequence[Report]) -> list[Figure]:
    """What was asked for, as far as it was measured."""
    made = []
    for floor in (*FLOORS, *CEILINGS):
        for report in found:
            value = report.value(floor.metric, group=floor.group)
            if report.subject == floor.subject and floor.part in report.file and value is not None:
                name = f"{report.file}: {floor.group} {floor.metric}"
                made.append(
                    at_most(name, value, floor.limit)
                    if floor in CEILINGS
                    else at_least(name, value, floor.limit, digits=3)
                )
    return made


def show_report(report: Report) -> None:
    table = Table(title=f"{report.subject}: {report.file}", title_justify="left")
    for column in ("", "metric", "questions", *report.systems):
        table.add_column(column, justify="left" if column in {"", "metric"} else "right")
    before = ""
    for row in report.rows:
        shown = [
            f"{row.values[name]:,.3f} {row.unit}" if name in row.values else "" for name in report.systems
        ]
        table.add_row(row.group if row.group != before else "", row.metric, f"{row.questions:,}", *shown)
        before = row.group
    console = Console(width=max(Console().width, _COLUMNS))
    console.print(table)
    for note in report.notes:
        console.print(note, markup=False, highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=_SUBJECTS, action="append", help="this one; may be repeated")
    parser.add_argument("--limit", type=int, help="the first so many questions of each, for a quick look")
    parser.add_argument("--full", action="store_true", help=f"more than {MULTIHOP_QUESTIONS} of multihop")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where vectors are kept between runs")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    arguments = parser.parse_args()
    found: list[Report] = []
    for report in reports(
        arguments.only or _SUBJECTS,
        data_directory(os.environ),
        limit=arguments.limit,
        multihop=None if arguments.full else MULTIHOP_QUESTIONS,
        cache=arguments.cache,
    ):
        if isinstance(report, str):
            print(report, file=sys.stderr)
            continue
        found.append(report)
        if not arguments.json:
            show_report(report)
    asked = figures(found)
    if arguments.json:
        document = {"reports": msgspec.to_builtins(found), "asked": [asdict(figure) for figure in asked]}
        print(json.dumps(document, indent=2))
    elif asked:
        show("what was asked", asked)


if __name__ == "__main__":
    main()
