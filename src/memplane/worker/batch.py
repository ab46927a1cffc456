"""A shift: what whoever enriches does at one space before another has its turn. It gives way to those who wait for an
answer, and ends with the step at hand when it is told to stop."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from memplane.storage.base import Store
from memplane.worker.pipeline import Worker

_STEPS_MAX = 8
"""Then another space has its turn."""
_YIELD_S = 0.25
"""So long a step waits while somebody waits for an answer. However many do, it gets on: a step is many turns."""


class Enricher(Protocol):
    """Somebody enriches what comes in, so that whoever writes or recalls need not."""

    def notify(self, tenant: str, owner: str) -> None:
        """Something came in there."""

    def giving_way(self) -> AbstractContextManager[None]:
        """Inside, somebody waits for an answer that is computed in this process."""

    def failing(self) -> dict[tuple[str, str], int]:
        """Spaces whose enrichment does not get on, and how often it was tried."""

    def close(self) -> None:
        """Finish the step at hand and stop. What is left is done by whoever comes next."""


class SpaceBatch:
    """Steps of a worker, for as long as nobody says stop."""

    def __init__(self, worker: Worker, *, stepped: Callable[[], None] = lambda: None) -> None:
        self._worker = worker
        self._stepped = stepped
        self._lock = threading.Lock()
        self._answering = 0
        self._quiet = threading.Event()
        self._quiet.set()
        self.stopped = threading.Event()

    @contextmanager
    def giving_way(self) -> Iterator[None]:
        """Inside, a step waits a moment before it begins."""
        with self._lock:
            self._answering += 1
            self._quiet.clear()
        try:
            yield
        finally:
            with self._lock:
                self._answering -= 1
                if not self._answering:
                    self._quiet.set()

    def work(self, store: Store, *, reading: bool = True) -> bool:
        """Whether there may be more to do. Raises what a step raises."""
        return all(
            not self.stopped.is_set() and self._step(store, reading=reading) for _ in range(_STEPS_MAX)
        )

    def _step(self, store: Store, *, reading: bool) -> bool:
        self._quiet.wait(_YIELD_S)
        more = self._worker.step(store, reading=reading)
        if more:
            self._stepped()
        return more
