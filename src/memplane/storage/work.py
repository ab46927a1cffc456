"""The queue of spaces with pending work, for workers on several machines.

The ledger is the real queue: pending work follows from a space's own marks, which change in the transaction
that writes the results. `Work` only says where to look, and leases a space to one worker at a time so that two
do not do the same. If all of it were lost, workers would check every space, and nothing else would happen.
"""

import threading
from collections.abc import Callable
from enum import Enum
from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.storage.store import Reader

LOST = "lost"
"""Instead of an error code: the worker with the lease stopped reporting."""


class Lease(msgspec.Struct, frozen=True):
    """One space, leased to one worker until it is returned or not renewed in time."""

    tenant_number: int
    owner_number: int
    tenant: str
    owner: str
    holder: str
    attempts: int
    """How many attempts since the last progress."""
    failures: int
    """How many of these failed because of the space itself, as far as is known."""
    error: str | None
    """The code of the last failure."""


class NoWork(msgspec.Struct, frozen=True):
    """No work is pending."""

    length: Instant | None = None
    """After this time there will be work without new input; None if only new input brings work."""


class DeadSpace(msgspec.Struct, frozen=True):
    """A space that failed too often: it is not retried until a person says so."""

    tenant: str
    owner: str
    attempts: int
    error: str
    since: Instant


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """The pending work of all spaces."""

    waiting: int
    """Spaces with pending work and without a lease."""
    held: int
    """Spaces with a lease."""
    resting: int
    """Spaces that will be checked again at a known time."""
    dead: int
    failing: int
    """Spaces whose last attempt failed; they are retried."""
    oldest: Instant
    """The age of the longest waiting space."""
    behind: int
    """Entries that no memories are derived from yet."""


class WorkerCounts(msgspec.Struct):
    """What a worker has done since it started."""

    taken: int = 0
    """Leases it took."""
    steps: int = 0
    failures: int = 0
    lost: int = 0
    """Leases it took over from a worker that stopped reporting."""


class WorkerInfo(msgspec.Struct, frozen=True):
    """A worker of the cluster."""

    holder: str
    began: Instant
    seen: Instant
    ended: bool
    """It reported its end, or did not report for a while."""
    done: WorkerCounts


class Job(Enum):
    """The state of a job that runs once for each period."""

    YOURS = "yours"
    DONE = "done"
    ELSEWHERE = "elsewhere"
    """Another worker has it. Ask again: that worker may die."""


class Work(Protocol):
    """Any number of processes use it at once. Times come from the database, so that machines agree on them;
    durations are in microseconds. The engine marks a space as waiting in the transaction that appends an entry."""

    def take(self, holder: str, *, after: int, length: Instant) -> Lease | None:
        """Lease a waiting space: the longest waiting one of the next tenant after this number, in turn, so that
        a tenant with many waiting spaces does not block others. Expired leases can be taken again."""

    def renew(self, lease: Lease, *, length: Instant) -> bool:
        """Extend a lease; returns False if it is held by another worker."""

    def give_back(self, lease: Lease, *, got_on: bool) -> None:
        """Return a lease with work left, for any worker. With `got_on`, earlier failures are reset."""

    def finish(self, lease: Lease, decide: Callable[[Reader], NoWork | None]) -> bool:
        """Return a lease without work left, if `decide` agrees: it reads the space while no transaction can
        write to it, and returns None if new work came in. Returns False then, or if the lease is held by
        another worker."""

    def fail(self, lease: Lease, *, error: str, length: Instant, counted: bool) -> None:
        """Return a lease after a failure, to be retried after this time. `counted` if the space itself is the
        cause."""

    def bury(self, lease: Lease, *, error: str) -> None:
        """Return a lease after the last attempt. The space is not retried until `retry`."""

    def dead(self, *, limit: int) -> list[DeadSpace]:
        """Spaces that failed too often, longest first."""

    def retry(self, tenant: str | None = None, owner: str | None = None) -> int:
        """Retry a failed space at once, dead or not; without a name, all of them. Returns how many."""

    def backlog(self) -> Backlog:
        """Exact counts; slow if very many spaces wait."""

    def in_trouble(self, *, limit: int) -> dict[tuple[str, str], int]:
        """Spaces whose attempts fail, dead or not, with the number of attempts."""

    def schedule(self, within: Instant, *, renew: Callable[[], bool]) -> None:
        """Schedule a check of every space, spread over this time. Calls `renew` now and then, and stops if it
        returns False."""

    def claim_job(self, name: str, period: str, holder: str, *, length: Instant) -> Job:
        """Take a job that runs once for this period. A job whose holder stopped reporting can be taken again."""

    def renew_job(self, name: str, period: str, holder: str, *, length: Instant) -> bool:
        """Extend a lease; returns False if it is held by another worker."""

    def finish_job(self, name: str, period: str, holder: str, *, kept: Instant) -> bool:
        """Mark a job as done for this period. Other periods are remembered for `kept`. Returns False if another
        worker has it."""

    def put_job_off(self, name: str, period: str, holder: str, *, length: Instant) -> None:
        """Return a failed job; any worker may take it again after this time."""

    def report(self, holder: str, done: WorkerCounts, *, ended: bool = False) -> None:
        """Report that this worker is alive, and what it has done."""

    def colleagues(self, *, silent: Instant) -> list[WorkerInfo]:
        """Workers that reported recently, oldest first. A worker that was silent for `silent` counts as ended."""

    def worked(self) -> WorkerCounts:
        """The sum of what all workers have done."""

    def add_up(self, *, kept: Instant) -> None:
        """Keep only the sum of workers that have been silent for `kept`."""

    def ring(self) -> None:
        """Notify listening workers that a space waits. Only a hint: workers also poll."""

    def listen(self, heard: Callable[[], None], stopped: threading.Event) -> None:
        """Call `heard` at every notification until `stopped` is set. Reconnects if the database was away."""
