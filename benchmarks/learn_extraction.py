"""Learns which statements people write down, and in which words, from dialogues with notes.

    python -m benchmarks.learn_extraction FILE [--write]

Prints figures for dialogues that were held out (five folds, by dialogue) and, with --write, stores what was learned
from all of them under src/memplane/extract/learned/. Only sums over hashed features are stored. Needs numpy.
"""

import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from memplane.extract import gate as messages
from memplane.extract import wording as notes
from memplane.extract.catalog import load_catalog
from memplane.extract.gate import of_message as of_whole_message
from memplane.extract.proposition import Proposition
from memplane.extract.rules import drafts
from memplane.extract.wording import note_features, of_draft, of_message, question_words
from memplane.models.linear import hash_of, read_linear, write_linear
from memplane_eval.extraction import MATCH_MIN, ExtractionScores, gold_sentences, score_dialogues, token_f1

FOLDS = 5
SEEN_MIN = 3
PENALTY_NOTES = 30.0
PENALTY_MESSAGES = 8.0
LEARNED = Path(__file__).parents[1] / "src" / "memplane" / "extract" / "learned"


class Rows:
    """Features as numbers, row after row. Those met in fewer than `SEEN_MIN` rows are left out: they are noise."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self.shares: list[float] = []
        self.counts: list[int] = []
        self._known: dict[str, int] = {}

    def add(self, groups: Iterable[tuple[float, Sequence[str]]]) -> None:
        before = len(self.places)
        known = self._known
        for share, features in groups:
            self.places.extend(known.setdefault(feature, len(known)) for feature in features)
            self.shares.extend([share] * len(features))
        self.counts.append(len(self.places) - before)

    def matrix(self) -> "Matrix":
        places, counts = np.array(self.places), np.array(self.counts)
        seen = np.bincount(places, minlength=len(self._known)) >= SEEN_MIN
        number = np.cumsum(seen) - 1
        rows = np.repeat(np.arange(len(counts)), counts)
        kept = seen[places]
        hashes = [hash_of(feature) for feature, place in self._known.items() if seen[place]]
        counts = np.bincount(rows[kept], minlength=len(counts))
        return Matrix(number[places[kept]], np.array(self.shares)[kept], counts, hashes)


class Matrix:
    """Rows as arrays, and the two products that learning needs."""

    def __init__(self, places: Any, shares: Any, counts: Any, hashes: list[int]) -> None:
        self.places, self.shares, self.counts, self.hashes = places, shares, counts, hashes
        self.size = len(hashes)
        self.row_of = np.repeat(np.arange(len(counts)), counts)

    def select(self, rows: Any) -> "Matrix":
        kept = rows[self.row_of]
        return Matrix(self.places[kept], self.shares[kept], self.counts[rows], self.hashes)

    def scores(self, weights: Any, bias: float) -> Any:
        return np.bincount(self.row_of, weights[self.places] * self.shares, len(self.counts)) + bias

    def gradient(self, errors: Any) -> Any:
        return np.bincount(self.places, errors[self.row_of] * self.shares, self.size)


def learn(
    matrix: Matrix, labels: Any, *, penalty: float, steps: int = 60, importance: Any = 1.0
) -> tuple[Any, float]:
    """Logistic regression with a square penalty, by L-BFGS. Deterministic. `importance` weighs each row."""
    point = np.zeros(matrix.size + 1)

    def loss(at: Any) -> tuple[float, Any]:
        scores = matrix.scores(at[:-1], at[-1])
        chance = 1 / (1 + np.exp(-scores))
        value = np.sum(importance * (np.logaddexp(0, scores) - labels * scores)) + penalty / 2 * np.sum(
            at[:-1] ** 2
        )
        errors = importance * (chance - labels)
        slope = np.append(matrix.gradient(errors) + penalty * at[:-1], errors.sum())
        return float(value), slope

    value, slope = loss(point)
    history: list[tuple[Any, Any]] = []
    for _ in range(steps):
        way = slope.copy()
        used = []
        for step, change in reversed(history):
            share = step @ way / (step @ change)
            used.append(share)
            way -= share * change
        if history:
            step, change = history[-1]
            way *= (step @ change) / (change @ change)
        else:
            way /= np.abs(slope).max()
        for (step, change), share in zip(history, reversed(used), strict=True):
            way += step * (share - change @ way / (step @ change))
        length = 1.0
        while True:
            there = point - length * way
            new_value, new_slope = loss(there)
            if new_value <= value - 1e-4 * length * (slope @ way) or length < 1e-6:
                break
            length /= 2
        if (there - point) @ (new_slope - slope) > 1e-10:
            history = [*history, (there - point, new_slope - slope)][-8:]
        done = value - new_value < 1e-5 * abs(value)
        point, value, slope = there, new_value, new_slope
        if done:
            break
    return point[:-1], float(point[-1])


class Learner:
    """Two models: of the wordings of every claim, and of every message, which sees what the first one thinks."""

    def __init__(self, dialogues: Sequence[Sequence[dict[str, Any]]]) -> None:
        self.dialogues, self.catalog = dialogues, load_catalog()
        rows = Rows()
        noted: list[bool] = []
        claim_of: list[int] = []
        fold_of_note: list[int] = []
        fold_of_turn: list[int] = []
        told: list[bool] = []
        self.claims: list[list[tuple[Proposition, int | None]]] = []
        count = 0
        for fold, text, before, wanted in self._turns():
            asked, shared = question_words(before), of_message(text, before)
            claims: list[tuple[Proposition, int | None]] = []
            for draft in drafts(text, role="user", catalog=self.catalog, before=before):
                claims.append((draft.proposition, count if draft.ways else None))
                own = [*shared, *of_draft(draft)]
                for way in draft.ways:
                    rows.add([(1.0, [*own, *note_features(draft, way, asked)])])
                    noted.append(any(token_f1(way.text, sentence) >= MATCH_MIN for sentence in wanted))
                    claim_of.append(count)
                    fold_of_note.append(fold)
                count += bool(draft.ways)
            self.claims.append(claims)
            fold_of_turn.append(fold)
            told.append(bool(wanted))
        self.notes, self.noted, self.claim_of = rows.matrix(), np.array(noted, float), np.array(claim_of)
        self.fold_of_note, self.fold_of_turn = np.array(fold_of_note), np.array(fold_of_turn)
        self.told = np.array(told, float)
        self._held_out = self._chances(self._scores_held_out())
        self._of_messages = self._messages()

    def models(self, left_out: int | None = None) -> dict[str, str]:
        """Learned from all dialogues, or from those outside one fold; as the texts that are shipped."""
        rows = self.fold_of_note != left_out
        weights, bias = learn(self.notes.select(rows), self.noted[rows], penalty=PENALTY_NOTES)
        turns = self.fold_of_turn != left_out
        messages = self._of_messages
        of_all, bias_of_all = learn(messages.select(turns), self.told[turns], penalty=PENALTY_MESSAGES)
        return {
            "notes": write_linear(dict(zip(self.notes.hashes, weights, strict=True)), bias),
            "messages": write_linear(dict(zip(messages.hashes, of_all, strict=True)), bias_of_all),
        }

    def _turns(self) -> Iterator[tuple[int, str, str, list[str]]]:
        for number, dialogue in enumerate(self.dialogues):
            before = ""
            for turn in dialogue:
                yield number % FOLDS, turn["text"], before, gold_sentences(turn["facts"])
                before = turn["text"]

    def _scores_held_out(self) -> Any:
        scores = np.zeros(len(self.noted))
        for fold in range(FOLDS):
            rest = self.fold_of_note != fold
            weights, bias = learn(self.notes.select(rest), self.noted[rest], penalty=PENALTY_NOTES)
            scores[~rest] = self.notes.select(~rest).scores(weights, bias)
        return scores

    def _chances(self, scores: Any) -> Any:
        """Of each claim, by its best wording. The model of messages learns from what was held out, or it would trust the
        other one too much."""
        best = np.full(self.claim_of.max() + 1, -np.inf)
        np.maximum.at(best, self.claim_of, scores)
        return 1 / (1 + np.exp(-best))

    def _messages(self) -> Matrix:
        rows = Rows()
        for (_, text, before, _), claims in zip(self._turns(), self.claims, strict=True):
            found = [
                claim
                if number is None
                else msgspec.structs.replace(claim, noted=float(self._held_out[number]))
                for claim, number in claims
            ]
            rows.add(of_whole_message(text, before, found))
        return rows.matrix()


def score_held_out(learner: Learner) -> list[ExtractionScores]:
    """Each fold with the models that never saw it, through the same code."""
    scores = []
    for fold in range(FOLDS):
        with_models(learner.models(left_out=fold))
        scores.append(score_dialogues(learner.dialogues[fold::FOLDS], learner.catalog))
    return scores


def with_models(texts: dict[str, str]) -> None:
    """Puts models in the place of the shipped ones, for this process."""
    models = {name: read_linear(text) for name, text in texts.items()}
    notes.load_linear = messages.load_linear = models.__getitem__


def show(title: str, scores: Sequence[ExtractionScores]) -> None:
    print(title)
    for name in ("gate", "stored", "facts", "notes"):
        parts = [getattr(score, name) for score in scores]
        means = [
            sum(getattr(part, what) for part in parts) / len(parts) for what in ("precision", "recall", "f1")
        ]
        spread = max(part.f1 for part in parts) - min(part.f1 for part in parts)
        print(
            f"  {name:7} P {means[0]:.3f}  R {means[1]:.3f}  F1 {means[2]:.3f}  (folds differ by {spread:.3f})"
        )


def main() -> None:
    with gzip.open(sys.argv[1]) as file:
        learner = Learner(json.load(file))
    show("held out", score_held_out(learner))
    texts = learner.models()
    with_models(texts)
    show("in sample", [score_dialogues(learner.dialogues, learner.catalog)])
    if "--write" in sys.argv:
        for name, text in texts.items():
            (LEARNED / f"{name}.txt").write_text(text, "ascii")
            print(f"{name}: {len(text)} bytes")


if __name__ == "__main__":
    main()
