"""An embedding model for tests: a hashed bag of words. The same words give the same vector, on any machine."""

import re
from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from memplane.models.embedding import EmbeddingUnavailable, Vector, Vectors, normalised

_WORD = re.compile(r"\w+")


class BagOfWords:
    """An `Embedder` whose vectors are alike as far as texts share words; `embedded` says what it was asked for."""

    def __init__(self, model_id: str = "bag-1", dimension: int = 32) -> None:
        self.model_id = model_id
        self.dimension = dimension
        self.embedded: list[str] = []
        self.away = False
        """Whether it cannot be reached just now."""

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        if self.away:
            raise EmbeddingUnavailable("the embedding model is away")
        self.embedded += texts
        return normalised(np.array([self._counts(text) for text in texts]).reshape(-1, self.dimension))

    def embed_query(self, text: str) -> Vector:
        if self.away:
            raise EmbeddingUnavailable("the embedding model is away")
        return normalised(np.array([self._counts(text)]))[0]

    def _counts(self, text: str) -> list[float]:
        counts = [0.0] * self.dimension
        for word in _WORD.findall(text.lower()):
            counts[sha256(f"{self.model_id} {word}".encode()).digest()[0] % self.dimension] += 1.0
        return counts
