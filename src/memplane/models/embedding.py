"""What turns text into vectors, as the rest of Memplane sees it."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from memplane.errors import Category, MemplaneError

Vector = NDArray[np.float32]
"""One text: `dimension` numbers, length one."""
Vectors = NDArray[np.float32]
"""One row a text."""


class EmbeddingFailed(MemplaneError):
    """The embedding model could not do its work; what was stored is found by its words meanwhile."""

    code: ClassVar[str] = "embedding_failed"
    category = Category.UPSTREAM


class EmbeddingUnavailable(EmbeddingFailed):
    """The embedding model cannot be reached just now; the same call may succeed later."""

    code = "embedding_unavailable"
    category = Category.UNAVAILABLE


class EmbeddingUnusable(EmbeddingFailed):
    """The embedding model cannot take this text; another one it may."""

    code = "embedding_unusable"


class Embedder(Protocol):
    """Turns texts into vectors whose dot product says how alike they are.

    Calls may come from many threads at once. The same text gives the same vector, whatever stands beside it, up to
    the rounding of the model. Vectors of different `model_id`s must never be compared.
    """

    @property
    def model_id(self) -> str:
        """Names the model and everything else that shapes its vectors; stored beside them."""

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """One row of length one for each text, in order; any string is legal, the empty one too.

        Raises `EmbeddingUnusable` where one of the texts is the trouble, `EmbeddingUnavailable` where the same call may
        succeed later, and `EmbeddingFailed` where no call will: a wrong key, name or dimension. Then nothing of the
        batch is returned.
        """

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, which some models see differently from what answers it."""


def checked(vectors: Vectors, count: int, dimension: int) -> Vectors:
    """Vectors as an embedder must give them: a user's own may not. Raises `EmbeddingFailed`."""
    if vectors.shape != (count, dimension):
        raise EmbeddingFailed(
            f"the embedding model gave vectors of the shape {vectors.shape}, not {(count, dimension)}"
        )
    if not np.isfinite(vectors).all():
        raise EmbeddingUnusable("the embedding model gave a vector that holds something other than numbers")
    return vectors


def normalised(vectors: NDArray[np.floating]) -> Vectors:
    """Rows of length one; a row of zeros stays what it is."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)
