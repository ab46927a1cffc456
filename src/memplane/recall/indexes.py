"""The caches of the spaces in use. All of it can be dropped at any time and is made again from the store."""

import threading
from collections import OrderedDict

from memplane.documents.span_index import SpanIndex
from memplane.recall.memory_index import MemoryIndex
from memplane.recall.turn_index import TurnIndex

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
