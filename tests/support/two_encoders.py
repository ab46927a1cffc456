"""A local model with two encoders, made of the shipped English one."""

import json
from pathlib import Path

from memplane.models.local import ARCTIC_EMBED_S, LocalModel


def two_encoders(folder: Path) -> LocalModel:
    """Write a model whose encoders give vectors of the same size, but different ones: the second one's tokenizer leaves out the
    first token."""
    second = folder / "multilingual"
    second.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).symlink_to(ARCTIC_EMBED_S.folder / name)
    (second / "model.onnx").symlink_to(ARCTIC_EMBED_S.folder / "model.onnx")
    tokenizer = json.loads((ARCTIC_EMBED_S.folder / "tokenizer.json").read_text("utf-8"))
    tokenizer["post_processor"] = None
    (second / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    return LocalModel(
        folder=folder,
        id="two-encoders",
        query_prefix="? ",
        batch_texts_max=1,
        dimension=384,
        multilingual=second,
    )
