"""An embedder without a model: a text is the bag of its words, each a fixed direction of its own.

Texts that share words are near, others are about at right angles, and the same text gives the same vector in every
process.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

import numpy as np

from memplane.models.embedding import EmbeddingUnavailable, Vector, Vectors, normalised
from memplane.storage.words import stems_of

DIMENSION = 40


class StubEmbedder:
    """An `Embedder`. With another name it is another model, whose vectors have nothing to do with this one's."""

    def __init__(self, name: str = "stub", dimension: int = DIMENSION) -> None:
        self.name = name
        self.dimension = dimension
        self.texts_fail = False
        """Whether turns and memories cannot be embedded just now."""
        self.queries_fail = False
        """Whether questions cannot."""

    @property
    def model_id(self) -> str:
        return self.name

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        if self.texts_fail:
            raise EmbeddingUnavailable("the stub is down")
        rows = [self._embedded(text) for text in texts]
        return normalised(np.array(rows, np.float32).reshape(len(texts), self.dimension))

    def embed_query(self, text: str) -> Vector:
        if self.queries_fail:
            raise EmbeddingUnavailable("the stub is down")
        return normalised(self._embedded(text)[None, :])[0]

    def _embedded(self, text: str) -> Vector:
        whole = np.zeros(self.dimension)
        for stem in stems_of(text):
            whole += _direction(self.name, stem, self.dimension)
        return whole


_SAME = {"drink": "tea", "beverage": "tea", "nurse": "job", "clinic": "job", "hound": "dog"}


class Synonyms(StubEmbedder):
    """As the stub, and some words are the same to it although they share no letter."""

    def _embedded(self, text: str) -> Vector:
        return super()._embedded(" ".join(_SAME.get(word, word) for word in text.lower().split()))


@lru_cache(maxsize=4_096)
def _direction(name: str, stem: str, dimension: int) -> Vector:
    seed = int.from_bytes(sha256(f"{name}\x00{stem}".encode()).digest()[:8])
    return normalised(np.random.default_rng(seed).standard_normal(dimension)[None, :])[0]
