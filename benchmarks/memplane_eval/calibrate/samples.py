"""Labelled signals of recalls, and the logistic function that is fitted to them."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from memplane.recall.calibration import Logistic
from memplane_eval.calibrate.fitting import balanced as balanced_weights
from memplane_eval.calibrate.fitting import fitted
from memplane_eval.calibrate.queries import Query

TURN_SIGNALS = ("score", "behind", "best", "size")
MEMORY_SIGNALS = (
    "meaning", "nearness", "words", "predicate", "replaces", "time", "speaker", "importance", "hot", "size",
)  # fmt: skip
_AGAINST = frozenset(
    {"behind", "size", "condition", "domain", "nearness_to_turns", "nearness_of_turn", "foreign"}
)
"""Signals that may count against an item."""
OF_ONE_MODEL = frozenset({"personal", "nearness", "match", "best"})
"""Signals whose values mean something only for one model."""


class Sample:
    """Labelled signals, and the fit over them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.rows: list[list[float]] = []
        self.labels: list[float] = []
        self.weights: list[float] = []

    def add(self, signals: Mapping[str, float], label: float, weight: float = 1.0) -> None:
        self.rows.append([signals.get(name, 0.0) for name in self.names])
        self.labels.append(float(label))
        self.weights.append(weight)

    def labelled(self) -> Iterator[tuple[Mapping[str, float], float]]:
        for row, label in zip(self.rows, self.labels, strict=True):
            yield dict(zip(self.names, row, strict=True)), label

    def fit(self, *, balanced: bool = False, l2: float = 1.0) -> Logistic:
        """Most signals may only count for an item: one whose weight comes out negative is dropped, unless it is in `_AGAINST`."""
        names = list(self.names)
        while True:
            found = self._fit(names, balanced=balanced, l2=l2)
            wrong = [name for name in names if found.weights.get(name, 0.0) < 0 and name not in _AGAINST]
            if not wrong:
                return found
            names = [name for name in names if name not in wrong]

    def _fit(self, names: Sequence[str], *, balanced: bool, l2: float) -> Logistic:
        rows = np.array(self.rows)[:, [self.names.index(name) for name in names]]
        labels = np.array(self.labels)
        weights = np.array(self.weights)
        if balanced:
            weights = weights * balanced_weights(labels)
        spread = rows.std(axis=0)
        spread[spread < 1e-9] = 1.0
        beta = fitted(rows / spread, labels, weights, l2=l2)
        found = {name: round(float(w), 4) for name, w in zip(names, beta[:-1] / spread, strict=True)}
        return Logistic(round(float(beta[-1]), 4), {name: w for name, w in found.items() if w})


class Samples:
    """The signals of everything recalled, with labels."""

    def __init__(self, without: frozenset[str]) -> None:
        self.turn = Sample([name for name in TURN_SIGNALS if name not in without])
        self.memory = Sample([name for name in MEMORY_SIGNALS if name not in without])
        self.stored = Sample([name for name in MEMORY_SIGNALS if name not in without])
        self.need: list[tuple[str, Mapping[str, float], bool]] = []

    def add(self, query: Query) -> None:
        result = query.result
        if query.helps is not None:
            self.need.append((result.query, result.routing.signals, query.helps))
        if not query.labelled:
            return
        said = {hit.id for hit in result.hits if hit.turn is not None}
        for hit in result.hits:
            if hit.turn is not None:
                self.turn.add(hit.signals, hit.id in query.turns)
            elif hit.memory is not None:
                if hit.memory.entry_id in said:
                    continue  # it is one item with its turn
                if hit.memory.derived:
                    self.memory.add(hit.signals, hit.memory.entry_id in query.turns)
                else:
                    self.stored.add(hit.signals, hit.id in query.memories)
