"""Fit whether memory helps with a turn: what the turn says by itself first, then what was found for it."""

import random
import re
from collections.abc import Sequence

import msgspec
import numpy as np

from memplane.models.embedding import Embedder
from memplane.recall.calibration import Logistic, Perceptron, Wording
from memplane.recall.need import match_signal
from memplane_eval.calibrate.fitting import SEED, balanced, fitted, linear, perceptron, wording_rows
from memplane_eval.calibrate.samples import Sample, Samples
from memplane_eval.retrieval import EvalStore
from memplane_eval.returned.cases import Cases

_FOLDS = 3
_MEMBERS = 3
TURN_NEED = ("personal", "wording", "nearness", "speaker")
NEED_SIGNALS = ("personal", "wording", "held", "match", "nearness", "speaker")
_LIKELY_SHARE = 0.08
_MAYBE_SHARE = 0.45
"""Shares of the turns without need that may be taken for turns with need."""
_MATCH_SHARE = 0.99
"""The share of the turns without need that are less near to everything than a match."""
_HELD_MAX = 12.0
"""Turns made from memories hold all their words; a free weight would let any turn pass that repeats a common phrase."""


class TurnModel(msgspec.Struct, frozen=True, kw_only=True):
    """What the turn itself says about whether memory helps."""

    personal: Perceptron | None
    wording: Wording
    unseen: dict[str, tuple[float, float]]
    """For each text, both signals by functions that were fitted without it."""

    def signals(self, text: str, embedder: Embedder | None) -> tuple[float, float]:
        """Both signals of a text that nothing was fitted on."""
        personal = 0.0
        if embedder is not None and self.personal is not None:
            personal = self.personal(embedder.embed_query(text))
        return personal, self.wording(text)


def turn_model(labelled: Sequence[tuple[str, bool]], embedder: Embedder | None) -> TurnModel:
    known = dict(labelled)
    texts, labels = list(known), np.array([float(helps) for helps in known.values()])
    words = wording_rows(texts)
    vectors = None
    if embedder is not None:
        vectors = np.stack([embedder.embed_query(text) for text in texts]).astype(np.float64)
    fold = np.random.default_rng(SEED).integers(0, _FOLDS, len(texts))
    unseen = np.zeros((len(texts), 2))
    for part in range(_FOLDS):
        seen = fold != part
        unseen[~seen, 1] = words[~seen] @ linear(words[seen], labels[seen])
        if vectors is not None:
            hidden, output = perceptron(vectors[seen], labels[seen], members=1)
            active = np.maximum(vectors[~seen] @ hidden[:, :-1].T + hidden[:, -1], 0)
            unseen[~seen, 0] = active @ output
    personal = None
    if vectors is not None:
        hidden, output = perceptron(vectors, labels, members=_MEMBERS)
        personal = Perceptron(
            hidden=hidden.astype(np.float16).tobytes(),
            output=output.astype(np.float16).tobytes(),
            dimension=vectors.shape[1],
        )
    wording = Wording(linear(words, labels).astype(np.float16).tobytes())
    values = [(float(both[0]), float(both[1])) for both in unseen]
    return TurnModel(personal=personal, wording=wording, unseen=dict(zip(texts, values, strict=True)))


_FIRST_PERSON = {
    "i": "the user",
    "my": "the user's",
    "me": "the user",
    "i'm": "the user is",
    "mine": "the user's",
}
_PRONOUN = re.compile(r"\b(?:i'm|i|my|me|mine)\b", re.IGNORECASE)


def in_third_person(text: str) -> str:
    """As an agent asks its memory: `what is my job?` becomes `what is the user's job?`."""
    return _PRONOUN.sub(lambda found: _FIRST_PERSON[found[0].lower()], text)


def needed_or_not(cases: Cases, stores: Sequence[EvalStore]) -> list[tuple[str, bool]]:
    """All turns with whether memory about the user helps with them."""
    draw = random.Random(SEED)
    asked = [question.text for store in stores for question in store.questions]
    texts = [
        *((pair.question, True) for case in cases.spaces for pair in case.pairs),
        *((turn.text, True) for turn in cases.needs),
        *((text, True) for text in draw.sample(asked, min(len(asked), 400))),
        *((turn.text, False) for turn in (*cases.turns, *cases.needs_not)),
    ]
    return [*texts, *((in_third_person(text), helps) for text, helps in texts if _PRONOUN.search(text))]


class NeedFit(msgspec.Struct, frozen=True, kw_only=True):
    """The probability that memory helps, and what its values mean."""

    need: Logistic
    likely_min: float
    maybe_min: float
    match_min: float


def fit_need(
    samples: Samples, model: TurnModel, embedder: Embedder | None, without: frozenset[str]
) -> NeedFit:
    """What a turn says by itself is fitted on turns that people wrote. Matches are fitted after it, with turns made from the
    memories as well: before, such turns would change the weights of the others."""
    idle = sorted(signals["nearness"] for _, signals, helps in samples.need if not helps)
    match_min = idle[int(len(idle) * _MATCH_SHARE)]
    also = ("words",) if embedder is None else ()  # nothing else says that something is found
    natural, every = (
        Sample([name for name in (*names, *also) if name not in without])
        for names in (TURN_NEED, NEED_SIGNALS)
    )
    for text, signals, helps in samples.need:
        personal, wording = model.unseen.get(text) or model.signals(text, embedder)
        match = match_signal(signals["nearness"], match_min)
        found = {**signals, "personal": personal, "wording": wording, "match": match}
        every.add(found, helps)
        if text in model.unseen:
            natural.add(found, helps)
    need = _with_matches(natural.fit(balanced=True), every, without)
    unneeded = sorted(need(signals) for signals, helps in every.labelled() if not helps)
    return NeedFit(
        need=need,
        likely_min=round(unneeded[int(len(unneeded) * (1 - _LIKELY_SHARE))], 4),
        maybe_min=round(unneeded[int(len(unneeded) * (1 - _MAYBE_SHARE))], 4),
        match_min=round(match_min, 4),
    )


def _with_matches(base: Logistic, every: Sample, without: frozenset[str]) -> Logistic:
    """Add the weights of `held` and `match` to a function of the turn that stays as it is."""
    names = [name for name in ("held", "match") if name not in without]
    labelled = list(every.labelled())
    rows = np.array([[signals[name] for name in names] for signals, _ in labelled])
    labels = np.array(every.labels)
    offset = np.array([base.logit(signals) for signals, _ in labelled])
    beta = fitted(rows, labels, balanced(labels), l2=0.01, offset=offset)
    most = {"held": _HELD_MAX, "match": np.inf}
    added = {
        name: round(min(max(0.0, float(weight)), most[name]), 4)
        for name, weight in zip(names, beta, strict=False)
    }
    return Logistic(base.bias, base.weights | added)
