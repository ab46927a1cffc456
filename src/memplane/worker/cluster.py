"""One of any number of workers that share the spaces of a database, on any number of machines.

Each takes a space that has something waiting, works at it for a shift, and says that nothing waits any more or gives it
back. What is at a space and who else is, `storage/work.py` knows; that two never write the same, the worker's own marks
see to. A worker that dies is noticed by its lease running out.
"""

import logging
import os
import random
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import msgspec

from memplane.clock import DAY, SECOND, Clock, Instant
from memplane.compaction.retention import day_of
from memplane.errors import MemplaneError, StorageCorrupt, StorageError
from memplane.models.llm import LLMFailed
from memplane.storage.base import Stores
from memplane.storage.work import LOST, Job, Lease, NoWork, Work, WorkerCounts, WorkReader
from memplane.types import PAUSE
from memplane.worker.batch import SpaceBatch
from memplane.worker.pipeline import Worker

LEASE_S = 60
FAILURES_MAX = 10
SILENT = 3 * LEASE_S * SECOND
"""Whoever did not report for so long has ended."""

_POLL_INTERVAL_S = 2.0
"""So often an idle worker looks whether something waits, in case nobody told it."""
_RELISTEN_DELAY_S = 30.0
_JOBS_EVERY_S = 30.0
_REPORT_EVERY_S = 5.0
_RING_EVERY_S = 0.05
"""Many writes ring once."""
_BREATH_S = 0.02
_WAIT_FIRST_S = 1.0
_WAIT_MAX_S = 900.0
_AWAY_MAX_S = 30.0
"""A database that was away is not left alone for longer."""
_SHIFTS_WITHOUT_READING = 8
_FAILURES_LISTED_MAX = 1_000
_FAILURES_CACHED_S = 2.0
"""A page asks it of every space that it lists."""
_PAUSE = int(PAUSE.total_seconds()) * SECOND
_JOB_RETENTION = 7 * DAY
_MAINTENANCE_INTERVAL = 3_600 * SECOND
"""Over so long the spaces that nobody used are looked after, every day: enrichment goes on meanwhile."""
_FOREVER = 1 << 62

_log = logging.getLogger("memplane.worker.cluster")


class ClusterJob(msgspec.Struct, frozen=True):
    """Something that is done once for a period, whichever worker comes first. Done again where that one dies."""

    name: str
    period: Callable[[Instant], str]
    """Which period it is; the same answer is the same job."""
    run: Callable[[Callable[[], bool]], None]
    """It is given what says whether it is still ours, to be asked now and then."""
    kept: Instant = _JOB_RETENTION
    """How long it is remembered of another period that it was done."""


def new_holder() -> str:
    """A name that nobody else has; whoever reads a list of workers sees the machine and the process."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


class _Notifier:
    """Tells workers in other processes, at most so often, and never keeps a writer waiting."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._rung = threading.Event()
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ring(self) -> None:
        if self._rung.is_set():
            return
        self._rung.set()
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._closed.is_set():
                    self._thread = threading.Thread(target=self._run, name="memplane-bell", daemon=True)
                    self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._rung.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            self._rung.wait()
            if self._closed.is_set():
                return
            try:
                self._work.ring()
            except StorageError:
                pass  # the others look by themselves now and then
            except Exception as exc:  # noqa: BLE001 - a thread's edge: without it nobody would be told ever again
                _say(logging.ERROR, "nobody can be rung for", exc, error=_code(exc))
            self._closed.wait(_RING_EVERY_S)
            self._rung.clear()
            if self._closed.is_set():
                return


class _FailingSpaces:
    """Which spaces do not get on, whoever tried; asked of the database now and then."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._known: tuple[float, dict[tuple[str, str], int]] | None = None

    def spaces(self) -> dict[tuple[str, str], int]:
        known, now = self._known, time.monotonic()
        if known is None or now - known[0] > _FAILURES_CACHED_S:
            known = self._known = (now, self._work.in_trouble(limit=_FAILURES_LISTED_MAX))
        return known[1]


class RemoteEnrichment:
    """Enrichment is done by workers in other processes."""

    def __init__(self, work: Work) -> None:
        self._trouble = _FailingSpaces(work)
        self._bell = _Notifier(work)

    def notify(self, tenant: str, owner: str) -> None:  # noqa: ARG002 - the database knows which
        """Something came in there."""
        self._bell.ring()

    def giving_way(self) -> AbstractContextManager[None]:
        """Nobody works in this process."""
        return nullcontext()

    def failing(self) -> dict[tuple[str, str], int]:
        """Spaces whose enrichment does not get on, whoever tried."""
        return self._trouble.spaces()

    def close(self) -> None:
        self._bell.close()


class ClusterWorker:
    """Works until it is closed: a thread for the work, one that keeps the lease, and one that listens."""

    def __init__(
        self,
        stores: Stores,
        work: Work,
        worker: Worker,
        clock: Clock,
        *,
        daily: Callable[[str, str], None] = lambda _tenant, _owner: None,
        jobs: tuple[ClusterJob, ...] = (),
        lease_s: float = LEASE_S,
        failures_max: int = FAILURES_MAX,
    ) -> None:
        """`daily` is called for every space that nothing waits in; whether anything is due is for it to know."""
        self.holder = new_holder()
        self._stores = stores
        self._work = work
        self._clock = clock
        self._daily = daily
        self._jobs = jobs
        self._length = int(lease_s * SECOND)
        self._failures_max = failures_max
        self._done = WorkerCounts()
        self._shift = SpaceBatch(worker, stepped=self._count_step)
        self._stopped = self._shift.stopped
        self._trouble = _FailingSpaces(work)
        self._bell = _Notifier(work)
        self._heard = threading.Event()
        self._lock = threading.Lock()
        self._held: Lease | None = None
        self._lost: Lease | None = None
        self._after = 0
        self._settled: dict[str, str] = {}
        self._jobs_at: Instant | None = None
        self._threads = [
            threading.Thread(target=target, name=f"memplane-{name}", daemon=True)
            for name, target in (("worker", self._run), ("lease", self._keep), ("listener", self._listen))
        ]

    def begin(self) -> None:
        """From now on by itself."""
        for thread in self._threads:
            thread.start()

    def notify(self, tenant: str, owner: str) -> None:  # noqa: ARG002 - the database knows which
        """Something came in there: this worker looks, and so does whoever is idle elsewhere."""
        self._heard.set()
        self._bell.ring()

    def giving_way(self) -> AbstractContextManager[None]:
        """Inside, somebody waits for an answer that is computed in this process."""
        return self._shift.giving_way()

    def failing(self) -> dict[tuple[str, str], int]:
        """Spaces whose enrichment does not get on, whoever tried."""
        return self._trouble.spaces()

    def close(self) -> None:
        """Finish the step at hand, give the space back, and stop."""
        self._stopped.set()
        self._heard.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._bell.close()
        with suppress(StorageError):
            self._work.report(self.holder, self._done, ended=True)
        _say(logging.INFO, "worker ended", holder=self.holder, **msgspec.structs.asdict(self._done))

    def step(self) -> bool:
        """Take one space and work a shift at it; False where none waited. Raises `StorageError`."""
        lease = self._work.take(self.holder, after=self._after, length=self._length)
        if lease is None:
            return False
        self._after = lease.tenant_number
        self._done.taken += 1
        self._done.lost += lease.error == LOST
        with self._lock:
            self._held = lease
        try:
            self._work_at(lease)
        finally:
            self._let_go()
        return True

    def do_jobs(self) -> None:
        """Whatever is due once for everybody, unless somebody else is at it. Raises `StorageError`."""
        now = self._clock()
        for job in self._jobs:
            period = job.period(now)
            if self._settled.get(job.name) != period and not self._stopped.is_set():
                self._do_job(job, period)

    # ── a thread each ────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        troubles = 0
        while not self._stopped.is_set():
            self._heard.clear()
            try:
                if self._jobs_due():
                    self.do_jobs()
                found = self.step()
                troubles = 0
            except Exception as exc:  # noqa: BLE001 - a thread's edge: the database is away, or there is a bug
                troubles += 1
                said = {"reason": str(exc)} if isinstance(exc, StorageError) else {}
                _say(logging.WARNING, "worker cannot work", exc, holder=self.holder, error=_code(exc), **said)
                self._stopped.wait(_wait(troubles, _AWAY_MAX_S))
                continue
            if not found:
                self._heard.wait(_POLL_INTERVAL_S * random.uniform(0.75, 1.25))  # noqa: S311 - so that not all look at once
                self._stopped.wait(_BREATH_S)

    def _keep(self) -> None:
        """Renew the lease while somebody works at it, and tell the others that we are there."""
        while True:
            try:
                self._keep_lease()
                self._work.report(self.holder, self._done)
            except StorageError:
                pass  # the thread that works says so
            except Exception as exc:  # noqa: BLE001 - a thread's edge: without it every later lease would be lost
                _say(logging.ERROR, "worker cannot keep its lease", exc, holder=self.holder, error=_code(exc))
            if self._stopped.is_set() and not self._threads[0].is_alive():
                return
            self._wait_to_keep()

    def _keep_lease(self) -> None:
        """Ours stays ours; of one that another has now nothing is to be kept, and whoever works at it finds out."""
        with self._lock:
            held = self._held
        if held is None or held is self._lost or self._work.renew(held, length=self._length):
            return
        with self._lock:
            self._lost = held
            through = self._held is not held
        if not through:
            _say(logging.WARNING, "lease lost", **_space(held))

    def _let_go(self) -> None:
        """Before it is said how it went: whoever renews it then would take what is given back for what is lost."""
        with self._lock:
            self._held = None

    def _wait_to_keep(self) -> None:
        length = min(_REPORT_EVERY_S, self._length / SECOND / 3)
        if self._stopped.is_set():
            self._threads[0].join(length)
        else:
            self._stopped.wait(length)

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                self._work.listen(self._heard.set, self._stopped)
            except Exception as exc:  # noqa: BLE001 - a thread's edge: it would end, and each write wait for a look
                _say(logging.ERROR, "worker cannot listen", exc, holder=self.holder, error=_code(exc))
                self._stopped.wait(_RELISTEN_DELAY_S)

    # ── a space ──────────────────────────────────────────────────────────────────────────────────────────────

    def _work_at(self, lease: Lease) -> None:
        try:
            if lease.error == LOST and lease.failures >= self._failures_max:
                self._bury(lease, LOST)
                return
            if self._do_shift(lease):
                return
            self._let_go()
            self._work.give_back(lease, got_on=not self._stopped.is_set())
        except Exception as exc:  # noqa: BLE001 - one space's trouble must not end the work at all
            self._failed(lease, exc)

    def _do_shift(self, lease: Lease) -> bool:
        """Whether nothing waits there any more, and all know it."""
        with self._stores.open(lease.tenant, lease.owner, create=False) as store:
            with store.read() as reader:
                seen = _change_marker(reader)
            try:
                more = self._shift.work(store)
            except LLMFailed:  # facts wait for the model, vectors need not
                for _ in range(_SHIFTS_WITHOUT_READING):
                    if not self._shift.work(store, reading=False):
                        break
                raise
        if more or self._stopped.is_set():
            return False
        self._daily(lease.tenant, lease.owner)
        self._let_go()
        return self._work.finish(lease, lambda reader: self._rest(reader, seen))

    def _rest(self, reader: WorkReader, seen: tuple[int, int, int]) -> NoWork | None:
        """Nobody can write to the space now. Nothing came in since before the last step found nothing; what pauses comes due
        by itself."""
        if _change_marker(reader) != seen or reader.marks().derived < reader.marks().cursor:
            return None
        untold = reader.untold(before=_FOREVER, limit=1)
        return NoWork(max(SECOND, untold[0].last_at + _PAUSE - self._clock()) if untold else None)

    def _failed(self, lease: Lease, error: Exception) -> None:
        self._let_go()
        self._done.failures += 1
        code = _code(error)
        counted = not _is_shared_failure(error)
        _say(logging.WARNING, "space failed", error, error=code, attempts=lease.attempts + 1, **_space(lease))
        with suppress(StorageError):  # the lease runs out by itself
            if counted and lease.failures + 1 >= self._failures_max:
                self._bury(lease, code)
            else:
                wait = int(_wait(lease.attempts + 1) * SECOND)
                self._work.fail(lease, error=code, length=wait, counted=counted)

    def _bury(self, lease: Lease, code: str) -> None:
        self._let_go()
        self._work.bury(lease, error=code)
        _say(logging.ERROR, "space is dead", error=code, attempts=lease.attempts, **_space(lease))

    def _count_step(self) -> None:
        self._done.steps += 1

    # ── once for everybody ───────────────────────────────────────────────────────────────────────────────────

    def _jobs_due(self) -> bool:
        now = self._clock()
        if self._jobs_at is not None and self._jobs_at <= now < self._jobs_at + _JOBS_EVERY_S * SECOND:
            return False
        self._jobs_at = now
        return True

    def _do_job(self, job: ClusterJob, period: str) -> None:
        name = (job.name, period, self.holder)
        state = self._work.take_job(*name, length=self._length)
        if state is Job.YOURS:
            try:
                job.run(lambda: self._work.renew_job(*name, length=self._length))
            except Exception as exc:  # noqa: BLE001 - it must not end the work at spaces
                _say(logging.WARNING, "job failed", exc, job=job.name, period=period, error=_code(exc))
                self._work.put_job_off(*name, length=int(_JOBS_EVERY_S * SECOND))
                return
            if self._work.finish_job(*name, kept=job.kept):
                _say(logging.INFO, "job done", job=job.name, period=period)
                state = Job.DONE
        if state is Job.DONE:
            self._settled[job.name] = period


def cluster_jobs(
    work: Work, *, usage: Callable[[], None], model: str | None, index: Callable[[], object] | None = None
) -> tuple[ClusterJob, ...]:
    """What there is to do for an installation rather than for a space. `usage` drops what is on record for too long; `model`
    is what vectors are made with, if they are, and `index` gives spaces that have grown large an index of them."""

    def tidy(_renew: Callable[[], bool]) -> None:
        usage()
        work.add_up(kept=DAY)

    daily = (
        ClusterJob("tidy", day_of, tidy),
        ClusterJob("look-after", day_of, lambda renew: work.schedule(_MAINTENANCE_INTERVAL, renew=renew)),
    )
    if model is None:
        return daily
    # A model that comes back after another has everything embedded again, so of others nothing is remembered.
    embed = ClusterJob("embed", lambda _now: model, lambda renew: work.schedule(0, renew=renew), kept=0)
    if index is None:
        return (*daily, embed)

    def indexed(_renew: Callable[[], bool]) -> None:
        index()

    return (*daily, embed, ClusterJob("index", _hour_of, indexed))


def _hour_of(now: Instant) -> str:
    return str(now // (3_600 * SECOND))


def _change_marker(reader: WorkReader) -> tuple[int, int, int]:
    """What changes whenever something comes in, or is to be derived anew."""
    marks = reader.marks()
    return reader.head().position, marks.cursor, marks.generation


def _wait(tries: int, longest: float = _WAIT_MAX_S) -> float:
    """Longer each time; never the same, so that many do not knock at once."""
    length = min(longest, _WAIT_FIRST_S * 2.0 ** min(tries - 1, 20))
    return length * random.uniform(0.5, 1.0)  # noqa: S311


def _is_shared_failure(error: Exception) -> bool:
    """Whether it is the trouble of something that every space needs, and not of this one."""
    if isinstance(error, StorageError):
        return not isinstance(error, StorageCorrupt)
    return isinstance(error, MemplaneError) and error.retryable


def _code(error: Exception) -> str:
    return error.code if isinstance(error, MemplaneError) else "internal"


def _space(lease: Lease) -> dict[str, Any]:
    return {"holder": lease.holder, "tenant": lease.tenant, "space": lease.owner}


def _say(level: int, event: str, cause: Exception | None = None, /, **fields: Any) -> None:
    """For a log of lines with fields; an error of ours says what it is, of another it shows where it happened."""
    exc_info = cause if cause is not None and not isinstance(cause, MemplaneError) else None
    _log.log(level, event, exc_info=exc_info, extra={"fields": fields})
