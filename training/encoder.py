"""A BERT encoder in PyTorch that reads and writes `training.weights`."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from training.export import HEADS
from training.weights import Weights, layers_of

TOKENS_MAX = 512
Ids = NDArray[np.int64]
"""The tokens of a text."""
LONG_PREFIX = "Represent this sentence for searching relevant passages: "
"""What the original model needs before a question."""
MARK = "? "
"""What ours needs: one token."""


class _Layer(nn.Module):
    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.mixed = nn.Linear(width, width)
        self.mixed_norm = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, state: Tensor, mask: Tensor) -> Tensor:
        texts, tokens, width = state.shape

        def heads(value: Tensor) -> Tensor:
            return value.view(texts, tokens, HEADS, width // HEADS).transpose(1, 2)

        attended = functional.scaled_dot_product_attention(
            heads(self.query(state)), heads(self.key(state)), heads(self.value(state)), attn_mask=mask
        )
        attended = attended.transpose(1, 2).reshape(texts, tokens, width)
        state = self.mixed_norm(state + self.mixed(attended))
        return self.norm(state + self.down(functional.gelu(self.up(state))))


_NAMES = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mixed": "attention.output.dense",
    "mixed_norm": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm": "output.LayerNorm",
}


class Encoder(nn.Module):
    """Token ids to unit vectors: the last state of the first token."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        words = weights["embeddings.word_embeddings.weight"]
        positions = weights["embeddings.position_embeddings.weight"]
        width, inner = words.shape[1], weights["encoder.layer.0.intermediate.dense.bias"].shape[0]
        self.words = nn.Embedding(*words.shape)
        self.positions = nn.Embedding(*positions.shape)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(_Layer(width, inner) for _ in range(layers_of(weights)))
        state = self.state_dict()
        for own, name in self._names().items():
            state[own] = torch.from_numpy(weights[name].copy())
        # Every token has type 0, so the type is part of the positions.
        if "embeddings.token_type_embeddings.weight" in weights:
            state["positions.weight"] += torch.from_numpy(
                weights["embeddings.token_type_embeddings.weight"][0]
            )
        self.load_state_dict(state)

    def weights(self) -> Weights:
        state = self.state_dict()
        weights: Weights = {name: state[own].float().cpu().numpy() for own, name in self._names().items()}
        return weights

    def _names(self) -> dict[str, str]:
        names = {
            "words.weight": "embeddings.word_embeddings.weight",
            "positions.weight": "embeddings.position_embeddings.weight",
            "norm.weight": "embeddings.LayerNorm.weight",
            "norm.bias": "embeddings.LayerNorm.bias",
        }
        for layer in range(len(self.layers)):
            for own, name in _NAMES.items():
                for part in ("weight", "bias"):
                    names[f"layers.{layer}.{own}.{part}"] = f"encoder.layer.{layer}.{name}.{part}"
        return names

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.read(self.words(ids), mask)

    def read(self, words: Tensor, mask: Tensor) -> Tensor:
        """The vectors of texts whose words are vectors already."""
        state = self.norm(words + self.positions.weight[: words.shape[1]])
        visible = mask[:, None, None, :]
        for layer in self.layers:
            state = layer(state, visible)
        return functional.normalize(state[:, 0].float(), dim=-1)


class Texts:
    """Texts as token ids, encoded once."""

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str], tokens_max: int) -> None:
        tokenizer.no_padding()
        tokenizer.enable_truncation(tokens_max)
        self.ids = [
            np.array(encoding.ids, np.int64)
            for start in range(0, len(texts), 10_000)
            for encoding in tokenizer.encode_batch(list(texts[start : start + 10_000]))
        ]

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, places: Sequence[int], device: torch.device) -> tuple[Tensor, Tensor]:
        """Ids and mask of these texts."""
        return padded([self.ids[place] for place in places], device)


def padded(texts: Sequence[Ids], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and mask, as long as the longest text, in steps of eight."""
    longest = -(-max(map(len, texts)) // 8) * 8
    ids = np.zeros((len(texts), longest), np.int64)
    mask = np.zeros((len(texts), longest), np.bool_)
    for row, found in enumerate(texts):
        ids[row, : len(found)] = found
        mask[row, : len(found)] = True
    return (
        torch.from_numpy(ids).to(device, non_blocking=True),
        torch.from_numpy(mask).to(device, non_blocking=True),
    )


def encoded(encoder: nn.Module, texts: Sequence[Ids], device: torch.device, chunks: int = 2) -> Tensor:
    """The vectors of these texts, in order. Few passes keep the device busy; more than one spares padding."""
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    size = -(-len(order) // chunks)
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    vectors = torch.cat([encoder(*padded([texts[at] for at in part], device)) for part in parts])
    back = torch.empty(len(order), dtype=torch.long)
    back[torch.tensor(order)] = torch.arange(len(order))
    return vectors[back.to(device)]


def embed(encoder: nn.Module, texts: Texts, device: torch.device, batch_tokens: int = 65_536) -> Tensor:
    """The vectors of all texts, without gradients."""
    order = sorted(range(len(texts)), key=lambda place: len(texts.ids[place]))
    vectors = torch.empty(len(texts), 0)
    encoder.eval()
    with torch.no_grad(), half(device):
        start = 0
        while start < len(order):
            end = start + 1
            while end < len(order) and (end + 1 - start) * len(texts.ids[order[end]]) <= batch_tokens:
                end += 1
            chosen = order[start:end]
            found = encoder(*texts.batch(chosen, device)).cpu()
            if not vectors.shape[1]:
                vectors = torch.empty(len(texts), found.shape[1])
            vectors[torch.tensor(chosen)] = found
            start = end
    return vectors


def optimiser_of(model: nn.Module, rate: float, device: torch.device) -> torch.optim.AdamW:
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return torch.optim.AdamW(trained, lr=rate, weight_decay=0.01, fused=device.type == "cuda")


def half(device: torch.device) -> torch.autocast:
    """Sixteen-bit arithmetic where the device has it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
