"""What is asked of a measurement and what comes of it: rows of figures, one column a system."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from memplane.config import Settings

MEMPLANE = "memplane"
BASELINES = ("bm25", "dense")
EVERYTHING = "all"
"""The group that every question belongs to."""

Advance = Callable[[int, int | None], None]
"""Called with (done, total or None) as the work goes on."""


class EvaluationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which data to measure with, and how."""

    subject: str
    path: Path
    compare: tuple[str, ...] = ()
    """Baselines to put beside Memplane."""
    limit: int | None = None
    """Only so many questions, in the order of the file."""
    cache: Path | None = None
    """A folder that keeps vectors from one run to the next."""
    embeddings: bool = True
    filler: Path | None = None
    """For `returned`: a LoCoMo file whose turns fill the space of 1,000."""
    settings: Settings = Settings()
    """They name the embedding model; nothing else of them counts."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of each system."""

    metric: str
    values: dict[str, float]
    group: str = EVERYTHING
    questions: int
    """How many cases the figure is the mean of."""
    unit: str = ""
    """Empty for a share between 0 and 1."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one file gave."""

    subject: str
    file: str
    systems: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    """What a reader must know to compare the figures with others."""

    def value(self, metric: str, *, group: str = EVERYTHING, system: str = MEMPLANE) -> float | None:
        rows = (row for row in self.rows if (row.metric, row.group) == (metric, group))
        return next((row.values[system] for row in rows if system in row.values), None)


def percentile(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def mean(samples: Sequence[float]) -> float:
    return sum(samples) / len(samples) if samples else 0.0
