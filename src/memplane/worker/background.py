"""Enrichment beside everything else: one thread that works off whichever spaces have something waiting."""

import random
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from memplane.errors import NotFound
from memplane.models.llm import LLMFailed
from memplane.storage.base import Stores
from memplane.worker.batch import SpaceBatch
from memplane.worker.pipeline import Worker

_RESCAN_INTERVAL_S = 60.0
"""So often every space is looked at, for what became due by itself: a conversation that has paused."""
_BREATH_S = 0.02
"""So long after it is told of something it begins: whoever told it has an answer to give first, and would have to wait for
Python's lock."""
_WAIT_FIRST_S = 0.5
_WAIT_MAX_S = 60.0


class BackgroundRunner:
    """Works until it is closed. A space that fails waits longer each time and keeps no other waiting."""

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
        """Something came in there."""
        with self._lock:
            self._waiting[tenant, owner] = None
        self._bell.set()

    def look_after(self, daily: Callable[[str, str], None]) -> None:
        """From now on, also call this for every space that is looked at; whether anything is due is for it to know."""
        self._daily = daily

    def giving_way(self) -> AbstractContextManager[None]:
        """Inside, somebody waits for an answer that is computed in this process."""
        return self._shift.giving_way()

    def failing(self) -> dict[tuple[str, str], int]:
        """Spaces whose enrichment does not get on, and how often it was tried."""
        with self._lock:
            return dict(self._failures)

    def close(self) -> None:
        """Finish the step at hand and stop. What is left is done by whoever opens the spaces next."""
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
        self._look_at_all()
        while not self._stopped.is_set():
            space = self._next()
            if space is not None:
                self._work(*space)
            elif not self._wait(self._bell, self._pause()):
                self._look_at_all()
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
                except LLMFailed:  # facts wait for the model, vectors need not
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
        except Exception:  # noqa: BLE001  # a thread's edge: one space's trouble must not end the work of all
            with self._lock:
                self._failures[tenant, owner] = self._failures.get((tenant, owner), 0) + 1

    def _look_at_all(self) -> None:
        try:
            found = list(self._spaces())
        except Exception:  # noqa: BLE001 - a thread's edge: whatever it is, they are looked at again in a while
            return
        with self._lock:
            self._waiting.update(dict.fromkeys(found))

    def _pause(self) -> float:
        """Until every space is looked at again; sooner while one fails, and longer each time it does."""
        with self._lock:
            tries = min(self._failures.values(), default=None)
        if tries is None:
            return _RESCAN_INTERVAL_S
        longest = min(_WAIT_MAX_S, _WAIT_FIRST_S * float(2 ** min(tries, 10)))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  # so that many processes do not knock at once
