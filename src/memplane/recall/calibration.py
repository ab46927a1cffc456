"""How likely something helps with a query: the one scale on which turns, memories and instructions are compared.

Scores of turns and of memories have different units, and a similarity of 0.6 means one thing to one embedding model and
another to the next. So each is turned into a probability by a logistic function of a few signals. Its weights are fitted per
model on labelled questions by `memplane_eval.calibrate`. The file of the bundled model ships; your own model may have one in its
folder. A model without a file uses weights that were fitted on signals that do not depend on the model.
"""

import math
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import msgspec
import numpy as np

from memplane.errors import SettingsInvalid
from memplane.models.embedding import Vector
from memplane.models.vectors import dots
from memplane.recall.result import Helps

_WORDS_ONLY = "words-only"
_ANY_MODEL = "any-model"
_LOGIT_MAX = 30.0
_WORD = re.compile(r"\w+|[^\w\s]")
_CHARS_READ_MAX = 2_000
_LENGTH_MAX = 12

Signals = Mapping[str, float]
"""The values that a probability depends on, by name."""


class Logistic(msgspec.Struct, frozen=True):
    """A probability as a function of signals; a signal that is missing counts as 0."""

    bias: float = 0.0
    weights: dict[str, float] = {}

    def logit(self, signals: Signals) -> float:
        return self.bias + sum(weight * signals.get(name, 0.0) for name, weight in self.weights.items())

    def __call__(self, signals: Signals) -> float:
        return probability(self.logit(signals))


def probability(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-_LOGIT_MAX, min(_LOGIT_MAX, logit))))


def _numbers(packed: bytes, name: str) -> Vector:
    """Packed 16-bit floats. `ValueError` if they are not that: msgspec adds the place in the file."""
    if len(packed) % np.float16().itemsize:
        raise ValueError(f"{name}: {len(packed)} bytes are not 16-bit floats")
    numbers = np.frombuffer(packed, np.float16).astype(np.float32)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name}: not all numbers are finite")
    return numbers


class Perceptron(msgspec.Struct, frozen=True, kw_only=True):
    """A function of a query's vector with one hidden layer; its numbers are 16-bit floats."""

    hidden: bytes
    """One row per unit: its weights, then its bias."""
    output: bytes
    """One weight per unit."""
    dimension: int

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise ValueError(f"dimension: {self.dimension} is not positive")
        units, rest = divmod(len(_numbers(self.hidden, "hidden")), self.dimension + 1)
        if rest or not units:
            raise ValueError(f"hidden: not rows of {self.dimension + 1} numbers, one more than dimension")
        if len(_numbers(self.output, "output")) != units:
            raise ValueError(f"output: not {units} numbers, one per row of hidden")

    def __call__(self, vector: Vector) -> float:
        if len(vector) != self.dimension:
            return 0.0
        units = np.frombuffer(self.hidden, np.float16).astype(np.float32).reshape(-1, self.dimension + 1)
        active = np.maximum(dots(units[:, :-1], vector) + units[:, -1], 0.0)
        return float(np.dot(active, np.frombuffer(self.output, np.float16).astype(np.float32)))


class Wording(msgspec.Struct, frozen=True):
    """A linear function of a turn's words and pairs of words. It depends on no model, and sees what a vector does not: `my`,
    `again`, `she`."""

    weights: bytes

    def __call__(self, text: str) -> float:
        weights = np.frombuffer(self.weights, np.float16)
        places, value = wording_features(text, len(weights))
        return float(weights[places].astype(np.float32).sum()) * value


def wording_features(text: str, size: int) -> tuple[list[int], float]:
    """The places of the turn's features, and the value each has: a feature's place is a hash of it."""
    words = _WORD.findall(text[:_CHARS_READ_MAX].lower())
    if not words:
        return [], 0.0
    pairs = (f"{first}_{second}" for first, second in pairwise(words))
    names = (*words, *pairs, f"^{words[0]}", f"{words[-1]}$", f"#{min(len(words), _LENGTH_MAX)}")
    places = [crc32(name.encode()) % size for name in names]
    return places, 1.0 / math.sqrt(len(set(places)))


class Direction(msgspec.Struct, frozen=True):
    """A linear function of a vector; its numbers are 16-bit floats."""

    weights: bytes
    bias: float = 0.0

    def __post_init__(self) -> None:
        _numbers(self.weights, "weights")

    def __call__(self, vector: Vector) -> float:
        weights = np.frombuffer(self.weights, np.float16)
        if len(weights) != len(vector):
            return 0.0
        return float(np.dot(weights.astype(np.float32), vector)) + self.bias


class InstructionVectors(msgspec.Struct, frozen=True, kw_only=True):
    """What the vectors of instructions and turns are compared with."""

    general: Direction
    """Larger for instructions that concern every answer."""
    turn: Direction
    """The mean vector of turns."""
    instruction: Direction
    """The mean vector of instructions for some turns."""
    foreign: Direction
    """The logit that a turn is not in English. To an English model, all texts in another language are similar to each other."""


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The fitted weights for one embedding model."""

    need: Logistic
    """Whether memory helps with this turn at all. Similarity does not show it: the nearest memory is as near to a general question
    as to a personal one."""
    likely_min: float
    """The probability of `need` that one in twelve turns without need reaches; from there on the whole budget may be used."""
    maybe_min: float
    """The probability that nearly half of them reach; from there on a small part of the budget may be used. A missed need costs
    more than that."""
    match_min: float = 1.0
    """The similarity that one in a hundred turns without need reaches. Something nearer is a match, whatever the turn looks like."""
    turn: Logistic
    memory: Logistic
    """A memory read from a turn."""
    stored: Logistic
    """A memory that a caller stored."""
    every: Logistic
    """Whether a standing instruction concerns every answer. 0.5 is the working point of `every` and `standing`."""
    standing: Logistic
    """Whether a standing instruction concerns this turn."""
    personal: Perceptron | None = None
    """The signal `personal`: whether the turn's vector asks for something personal; None for a model that is not known."""
    instructions: InstructionVectors | None = None
    """None for a model that is not known."""

    def __post_init__(self) -> None:
        if not 0.0 < self.maybe_min <= self.likely_min <= 1.0:
            raise ValueError(
                f"maybe_min, likely_min: {self.maybe_min} and {self.likely_min} are not 0 < maybe_min <= likely_min <= 1"
            )

    def helps(self, need: float) -> Helps:
        """What a probability of `need` means."""
        return "likely" if need >= self.likely_min else "maybe" if need >= self.maybe_min else "unlikely"


@cache
def wording() -> Wording:
    """The signal `wording`, the same for all models."""
    file = resources.files("memplane.recall").joinpath("calibrations", "wording.json")
    return msgspec.json.decode(file.read_bytes(), type=Wording)


@cache
def _shipped() -> dict[str, Calibration]:
    folder = resources.files("memplane.recall").joinpath("calibrations")
    return {
        file.name.removesuffix(".json"): msgspec.json.decode(file.read_bytes(), type=Calibration)
        for file in folder.iterdir()
        if file.name.endswith(".json") and file.name != "wording.json"
    }


@cache
def _own(path: Path) -> Calibration:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (OSError, msgspec.DecodeError) as exc:
        raise SettingsInvalid(f"{path} is not a calibration: {exc}") from exc


def calibration_of(model_id: str | None, folder: Path | None = None) -> Calibration:
    """The calibration for an embedding model; None: for recall by words alone. The folder of your own model may contain one.

    The file is named after the model's id, which changes with its weights: another model never uses it.
    """
    shipped = _shipped()
    if model_id is None:
        return shipped[_WORDS_ONLY]
    if folder is not None and (own := folder / f"{model_id}.json").is_file():
        return _own(own)
    return shipped.get(model_id, shipped[_ANY_MODEL])
