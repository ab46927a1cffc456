"""Write an encoder as an ONNX graph with 8-bit weights, built node by node.

Three things make it cheaper than an exported graph: attention and normalisation are single operators; the last layer
is computed for the first token alone, which is the only one read; and query, key and value are one multiplication.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from training.weights import WORDS, Array, layers_of, load, quantised

HEADS = 12
_MICROSOFT = "com.microsoft"
_EPSILON = 1e-12


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []

    def const(self, name: str, array: NDArray[np.generic]) -> str:
        self.stored.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, kind: str, inputs: list[str], name: str, *, domain: str = "", **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def linear(self, value: str, weight: Array, bias: Array, name: str) -> str:
        """`value @ weight.T + bias` with 8-bit weights, one scale per output."""
        steps, scales = quantised(weight)
        return self.add(
            "DynamicQuantizeMatMul",
            [
                value,
                self.const(f"{name}.steps", steps.T),
                self.const(f"{name}.scales", scales),
                "",
                self.const(f"{name}.bias", bias),
            ],
            name,
            domain=_MICROSOFT,
        )

    def norm(self, value: str, other: str, weights: Mapping[str, Array], name: str) -> str:
        """Not `SkipLayerNormalization`, which takes three times as long as its two parts on a CPU."""
        return self.add(
            "LayerNormalization",
            [
                self.add("Add", [value, other], f"{name}.sum"),
                self.const(f"{name}.weight", weights[f"{name}.weight"]),
                self.const(f"{name}.bias", weights[f"{name}.bias"]),
            ],
            name,
            epsilon=_EPSILON,
        )


def write(weights: Mapping[str, Array], path: Path) -> None:
    """Words are either eight-bit (`training.weights`) or already in four bits (`codes` and `scales`)."""
    graph = _Graph()
    state = _embedded(graph, weights)
    graph.add("Cast", ["attention_mask"], "mask", to=TensorProto.INT32)
    last = layers_of(weights) - 1
    for layer in range(last + 1):
        state = _layer(graph, weights, f"encoder.layer.{layer}", state, first_only=layer == last)
    graph.nodes[-1].output[0] = "vector"
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "encoder",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
                for name in ("input_ids", "attention_mask")
            ],
            [
                helper.make_tensor_value_info(
                    "vector", TensorProto.FLOAT, ["texts", 1, weights["embeddings.LayerNorm.weight"].shape[0]]
                )
            ],
            graph.stored,
        ),
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(_MICROSOFT, 1)],
        ir_version=10,
        producer_name="memplane",
    )
    onnx.save(model, str(path))


def _embedded(graph: _Graph, weights: Mapping[str, Array]) -> str:
    """Word, position and type; all words have type 0, so it is part of the positions."""
    word = _words(graph, weights) if WORDS in weights else _packed_words(graph, weights)
    positions = weights["embeddings.position_embeddings.weight"]
    if "embeddings.token_type_embeddings.weight" in weights:
        positions = positions + weights["embeddings.token_type_embeddings.weight"][0]
    shape = graph.add("Shape", ["input_ids"], "shape", start=1, end=2)
    place = graph.add(
        "Slice",
        [
            graph.const("positions", positions),
            graph.const("zero", np.array([0])),
            shape,
            graph.const("rows", np.array([0])),
        ],
        "position",
    )
    batched = graph.add(
        "Expand",
        [graph.add("Unsqueeze", [place, "zero"], "position.row"), graph.add("Shape", [word], "word.shape")],
        "position.batch",
    )
    return graph.norm(word, batched, weights, "embeddings.LayerNorm")


def _words(graph: _Graph, weights: Mapping[str, Array]) -> str:
    """Eight bits a number, a scale for each word."""
    steps, scales = quantised(weights[WORDS])
    found = graph.add("Gather", [graph.const("words", steps), "input_ids"], "words.found")
    return _scaled(graph, graph.add("Cast", [found], "words.float", to=TensorProto.FLOAT), scales[:, None])


def _packed_words(graph: _Graph, weights: Mapping[str, NDArray[np.generic]]) -> str:
    """Four bits a number, as `training.multilingual.packed` puts them into bytes."""
    found = graph.add("Gather", [graph.const("words", weights["codes"]), "input_ids"], "words.found")
    both = graph.add("Cast", [found], "words.float", to=TensorProto.FLOAT)
    sixteen, eight = (graph.const(f"{number}", np.array(number, np.float32)) for number in (16, 8))
    upper = graph.add("Floor", [graph.add("Div", [both, sixteen], "words.shifted")], "words.upper")
    lower = graph.add("Sub", [both, graph.add("Mul", [upper, sixteen], "words.above")], "words.lower")
    steps = graph.add(
        "Sub", [graph.add("Concat", [upper, lower], "words.both", axis=2), eight], "words.steps"
    )
    return _scaled(graph, steps, weights["scales"])


def _scaled(graph: _Graph, steps: str, scales: NDArray[np.generic]) -> str:
    scale = graph.add(
        "Gather", [graph.const("words.scales", scales.astype(np.float32)), "input_ids"], "words.scale"
    )
    return graph.add("Mul", [steps, scale], "word")


def _layer(graph: _Graph, weights: Mapping[str, Array], name: str, state: str, *, first_only: bool) -> str:
    def linear(value: str, module: str) -> str:
        full = f"{name}.{module}"
        return graph.linear(value, weights[f"{full}.weight"], weights[f"{full}.bias"], full)

    asking = state
    if first_only:
        asking = graph.add(
            "Slice",
            [state, "zero", graph.const("one", np.array([1])), graph.const("columns", np.array([1]))],
            "first",
        )
    query, key, value = _projected(graph, weights, f"{name}.attention.self", state, asking)
    attended = graph.add(
        "MultiHeadAttention",
        [query, key, value, "", "mask"],
        f"{name}.attention",
        domain=_MICROSOFT,
        num_heads=HEADS,
    )
    mixed = graph.norm(
        linear(attended, "attention.output.dense"), asking, weights, f"{name}.attention.output.LayerNorm"
    )
    inner = graph.add("Gelu", [linear(mixed, "intermediate.dense")], f"{name}.gelu")
    return graph.norm(linear(inner, "output.dense"), mixed, weights, f"{name}.output.LayerNorm")


def _projected(
    graph: _Graph, weights: Mapping[str, Array], name: str, state: str, asking: str
) -> tuple[str, str, str]:
    """Query, key and value from as few multiplications as possible: each quantises its input again."""

    def joined(value: str, modules: list[str]) -> list[str]:
        weight = np.concatenate([weights[f"{name}.{module}.weight"] for module in modules])
        bias = np.concatenate([weights[f"{name}.{module}.bias"] for module in modules])
        full = f"{name}.{'_'.join(modules)}"
        product = graph.linear(value, weight, bias, full)
        if len(modules) == 1:
            return [product]
        parts = [f"{full}.{module}" for module in modules]
        graph.nodes.append(
            helper.make_node(
                "Split", [product], parts, name=f"{full}.split", axis=2, num_outputs=len(modules)
            )
        )
        return parts

    if asking == state:
        query, key, value = joined(state, ["query", "key", "value"])
    else:
        (query,) = joined(asking, ["query"])
        key, value = joined(state, ["key", "value"])
    return query, key, value


if __name__ == "__main__":
    write(load(Path(sys.argv[1])), Path(sys.argv[2]))
