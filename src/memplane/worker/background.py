"""The in-process runner: one thread that enriches the spaces with pending work."""

import random
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from memplane.errors import NotFound
from memplane.models.llm import LLMFailed
from memplane.storage.stores import Stores
from memplane.worker.batch import SpaceBatch
from memplane.worker.pipeline import Worker

_RESCAN_INTERVAL_S = 60.0
"""How often every space is checked for work that became due, such as a conversation that paused."""
_BREATH_S = 0.02
"""Delay before work begins, so the notifying request can finish without waiting for the GIL."""
_WAIT_FIRST_S = 0.5
_WAIT_MAX_S = 60.0


class BackgroundRunner:
    """Runs until closed. A failing space is retried with back-off and delays no other space."""

    def __init__(
        self,
        stores: Stores,
        worker: Worker,
        spaces: Callable[[], Iterable[tuple[str, str]]],
        *,
        wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        self._stores = stores
        self._shift = SpaceBatch(worker)
        self._spaces = spaces
        self._wait = wait
        self._waiting: dict[tuple[str, str], None] = {}
        self._failures: dict[tuple[str, str], int] = {}
        self._daily: Callable[[str, str], None] | None = None
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._stopped = self._shift.stopped
        self._thread = threading.Thread(target=self._run, name="memplane-worker", daemon=True)
        self._thread.start()

    def notify(self, tenant: str, owner: str) -> None:
        """Signal that this space has new entries."""
        with self._lock:
            self._waiting[tenant, owner] = None
        self._bell.set()

    def add_daily_task(self, daily: Callable[[str, str], None]) -> None:
        """Also call `daily` for every checked space; it decides whether anything is due."""
        self._daily = daily

    def yield_to_requests(self) -> AbstractContextManager[None]:
        """While the context is open, this process is answering a request and steps yield."""
        return self._shift.yield_to_requests()

    def failing(self) -> dict[tuple[str, str], int]:
        """Spaces whose enrichment fails, with the number of attempts."""
        with self._lock:
            return dict(self._failures)

    def close(self) -> None:
        """Finish the current step and stop; the next process that opens the spaces continues."""
        self._stopped.set()
        self._bell.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        self._scan_spaces()
        while not self._stopped.is_set():
            space = self._next()
            if space is not None:
                self._work(*space)
            elif not self._wait(self._bell, self._pause()):
                self._scan_spaces()
            else:
                self._stopped.wait(_BREATH_S)
            self._bell.clear()

    def _next(self) -> tuple[str, str] | None:
        with self._lock:
            space = next(iter(self._waiting), None)
            if space is not None:
                del self._waiting[space]
            return space

    def _work(self, tenant: str, owner: str) -> None:
        try:
            with self._stores.open(tenant, owner, create=False) as store:
                try:
                    more = self._shift.work(store)
                except LLMFailed:  # facts need the LLM, vectors do not
                    if self._shift.work(store, reading=False):
                        self.notify(tenant, owner)
                    raise
                if more:
                    self.notify(tenant, owner)
            if not more and self._daily is not None and not self._stopped.is_set():
                self._daily(tenant, owner)
            with self._lock:
                self._failures.pop((tenant, owner), None)
        except NotFound:
            return
        except Exception:  # noqa: BLE001 - one failing space must not stop the thread
            with self._lock:
                self._failures[tenant, owner] = self._failures.get((tenant, owner), 0) + 1

    def _scan_spaces(self) -> None:
        try:
            found = list(self._spaces())
        except Exception:  # noqa: BLE001 - the edge of a thread; the next check tries again
            return
        with self._lock:
            self._waiting.update(dict.fromkeys(found))

    def _pause(self) -> float:
        """Time until the next check of all spaces; shorter, with back-off, while one fails."""
        with self._lock:
            tries = min(self._failures.values(), default=None)
        if tries is None:
            return _RESCAN_INTERVAL_S
        longest = min(_WAIT_MAX_S, _WAIT_FIRST_S * float(2 ** min(tries, 10)))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
