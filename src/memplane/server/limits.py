"""Concurrency limits per caller. The engine runs in a limited number of threads; without limits, one busy caller
could occupy all of them."""

import asyncio
from weakref import WeakValueDictionary

THREADS_MAX = 120
WEBSOCKET_BYTES_MAX = 1 << 20
"""Limit for one message."""
PER_CALLER_MAX = 40
"""Concurrent writes are committed together, so concurrency helps a busy caller; more than this adds nothing."""


class CallerSlots:
    """Limits the concurrent requests of each caller; further requests wait in order. For the event loop only."""

    def __init__(self, per_caller_max: int = PER_CALLER_MAX) -> None:
        self._per_caller_max = per_caller_max
        self._callers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, caller: str) -> asyncio.Semaphore:
        """Return the semaphore that all requests of one caller share. It is removed with the last of them."""
        turn = self._callers.get(caller)
        if turn is None:
            turn = self._callers[caller] = asyncio.Semaphore(self._per_caller_max)
        return turn
