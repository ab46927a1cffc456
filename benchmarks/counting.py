"""Counts what an object store is asked, for benchmarks and tests: requests and bytes, by kind."""

import threading
from collections import Counter
from collections.abc import Iterator

from memplane.errors import Unchanged
from memplane.sync.store import ObjectInfo, ObjectStore, StoredObject

_PAGE = 1_000
"""Objects in one answer of a listing; Azure gives 5,000, the others this many."""


class Counting:
    """An `ObjectStore` around another. `requests` and `moved` (bytes) are by kind: `get`, `unchanged`, `put`, `delete`,
    `list`. A request that fails counts too."""

    def __init__(self, store: ObjectStore, *, page: int = _PAGE) -> None:
        self._store = store
        self._page = page
        self._lock = threading.Lock()
        self.requests: Counter[str] = Counter()
        self.moved: Counter[str] = Counter()

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def total(self) -> int:
        return self.requests.total()

    def reset(self) -> None:
        with self._lock:
            self.requests.clear()
            self.moved.clear()

    def get(self, key: str, *, unless: str | None = None) -> StoredObject | None:
        kind, size = "get", 0
        try:
            got = self._store.get(key, unless=unless)
            size = 0 if got is None else len(got.data)
        except Unchanged:
            kind = "unchanged"
            raise
        finally:
            self._count(kind, size)
        return got

    def put(self, key: str, data: bytes, *, expect: str | None = None) -> str:
        self._count("put", len(data))
        return self._store.put(key, data, expect=expect)

    def delete(self, key: str) -> None:
        self._count("delete", 0)
        self._store.delete(key)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        count = 0
        for count, listed in enumerate(self._store.list(prefix), start=1):  # noqa: B007 - counted below
            yield listed
        for _ in range(max(1, -(-count // self._page))):
            self._count("list", 0)

    def _count(self, kind: str, size: int) -> None:
        with self._lock:
            self.requests[kind] += 1
            self.moved[kind] += size
