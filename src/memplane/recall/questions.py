"""The vectors of questions, made beside everything that can be looked up without them.

A model lets go of Python's lock while it works, and one that is asked over the network only waits: meanwhile the words of
the question are looked up.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from memplane.errors import SettingsInvalid
from memplane.providers.embedding import Embedder, EmbeddingFailed, Vector, checked

_THREADS_MIN = 8
"""A model on this machine gains nothing by more than there are cores, but one in the network does."""

Embedded = tuple[Vector | None, tuple[str, ...]]
"""A question's vector, and why there is none. Without one the words must do: a recall never fails for it."""


class Questions:
    """Embeds questions in threads of its own. Safe to use from many threads."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._threads = ThreadPoolExecutor(max(_THREADS_MIN, os.cpu_count() or 1), "memplane-question")

    def begin(self, text: str) -> Callable[[], Embedded]:
        """Begin to embed; what is returned waits for it, once or several times."""
        if self.embedder is None or not text.strip():
            return lambda: (None, ())
        begun: Future[Embedded] = self._threads.submit(_embedded, self.embedder, text)
        return begun.result

    def close(self) -> None:
        self._threads.shutdown(wait=False)


def _embedded(embedder: Embedder, text: str) -> Embedded:
    try:
        return checked(embedder.embed_query(text)[None, :], 1, embedder.dimension)[0], ()
    except (EmbeddingFailed, SettingsInvalid) as exc:
        return None, (f"embedding: {exc}",)
