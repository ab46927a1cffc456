"""Local embeddings: BERT-like ONNX models, without a key or a network.

`arctic-embed-s`, Snowflake's English model with 8-bit weights, ships with Memplane. It needs the first token's state as the vector
and a prefix before queries; without either it is worse than no vectors. Any directory with `model.onnx` (or `onnx/model.onnx`) and
`tokenizer.json` can replace it. A model may have two encoders that share one vector space, one for English and one for other
languages; the language of a text alone decides which of them embeds it.
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
from typing import Annotated, Protocol, TypeVar

import msgspec
import numpy as np

from memplane.errors import SettingsInvalid
from memplane.models.embedding import Vector, Vectors
from memplane.models.language import is_english, language_weights


class Pooling(StrEnum):
    """How token states become one vector."""

    CLS = "cls"
    MEAN = "mean"


_TOKENS_MAX = 512


class LocalModel(msgspec.Struct, frozen=True, kw_only=True):
    """A directory with a model, and how to use it."""

    folder: Path
    id: str | None = None
    """None: the directory's name and a digest of its content."""
    pooling: Pooling = Pooling.CLS
    query_prefix: str = ""
    tokens_max: int = _TOKENS_MAX
    dimension: int | None = None
    """None: determined when the model is loaded."""
    batch_texts_max: int = 16
    """Batch size."""
    multilingual: Path | None = None
    """A directory with a second encoder for texts that are not English. Its vectors are comparable with those of the first."""

    def encoder(self, folder: Path) -> "LocalModel":
        """The encoder in this folder, as a model of its own."""
        return msgspec.structs.replace(self, folder=folder, multilingual=None)


_SHIPPED_FOLDER = Path(str(resources.files("memplane.models").joinpath("weights")))
_MULTILINGUAL = "multilingual"

# Activations are quantised with one scale per batch, so a vector would depend on its neighbours (cosine .994 at worst).
# Alone it is exact, and a replay gives the same bytes; batches of 32 are no faster.
ARCTIC_EMBED_S = LocalModel(
    folder=_SHIPPED_FOLDER / "arctic-embed-s",
    id="snowflake-arctic-embed-s-int8",
    query_prefix="Represent this sentence for searching relevant passages: ",
    dimension=384,
    batch_texts_max=1,
)
SHIPPED = {model.folder.name: model for model in (ARCTIC_EMBED_S,)}
"""The models that ship, by the name that selects one."""
DEFAULT = ARCTIC_EMBED_S


def local_model(name: str | None) -> LocalModel:
    """A shipped model by its name, or the model in a directory; None: the default.

    Write `./name` for a directory that is named like a shipped model.
    """
    if name is None:
        return DEFAULT
    return SHIPPED[name] if name in SHIPPED else model_in(Path(name).expanduser())


def model_in(folder: Path) -> LocalModel:
    """A user's own model, configured by its sentence-transformers files. A second encoder is in `multilingual/`."""
    pooling = _read_json(folder / "1_Pooling" / "config.json", _PoolingFile)
    prompts = _read_json(folder / "config_sentence_transformers.json", _PromptsFile).prompts
    lengths = _read_json(folder / "sentence_bert_config.json", _LengthsFile)
    return LocalModel(
        folder=folder,
        pooling=Pooling.MEAN if pooling.pooling_mode_mean_tokens else Pooling.CLS,
        query_prefix=(prompts and prompts.query) or "",
        tokens_max=lengths.max_seq_length or _TOKENS_MAX,
        multilingual=folder / _MULTILINGUAL if (folder / _MULTILINGUAL).is_dir() else None,
    )


class _PoolingFile(msgspec.Struct):
    pooling_mode_mean_tokens: bool | None = None


class _Prompts(msgspec.Struct):
    query: str | None = None


class _PromptsFile(msgspec.Struct):
    prompts: _Prompts | None = None


class _LengthsFile(msgspec.Struct):
    max_seq_length: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None


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
        for folder in (model.folder, *((model.multilingual,) if model.multilingual else ())):
            for path in (Path(weights_in(folder)), folder / "tokenizer.json"):
                digest.update(hashlib.sha256(path.read_bytes()).digest())
        if model.multilingual is not None:
            digest.update(hashlib.sha256(language_weights().read_bytes()).digest())
    except OSError as exc:
        raise SettingsInvalid(f"{model.folder} holds no embedding model: {exc}") from exc
    return f"{model.folder.resolve().name}-{digest.hexdigest()[:12]}"


_File = TypeVar("_File", _PoolingFile, _PromptsFile, _LengthsFile)


def _read_json(path: Path, type_: type[_File]) -> _File:
    """What a file of the model says; a missing file leaves the defaults."""
    try:
        return msgspec.convert(json.loads(path.read_text("utf-8")), type_)
    except FileNotFoundError:
        return type_()
    except (OSError, ValueError, RecursionError) as exc:
        raise SettingsInvalid(f"{path} cannot be read: {exc}") from exc


_THREADS_MAX = 2
_QUERIES_CACHED = 512
_NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
"""onnxruntime reports telemetry from the moment it is imported, and leaves files in the home directory. This variable
disables both before it is loaded."""


class _Loaded(Protocol):
    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text."""


class LocalEmbedder:
    """`Embedder` over a `LocalModel`. Each encoder is loaded on first use."""

    def __init__(self, model: LocalModel | None = None, *, threads: int | None = None) -> None:
        self._model = model or DEFAULT
        self._threads = threads or min(_THREADS_MAX, os.cpu_count() or 1)
        self._loading = threading.Lock()
        self._encoders: dict[Path, _Loaded] = {}
        self._model_id = self._model.id
        self._lock = threading.Lock()
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
        folders = [self._folder_for(text) for text in texts]
        if len(set(folders)) == 1:
            return self._embed(folders[0], texts)
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for folder in dict.fromkeys(folders):
            places = [place for place, chosen in enumerate(folders) if chosen == folder]
            vectors[places] = self._embed(folder, [texts[place] for place in places])
        return vectors

    def embed_query(self, text: str) -> Vector:
        with self._lock:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                return known
        # The prefix is the same for all languages, so the query alone decides.
        vector: Vector = self._embed(self._folder_for(text), [self._model.query_prefix + text])[0]
        vector.flags.writeable = False
        with self._lock:
            self._queries[text] = vector
            if len(self._queries) > _QUERIES_CACHED:
                self._queries.popitem(last=False)
        return vector

    def _folder_for(self, text: str) -> Path:
        """The folder of the encoder for a text."""
        multilingual = self._model.multilingual
        return self._model.folder if multilingual is None or is_english(text) else multilingual

    def _embed(self, folder: Path, texts: Sequence[str]) -> Vectors:
        vectors = self._load(folder).embed(texts)
        if folder != self._model.folder and vectors.shape[1] != self.dimension:
            raise SettingsInvalid(
                f"{folder}: vectors have {vectors.shape[1]} numbers, and those for English {self.dimension}"
            )
        return vectors

    def _load(self, folder: Path) -> _Loaded:
        loaded = self._encoders.get(folder)
        if loaded is None:
            with self._loading:
                loaded = self._encoders.get(folder) or self._read(self._model.encoder(folder))
                self._encoders[folder] = loaded
        return loaded

    def _read(self, encoder: LocalModel) -> _Loaded:
        if self._model not in SHIPPED.values():
            return _read(encoder, self._threads)
        with _reading:
            return _shipped(encoder, self._threads, os.getpid())


_reading = threading.Lock()


@cache
def _shipped(encoder: LocalModel, threads: int, _process: int) -> _Loaded:
    """A shipped model never changes, so a process loads each encoder once, however many planes it opens. A forked process loads
    its own: the runtime does not survive a fork."""
    return _read(encoder, threads)


def _read(encoder: LocalModel, threads: int) -> _Loaded:
    os.putenv(_NO_TELEMETRY, "1")
    from memplane.models.onnx import OnnxModel  # onnxruntime is slow to load

    return OnnxModel(encoder, threads)
