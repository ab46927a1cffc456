"""The vectors of questions, made beside everything that can be looked up without them.

A model lets go of Python's lock while it works, and one that is asked over the network only waits: meanwhile the words of
the question are looked up.
"""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache

from memplane.errors import SettingsInvalid
from memplane.models.embedding import Embedder, EmbeddingFailed, Vector, checked

_THREADS_MIN = 8
"""A model on this machine gains nothing by more than there are cores, but one in the network does."""
_LOOK_EVERY_S = 1.0

Embedded = tuple[Vector | None, tuple[str, ...]]
"""A question's vector, and why there is none. Without one the words must do: a recall never fails for it."""


class Cores:
    """Whether a core is free for a second thread. Where more wants to run than there are cores, each of the two waits for
    one, and both for whoever holds Python's lock without having one: that takes longer than one after the other."""

    def __init__(self) -> None:
        self._count = os.cpu_count() or 1
        self._looked = -_LOOK_EVERY_S
        self._spare = True

    def spare(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= _LOOK_EVERY_S:
            self._looked = now
            with suppress(OSError):  # where nobody counts, there may well be one
                self._spare = self._count > 1 and os.getloadavg()[0] < self._count
        return self._spare


class Questions:
    """Embeds questions in threads of its own. Safe to use from many threads."""

    def __init__(self, embedder: Embedder | None, *, beside: Callable[[], bool] | None = None) -> None:
        self.embedder = embedder
        self._beside = beside or Cores().spare
        self._threads = ThreadPoolExecutor(max(_THREADS_MIN, os.cpu_count() or 1), "memplane-question")

    def begin(self, text: str) -> Callable[[], Embedded]:
        """Begin to embed, if there is a core for it; what is returned waits for it, once or several times."""
        embedder = self.embedder
        if embedder is None or not text.strip():
            return lambda: (None, ())
        if not self._beside():
            return cache(lambda: _embedded(embedder, text))
        begun: Future[Embedded] = self._threads.submit(_embedded, embedder, text)
        return begun.result

    def close(self) -> None:
        self._threads.shutdown(wait=False)


def _embedded(embedder: Embedder, text: str) -> Embedded:
    try:
        return checked(embedder.embed_query(text)[None, :], 1, embedder.dimension)[0], ()
    except (EmbeddingFailed, SettingsInvalid) as exc:
        return None, (f"embedding: {exc}",)
