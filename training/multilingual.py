"""The encoder for other languages: a transformer on the words of USE-multilingual v3, in the English model's space.

That package's table places words of the same meaning at the same place in sixteen languages. One linear map takes it to
the English model's word vectors, and some of that model's layers read on from there; trained to give the English
model's vector of a text's translation, they transfer to words no translation had. Pieces that differ in case alone are
one, the rarest are left out (the tokenizer then uses shorter ones), and four bits a number are kept.

    python -m training.multilingual RESOURCES OUT

RESOURCES is the folder of the package with `sp.model` and `weights.npz`.
"""

import sys
import unicodedata
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from training.encoder import Encoder
from training.weights import Array, Weights, with_layers

PIECES = 80_000
_CHUNKS = 17
_STEPS = 7
_RIDGE = 1.0
_SPACE = "\u2581"
"""How a piece says that a word begins."""
_SPECIAL = 3
"""Unknown, begin and end."""
_FOREIGN = frozenset({"THAI", "HEBREW", "DEVANAGARI", "GEORGIAN", "ARMENIAN", "BOPOMOFO"})


def prepare(package: Path, out: Path) -> None:
    """From the package's files to `tokenizer.json` and the table in four bits."""
    from sentencepiece import sentencepiece_model_pb2  # needed here alone

    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString((package / "sp.model").read_bytes())
    rows = _rows(model.pieces)
    out.mkdir(parents=True, exist_ok=True)
    write_tokenizer(
        [(piece, score) for piece, score, _ in rows],
        model.normalizer_spec.precompiled_charsmap,
        out / "tokenizer.json",
    )
    with np.load(package / "weights.npz") as file:
        table = np.empty((len(file["q1"]) * _CHUNKS, file["q1"].shape[1]), np.float32)
        for chunk in range(_CHUNKS):
            table[chunk::_CHUNKS] = file[f"q{chunk + 1}"] * file["scale"][chunk] + file["lo"][chunk]
    codes, scales = packed(table[[row for _, _, row in rows]])
    np.savez_compressed(out / "table.npz", codes=codes, scales=scales)


def packed(table: Array) -> tuple[NDArray[np.uint8], Array]:
    """Two numbers a byte, the first half of a row in the upper four bits, and a scale for each row.

    The scale is the one with the least error: cutting the largest numbers off pays.
    """
    largest = np.abs(table).max(axis=1, keepdims=True)
    best, scales = np.full(len(table), np.inf), np.ones((len(table), 1), np.float32)
    for share in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        tried = np.maximum(largest * share / _STEPS, 1e-8)
        error = np.square(np.clip(np.rint(table / tried), -_STEPS, _STEPS) * tried - table).sum(axis=1)
        scales = np.where((error < best)[:, None], tried, scales)
        best = np.minimum(best, error)
    steps = (np.clip(np.rint(table / scales), -_STEPS, _STEPS) + 8).astype(np.uint8)
    half = table.shape[1] // 2
    return (steps[:, :half] << 4) | steps[:, half:], scales.astype(np.float32)


def unpacked(codes: NDArray[np.uint8], scales: Array) -> Array:
    steps = np.concatenate([codes >> 4, codes & 15], axis=1).astype(np.float32) - 8
    return (steps * scales).astype(np.float32)


def _rows(pieces: object) -> list[tuple[str, float, int]]:
    """The pieces to keep: text, score, and row of the table. Of those that differ in case the most frequent is kept."""
    best: dict[str, tuple[float, int]] = {}
    for row, piece in enumerate(pieces):  # type: ignore[call-overload]  # a protobuf message has no types
        text = piece.piece.lower()
        if row < _SPECIAL or piece.type != 1 or _script(text) in _FOREIGN:
            continue
        if text not in best or piece.score > best[text][0]:
            best[text] = (piece.score, row)
    chosen = sorted(
        best.items(), key=lambda entry: -entry[1][0] - (100 if _script(entry[0]) != "LATIN" else 0)
    )[: PIECES - _SPECIAL]
    special = [("<unk>", 0.0, 0), ("<s>", 0.0, 1), ("</s>", 0.0, 2)]
    return special + [
        (text, score, row) for text, (score, row) in sorted(chosen, key=lambda entry: -entry[1][0])
    ]


def _script(text: str) -> str:
    letter = next((letter for letter in text if letter.isalpha()), None)
    return "LATIN" if letter is None else unicodedata.name(letter, "LATIN").split()[0]


def write_tokenizer(pieces: list[tuple[str, float]], characters: bytes, path: Path) -> None:
    from tokenizers import Regex, models, normalizers, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            *([normalizers.Precompiled(characters)] if characters else []),
            normalizers.Lowercase(),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
        replacement=_SPACE, prepend_scheme="always", split=False
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    tokenizer.save(str(path), pretty=False)


class Multilingual(nn.Module):
    """Token ids to unit vectors in the English model's space."""

    def __init__(self, table: Tensor, mapped: Tensor, special: Tensor, reader: Encoder) -> None:
        super().__init__()
        self.register_buffer("table", table, persistent=False)
        self.mapped = nn.Parameter(mapped)
        self.special = nn.Parameter(special)
        """Unknown, begin and end, whose rows the table does not know."""
        self.reader = reader

    def words(self) -> Tensor:
        """The whole table as the layers read it."""
        return torch.cat([self.special, (self.table.float() @ self.mapped)[_SPECIAL:]])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        words = functional.embedding(ids, self.table).float() @ self.mapped
        named = functional.embedding(ids.clamp(max=_SPECIAL - 1), self.special)
        return self.reader.read(torch.where((ids < _SPECIAL)[:, :, None], named, words), mask)


class Quantised(nn.Module):
    """The same with the words as they ship: mapped, in four bits. Only the layers still learn."""

    def __init__(self, words: Tensor, reader: Encoder) -> None:
        super().__init__()
        self.codes, self.scales = packed(words.detach().cpu().numpy())
        self.register_buffer("table", torch.from_numpy(unpacked(self.codes, self.scales)), persistent=False)
        self.reader = reader

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.reader.read(functional.embedding(ids, self.table), mask)


def untrained(folder: Path, student: Weights, english: Tokenizer, layers: list[int]) -> Multilingual:
    """The untrained encoder: the map that fits the words both vocabularies have, and some layers of the English model."""
    with np.load(folder / "table.npz") as file:
        table = torch.from_numpy(unpacked(file["codes"], file["scales"]))
    known = english.get_vocab()
    words = student["embeddings.word_embeddings.weight"]
    shared = [
        (row, known[piece.removeprefix(_SPACE)])
        for piece, row in Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab().items()
        if row >= _SPECIAL
        and piece.removeprefix(_SPACE) in known
        and (piece.startswith(_SPACE) or not piece[0].isalnum())
    ]
    rows, targets = (torch.tensor(column) for column in zip(*shared, strict=True))
    found = table[rows]
    wanted = torch.from_numpy(words)[targets]
    gram = found.T @ found + _RIDGE * torch.eye(found.shape[1])
    mapped = torch.linalg.solve(gram, found.T @ wanted)
    special = torch.from_numpy(words[[known[name] for name in ("[UNK]", "[CLS]", "[SEP]")]])
    return Multilingual(table.half(), mapped, special, Encoder(with_layers(student, layers)))


def mean_cosine(words: Tensor, stored: Tensor) -> float:
    """How near the stored words are to the exact ones."""
    return float(functional.cosine_similarity(words, stored, dim=1).mean())


if __name__ == "__main__":
    prepare(Path(sys.argv[1]), Path(sys.argv[2]))
