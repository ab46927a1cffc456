"""The vectors of questions, made beside everything that can be looked up without them.

A model lets go of Python's lock while it works, and one that is asked over the network only waits: meanwhile the words of
the question are looked up."""

import os
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache

from memplane.documents.span_index import SpanIndex
from memplane.errors import SettingsInvalid
from memplane.models.embedding import Embedder, EmbeddingFailed, Vector, checked
from memplane.recall.memory_index import MemoryIndex
from memplane.recall.turn_index import TurnIndex

# The caches of the spaces in use. All of it can be dropped at any time and is made again from the store.


_SPACES_MAX = 64


class Indexes:
    """The indexes of turns, memories and spans by space; those used last are kept."""

    def __init__(self, model: tuple[str, int], *, spaces_max: int = _SPACES_MAX) -> None:
        self._model = model
        self._spaces_max = spaces_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[TurnIndex, MemoryIndex, SpanIndex]] = OrderedDict()

    def of(self, tenant: str, owner: str) -> tuple[TurnIndex, MemoryIndex, SpanIndex]:
        with self._lock:
            found = self._kept.get((tenant, owner))
            if found is None:
                model = self._model
                found = self._kept[tenant, owner] = (TurnIndex(model), MemoryIndex(model), SpanIndex(model))
                if len(self._kept) > self._spaces_max:
                    self._kept.popitem(last=False)
            self._kept.move_to_end((tenant, owner))
            return found

    def drop(self, tenant: str, owner: str) -> None:
        """After a forget: what a cache still holds of it goes at once, not with the next question."""
        with self._lock:
            self._kept.pop((tenant, owner), None)


# Which memories were told, until it is worth writing down.


_FLUSH_COUNT = 256
"""So many uses make a write, and so does the end of the process; few are lost where it is killed."""


class AccessCounts:
    """Uses of memories by space. A recall only reads; this keeps it so, but for one in dozens."""

    def __init__(self, worth_writing: int = _FLUSH_COUNT) -> None:
        self._worth_writing = worth_writing
        self._lock = threading.Lock()
        self._told: defaultdict[tuple[str, str], list[str]] = defaultdict(list)

    def add(self, tenant: str, owner: str, ids: Iterable[str]) -> list[str]:
        """Take note; gives everything back once it is worth writing."""
        with self._lock:
            told = self._told[tenant, owner]
            told.extend(ids)
            return self._told.pop((tenant, owner)) if len(told) >= self._worth_writing else []

    def take(self, tenant: str, owner: str) -> list[str]:
        """Everything there is."""
        with self._lock:
            return self._told.pop((tenant, owner), [])

    def take_all(self) -> dict[tuple[str, str], list[str]]:
        """The same of every space, by tenant and owner."""
        with self._lock:
            told, self._told = self._told, defaultdict(list)
            return dict(told)

    def count(self, tenant: str, owner: str, memory_id: str) -> int:
        """How often it was told since the last write."""
        with self._lock:
            return self._told.get((tenant, owner), []).count(memory_id)


_THREADS_MIN = 8
"""A model on this machine gains nothing by more than there are cores, but one in the network does."""
_CHECK_INTERVAL_S = 1.0

Embedded = tuple[Vector | None, tuple[str, ...]]
"""A question's vector, and why there is none. Without one the words must do: a recall never fails for it."""


class Cores:
    """Whether a core is free for a second thread. Where more wants to run than there are cores, each of the two waits for
    one, and both for whoever holds Python's lock without having one: that takes longer than one after the other."""

    def __init__(self) -> None:
        self._count = os.cpu_count() or 1
        self._looked = -_CHECK_INTERVAL_S
        self._spare = True

    def spare(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= _CHECK_INTERVAL_S:
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
