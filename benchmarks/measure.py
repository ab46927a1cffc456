"""What every benchmark needs: percentiles, rates, and a table whose figures carry what was asked."""

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

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
