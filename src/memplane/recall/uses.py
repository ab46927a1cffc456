"""Which memories were told, until it is worth writing down."""

import threading
from collections import defaultdict
from collections.abc import Iterable

_WORTH_WRITING = 256
"""So many uses make a write; fewer are lost when the process ends, and nobody misses them."""


class Uses:
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
