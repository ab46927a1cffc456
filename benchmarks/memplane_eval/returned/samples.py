"""Figures of single cases, collected into rows: one column per system."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from memplane_eval.report import MEMPLANE, Row, mean, percentile

TOKENS = "tokens"
_SUMMARIES: dict[str, Callable[[Sequence[float]], float]] = {
    "median": lambda samples: percentile(samples, 0.5),
    "p90": lambda samples: percentile(samples, 0.9),
    "mean": mean,
}


class Samples:
    """Values by group, metric and system, in the order of their names' first appearance."""

    def __init__(self) -> None:
        self._values: defaultdict[str, defaultdict[str, defaultdict[str, list[float]]]] = defaultdict(
            lambda: defaultdict(lambda: defaultdict(list))
        )

    def add(self, group: str, metric: str, value: float, *, system: str = MEMPLANE) -> None:
        self._values[group][metric][system].append(value)

    def mean(self, group: str, metric: str, *, system: str = MEMPLANE) -> float:
        return mean(self._values[group][metric][system])

    def rows(self) -> Iterator[Row]:
        """The mean of each metric; of tokens also the median and the 90th percentile, after the shares of the group."""
        for group, metrics in self._values.items():
            for metric in sorted(metrics, key=lambda name: TOKENS in name):
                for summary, figure in _SUMMARIES.items() if TOKENS in metric else (("", mean),):
                    systems = metrics[metric]
                    yield Row(
                        group=group,
                        metric=f"{metric}, {summary}" if summary else metric,
                        questions=max(map(len, systems.values())),
                        values={system: figure(values) for system, values in systems.items()},
                        unit=TOKENS if summary else "",
                    )
