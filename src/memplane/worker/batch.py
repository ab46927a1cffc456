"""One batch of enrichment steps for a space, before the next space gets its turn. Steps yield to requests that are being
answered, and end between two texts on shutdown."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from memplane.storage.store import Store
from memplane.worker.pace import Pace
from memplane.worker.pipeline import Worker

_STEPS_MAX = 8
"""Steps per batch."""
_YIELD_S = 0.25
"""How long a step waits for requests to be answered; after that it runs anyway. Between its texts it waits again, but no
longer than it worked before, so enrichment goes on under a constant load."""


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

    def __init__(
        self,
        worker: Worker,
        *,
        stepped: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._worker = worker
        self._stepped = stepped
        self._lock = threading.Lock()
        self._answering = 0
        self._quiet = threading.Event()
        self._quiet.set()
        self._clock = clock
        self._resumed = 0.0
        self.stopped = threading.Event()
        self._pace = Pace(make_way=self._make_way, is_stopped=self.stopped.is_set, clock=clock)

    @contextmanager
    def yield_to_requests(self) -> Iterator[None]:
        """While the context is open, a step waits a moment before it begins, and between its texts."""
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

    def _make_way(self) -> None:
        """Called between two texts of a step."""
        self._wait(min(_YIELD_S, self._clock() - self._resumed))

    def _wait(self, seconds: float) -> None:
        if not self._quiet.is_set():
            self._quiet.wait(seconds)
            self._resumed = self._clock()

    def _step(self, store: Store, *, reading: bool) -> bool:
        self._wait(_YIELD_S)
        self._resumed = self._clock()
        more = self._worker.step(store, reading=reading, pace=self._pace)
        if more:
            self._stepped()
        return more
