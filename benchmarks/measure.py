"""What every benchmark needs: percentiles, rates, and a table whose figures carry what was asked."""

import argparse
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

_COLUMNS = 110


@dataclass(frozen=True)
class Figure:
    """One line of a report. `asked` is what the figure should reach, `met` whether it did; None where nothing is."""

    name: str
    value: float
    unit: str = ""
    asked: str = ""
    met: bool | None = None
    digits: int = 2


def at_least(name: str, value: float, floor: float, unit: str = "", *, digits: int = 2) -> Figure:
    return Figure(name, value, unit, f">= {floor:,g}", value >= floor, digits)


def at_most(name: str, value: float, ceiling: float, unit: str = "") -> Figure:
    return Figure(name, value, unit, f"<= {ceiling:,g}", value <= ceiling)


def percentile(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def median(samples: Sequence[float]) -> float:
    return percentile(samples, 0.5)


def rate(work: Callable[[], object], count: int) -> float:
    """How many a second."""
    started = time.perf_counter()
    work()
    return count / (time.perf_counter() - started)


def latencies_ms(work: Callable[[int], object], count: int) -> list[float]:
    found = []
    for number in range(count):
        started = time.perf_counter()
        work(number)
        found.append((time.perf_counter() - started) * 1_000)
    return found


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024


def show(title: str, figures: Sequence[Figure]) -> None:
    table = Table(title=title, title_justify="left")
    for column in ("figure", "measured", "asked", ""):
        table.add_column(column, justify="right" if column == "measured" else "left")
    for figure in figures:
        mark = "" if figure.met is None else ("ok" if figure.met else "MISSED")
        table.add_row(
            figure.name, f"{figure.value:,.{figure.digits}f} {figure.unit}".strip(), figure.asked, mark
        )
    console = Console(width=max(Console().width, _COLUMNS))
    console.print(table)


def arguments_of(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a minute or two instead of several")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--dir", type=Path, help="where to work; a disk, not memory")
    return parser


def report(title: str, arguments: argparse.Namespace, work: Callable[[Path], Sequence[Figure]]) -> None:
    """Measure in a folder that is gone afterwards, and say what was found."""
    folder = Path(tempfile.mkdtemp(prefix="memplane-bench-", dir=arguments.dir))
    try:
        figures = work(folder)
    finally:
        shutil.rmtree(folder)
    if arguments.json:
        print(json.dumps([asdict(figure) for figure in figures], indent=2))
    else:
        show(title, figures)
