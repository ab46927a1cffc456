"""Which memories were told, until it is worth writing down."""

import threading
from collections import defaultdict
from collections.abc import Iterable

_WORTH_WRITING = 256
"""So many uses make a write, and so does the end of the process; few are lost where it is killed."""


class AccessCounts:
    """Uses of memories by space. A recall only reads; this keeps it so, but for one in dozens."""

    def __init__(self, worth_writing: int = _WORTH_WRITING) -> None:
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
