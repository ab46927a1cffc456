"""A fair share of the threads. Without it one caller with many requests would occupy all threads, and the requests of all
others would wait."""

import asyncio
from weakref import WeakValueDictionary

THREADS_MAX = 120
WEBSOCKET_BYTES_MAX = 1 << 20
"""Of one message."""
PER_CALLER_MAX = 40
"""Concurrent writes share one commit, so a busy caller gains from many threads; above this number the gain ends."""


class CallerSlots:
    """As many at once as one caller may have; further calls of theirs wait, in order. Used in the event loop only."""

    def __init__(self, per_caller_max: int = PER_CALLER_MAX) -> None:
        self._per_caller_max = per_caller_max
        self._callers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, caller: str) -> asyncio.Semaphore:
        """The same for every request of one caller, and gone with the last of them."""
        turn = self._callers.get(caller)
        if turn is None:
            turn = self._callers[caller] = asyncio.Semaphore(self._per_caller_max)
        return turn
