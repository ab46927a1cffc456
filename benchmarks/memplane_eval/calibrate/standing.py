"""Fit which standing instructions concern every answer, and which concern a turn.

The bias of both functions is moved after the fit, so that at 0.5 few instructions for some turns are taken for every answer, and few
instructions are returned for a turn they do not concern. Missing one now and then is a smaller fault than returning it for everything.
"""

import random
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from memplane.errors import InvalidRequest
from memplane.extract.relevance import Question
from memplane.models.embedding import Embedder, Vectors
from memplane.recall.calibration import Direction, InstructionVectors, Logistic, Signals
from memplane.recall.standing import WORD_SIGNALS, shared_words, vector_signals, word_signals
from memplane_eval.calibrate.fitting import SEED, Floats, balanced, fitted
from memplane_eval.calibrate.samples import Sample
from memplane_eval.returned.cases import CaseInstruction, Cases, CaseTurn, same_language

EVERY_SIGNALS = ("general", *WORD_SIGNALS)
STANDING_SIGNALS = ("nearness", "nearness_to_turns", "nearness_of_turn", "shared")
_EVERY_SHARE = 0.02
"""The share of instructions for some turns that may be taken for instructions for every answer."""
_APPLIES_SHARE = 0.03
"""The share of unrelated turns that an instruction may be taken to concern."""
_EVERY_ANSWER = "every answer"
_ENGLISH = "en"
_FOLDS = 10
_OTHERS_MAX = 10
_UNNEEDED_MAX = 20
_UNLABELLED_WEIGHT = 0.3
_L2 = 0.1


class StandingFit(msgspec.Struct, frozen=True, kw_only=True):
    """Both probabilities, and the vectors that their signals are computed with."""

    every: Logistic
    standing: Logistic
    instructions: InstructionVectors | None


class _Wording(msgspec.Struct, frozen=True):
    """An instruction as it is written down or as the user says it."""

    text: str
    every: bool
    fold: int


def fit_standing(cases: Cases, embedder: Embedder | None) -> StandingFit:
    """Without an embedder, by words alone."""
    rules = [rule for rule in cases.instructions if rule.kind == "instruction"]
    if {rule.scope == _EVERY_ANSWER for rule in rules} != {True, False}:
        raise InvalidRequest("the cases need instructions for every answer, and instructions for some turns")
    wordings = list(_wordings(rules))
    some = [rule for rule in rules if rule.scope != _EVERY_ANSWER]
    general = np.zeros(len(wordings))
    vectors = None
    if embedder is not None:
        rows = embedder.embed_texts([wording.text for wording in wordings])
        general = _unseen(rows, wordings)
        turns = np.stack([embedder.embed_query(turn.text) for turn in _turns(cases)])
        vectors = InstructionVectors(
            general=_direction(_general(rows, wordings)),
            turn=_direction(turns.mean(axis=0)),
            instruction=_direction(embedder.embed_texts([rule.stored for rule in some]).mean(axis=0)),
            foreign=_foreign(cases, turns),
        )
    return StandingFit(
        every=_fit_every(wordings, general, known=embedder is not None),
        standing=_fit_standing(some, cases, embedder, vectors),
        instructions=vectors,
    )


def _wordings(rules: Sequence[CaseInstruction]) -> Iterator[_Wording]:
    draw = random.Random(SEED)
    for rule in rules:
        fold = draw.randrange(_FOLDS)
        for text in dict.fromkeys((rule.stored, rule.said or rule.stored)):
            yield _Wording(text, rule.scope == _EVERY_ANSWER, fold)


def _general(rows: Vectors, wordings: Sequence[_Wording]) -> Floats:
    """The weights over an instruction's vector: does it concern every answer?"""
    labels = np.array([float(wording.every) for wording in wordings])
    return fitted(rows.astype(np.float64), labels, balanced(labels), l2=_L2)[:-1]


def _unseen(rows: Vectors, wordings: Sequence[_Wording]) -> Floats:
    """The signal `general` of each, by weights that were fitted without the instruction."""
    folds = np.array([wording.fold for wording in wordings])
    values = np.zeros(len(rows))
    for fold in set(folds.tolist()):
        seen = folds != fold
        weights = _general(rows[seen], [wording for wording in wordings if wording.fold != fold])
        values[~seen] = rows[~seen] @ weights
    return values


def _direction(weights: Floats | Vectors, bias: float = 0.0) -> Direction:
    return Direction(weights.astype(np.float16).tobytes(), bias)


def _turns(cases: Cases) -> tuple[CaseTurn, ...]:
    return (*cases.turns, *cases.needs, *cases.needs_not)


def _foreign(cases: Cases, vectors: Vectors) -> Direction:
    """`vectors` are those of `_turns`."""
    labels = np.array([float(turn.language != _ENGLISH) for turn in _turns(cases)])
    if labels.min() == labels.max():
        return _direction(np.zeros(vectors.shape[1]))
    beta = fitted(vectors.astype(np.float64), labels, balanced(labels), l2=_L2)
    return _direction(beta[:-1], round(float(beta[-1]), 4))


def _fit_every(wordings: Sequence[_Wording], general: Floats, *, known: bool) -> Logistic:
    sample = Sample(EVERY_SIGNALS if known else WORD_SIGNALS)
    for wording, value in zip(wordings, general, strict=True):
        sample.add({**word_signals(wording.text), "general": value}, wording.every)
    fit = sample.fit(balanced=True)
    limit = _limit([(fit.logit(signals), label) for signals, label in sample.labelled()], _EVERY_SHARE)
    return Logistic(round(fit.bias - limit, 4), fit.weights)


def _fit_standing(
    rules: Sequence[CaseInstruction],
    cases: Cases,
    embedder: Embedder | None,
    vectors: InstructionVectors | None,
) -> Logistic:
    """Instructions for some turns against turns that they concern, turns that they do not, turns of other instructions, and turns
    without need. The turns of other instructions do not move the bias: some of them are concerned by this one as well. Other
    languages get a bias of their own."""
    sample = Sample(STANDING_SIGNALS if vectors is not None else ("shared",))
    counted: list[str | None] = []
    draw = random.Random(SEED)
    for rule in rules:
        for text, label, weight, counts in _turns_of(rule, rules, cases, draw):
            signals: Signals = {"shared": shared_words(rule.stored, Question(text))}
            if embedder is not None and vectors is not None:
                vector = embedder.embed_texts([rule.stored])[0]
                signals = {**signals, **vector_signals(vector, embedder.embed_query(text), vectors)}
            sample.add(signals, label, weight)
            counted.append(rule.language if counts else None)
    fit = sample.fit(balanced=True)
    values: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for (signals, label), language in zip(sample.labelled(), counted, strict=True):
        if language is not None:
            values[language == _ENGLISH].append((fit.logit(signals), label))
    english, foreign = (_limit(values[own] or values[not own], _APPLIES_SHARE) for own in (True, False))
    if vectors is None:
        return Logistic(round(fit.bias - max(english, foreign), 4), fit.weights)
    weights = {**fit.weights, "foreign": round(min(0.0, english - foreign), 4)}
    return Logistic(round(fit.bias - english, 4), weights)


def _turns_of(
    rule: CaseInstruction, rules: Sequence[CaseInstruction], cases: Cases, draw: random.Random
) -> Iterator[tuple[str, float, float, bool]]:
    """Turns with label, weight, and whether they count for the working point."""
    for text in rule.applies:
        yield text, 1.0, 1.0, True
    for text in rule.other:
        yield text, 0.0, 1.0, True
    others = [other.applies[0] for other in same_language(rules, rule.language) if other is not rule]
    for text in draw.sample(others, min(len(others), _OTHERS_MAX)):
        yield text, 0.0, _UNLABELLED_WEIGHT, False
    turns = (*cases.turns, *cases.needs_not)
    unneeded = [turn.text for turn in same_language(turns, rule.language) or turns]
    for text in draw.sample(unneeded, min(len(unneeded), _UNNEEDED_MAX)):
        yield text, 0.0, _UNLABELLED_WEIGHT, True


def _limit(values: Sequence[tuple[float, float]], share: float) -> float:
    """The logit that at most this share of the values without the label reach."""
    levels = sorted({value for value, _ in values})
    wrong = np.array([value for value, label in values if not label])
    for below, level in zip([levels[0] - 1.0, *levels], levels, strict=False):
        if (wrong >= level).sum() <= share * len(wrong):
            return float(below + level) / 2
    return float(levels[-1]) + 1.0
