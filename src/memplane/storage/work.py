"""Which spaces have something waiting, where workers on several machines share them.

The ledger is the queue: what is to be done follows from a space's own marks, which move in the transaction that writes the
results. `Work` only says where to look, and lends a space to one worker at a time so that two do not do the same. Losing
all of it would cost a look at every space, and nothing else.
"""

import threading
from collections.abc import Callable
from enum import Enum
from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.storage.store import Reader

LOST = "lost"
"""In place of an error's code: whoever had the lease was not heard of again."""


class Lease(msgspec.Struct, frozen=True):
    """One space, lent to one worker until somebody gives it back or it is not renewed in time."""

    tenant_number: int
    owner_number: int
    tenant: str
    owner: str
    holder: str
    attempts: int
    """How often it was tried since it last got on."""
    failures: int
    """Of these, those that were the space's own fault as far as anybody can tell."""
    error: str | None
    """The code of the last one."""


class NoWork(msgspec.Struct, frozen=True):
    """Nothing is to be done now."""

    length: Instant | None = None
    """In so long there will be, by itself; None: not before something comes in."""


class DeadSpace(msgspec.Struct, frozen=True):
    """A space that failed too often: it waits for a person."""

    tenant: str
    owner: str
    attempts: int
    error: str
    since: Instant


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """How the work stands, over all spaces."""

    waiting: int
    """Spaces in which something is to be done and nobody is at it."""
    held: int
    """Spaces that a worker is at."""
    resting: int
    """Spaces that are looked at again at some time."""
    dead: int
    failing: int
    """Spaces whose last attempt failed; they are tried again."""
    oldest: Instant
    """How long the one that waits longest has waited."""
    behind: int
    """Entries that no memories are derived from yet."""


class WorkerCounts(msgspec.Struct):
    """What a worker has done since it began."""

    taken: int = 0
    """Leases it took."""
    steps: int = 0
    failures: int = 0
    lost: int = 0
    """Leases it took over from a worker that was not heard of again."""


class WorkerInfo(msgspec.Struct, frozen=True):
    """A worker, as the others see it."""

    holder: str
    began: Instant
    seen: Instant
    ended: bool
    """It said so, or was not heard of for a while."""
    done: WorkerCounts


class Job(Enum):
    """How it stands with something that is done once for a period."""

    YOURS = "yours"
    DONE = "done"
    ELSEWHERE = "elsewhere"
    """Somebody else is at it; ask again, since they may die."""


class Work(Protocol):
    """Any number of processes use it at once. Time is the database's own, so that machines agree on it; lengths are in
    microseconds. A space is marked as waiting by the engine itself, in the transaction in which something comes in."""

    def take(self, holder: str, *, after: int, length: Instant) -> Lease | None:
        """A space that waits: of the next tenant after that number, round and round, the one that waits longest. A tenant
        with many waiting spaces so keeps no other waiting. Leases that ran out are there to be taken again."""

    def renew(self, lease: Lease, *, length: Instant) -> bool:
        """Whether it is still ours."""

    def give_back(self, lease: Lease, *, got_on: bool) -> None:
        """More is to be done, by whoever comes next; with `got_on`, what failed before is forgotten."""

    def finish(self, lease: Lease, decide: Callable[[Reader], NoWork | None]) -> bool:
        """Nothing waits there, if `decide` finds so: it reads the space while nobody can write to it, and answers None
        where something came in meanwhile. False then, or where the lease is not ours any more."""

    def fail(self, lease: Lease, *, error: str, length: Instant, counted: bool) -> None:
        """It is tried again in so long; `counted` as a failure of the space's own, or as somebody else's trouble."""

    def bury(self, lease: Lease, *, error: str) -> None:
        """It is not tried again until somebody says so."""

    def dead(self, *, limit: int) -> list[DeadSpace]:
        """Those buried, the longest dead first."""

    def retry(self, tenant: str | None = None, owner: str | None = None) -> int:
        """Try this one again at once, whether it is dead or waits after a failure; without a name, all. How many."""

    def backlog(self) -> Backlog:
        """Exact; takes time where very many wait."""

    def in_trouble(self, *, limit: int) -> dict[tuple[str, str], int]:
        """Spaces that do not get on, dead or not, and how often they were tried."""

    def schedule(self, within: Instant, *, renew: Callable[[], bool]) -> None:
        """Have every space looked at, spread over that time. Calls `renew` now and then; stops where it says no."""

    def take_job(self, name: str, period: str, holder: str, *, length: Instant) -> Job:
        """Something to do once for this period. Where its holder is not heard of any more, it is somebody else's."""

    def renew_job(self, name: str, period: str, holder: str, *, length: Instant) -> bool:
        """Whether it is still ours."""

    def finish_job(self, name: str, period: str, holder: str, *, kept: Instant) -> bool:
        """It is done for this period, for everybody; of other periods it is remembered for so long. Whether it was still
        ours to say so."""

    def put_job_off(self, name: str, period: str, holder: str, *, length: Instant) -> None:
        """It failed; whoever asks in so long may try again."""

    def report(self, holder: str, done: WorkerCounts, *, ended: bool = False) -> None:
        """I am here, and this is what I did."""

    def colleagues(self, *, silent: Instant) -> list[WorkerInfo]:
        """Everybody who reported of late, those who began first at the beginning. Whoever was silent for so long ended."""

    def worked(self) -> WorkerCounts:
        """What all workers did that there ever were."""

    def add_up(self, *, kept: Instant) -> None:
        """Keep the sum alone of those who were not heard of for so long."""

    def ring(self) -> None:
        """Tell those who listen that something waits. Nobody relies on it."""

    def listen(self, heard: Callable[[], None], stopped: threading.Event) -> None:
        """Call `heard` whenever somebody rings, until it is to stop; goes on by itself where the database was away."""
