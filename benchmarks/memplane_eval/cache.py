"""Embedders around an embedder: one remembers vectors from run to run, one looks at the clock."""

import hashlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from memplane.errors import InvalidRequest
from memplane.models.embedding import Embedder, Vector, Vectors, folder_of

FILE = "vectors.db"

_BATCH_TEXTS = 256
"""After so many new vectors they are written down, so that a run that is cut off was not for nothing."""
_LOOKUP_BATCH = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vector (
  model TEXT NOT NULL, query INTEGER NOT NULL, text_sha256 BLOB NOT NULL, vector BLOB NOT NULL,
  PRIMARY KEY (model, query, text_sha256)
) WITHOUT ROWID
"""


class CachedEmbedder:
    """`Embedder` that asks another one only for what it never saw.

    A vector belongs to a model, a text and whether the text was a question; what another model made is never given.
    """

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(folder / FILE, check_same_thread=False)
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.execute(_SCHEMA)
        except (OSError, sqlite3.Error) as exc:
            raise InvalidRequest(f"{folder} cannot keep vectors: {exc}") from exc

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def folder(self) -> Path | None:
        return folder_of(self._embedder)

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        digests = [_digest(text) for text in texts]
        known = self._known(digests, query=False)
        missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
        for batch in _batches(list(missing), _BATCH_TEXTS):
            made = self._embedder.embed_texts([missing[digest] for digest in batch])
            known |= self._keep(dict(zip(batch, made, strict=True)), query=False)
        if not digests:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([known[digest] for digest in digests])

    def embed_query(self, text: str) -> Vector:
        digest = _digest(text)
        known = self._known([digest], query=True)
        if digest not in known:
            known = self._keep({digest: self._embedder.embed_query(text)}, query=True)
        return known[digest]

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _model(self) -> str:
        return f"{self.model_id} {self.dimension}"

    def _known(self, digests: Sequence[bytes], *, query: bool) -> dict[bytes, Vector]:
        found: dict[bytes, Vector] = {}
        for batch in _batches(digests, _LOOKUP_BATCH):
            marks = ", ".join("?" * len(batch))
            with self._lock:
                rows = self._database.execute(
                    "SELECT text_sha256, vector FROM vector"
                    f" WHERE model = ? AND query = ? AND text_sha256 IN ({marks})",
                    (self._model, query, *batch),
                ).fetchall()
            found |= {digest: np.frombuffer(vector, np.float32) for digest, vector in rows}
        return found

    def _keep(self, vectors: dict[bytes, Vector], *, query: bool) -> dict[bytes, Vector]:
        with self._lock, self._database:
            self._database.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?)",
                [
                    (self._model, query, digest, np.ascontiguousarray(vector, np.float32).tobytes())
                    for digest, vector in vectors.items()
                ],
            )
        return vectors


class Stopwatch:
    """`Embedder` that knows how long questions took to embed."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.queries_s = 0.0

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def folder(self) -> Path | None:
        return folder_of(self._embedder)

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.embed_texts(texts)

    def embed_query(self, text: str) -> Vector:
        started = time.perf_counter()
        try:
            return self._embedder.embed_query(text)
        finally:
            self.queries_s += time.perf_counter() - started


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _batches(digests: Sequence[bytes], size: int) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(digests), size):
        yield digests[start : start + size]
