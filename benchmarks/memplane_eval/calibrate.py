"""Fit how signals become probabilities for one embedding model: `python -m memplane_eval.calibrate`.

Recall ranks by scores that mean something only within one query. To compare a turn with a memory, and to decide that nothing helps,
it needs probabilities (`memplane.recall.calibration`). They are fitted on labelled questions asked of real spaces through the
product itself, so what is fitted is what is used:

* stored memories with indirect questions, each in a small space of its author and among the turns of long conversations;
* the same told in conversation; LoCoMo and LongMemEval, whose questions name the turns that answer;
* turns for which memory helps, and turns for which it does not.

Whether a turn needs memory is fitted in steps: functions of its vector and of its words first, on everything; then their weights
beside the other signals, with values of those functions for turns they were not fitted on, because the second step would trust them
too much otherwise; matches last.
"""

import argparse
import random
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.extract.relevance import Question
from memplane.main import Memplane
from memplane.models.embedding import Embedder
from memplane.models.local import LocalEmbedder, model_in
from memplane.recall.calibration import Calibration, Logistic, Perceptron, Wording, wording_features
from memplane.recall.result import Limits, Recall
from memplane.space import Space
from memplane_eval.cache import CachedEmbedder
from memplane_eval.product import retain
from memplane_eval.retrieval import EvalStore, load_locomo, load_longmemeval
from memplane_eval.returned.cases import Cases, CaseSpace, bundled, load_cases

Floats = NDArray[np.float64]

_WIDE = Limits(turns=48, facts=60)
_FOLDS = 3
_KEYWORDS = 2
_QUESTIONS_PER_STORE = 80
_TURNS_PER_SPACE = 60
_SEED = 7

TURN_SIGNALS = ("score", "behind", "best", "size")
MEMORY_SIGNALS = (
    "meaning", "nearness", "words", "predicate", "replaces", "time", "speaker", "importance", "hot", "size",
)  # fmt: skip
TURN_NEED = ("personal", "wording", "nearness", "speaker")
NEED_SIGNALS = ("personal", "wording", "held", "match", "nearness", "speaker")
STANDING_SIGNALS = ("general", "nearness", "personal", "wording")
_AGAINST = frozenset({"behind", "size"})
OF_ONE_MODEL = frozenset({"personal", "nearness", "match", "best", "general"})
"""Signals whose values mean something only for one model."""
SURE_SHARE = 0.08
MAYBE_SHARE = 0.45
"""Shares of the turns without need that may be taken for turns with need."""
UNRELATED_SHARE = 0.99
"""The share of the turns without need that are less near to everything than a match."""
_HELD_MAX = 12.0
"""Turns made from memories hold all their words; a free weight would let any turn pass that repeats a common phrase."""


# Fitting.


def fitted(
    rows: Floats, labels: Floats, weights: Floats, *, l2: float, offset: Floats | float = 0.0
) -> Floats:
    """The weights of a logistic regression, the bias last, by Newton's method. The offset is a part of the logit that is known."""
    x = np.column_stack([rows, np.ones(len(rows))])
    beta = np.zeros(x.shape[1])
    penalty = np.full(x.shape[1], l2)
    penalty[-1] = 1e-6
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(x @ beta + offset, -30, 30)))
        gradient = x.T @ (weights * (p - labels)) + penalty * beta
        hessian = (x * (weights * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        beta -= step
        if np.abs(step).max() < 1e-7:
            break
    return beta


def _balanced(labels: Floats) -> Floats:
    share = float(labels.mean())
    return np.where(labels == 1, 0.5 / share, 0.5 / (1 - share))


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

    def fit(self, *, balanced: bool = False, l2: float = 1.0) -> Logistic:
        """A signal says that an item helps, never that it does not, so one that comes out negative is left out. Only distance and
        size count against it."""
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
            weights = weights * _balanced(labels)
        spread = rows.std(axis=0)
        spread[spread < 1e-9] = 1.0
        beta = fitted(rows / spread, labels, weights, l2=l2)
        found = {name: round(float(w), 4) for name, w in zip(names, beta[:-1] / spread, strict=True)}
        return Logistic(round(float(beta[-1]), 4), {name: w for name, w in found.items() if w})


# What is asked of which space.


class Query(msgspec.Struct, frozen=True):
    """One recall with what is known about it."""

    result: Recall
    helps: bool | None
    """Whether memory helps with the turn; None: not known."""
    turns: frozenset[str] = frozenset()
    """Ids of the entries that answer, …"""
    memories: frozenset[str] = frozenset()
    """… and of the memories that do."""
    labelled: bool = True
    """Whether it is known which items answer."""


@contextmanager
def _space(embedder: Embedder | None) -> Iterator[Space]:
    with (
        tempfile.TemporaryDirectory(prefix="memplane-calibrate-") as folder,
        Memplane.open(folder, embedder=embedder) as plane,
    ):
        yield plane.space("calibrate")


def _asked(space: Space, question: str, **known: object) -> Query:
    return Query(space.recall(question, limits=_WIDE, counted=False), **known)  # type: ignore[arg-type]


def _pairs(space: Space, case: CaseSpace, ids: Sequence[str], field: str) -> Iterator[Query]:
    for pair in case.pairs:
        known = {field: frozenset({ids[pair.memory]})}
        yield _asked(space, pair.question, helps=True, **known)
        stored = case.memories[pair.memory].stored
        for text in (" ".join(Question(stored).words[:_KEYWORDS]), f"Is it true: {stored}?"):
            yield _asked(space, text, helps=True, **known)


def _stored(space: Space, case: CaseSpace) -> list[str]:
    return [space.store(memory.kind, memory.stored).id for memory in case.memories]


def _said(space: Space, case: CaseSpace) -> list[str]:
    return [space.retain(memory.said).id for memory in case.memories]


def _unneeded(space: Space, cases: Cases, language: str, draw: random.Random) -> Iterator[Query]:
    turns = [turn.text for turn in (*cases.turns, *cases.needs_not) if turn.language == language]
    for text in draw.sample(turns, min(len(turns), _TURNS_PER_SPACE)):
        yield _asked(space, text, helps=False, labelled=False)


def queries(cases: Cases, stores: Sequence[EvalStore], embedder: Embedder | None) -> Iterator[Query]:
    """Every case asked of a space of its own, and among the turns of long conversations."""
    draw = random.Random(_SEED)
    for case in cases.spaces:
        with _space(embedder) as space:
            ids = _stored(space, case)
            space.enrich()
            yield from _pairs(space, case, ids, "memories")
            yield from _unneeded(space, cases, case.language, draw)
        with _space(embedder) as space:
            ids = _said(space, case)
            space.enrich()
            yield from _pairs(space, case, ids, "turns")
            yield from _unneeded(space, cases, case.language, draw)
    english = [case for case in cases.spaces if case.language == "en"]
    for at, store in enumerate(stores):
        with _space(embedder) as space:
            entries = [retain(space, turn) for turn in store.turns]
            mixed = english[at % len(english)] if english else None
            ids = _stored(space, mixed) if mixed is not None else []
            space.enrich()
            if mixed is not None:
                yield from _pairs(space, mixed, ids, "memories")
            for asked in draw.sample(list(store.questions), min(len(store.questions), _QUESTIONS_PER_STORE)):
                yield Query(
                    space.recall(asked.text, limits=_WIDE, reference_time=asked.asked_at, counted=False),
                    helps=True,
                    turns=frozenset(entries[place] for place in asked.evidence),
                )
            yield from _unneeded(space, cases, "en", draw)


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


# Fitting a model's file.


_HIDDEN = 48
_MEMBERS = 3
_EPOCHS = 40
_BATCH = 128
_DECAY = 0.03
_SCALE = 8.0
"""A unit vector's numbers are small; the first layer starts better with larger ones."""
WORDING_SIZE = 4_096


class Adam:
    """The optimiser, for a list of arrays."""

    def __init__(self, arrays: list[NDArray[np.float32]]) -> None:
        self.arrays = arrays
        self._mean = [np.zeros_like(array) for array in arrays]
        self._square = [np.zeros_like(array) for array in arrays]
        self._steps = 0

    def step(self, gradients: Sequence[NDArray[np.float32]], rate: float, decay: Sequence[float]) -> None:
        self._steps += 1
        for at, gradient in enumerate(gradients):
            mean = self._mean[at] = 0.9 * self._mean[at] + 0.1 * gradient
            square = self._square[at] = 0.999 * self._square[at] + 0.001 * gradient**2
            usual = mean / (1 - 0.9**self._steps)
            spread = np.sqrt(square / (1 - 0.999**self._steps)) + 1e-8
            self.arrays[at] -= rate * (usual / spread + decay[at] * self.arrays[at])


def perceptron(rows: Floats, labels: Floats, *, members: int) -> tuple[Floats, Floats]:
    """Hidden units (weights and bias) and output weights: the mean of several networks, which is one larger network."""
    x, weights = (rows * _SCALE).astype(np.float32), _balanced(labels)
    hidden, output = [], []
    for member in range(members):
        draw = np.random.default_rng(_SEED + member)
        first = draw.normal(0, 2 / np.sqrt(x.shape[1]), (x.shape[1], _HIDDEN)).astype(np.float32)
        second = draw.normal(0, 1 / np.sqrt(_HIDDEN), _HIDDEN).astype(np.float32)
        adam = Adam([first, np.zeros(_HIDDEN, np.float32), second])
        for epoch in range(_EPOCHS):
            order = draw.permutation(len(x))
            for begin in range(0, len(order), _BATCH):
                batch = order[begin : begin + _BATCH]
                before = x[batch] @ adam.arrays[0] + adam.arrays[1]
                kept = (draw.random(before.shape) > 0.3) / np.float32(0.7)
                active = np.maximum(before, 0) * kept
                p = 1 / (1 + np.exp(-(active @ adam.arrays[2])))
                error = (weights[batch] * (p - labels[batch]) / len(batch)).astype(np.float32)
                back = np.outer(error, adam.arrays[2]) * (before > 0) * kept
                gradients = [x[batch].T @ back, back.sum(axis=0), active.T @ error]
                adam.step(gradients, 3e-3 * (1 - epoch / _EPOCHS), [_DECAY, 0.0, _DECAY])
        hidden.append(np.column_stack([adam.arrays[0].T * _SCALE, adam.arrays[1]]))
        output.append(adam.arrays[2] / members)
    return np.concatenate(hidden), np.concatenate(output)


def wording_rows(texts: Sequence[str]) -> NDArray[np.float32]:
    rows = np.zeros((len(texts), WORDING_SIZE), np.float32)
    for row, text in zip(rows, texts, strict=True):
        places, value = wording_features(text, WORDING_SIZE)
        np.add.at(row, places, value)
    return rows


def linear(rows: NDArray[np.float32], labels: Floats, *, epochs: int = 60, l2: float = 1e-4) -> Floats:
    """A logistic regression with thousands of weights and a free bias, which is not returned."""
    weights, draw = _balanced(labels), np.random.default_rng(_SEED)
    adam = Adam([np.zeros(rows.shape[1], np.float32), np.zeros(1, np.float32)])
    for epoch in range(epochs):
        order = draw.permutation(len(rows))
        for begin in range(0, len(order), 2 * _BATCH):
            batch = order[begin : begin + 2 * _BATCH]
            p = 1 / (1 + np.exp(-(rows[batch] @ adam.arrays[0] + adam.arrays[1])))
            error = (weights[batch] * (p - labels[batch]) / len(batch)).astype(np.float32)
            gradient = rows[batch].T @ error + np.float32(l2) * adam.arrays[0]
            adam.step([gradient, error.sum(keepdims=True)], 0.02 * (1 - epoch / epochs), [0.0, 0.0])
    return adam.arrays[0].astype(np.float64)


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
    fold = np.random.default_rng(_SEED).integers(0, _FOLDS, len(texts))
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
    draw = random.Random(_SEED)
    asked = [question.text for store in stores for question in store.questions]
    texts = [
        *((pair.question, True) for case in cases.spaces for pair in case.pairs),
        *((turn.text, True) for turn in cases.needs),
        *((text, True) for text in draw.sample(asked, min(len(asked), 400))),
        *((turn.text, False) for turn in (*cases.turns, *cases.needs_not)),
    ]
    return [*texts, *((in_third_person(text), helps) for text, helps in texts if _PRONOUN.search(text))]


def general_weights(embedder: Embedder, cases: Cases, *, l2: float = 1.0) -> Floats:
    """The weights over an instruction's vector: does it apply to every answer?"""
    rules = cases.instructions
    labels = np.array([float(rule.scope == "every answer") for rule in rules])
    rows = embedder.embed_texts([rule.stored for rule in rules]).astype(np.float64)
    return fitted(rows, labels, _balanced(labels), l2=l2)[:-1]


def standing_sample(
    embedder: Embedder | None, cases: Cases, model: TurnModel, general: Floats, without: frozenset[str]
) -> Sample:
    """Instructions against turns to which they apply, turns to which they do not, and greetings."""
    sample = Sample([name for name in STANDING_SIGNALS if name not in without])
    greetings = [turn.text for turn in cases.turns if turn.type in ("greeting", "thanks")]
    for rule in cases.instructions:
        every = rule.scope == "every answer"
        labelled = [(turn, True) for turn in rule.applies] + [(turn, False) for turn in rule.other]
        labelled += [(turn, False) for turn in ([] if every else greetings)]
        for text, applies in labelled:
            signals = {"wording": model.wording(text)}
            if embedder is not None and model.personal is not None:
                query, vector = embedder.embed_query(text), embedder.embed_texts([rule.stored])[0]
                signals["general"] = float(np.dot(vector, general))
                signals["nearness"] = float(np.dot(vector, query))
                signals["personal"] = model.personal(query)
            sample.add(signals, applies, 0.2 if text in greetings else 1.0)
    return sample


def _need(
    samples: Samples, model: TurnModel, embedder: Embedder | None, without: frozenset[str]
) -> tuple[Sample, Logistic, float]:
    """What a turn says by itself is fitted on turns that people wrote. Matches are fitted after it, beside turns made from the
    memories: otherwise such turns would change how much the others count."""
    idle = sorted(signals["nearness"] for _, signals, helps in samples.need if not helps)
    unrelated = idle[int(len(idle) * UNRELATED_SHARE)]
    also = ("words",) if embedder is None else ()  # nothing else says that something is found
    natural, every = (
        Sample([name for name in (*names, *also) if name not in without])
        for names in (TURN_NEED, NEED_SIGNALS)
    )
    for text, signals, helps in samples.need:
        personal, wording = model.unseen.get(text) or model.signals(text, embedder)
        match = max(0.0, signals["nearness"] - unrelated)
        found = {**signals, "personal": personal, "wording": wording, "match": match}
        every.add(found, helps)
        if text in model.unseen:
            natural.add(found, helps)
    base = natural.fit(balanced=True)
    matches = [name for name in ("held", "match") if name not in without]
    rows = np.array(every.rows)[:, [every.names.index(name) for name in matches]]
    offset = np.array([base.logit(dict(zip(every.names, row, strict=True))) for row in every.rows])
    labels = np.array(every.labels)
    beta = fitted(rows, labels, _balanced(labels), l2=0.01, offset=offset)
    most = {"held": _HELD_MAX, "match": np.inf}
    added = {
        name: round(min(max(0.0, float(weight)), most[name]), 4)
        for name, weight in zip(matches, beta, strict=False)
    }
    return every, Logistic(base.bias, base.weights | added), unrelated


def calibrated(
    cases: Cases,
    stores: Sequence[EvalStore],
    embedder: Embedder | None,
    without: frozenset[str] = frozenset(),
) -> tuple[Calibration, Wording]:
    """Fit everything for this model, without some of the signals; None: for recall by words."""
    samples = Samples(without)
    for query in queries(cases, stores, embedder):
        samples.add(query)
    model = turn_model(needed_or_not(cases, stores), embedder)
    need, fit, unrelated = _need(samples, model, embedder, without)
    idle = sorted(
        fit(dict(zip(need.names, row, strict=True)))
        for row, helps in zip(need.rows, need.labels, strict=True)
        if not helps
    )
    known = embedder is not None and not without
    general = general_weights(embedder, cases) if embedder is not None and known else np.zeros(0)
    found = Calibration(
        need=fit,
        sure=round(idle[int(len(idle) * (1 - SURE_SHARE))], 4),
        unrelated=round(unrelated, 4),
        maybe=round(idle[int(len(idle) * (1 - MAYBE_SHARE))], 4),
        turn=samples.turn.fit(),
        memory=samples.memory.fit(),
        stored=samples.stored.fit(),
        standing=standing_sample(embedder if known else None, cases, model, general, without).fit(
            balanced=True
        ),
        personal=model.personal if known else None,
        general=[round(float(weight), 4) for weight in general],
    )
    return found, model.wording


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m memplane_eval.calibrate", description=__doc__)
    parser.add_argument(
        "folder", type=Path, help="the folder to write the file to; recall looks in the folder of the model"
    )
    parser.add_argument(
        "--model", type=Path, help="the folder of your own model; without it, the bundled one"
    )
    parser.add_argument("--cases", type=Path, default=bundled("calibration"), help="a folder of case files")
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--longmemeval", type=Path)
    parser.add_argument("--cache", type=Path, help="keep embeddings in this directory")
    parser.add_argument("--words-only", action="store_true", help="for recall without an embedding model")
    parser.add_argument("--any-model", action="store_true", help="use no signal of one model alone")
    given = parser.parse_args()
    stores = [] if given.locomo is None else load_locomo(given.locomo)
    stores += [] if given.longmemeval is None else load_longmemeval(given.longmemeval)
    if not stores:  # the cases are small spaces, where every turn is ranked
        parser.error("long conversations are needed: pass --locomo, --longmemeval or both")
    with ExitStack() as opened:
        embedder: Embedder | None = None if given.words_only else _embedder(given.model)
        if embedder is not None and given.cache is not None:
            embedder = opened.enter_context(CachedEmbedder(embedder, given.cache))
        name = "words-only" if embedder is None else "any-model" if given.any_model else embedder.model_id
        without = OF_ONE_MODEL if embedder is None or given.any_model else frozenset[str]()
        found, wording = calibrated(load_cases(given.cases), stores, embedder, without)
    _write(given.folder / f"{name}.json", found)
    if given.model is None:  # the wording ships, the same for all models
        _write(given.folder / "wording.json", wording)


def _embedder(folder: Path | None) -> Embedder:
    return LocalEmbedder() if folder is None else LocalEmbedder(model_in(folder))


def _write(path: Path, content: Calibration | Wording) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


if __name__ == "__main__":
    main()
