"""Group commit: concurrent writers share one sync.

One caller leads: it takes every queued work, runs them in one transaction and commits once. Then it wakes the
other callers, and the next one in the queue leads. A single writer leads itself, in its own thread, and pays
nothing. If the last commits were shared, a leader waits for a moment, less than a sync takes, so that the
callers it just woke can join.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, Generic, Protocol, TypeVar

from memplane.errors import StorageBusy

T = TypeVar("T")

_LINGER_SECONDS = 0.0005


class Works(Protocol):
    """The session that works share: it can undo one of them and keep the others."""

    def begin_work(self) -> None: ...

    def end_work(self) -> None: ...

    def undo_work(self) -> None: ...

    def finish(self) -> None:
        """The transaction is about to be committed."""


W = TypeVar("W")
"""The argument of a work."""


class _Ticket:
    """One caller's work and, later, its outcome."""

    __slots__ = ("done", "error", "leads", "value", "wake", "work")

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work = work
        self.value: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.leads = False
        self.wake: threading.Lock | None = None


class GroupCommit(Generic[W]):
    """Runs works on one connection with as few commits as the callers' timing allows."""

    def __init__(
        self,
        transaction: Callable[[], AbstractContextManager[tuple[Works, W]]],
        fatal: tuple[type[Exception], ...],
    ) -> None:
        """Leaving the block of a transaction commits it. A `fatal` error comes from the database and not from
        the work that met it: the whole batch fails."""
        self._transaction = transaction
        self._fatal = fatal
        self._queue: list[_Ticket] = []
        self._queue_lock = threading.Lock()
        self._leading = False
        self._expected = 1
        self._lingering = False
        self._gathered = threading.Lock()
        self._gathered.acquire()

    def run(self, work: Callable[[W], T]) -> T:
        ticket = _Ticket(work)
        try:
            self._join(ticket)
            if ticket.wake is not None:
                ticket.wake.acquire()
            if not ticket.done:
                self._lead()
        except BaseException:
            self._leave(ticket)
            raise
        if ticket.error is not None:
            raise ticket.error
        value: T = ticket.value
        return value

    def _join(self, ticket: _Ticket) -> None:
        with self._queue_lock:
            self._queue.append(ticket)
            ticket.leads = not self._leading
            if self._leading:
                ticket.wake = threading.Lock()
                ticket.wake.acquire()
                if len(self._queue) == self._expected and self._lingering:
                    self._lingering = False
                    self._gathered.release()
            self._leading = True

    def _leave(self, ticket: _Ticket) -> None:
        """An interrupted caller whose work has not begun leaves the queue, and passes the lead on."""
        with self._queue_lock:
            if ticket in self._queue:
                self._queue.remove(ticket)
                if ticket.leads:
                    self._pass_lead()

    def _lead(self) -> None:
        batch: list[_Ticket] = []
        error: BaseException | None = StorageBusy("the write was interrupted; nothing was written, try again")
        try:
            self._linger()
            with self._queue_lock:
                batch, self._queue = self._queue, []
            with self._transaction() as (works, writer):
                for ticket in batch:
                    self._attempt(ticket, works, writer)
                works.finish()
            error = None
        except Exception as exc:  # noqa: BLE001 - it belongs to every caller of the batch, who each raise it
            error = exc
        finally:
            # An interrupt may come at any point, here too; settling again does the rest.
            try:
                self._settle(batch, error)
            except BaseException:
                self._settle(batch, error)
                raise

    def _linger(self) -> None:
        with self._queue_lock:
            self._lingering = lingering = len(self._queue) < self._expected
        gathered = False
        try:
            gathered = lingering and self._gathered.acquire(timeout=_LINGER_SECONDS)
        finally:
            if lingering and not gathered:
                with self._queue_lock:
                    if not self._lingering:
                        self._gathered.acquire()
                    self._lingering = False

    def _attempt(self, ticket: _Ticket, works: Works, writer: W) -> None:
        """Run one work so that a failure undoes that work alone."""
        works.begin_work()
        try:
            ticket.value = ticket.work(writer)
            works.end_work()
        except self._fatal:
            raise
        except Exception as exc:  # noqa: BLE001 - it reaches the caller who brought the work
            ticket.error = exc
            works.undo_work()

    def _settle(self, batch: list[_Ticket], error: BaseException | None) -> None:
        """Give each caller its outcome, and wake the next leader if there is one. Doing it twice does no harm."""
        for ticket in batch:
            if not ticket.done:
                ticket.error = error or ticket.error
                ticket.done = True
        with self._queue_lock:
            self._queue = [ticket for ticket in self._queue if not ticket.done]
            self._expected = max(len(batch), self._expected - 1)
            self._pass_lead()
        for ticket in batch:
            _wake(ticket)

    def _pass_lead(self) -> None:
        """Pass the lead to the first in the queue. Called with the queue's lock, so that it is never passed to
        a caller who left."""
        self._leading = bool(self._queue)
        for ticket in self._queue[:1]:
            ticket.leads = True
            _wake(ticket)


def _wake(ticket: _Ticket) -> None:
    if ticket.wake is not None:
        with suppress(RuntimeError):  # it is awake already
            ticket.wake.release()
