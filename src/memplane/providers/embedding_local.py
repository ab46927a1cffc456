"""Embeddings on this machine: a BERT-like ONNX model, no key, no network.

The default is Snowflake's arctic-embed-s with 8-bit weights, which comes with Memplane. It needs the first token's
state as the text's vector and a prefix before questions; without either it is worse than no vectors at all. Any
folder with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json` can take its place.
"""

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from memplane.errors import SettingsInvalid
from memplane.providers.embedding import EmbeddingFailed, Vector, Vectors, normalised

_THREADS_MAX = 2
_BATCH_TOKENS_MAX = 4_096
"""Padding counts. Larger batches are not faster on a CPU and need more memory."""
_QUERIES_KEPT = 512
_CHARS_PER_TOKEN_MAX = 32
"""Text beyond this many characters per token the model can see is not even tokenised."""


class Pooling(StrEnum):
    """How the states of all tokens become one vector."""

    CLS = "cls"
    MEAN = "mean"


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A folder with a model, and how it wants to be used."""

    folder: Path
    id: str | None = None
    """None: the folder's name and a digest of what is in it."""
    pooling: Pooling = Pooling.CLS
    query_prefix: str = ""
    tokens_max: int = 512
    dimension: int | None = None
    """None: found out when the model is loaded."""
    batch_texts_max: int = 16
    """How many texts the model sees at once."""


ARCTIC_EMBED_S = LocalModel(
    folder=Path(str(resources.files("memplane.providers").joinpath("models", "arctic-embed-s"))),
    id="snowflake-arctic-embed-s-int8",
    query_prefix="Represent this sentence for searching relevant passages: ",
    dimension=384,
    # Its activations are quantised with one scale per batch, so that a text's vector would depend on its neighbours
    # (cosine .994 at worst). Alone it is exact and a replay gives the same bytes; batches of 32 are no faster.
    batch_texts_max=1,
)


def model_in(folder: Path) -> LocalModel:
    """A model of the user's own; what its sentence-transformers files say about it is taken over."""
    pooling = _json(folder / "1_Pooling" / "config.json")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts") or {}
    lengths = _json(folder / "sentence_bert_config.json")
    return LocalModel(
        folder=folder,
        pooling=Pooling.MEAN if pooling.get("pooling_mode_mean_tokens") else Pooling.CLS,
        query_prefix=str(prompts.get("query", "")),
        tokens_max=int(lengths.get("max_seq_length") or 512),
    )


class LocalEmbedder:
    """`Embedder` over a `LocalModel`. The first use loads the model; making one costs nothing."""

    def __init__(self, model: LocalModel = ARCTIC_EMBED_S, *, threads: int | None = None) -> None:
        self._model = model
        self._threads = threads or min(_THREADS_MAX, os.cpu_count() or 1)
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._model_id = model.id
        self._queries: OrderedDict[str, Vector] = OrderedDict()

    @property
    def model_id(self) -> str:
        if self._model_id is None:
            self._model_id = _identity(self._model)
        return self._model_id

    @property
    def dimension(self) -> int:
        if self._model.dimension is not None:
            return self._model.dimension
        return len(self.embed_query(""))

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return self._load().embed(texts)

    def embed_query(self, text: str) -> Vector:
        with self._lock:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                return known
        vector: Vector = self._load().embed([self._model.query_prefix + text])[0]
        vector.flags.writeable = False
        with self._lock:
            self._queries[text] = vector
            if len(self._queries) > _QUERIES_KEPT:
                self._queries.popitem(last=False)
        return vector

    def _load(self) -> "_Loaded":
        loaded = self._loaded
        if loaded is None:
            with self._lock:
                loaded = self._loaded = self._loaded or _Loaded(self._model, self._threads)
        return loaded


class _Loaded:
    """A model in memory. Both of its parts may be used by many threads at once."""

    def __init__(self, model: LocalModel, threads: int) -> None:
        self._pooling = model.pooling
        self._batch_texts_max = model.batch_texts_max
        self._chars_max = model.tokens_max * _CHARS_PER_TOKEN_MAX
        # Loading it takes longer than most commands take that never embed anything.
        import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415  # it ships no types

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that spin between questions would burn a core for nothing.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                _weights(model.folder), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(str(model.folder / "tokenizer.json"))
        except Exception as exc:  # both libraries raise what they like
            raise SettingsInvalid(f"no embedding model can be loaded from {model.folder}: {exc}") from exc
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(model.tokens_max)
        self._inputs = frozenset(wanted.name for wanted in self._session.get_inputs())

    def embed(self, texts: Sequence[str]) -> Vectors:
        encodings = [self._tokenizer.encode(_clean(text[: self._chars_max])) for text in texts]
        pooled: list[NDArray[np.floating]] = [np.empty(0)] * len(texts)
        for batch in _batches([len(encoding.ids) for encoding in encodings], self._batch_texts_max):
            for place, state in zip(batch, self._run([encodings[place] for place in batch]), strict=True):
                pooled[place] = state
        return normalised(np.stack(pooled))

    def _run(self, encodings: Sequence[Encoding]) -> NDArray[np.floating]:
        ids = np.zeros((len(encodings), max(len(encoding.ids) for encoding in encodings)), np.int64)
        mask = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            states: NDArray[np.floating] = self._session.run(
                None, {name: value for name, value in given.items() if name in self._inputs}
            )[0]
        except Exception as exc:  # onnxruntime's errors have no common base
            raise EmbeddingFailed(f"the embedding model failed: {exc}") from exc
        if self._pooling is Pooling.CLS:
            return states[:, 0]
        weights = mask[:, :, None].astype(states.dtype)
        mean: NDArray[np.floating] = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return mean


def _batches(lengths: Sequence[int], texts_max: int) -> Iterator[list[int]]:
    """Places of texts of about the same length, so that little is spent on padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == texts_max or (len(batch) + 1) * lengths[place] > _BATCH_TOKENS_MAX):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _clean(text: str) -> str:
    """Half of a surrogate pair is legal in a Python string and nowhere else."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _weights(folder: Path) -> str:
    found = next(
        (path for path in (folder / "model.onnx", folder / "onnx/model.onnx") if path.is_file()), None
    )
    if found is None:
        raise SettingsInvalid(f"{folder} holds no model.onnx")
    return str(found)


def _identity(model: LocalModel) -> str:
    digest = hashlib.sha256(f"{model.pooling} {model.tokens_max} {model.query_prefix}".encode())
    try:
        for path in (Path(_weights(model.folder)), model.folder / "tokenizer.json"):
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    except OSError as exc:
        raise SettingsInvalid(f"{model.folder} holds no embedding model: {exc}") from exc
    return f"{model.folder.resolve().name}-{digest.hexdigest()[:12]}"


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise SettingsInvalid(f"{path} cannot be read: {exc}") from exc
    return found if isinstance(found, dict) else {}
