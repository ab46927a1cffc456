"""One batch of enrichment steps for a space, before the next space gets its turn. Steps yield to requests that are being
answered, and the batch ends after the current step on shutdown."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from memplane.storage.store import Store
from memplane.worker.pipeline import Worker

_STEPS_MAX = 8
"""Steps per batch."""
_YIELD_S = 0.25
"""How long a step waits for requests to be answered; after that it runs anyway."""


class Enricher(Protocol):
    """Runs enrichment outside of writes and recalls."""

    def notify(self, tenant: str, owner: str) -> None:
        """Signal that this space has new entries."""

    def yield_to_requests(self) -> AbstractContextManager[None]:
        """While the context is open, this process is answering a request and steps yield."""

    def failing(self) -> dict[tuple[str, str], int]:
        """Spaces whose enrichment fails, with the number of attempts."""

    def close(self) -> None:
        """Finish the current step and stop; the next runner continues."""


class SpaceBatch:
    """Runs a worker's steps until stopped."""

    def __init__(self, worker: Worker, *, stepped: Callable[[], None] = lambda: None) -> None:
        self._worker = worker
        self._stepped = stepped
        self._lock = threading.Lock()
        self._answering = 0
        self._quiet = threading.Event()
        self._quiet.set()
        self.stopped = threading.Event()

    @contextmanager
    def yield_to_requests(self) -> Iterator[None]:
        """While the context is open, a step waits a moment before it begins."""
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
        """Run up to a batch of steps; return whether there may be more to do."""
        return all(
            not self.stopped.is_set() and self._step(store, reading=reading) for _ in range(_STEPS_MAX)
        )

    def _step(self, store: Store, *, reading: bool) -> bool:
        self._quiet.wait(_YIELD_S)
        more = self._worker.step(store, reading=reading)
        if more:
            self._stepped()
        return more
