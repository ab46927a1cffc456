"""In-memory caches: the indexes of the spaces in use, access counts not yet written, and query vectors.

A query is embedded in its own thread. A model releases the GIL while it runs, and a remote one only waits, so keyword
lookups run at the same time.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache

from memplane.documents.span_index import SpanIndex
from memplane.errors import SettingsInvalid
from memplane.models.embedding import Embedder, EmbeddingFailed, Vector, Vectors, checked
from memplane.recall.memory_index import MemoryIndex
from memplane.recall.turn_index import TurnIndex

# Indexes of the spaces in use. They can be dropped at any time and are rebuilt from the store.


_SPACES_MAX = 64
_BYTES_MAX = 512 * 1024 * 1024
_LOOKS_APART = 16
"""Indexes grow when they are used; adding up all of them is not worth it with every use."""


class Indexes:
    """The indexes of turns, memories and spans by space; the most recently used are kept, as many as fit into memory."""

    def __init__(
        self, model: tuple[str, int], *, spaces_max: int = _SPACES_MAX, bytes_max: int = _BYTES_MAX
    ) -> None:
        self._model = model
        self._spaces_max = spaces_max
        self._bytes_max = bytes_max
        self._uses = 0
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
            self._uses += 1
            if self._uses % _LOOKS_APART == 0:
                self._fit()
            return found

    def _fit(self) -> None:
        """Drop the indexes used longest ago until the others fit; the last one always stays."""
        sizes = {name: sum(index.nbytes for index in kept) for name, kept in self._kept.items()}
        total = sum(sizes.values())
        for name in list(self._kept)[:-1]:
            if total <= self._bytes_max:
                return
            total -= sizes[name]
            del self._kept[name]

    def drop(self, tenant: str, owner: str) -> None:
        """After a forget, drop the cached data at once rather than with the next query."""
        with self._lock:
            self._kept.pop((tenant, owner), None)


# Access counts not yet written.


_FLUSH_COUNT = 256
"""Counts are written in batches of this size and on shutdown; a killed process loses a few."""
_PENDING_MAX = 100_000
"""Of all spaces together. Beyond that, the counts of spaces used longest ago are dropped: they only order memories."""


class AccessCounts:
    """Access counts by space. They keep a recall a read, except for one in dozens."""

    def __init__(self, worth_writing: int = _FLUSH_COUNT, *, pending_max: int = _PENDING_MAX) -> None:
        self._worth_writing = worth_writing
        self._pending_max = pending_max
        self._lock = threading.Lock()
        self._pending: OrderedDict[tuple[str, str], list[str]] = OrderedDict()
        self._count = 0

    def add(self, tenant: str, owner: str, ids: Iterable[str]) -> list[str]:
        """Count an access; return the whole batch once it is worth writing."""
        with self._lock:
            pending = self._pending.setdefault((tenant, owner), [])
            self._pending.move_to_end((tenant, owner))
            before = len(pending)
            pending.extend(ids)
            self._count += len(pending) - before
            if not pending or len(pending) >= self._worth_writing:
                return self._take((tenant, owner))
            while self._count > self._pending_max:
                self._take(next(iter(self._pending)))
            return []

    def take(self, tenant: str, owner: str) -> list[str]:
        """Take everything."""
        with self._lock:
            return self._take((tenant, owner))

    def take_all(self) -> dict[tuple[str, str], list[str]]:
        """Take everything of every space, by tenant and owner."""
        with self._lock:
            pending, self._pending, self._count = self._pending, OrderedDict(), 0
            return dict(pending)

    def _take(self, name: tuple[str, str]) -> list[str]:
        taken = self._pending.pop(name, [])
        self._count -= len(taken)
        return taken

    def count(self, tenant: str, owner: str, memory_id: str) -> int:
        """Accesses since the last write."""
        with self._lock:
            return self._pending.get((tenant, owner), []).count(memory_id)


_THREADS_MIN = 8
"""A local model gains nothing from more threads than cores, but a remote one does."""
_CHECK_INTERVAL_S = 1.0

Embedded = tuple[Vector | None, tuple[str, ...]]
"""A query's vector, or the reason there is none. Without one recall uses keywords; it never fails for this."""


class Cores:
    """Whether a core is free for a second thread. When more threads want to run than there are cores, both wait for a
    core and for the GIL, which takes longer than running one after the other."""

    def __init__(self) -> None:
        self._count = os.cpu_count() or 1
        self._looked = -_CHECK_INTERVAL_S
        self._spare = True

    def spare(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= _CHECK_INTERVAL_S:
            self._looked = now
            with suppress(OSError):  # if the platform does not report load, assume a free core
                self._spare = self._count > 1 and os.getloadavg()[0] < self._count
        return self._spare


class Questions:
    """Embeds queries in its own threads. Thread-safe."""

    def __init__(self, embedder: Embedder | None, *, beside: Callable[[], bool] | None = None) -> None:
        self.embedder = embedder
        self._beside = beside or Cores().spare
        self._kept: dict[tuple[str, ...], Vectors] = {}
        self._threads = ThreadPoolExecutor(max(_THREADS_MIN, os.cpu_count() or 1), "memplane-question")

    def begin(self, text: str) -> Callable[[], Embedded]:
        """Start embedding if a core is free; the returned function waits for the result and can be called repeatedly."""
        embedder = self.embedder
        if embedder is None or not text.strip():
            return lambda: (None, ())
        if not self._beside():
            return cache(lambda: _embedded(embedder, text))
        begun: Future[Embedded] = self._threads.submit(_embedded, embedder, text)
        return begun.result

    def vectors_of(self, texts: Sequence[str]) -> Vectors | None:
        """The vectors of fixed texts, computed once; None if the model is not available."""
        embedder, kept = self.embedder, self._kept.get(tuple(texts))
        if kept is not None or embedder is None:
            return kept
        try:
            kept = checked(embedder.embed_texts(texts), len(texts), embedder.dimension)
        except (EmbeddingFailed, SettingsInvalid):
            return None
        self._kept[tuple(texts)] = kept
        return kept

    def close(self) -> None:
        self._threads.shutdown(wait=False)


def _embedded(embedder: Embedder, text: str) -> Embedded:
    try:
        return checked(embedder.embed_query(text)[None, :], 1, embedder.dimension)[0], ()
    except (EmbeddingFailed, SettingsInvalid) as exc:
        return None, (f"embedding: {exc}",)
