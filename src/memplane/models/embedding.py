"""The embedding interface."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memplane.errors import ErrorCategory, MemplaneError

Vector = NDArray[np.float32]
"""One text: `dimension` numbers, length one."""
Vectors = NDArray[np.float32]
"""One row per text."""


class EmbeddingFailed(MemplaneError):
    """The embedding model failed; stored text stays searchable by keyword."""

    code: ClassVar[str] = "embedding_failed"
    category = ErrorCategory.UPSTREAM


class EmbeddingUnavailable(EmbeddingFailed):
    """The embedding model is unreachable; the same call may succeed later."""

    code = "embedding_unavailable"
    category = ErrorCategory.UNAVAILABLE


class EmbeddingUnusable(EmbeddingFailed):
    """The embedding model rejects this text; others may work."""

    code = "embedding_unusable"


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their similarity.

    Called from many threads at once. The same text gives the same vector, independent of its batch, up to rounding.
    Vectors of different `model_id`s must never be compared.
    """

    @property
    def model_id(self) -> str:
        """Identifies the model and everything else that shapes its vectors; stored with them."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text, in order; any string is valid, including the empty one.

        Raises `EmbeddingUnusable` if one of the texts is the problem, `EmbeddingUnavailable` if the same call may
        succeed later, and `EmbeddingFailed` if no call will: a wrong key, name or dimension. In each case nothing of
        the batch is returned.
        """

    def embed_query(self, text: str) -> Vector:
        """The vector of a query, which some models embed differently from its answers."""


@runtime_checkable
class InFolder(Protocol):
    """An `Embedder` whose model is in a directory, which may contain the model's calibration."""

    @property
    def folder(self) -> Path | None:
        """The directory; None if the model it stands for has none."""


def folder_of(embedder: Embedder) -> Path | None:
    """The directory of an embedder's model, if it has one."""
    return embedder.folder if isinstance(embedder, InFolder) else None


def checked(vectors: Vectors, count: int, dimension: int) -> Vectors:
    """Validate an embedder's output. Raises `EmbeddingFailed`."""
    if vectors.shape != (count, dimension):
        raise EmbeddingFailed(
            f"the embedding model gave vectors of the shape {vectors.shape}, not {(count, dimension)}"
        )
    if not np.isfinite(vectors).all():
        raise EmbeddingUnusable("the embedding model gave a vector that holds something other than numbers")
    return vectors


def normalised(vectors: NDArray[np.floating]) -> Vectors:
    """Rows of unit length; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)
