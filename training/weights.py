"""A BERT encoder's weights as plain arrays: read from the quantised ONNX file they ship in, saved between steps."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

Array = NDArray[np.float32]
Weights = dict[str, Array]
"""By PyTorch's names; a matrix has one row per output, as `torch.nn.Linear` stores it."""

_ENCODER = "encoder.layer."


def from_onnx(path: Path) -> Weights:
    """The float weights behind an 8-bit BERT that ONNX Runtime's quantiser wrote.

    The quantised matrices have lost their names; the nodes that use them have kept theirs.
    """
    graph = onnx.load(str(path)).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights: Weights = {
        name: array.astype(np.float32)
        for name, array in stored.items()
        if name.endswith((".weight", ".bias")) and array.dtype == np.float32
    }
    for name in [name for name in stored if name.endswith("_quantized") and name.startswith("embeddings.")]:
        plain = name.removesuffix("_quantized")
        weights[plain] = _dequantised(stored, plain)
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            module = node.name.strip("/").removesuffix("/MatMul_quant").replace("/", ".")
            weights[f"{module}.weight"] = _dequantised(
                stored, node.input[1].removesuffix("_quantized")
            ).T.copy()
    return weights


def _dequantised(stored: Mapping[str, NDArray[np.generic]], name: str) -> Array:
    steps = stored[f"{name}_quantized"].astype(np.float32) - stored[f"{name}_zero_point"].astype(np.float32)
    return steps * stored[f"{name}_scale"].astype(np.float32)


def layers_of(weights: Mapping[str, Array]) -> int:
    return 1 + max(int(name.split(".")[2]) for name in weights if name.startswith(_ENCODER))


def with_layers(weights: Weights, kept: list[int]) -> Weights:
    """The same encoder with some of its layers, renumbered."""
    chosen = {name: array for name, array in weights.items() if not name.startswith(_ENCODER)}
    for new, old in enumerate(kept):
        prefix = f"{_ENCODER}{old}."
        for name, array in weights.items():
            if name.startswith(prefix):
                chosen[f"{_ENCODER}{new}.{name.removeprefix(prefix)}"] = array
    return chosen


_PART_BYTES = 14_000_000
WORDS = "embeddings.word_embeddings.weight"
_STEPS = 127
_SMALLEST = 1e-8


def quantised(weight: Array) -> tuple[NDArray[np.int8], Array]:
    """Eight bits a number, and the scale of each row."""
    scales = np.maximum(np.abs(weight).max(axis=1), _SMALLEST) / _STEPS
    return np.rint(weight / scales[:, None]).astype(np.int8), scales.astype(np.float32)


def save(arrays: Mapping[str, NDArray[np.generic]], folder: Path) -> None:
    """In several files of moderate size: words in eight bits, as they ship, the rest of the floats in sixteen."""
    folder.mkdir(parents=True, exist_ok=True)
    stored: dict[str, NDArray[np.generic]] = {}
    for name, array in arrays.items():
        if name == WORDS:
            stored[f"{name}.steps"], stored[f"{name}.scales"] = quantised(array.astype(np.float32))
        else:
            stored[name] = array.astype(np.float16) if array.dtype == np.float32 else array
    part: dict[str, NDArray[np.generic]] = {}
    number = 0
    for name, array in stored.items():
        if part and sum(kept.nbytes for kept in part.values()) + array.nbytes > _PART_BYTES:
            np.savez(folder / f"part-{number}.npz", **part)  # type: ignore[arg-type]  # names are no options
            part, number = {}, number + 1
        part[name] = array
    np.savez(folder / f"part-{number}.npz", **part)  # type: ignore[arg-type]


def load(folder: Path) -> dict[str, NDArray[np.generic]]:
    """What was saved; floats in thirty-two bits again."""
    arrays: dict[str, NDArray[np.generic]] = {}
    for path in sorted(folder.glob("part-*.npz")):
        with np.load(path) as file:
            arrays |= {name: file[name] for name in file.files}
    if f"{WORDS}.steps" in arrays:
        arrays[WORDS] = (
            arrays.pop(f"{WORDS}.steps") * arrays.pop(f"{WORDS}.scales").astype(np.float32)[:, None]
        )
    return {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in arrays.items()
    }


def random_weights(words: int, *, width: int = 48, layers: int = 2, seed: int = 0) -> Weights:
    """A small encoder with random weights, to test every step quickly."""
    chance = np.random.default_rng(seed)

    def some(*shape: int) -> Array:
        return (chance.standard_normal(shape) * 0.1).astype(np.float32)

    def norm(name: str) -> Weights:
        return {f"{name}.weight": np.ones(width, np.float32), f"{name}.bias": np.zeros(width, np.float32)}

    def linear(name: str, inputs: int, outputs: int) -> Weights:
        return {f"{name}.weight": some(outputs, inputs), f"{name}.bias": some(outputs)}

    weights: Weights = {
        "embeddings.word_embeddings.weight": some(words, width),
        "embeddings.position_embeddings.weight": some(512, width),
        "embeddings.token_type_embeddings.weight": some(2, width),
        **norm("embeddings.LayerNorm"),
    }
    for layer in range(layers):
        name = f"{_ENCODER}{layer}"
        for part in ("query", "key", "value"):
            weights |= linear(f"{name}.attention.self.{part}", width, width)
        weights |= linear(f"{name}.attention.output.dense", width, width) | norm(
            f"{name}.attention.output.LayerNorm"
        )
        weights |= linear(f"{name}.intermediate.dense", width, 4 * width) | linear(
            f"{name}.output.dense", 4 * width, width
        )
        weights |= norm(f"{name}.output.LayerNorm")
    return weights
