"""A BERT-like ONNX model in memory. Separate from `local`, because onnxruntime takes longer to load than most
commands."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it ships no types
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from memplane.errors import SettingsInvalid
from memplane.models.embedding import EmbeddingUnusable, Vectors, normalised
from memplane.models.local import LocalModel, Pooling, weights_in

_BATCH_TOKENS_MAX = 4_096
"""Includes padding. Larger batches are not faster on a CPU and need more memory."""
_LONG_TOKENS = 128
"""Shorter texts are embedded by one thread: several threads would mostly wait for each other and cost half as much
again."""
_CHARS_PER_TOKEN_MAX = 32
"""Text beyond this many characters per visible token is not tokenised."""


class OnnxModel:
    """A model in memory. Both of its parts are thread-safe."""

    def __init__(self, model: LocalModel, threads: int) -> None:
        self._pooling = model.pooling
        self._batch_texts_max = model.batch_texts_max
        self._chars_max = model.tokens_max * _CHARS_PER_TOKEN_MAX
        self._threads = threads
        self._lock = threading.Lock()
        try:
            self._weights = weights_in(model.folder)
            self._session = _session(self._weights, 1)
            self._for_long = None if threads > 1 else self._session
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
            states: NDArray[np.floating] = self._session_for(ids.size).run(
                None, {name: value for name, value in given.items() if name in self._inputs}
            )[0]
        except Exception as exc:  # onnxruntime's errors have no common base
            raise EmbeddingUnusable(f"the embedding model failed: {exc}") from exc
        if self._pooling is Pooling.CLS:
            return states[:, 0]
        weights = mask[:, :, None].astype(states.dtype)
        mean: NDArray[np.floating] = (states * weights).sum(axis=1) / weights.sum(axis=1)
        return mean

    def _session_for(self, tokens: int) -> Any:
        """The session with more threads is created for the first long text: the weights are then in memory twice."""
        if tokens < _LONG_TOKENS:
            return self._session
        with self._lock:
            if self._for_long is None:
                self._for_long = _session(self._weights, self._threads)
            return self._for_long


def _session(weights: str, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin between queries would waste a core, and threads that spin within one take twice as long as a
    # single one when another process needs a core.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])


def _batches(lengths: Sequence[int], texts_max: int) -> Iterator[list[int]]:
    """Indexes of texts of similar length, so that little is spent on padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == texts_max or (len(batch) + 1) * lengths[place] > _BATCH_TOKENS_MAX):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _clean(text: str) -> str:
    """A lone surrogate is valid in a Python string and nowhere else."""
    return text.encode("utf-8", "replace").decode("utf-8")
