"""The cluster runner: any number of workers, on any number of machines, that share the spaces of a database.

Each worker leases a space with pending work, runs a batch, and then marks it finished or gives it back. The queue is in
`storage/work.py`; the pipeline's own cursors ensure that no two workers write the same result. The lease of a dead
worker expires.
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
from memplane.storage.store import Reader
from memplane.storage.stores import Stores
from memplane.storage.work import LOST, Job, Lease, NoWork, Work, WorkerCounts
from memplane.types import PAUSE
from memplane.worker.batch import SpaceBatch
from memplane.worker.pipeline import Worker

LEASE_S = 60
FAILURES_MAX = 10
SILENT = 3 * LEASE_S * SECOND
"""A worker that has not reported for this long is dead."""

_POLL_INTERVAL_S = 2.0
"""How often an idle worker polls, in case it missed a notification."""
_RELISTEN_DELAY_S = 30.0
_JOBS_EVERY_S = 30.0
_REPORT_EVERY_S = 5.0
_RING_EVERY_S = 0.05
"""Notifications are coalesced over this interval."""
_BREATH_S = 0.02
_WAIT_FIRST_S = 1.0
_WAIT_MAX_S = 900.0
_AWAY_MAX_S = 30.0
"""The longest pause before an unreachable database is tried again."""
_SHIFTS_WITHOUT_READING = 8
_FAILURES_LISTED_MAX = 1_000
_FAILURES_CACHED_S = 2.0
"""A console page asks this for every space it lists."""
_PAUSE = int(PAUSE.total_seconds()) * SECOND
_JOB_RETENTION = 7 * DAY
_MAINTENANCE_INTERVAL = 3_600 * SECOND
"""Daily maintenance of idle spaces is spread over this interval, so enrichment is not delayed."""
_FOREVER = 1 << 62

_log = logging.getLogger("memplane.worker.cluster")


class ClusterJob(msgspec.Struct, frozen=True):
    """A job that one worker of the cluster runs once per period. It runs again if that worker dies."""

    name: str
    period: Callable[[Instant], str]
    """The period of a moment; each period runs the job once."""
    run: Callable[[Callable[[], bool]], None]
    """The job; it is given a function that renews the claim and says whether it is still ours."""
    retention: Instant = _JOB_RETENTION
    """How long completed periods are remembered."""


def new_holder() -> str:
    """A unique worker name that shows the machine and the process."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


class _Notifier:
    """Notifies workers in other processes, at a limited rate and without blocking writers."""

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
                pass  # the others poll
            except Exception as exc:  # noqa: BLE001 - the edge of a thread that must not end
                _say(logging.ERROR, "cannot notify workers", exc, error=_code(exc))
            self._closed.wait(_RING_EVERY_S)
            self._rung.clear()
            if self._closed.is_set():
                return


class _FailingSpaces:
    """Spaces whose enrichment fails in any worker, read from the database and cached."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._known: tuple[float, dict[tuple[str, str], int]] | None = None

    def spaces(self) -> dict[tuple[str, str], int]:
        known, now = self._known, time.monotonic()
        if known is None or now - known[0] > _FAILURES_CACHED_S:
            known = self._known = (now, self._work.in_trouble(limit=_FAILURES_LISTED_MAX))
        return known[1]


class RemoteEnrichment:
    """Enrichment runs in other processes."""

    def __init__(self, work: Work) -> None:
        self._trouble = _FailingSpaces(work)
        self._bell = _Notifier(work)

    def notify(self, tenant: str, owner: str) -> None:  # noqa: ARG002 - the database knows which
        """Signal that this space has new entries."""
        self._bell.ring()

    def yield_to_requests(self) -> AbstractContextManager[None]:
        """No enrichment runs in this process, so nothing has to yield."""
        return nullcontext()

    def failing(self) -> dict[tuple[str, str], int]:
        """Spaces whose enrichment fails, with the number of attempts."""
        return self._trouble.spaces()

    def close(self) -> None:
        self._bell.close()


class ClusterWorker:
    """Runs until closed: one thread works, one renews the lease, and one listens for notifications."""

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
        """`daily` is called for every space without pending work; it decides whether anything is due."""
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
            for name, target in (
                ("worker", self._run),
                ("lease", self._renew_loop),
                ("listener", self._listen),
            )
        ]

    def begin(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def notify(self, tenant: str, owner: str) -> None:  # noqa: ARG002 - the database knows which
        """Signal that this space has new entries, to this worker and to idle ones elsewhere."""
        self._heard.set()
        self._bell.ring()

    def yield_to_requests(self) -> AbstractContextManager[None]:
        """While the context is open, this process is answering a request and background steps yield."""
        return self._shift.yield_to_requests()

    def failing(self) -> dict[tuple[str, str], int]:
        """Spaces whose enrichment fails, with the number of attempts."""
        return self._trouble.spaces()

    def close(self) -> None:
        """Finish the current step, give the space back, and stop."""
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
        """Lease one space and run a batch; return False if no space has pending work. Raises `StorageError`."""
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
            self._release()
        return True

    def do_jobs(self) -> None:
        """Run the cluster jobs that are due and not claimed by another worker. Raises `StorageError`."""
        now = self._clock()
        for job in self._jobs:
            period = job.period(now)
            if self._settled.get(job.name) != period and not self._stopped.is_set():
                self._do_job(job, period)

    # ── threads ────────────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        troubles = 0
        while not self._stopped.is_set():
            self._heard.clear()
            try:
                if self._jobs_due():
                    self.do_jobs()
                found = self.step()
                troubles = 0
            except Exception as exc:  # noqa: BLE001 - the edge of a thread: the database is unreachable, or there is a bug
                troubles += 1
                said = {"reason": str(exc)} if isinstance(exc, StorageError) else {}
                _say(logging.WARNING, "worker step failed", exc, holder=self.holder, error=_code(exc), **said)
                self._stopped.wait(_wait(troubles, _AWAY_MAX_S))
                continue
            if not found:
                self._heard.wait(_POLL_INTERVAL_S * random.uniform(0.75, 1.25))  # noqa: S311 - jitter
                self._stopped.wait(_BREATH_S)

    def _renew_loop(self) -> None:
        """Renew the lease while a batch runs, and report that this worker is alive."""
        while True:
            try:
                self._renew_lease()
                self._work.report(self.holder, self._done)
            except StorageError:
                pass  # the working thread logs it
            except Exception as exc:  # noqa: BLE001 - the edge of a thread that must not end
                _say(logging.ERROR, "cannot renew the lease", exc, holder=self.holder, error=_code(exc))
            if self._stopped.is_set() and not self._threads[0].is_alive():
                return
            self._wait_to_renew()

    def _renew_lease(self) -> None:
        """Renew the current lease. A lost lease is not renewed again; the working thread notices when it writes."""
        with self._lock:
            held = self._held
        if held is None or held is self._lost or self._work.renew(held, length=self._length):
            return
        with self._lock:
            self._lost = held
            through = self._held is not held
        if not through:
            _say(logging.WARNING, "lease lost", **_space(held))

    def _release(self) -> None:
        """Stop renewing before the result is reported; else the renewing thread takes a returned lease for a lost one."""
        with self._lock:
            self._held = None

    def _wait_to_renew(self) -> None:
        length = min(_REPORT_EVERY_S, self._length / SECOND / 3)
        if self._stopped.is_set():
            self._threads[0].join(length)
        else:
            self._stopped.wait(length)

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                self._work.listen(self._heard.set, self._stopped)
            except Exception as exc:  # noqa: BLE001 - the edge of a thread that must not end
                _say(
                    logging.ERROR,
                    "cannot listen for notifications",
                    exc,
                    holder=self.holder,
                    error=_code(exc),
                )
                self._stopped.wait(_RELISTEN_DELAY_S)

    # ── one space ──────────────────────────────────────────────────────────────────────────────────────────────

    def _work_at(self, lease: Lease) -> None:
        try:
            if lease.error == LOST and lease.failures >= self._failures_max:
                self._mark_dead(lease, LOST)
                return
            if self._run_batch(lease):
                return
            self._release()
            self._work.give_back(lease, got_on=not self._stopped.is_set())
        except Exception as exc:  # noqa: BLE001 - one failing space must not stop the worker
            self._failed(lease, exc)

    def _run_batch(self, lease: Lease) -> bool:
        """Run a batch; return whether the space is marked as having no pending work."""
        with self._stores.open(lease.tenant, lease.owner, create=False) as store:
            with store.read() as reader:
                seen = _change_marker(reader)
            try:
                more = self._shift.work(store)
            except LLMFailed:  # facts need the LLM, vectors do not
                for _ in range(_SHIFTS_WITHOUT_READING):
                    if not self._shift.work(store, reading=False):
                        break
                raise
        if more or self._stopped.is_set():
            return False
        self._daily(lease.tenant, lease.owner)
        self._release()
        return self._work.finish(lease, lambda reader: self._rest(reader, seen))

    def _rest(self, reader: Reader, seen: tuple[int, int, int]) -> NoWork | None:
        """Called while no writer can commit. If nothing arrived since the last step, the space has no work until an open
        conversation has paused long enough."""
        if _change_marker(reader) != seen or reader.state.marks().derived < reader.state.marks().cursor:
            return None
        untold = reader.episodes.pending(before=_FOREVER, limit=1)
        return NoWork(max(SECOND, untold[0].last_at + _PAUSE - self._clock()) if untold else None)

    def _failed(self, lease: Lease, error: Exception) -> None:
        self._release()
        self._done.failures += 1
        code = _code(error)
        counted = not _is_shared_failure(error)
        _say(logging.WARNING, "space failed", error, error=code, attempts=lease.attempts + 1, **_space(lease))
        with suppress(StorageError):  # the lease expires by itself
            if counted and lease.failures + 1 >= self._failures_max:
                self._mark_dead(lease, code)
            else:
                wait = int(_wait(lease.attempts + 1) * SECOND)
                self._work.fail(lease, error=code, length=wait, counted=counted)

    def _mark_dead(self, lease: Lease, code: str) -> None:
        self._release()
        self._work.bury(lease, error=code)
        _say(logging.ERROR, "space is a dead letter", error=code, attempts=lease.attempts, **_space(lease))

    def _count_step(self) -> None:
        self._done.steps += 1

    # ── cluster jobs ───────────────────────────────────────────────────────────────────────────────────

    def _jobs_due(self) -> bool:
        now = self._clock()
        if self._jobs_at is not None and self._jobs_at <= now < self._jobs_at + _JOBS_EVERY_S * SECOND:
            return False
        self._jobs_at = now
        return True

    def _do_job(self, job: ClusterJob, period: str) -> None:
        name = (job.name, period, self.holder)
        state = self._work.claim_job(*name, length=self._length)
        if state is Job.YOURS:
            try:
                job.run(lambda: self._work.renew_job(*name, length=self._length))
            except Exception as exc:  # noqa: BLE001 - a failing job must not stop the worker
                _say(logging.WARNING, "job failed", exc, job=job.name, period=period, error=_code(exc))
                self._work.put_job_off(*name, length=int(_JOBS_EVERY_S * SECOND))
                return
            if self._work.finish_job(*name, kept=job.retention):
                _say(logging.INFO, "job done", job=job.name, period=period)
                state = Job.DONE
        if state is Job.DONE:
            self._settled[job.name] = period


def cluster_jobs(
    work: Work, *, usage: Callable[[], None], model: str | None, index: Callable[[], object] | None = None
) -> tuple[ClusterJob, ...]:
    """The jobs of an installation. `usage` drops old usage records, `model` names the embedding model, if any, and `index`
    builds vector indexes for large spaces."""

    def tidy(_renew: Callable[[], bool]) -> None:
        usage()
        work.add_up(kept=DAY)

    daily = (
        ClusterJob("tidy", day_of, tidy),
        ClusterJob("look-after", day_of, lambda renew: work.schedule(_MAINTENANCE_INTERVAL, renew=renew)),
    )
    if model is None:
        return daily
    # Periods of other models are not remembered: switching back to a model embeds everything again.
    embed = ClusterJob("embed", lambda _now: model, lambda renew: work.schedule(0, renew=renew), retention=0)
    if index is None:
        return (*daily, embed)

    def indexed(_renew: Callable[[], bool]) -> None:
        index()

    return (*daily, embed, ClusterJob("index", _hour_of, indexed))


def _hour_of(now: Instant) -> str:
    return str(now // (3_600 * SECOND))


def _change_marker(reader: Reader) -> tuple[int, int, int]:
    """A value that changes when an entry arrives or the projection is reset."""
    marks = reader.state.marks()
    return reader.ledger.head().position, marks.cursor, marks.generation


def _wait(tries: int, longest: float = _WAIT_MAX_S) -> float:
    """Exponential back-off with jitter."""
    length = min(longest, _WAIT_FIRST_S * 2.0 ** min(tries - 1, 20))
    return length * random.uniform(0.5, 1.0)  # noqa: S311


def _is_shared_failure(error: Exception) -> bool:
    """Whether the failure concerns all spaces (database, network) rather than this one."""
    if isinstance(error, StorageError):
        return not isinstance(error, StorageCorrupt)
    return isinstance(error, MemplaneError) and error.retryable


def _code(error: Exception) -> str:
    return error.code if isinstance(error, MemplaneError) else "internal"


def _space(lease: Lease) -> dict[str, Any]:
    return {"holder": lease.holder, "tenant": lease.tenant, "space": lease.owner}


def _say(level: int, event: str, cause: Exception | None = None, /, **fields: Any) -> None:
    """Log an event with fields; an unexpected error is logged with its traceback."""
    exc_info = cause if cause is not None and not isinstance(cause, MemplaneError) else None
    _log.log(level, event, exc_info=exc_info, extra={"fields": fields})
