"""A folder with an embedding model, and how it wants to be used."""

import hashlib
import json
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from memplane.errors import SettingsInvalid


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
