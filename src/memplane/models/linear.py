"""A linear model over hashed features, learned from labelled dialogues, as a small table of numbers.

A feature is a short string; only its hash and weight are stored, so the table contains no training text. An unknown
feature weighs nothing.
"""

import json
import math
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

_STEPS = 127
_LINE = 120
_MET_MAX = 50_000


class Linear:
    """Sums the weights of features. Deterministic across machines."""

    def __init__(self, weights: Mapping[int, float], bias: float) -> None:
        self._weights = dict(weights)
        self._met: dict[str, float] = {}
        self.bias = bias

    def __len__(self) -> int:
        return len(self._weights)

    def add(self, features: Iterable[str], unknown: set[str]) -> float:
        """`unknown` collects features without weight, so that a message looks them up once."""
        met = self._met
        total = 0.0
        for feature in features:
            weight = met.get(feature)
            if weight is None:
                if feature in unknown:
                    continue
                weight = self._weigh(feature)
                if weight is None:
                    unknown.add(feature)
                    continue
            total += weight
        return total

    def _weigh(self, feature: str) -> float | None:
        """Hashing dominates the cost, so hashes are cached; but only of learned features, so that no word of a
        message stays in memory."""
        weight = self._weights.get(hash_of(feature))
        if weight is not None and len(self._met) < _MET_MAX:
            self._met[feature] = weight
        return weight


def hash_of(feature: str) -> int:
    return zlib.crc32(feature.encode("utf-8", "replace"))


def probability(score: float) -> float:
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))


@cache
def load_linear(name: str, package: str = "memplane.extract") -> Linear:
    """A model shipped with a package, in its folder `learned`."""
    return read_linear((files(package) / "learned" / f"{name}.txt").read_text("ascii"))


def read_linear(text: str) -> Linear:
    """The first line has scale and bias; then follow the hashes, each as its distance to the previous one, and a byte
    of weight for each."""
    head, _, body = text.partition("\n")
    settings = json.loads(head)
    count = settings["count"]
    data = zlib.decompress(b64decode(body))
    gaps = array("I", b"\x00" * (4 * count))
    for place in range(4):
        for at, value in enumerate(data[place * count : (place + 1) * count]):
            gaps[at] |= value << (8 * place)
    weights: dict[int, float] = {}
    hashed = 0
    for gap, step in zip(gaps, data[4 * count :], strict=True):
        hashed += gap
        weights[hashed] = (step - 256 if step > _STEPS else step) * settings["scale"]
    return Linear(weights, settings["bias"])


def write_linear(weights: Mapping[int, float], bias: float) -> str:
    """The text `read_linear` reads. Weights are rounded to 255 steps; those that round to zero are omitted."""
    scale = (max(map(abs, weights.values()), default=0.0) or 1.0) / _STEPS
    steps = {hashed: round(weight / scale) for hashed, weight in sorted(weights.items())}
    kept = {hashed: step for hashed, step in steps.items() if step}
    gaps = [hashed - before for before, hashed in zip([0, *kept], kept, strict=False)]
    planes = [bytes(gap >> (8 * place) & 255 for gap in gaps) for place in range(4)]
    data = b"".join(planes) + bytes(step & 255 for step in kept.values())
    body = b64encode(zlib.compress(data, 9)).decode("ascii")
    lines = "\n".join(body[at : at + _LINE] for at in range(0, len(body), _LINE))
    head = json.dumps({"count": len(kept), "scale": scale, "bias": round(bias, 6)})
    return f"{head}\n{lines}\n"
