"""Local embeddings: a BERT-like ONNX model, without a key or a network.

The default is Snowflake's arctic-embed-s with 8-bit weights, which ships with Memplane. It needs the first token's
state as the vector and a prefix before queries; without either it is worse than no vectors. Any directory with
`model.onnx` (or `onnx/model.onnx`) and `tokenizer.json` can replace it.
"""

import hashlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from memplane.errors import SettingsInvalid
from memplane.models.embedding import Vector, Vectors

# A directory with an embedding model, and how to use it.


class Pooling(StrEnum):
    """How token states become one vector."""

    CLS = "cls"
    MEAN = "mean"


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A directory with a model, and how to use it."""

    folder: Path
    id: str | None = None
    """None: the directory's name and a digest of its content."""
    pooling: Pooling = Pooling.CLS
    query_prefix: str = ""
    tokens_max: int = 512
    dimension: int | None = None
    """None: determined when the model is loaded."""
    batch_texts_max: int = 16
    """Batch size."""


ARCTIC_EMBED_S = LocalModel(
    folder=Path(str(resources.files("memplane.models").joinpath("weights", "arctic-embed-s"))),
    id="snowflake-arctic-embed-s-int8",
    query_prefix="Represent this sentence for searching relevant passages: ",
    dimension=384,
    # Activations are quantised with one scale per batch, so a vector would depend on its neighbours (cosine .994 at
    # worst). Alone it is exact, and a replay gives the same bytes; batches of 32 are no faster.
    batch_texts_max=1,
)


def model_in(folder: Path) -> LocalModel:
    """A user's own model, configured by its sentence-transformers files."""
    pooling = _json(folder / "1_Pooling" / "config.json")
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts") or {}
    lengths = _json(folder / "sentence_bert_config.json")
    return LocalModel(
        folder=folder,
        pooling=Pooling.MEAN if pooling.get("pooling_mode_mean_tokens") else Pooling.CLS,
        query_prefix=str(prompts.get("query", "")),
        tokens_max=int(lengths.get("max_seq_length") or 512),
    )


def weights_in(folder: Path) -> str:
    found = next(
        (path for path in (folder / "model.onnx", folder / "onnx/model.onnx") if path.is_file()), None
    )
    if found is None:
        raise SettingsInvalid(f"{folder} holds no model.onnx")
    return str(found)


def identity_of(model: LocalModel) -> str:
    digest = hashlib.sha256(f"{model.pooling} {model.tokens_max} {model.query_prefix}".encode())
    try:
        for path in (Path(weights_in(model.folder)), model.folder / "tokenizer.json"):
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


_THREADS_MAX = 2
_QUERIES_CACHED = 512
_NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
"""onnxruntime reports telemetry from the moment it is imported, and leaves files in the home directory. This variable
disables both before it is loaded."""


class _Loaded(Protocol):
    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text."""


class LocalEmbedder:
    """`Embedder` over a `LocalModel`. The model is loaded on first use."""

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
            self._model_id = identity_of(self._model)
        return self._model_id

    @property
    def folder(self) -> Path:
        return self._model.folder

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
            if len(self._queries) > _QUERIES_CACHED:
                self._queries.popitem(last=False)
        return vector

    def _load(self) -> _Loaded:
        loaded = self._loaded
        if loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = self._read()
                loaded = self._loaded
        assert loaded is not None
        return loaded

    def _read(self) -> _Loaded:
        if self._model is not ARCTIC_EMBED_S:
            return _read(self._model, self._threads)
        with _reading:
            return _shipped(self._threads, os.getpid())


_reading = threading.Lock()


@cache
def _shipped(threads: int, _process: int) -> _Loaded:
    """The shipped model never changes, so a process loads it once, however many planes it opens. A forked process
    loads its own: the runtime does not survive a fork."""
    return _read(ARCTIC_EMBED_S, threads)


def _read(model: LocalModel, threads: int) -> _Loaded:
    os.putenv(_NO_TELEMETRY, "1")
    from memplane.models.onnx import OnnxModel  # onnxruntime is slow to load

    return OnnxModel(model, threads)
