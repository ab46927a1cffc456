"""Fit and check the prices of `memplane.recall.tokens`: `python -m benchmarks.token_prices COUNTS.json… [--fit]`.

Each file is a list of samples `{"kind": "de chat", "text": "…", "o200k": 123, "llama3": 130, …}`: a text of 200 to 2,000
tokens, and its count by each tokenizer. Without `--fit`, the errors of the present prices are printed: against the mean
of the tokenizers and against each. With it, prices are fitted on every other sample and the errors are those of the
rest; the prices printed are fitted on all samples.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memplane.recall.tokens import LINE_END, PRICES, kinds, measure, pieces

FAMILIES = ("o200k", "llama3", "tekken", "gemma3", "qwen3", "deepseek_v3")
"""The tokenizers whose mean is estimated; others in the file are only compared."""
_NOT_TEXT = frozenset({"kind", "text"})
_CLOSE = frozenset({"en", "de", "fr", "es", "pt", "ru", "zh", "ja", "ko", "ar", "hi", "emoji", "markdown"})
"""Kinds of text that must be right; the others have less weight, as have texts that are no conversation."""
_FORMAL = frozenset({"udhr", "ui"})
_PULL = 0.3
"""How strongly prices without much evidence are drawn to one token a piece."""
_ROUNDS = 2_000

Numbers = NDArray[np.float64]


def features(text: str) -> tuple[Counter[tuple[str, int]], float]:
    """How often each price counts in a text, and the tokens that have none."""
    found: Counter[tuple[str, int]] = Counter()
    fixed = float(len(LINE_END.findall(text)))
    for line in text.split("\n"):
        cut, accents, foreign = pieces(line)
        for accent, count in accents.items():
            found[accent, 0] += count
        for piece in cut:
            kind, further, tokens = measure(piece, foreign=foreign)
            fixed += tokens
            found[kind, 0] += 1
            found[kind, 1] += further
    return found, fixed


class Samples:
    """Texts with their counts, as a linear problem."""

    def __init__(self, samples: Sequence[Mapping[str, object]]) -> None:
        self.kinds = [str(sample["kind"]) for sample in samples]
        self.names = [(kind, part) for kind in kinds() for part in (0, 1)]
        found = [features(str(sample["text"])) for sample in samples]
        self.counts = np.array([[each[name] for name in self.names] for each, _ in found], float)
        self.fixed = np.array([fixed for _, fixed in found])
        families = [name for name in samples[0] if name not in _NOT_TEXT]
        self.real = {name: np.array([float(str(sample[name])) for sample in samples]) for name in families}
        self.mean: Numbers = np.mean([self.real[name] for name in FAMILIES], axis=0)

    def fitted(self, rows: NDArray[np.bool_]) -> Numbers:
        """Prices that are not negative and have the least squared relative error, the kinds weighing alike."""
        often = Counter(self.kinds)
        weights = np.array([_weight(kind) / np.sqrt(often[kind]) for kind in self.kinds]) / self.mean
        prior = np.array([0.3 if part else 1.0 for _, part in self.names])
        left = np.vstack([(self.counts * weights[:, None])[rows], np.eye(len(prior)) * _PULL / len(prior)])
        right = np.append(((self.mean - self.fixed) * weights)[rows], prior * _PULL / len(prior))
        squares, products, prices = left.T @ left, left.T @ right, prior.copy()
        for _ in range(_ROUNDS):
            for place in range(len(prices)):
                step = (products[place] - squares[place] @ prices) / squares[place, place]
                prices[place] = max(0.0, prices[place] + step)
        return prices

    def estimated(self, prices: Numbers) -> Numbers:
        return self.counts @ prices + self.fixed

    def show(self, prices: Numbers, rows: NDArray[np.bool_]) -> None:
        """The error of the total, the mean and the largest error of a sample, and of the total by tokenizer."""
        estimated = self.estimated(prices)
        places: defaultdict[str, list[int]] = defaultdict(list)
        for place in np.flatnonzero(rows):
            places[self.kinds[place]].append(int(place))
        print(
            f"{'':22}{'samples':>8}{'total':>8}{'mean':>7}{'most':>7}", *(f"{name:>12}" for name in self.real)
        )
        for kind, own in sorted(places.items()):
            each = np.abs(estimated[own] / self.mean[own] - 1)
            total = estimated[own].sum()
            print(
                f"{kind:22}{len(own):8}{total / self.mean[own].sum() - 1:+8.1%}{each.mean():7.1%}{each.max():7.1%}",
                *(f"{total / real[own].sum() - 1:+12.1%}" for real in self.real.values()),
            )


def _weight(kind: str) -> float:
    language, *rest = kind.split()
    weight = 2.0 if "cases" in rest else 1.0
    weight *= 1.0 if language in _CLOSE else 0.3
    return weight * (0.5 if _FORMAL.intersection(rest) else 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    samples = Samples([sample for path in arguments.files for sample in json.loads(path.read_bytes())])
    every = np.ones(len(samples.kinds), bool)
    if not arguments.fit:
        present = np.array([PRICES.get(kind, (0.0, 0.0))[part] for kind, part in samples.names])
        samples.show(present, every)
        return
    held_out = np.arange(len(samples.kinds)) % 2 == 1
    samples.show(samples.fitted(~held_out), held_out)
    prices = dict(zip(samples.names, samples.fitted(every), strict=True))
    for kind in kinds():
        print(f'    "{kind}": ({prices[kind, 0]:.2f}, {prices[kind, 1]:.2f}),')


if __name__ == "__main__":
    main()
