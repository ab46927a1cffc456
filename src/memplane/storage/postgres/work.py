"""`Work` in a table of the database. Nothing here is synced: what a power failure loses is checked again."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import Connection

from memplane.clock import Instant
from memplane.storage.postgres.connections import Connections
from memplane.storage.postgres.place import SpaceKey
from memplane.storage.postgres.statements import CATALOG_DIALECT, PostgresConnection
from memplane.storage.session import ReadSession
from memplane.storage.statements import load
from memplane.storage.store import Reader
from memplane.storage.work import Backlog, DeadSpace, Job, Lease, NoWork, WorkerCounts, WorkerInfo

_SQL = {
    name: sql.encode()
    for name, sql in load(CATALOG_DIALECT, ("memplane.storage.postgres", ["work.sql"])).items()
}
_JOT = "SET LOCAL synchronous_commit = off"
_CHANNEL = "memplane_work"
_AWAKENED_AT_ONCE = 1_000
_SCHEDULED_AT_ONCE = 5_000
_LISTEN_S = 0.25
_AGAIN_S = 5.0


class PostgresWork:
    """See `Work`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def take(self, holder: str, *, after: int, length: Instant) -> Lease | None:
        with self._connections.transaction(f"BEGIN; {_JOT}") as connection:
            _run(connection, "awaken", limit=_AWAKENED_AT_ONCE)
            for beyond in (after, 0):
                found = _run(connection, "take", holder=holder, after=beyond, length=length)
                if found:
                    return Lease(*found[0])
        return None

    def renew(self, lease: Lease, *, length: Instant) -> bool:
        return bool(self._of(lease, "renew", length=length))

    def give_back(self, lease: Lease, *, got_on: bool) -> None:
        self._of(lease, "give_back", got_on=got_on)

    def finish(self, lease: Lease, decide: Callable[[Reader], NoWork | None]) -> bool:
        place = SpaceKey(lease.tenant_number, lease.owner_number)
        with self._connections.transaction(f"{place.locked()}; {_JOT}") as connection:
            rest = decide(Reader(ReadSession(PostgresConnection(connection, place), lease.owner)))
            if rest is None:
                return False
            if rest.length is None:
                return bool(_run(connection, "clear", **_key(lease)))
            return bool(_run(connection, "rest", **_key(lease), length=rest.length))

    def fail(self, lease: Lease, *, error: str, length: Instant, counted: bool) -> None:
        self._of(lease, "fail", error=error, length=length, counted=int(counted))

    def bury(self, lease: Lease, *, error: str) -> None:
        self._of(lease, "bury", error=error)

    def dead(self, *, limit: int) -> list[DeadSpace]:
        return [DeadSpace(*row) for row in self._read("dead", limit=limit)]

    def retry(self, tenant: str | None = None, owner: str | None = None) -> int:
        every = tenant is None and owner is None
        return len(self._write("retry", every=every, tenant=tenant or "", owner=owner or ""))

    def backlog(self) -> Backlog:
        ((waiting, held, resting, dead, failing, oldest, behind),) = self._read("backlog")
        return Backlog(
            waiting=waiting,
            held=held,
            resting=resting,
            dead=dead,
            failing=failing,
            oldest=oldest,
            behind=behind,
        )

    def in_trouble(self, *, limit: int) -> dict[tuple[str, str], int]:
        return {(tenant, owner): tries for tenant, owner, tries in self._read("in_trouble", limit=limit)}

    def schedule(self, within: Instant, *, renew: Callable[[], bool]) -> None:
        last = (0, 0)
        while True:
            found = self._write(
                "schedule", tenant=last[0], number=last[1], limit=_SCHEDULED_AT_ONCE, within=within
            )
            if not found or not renew():
                return
            last = found[0]

    def claim_job(self, name: str, period: str, holder: str, *, length: Instant) -> Job:
        found = self._read("job", name=name, period=period)
        if found == [(True,)]:
            return Job.DONE
        if self._write("take_job", name=name, period=period, holder=holder, length=length):
            return Job.YOURS
        return Job.ELSEWHERE

    def renew_job(self, name: str, period: str, holder: str, *, length: Instant) -> bool:
        return bool(self._write("renew_job", name=name, period=period, holder=holder, length=length))

    def finish_job(self, name: str, period: str, holder: str, *, kept: Instant) -> bool:
        with self._connections.transaction("BEGIN") as connection:
            done = _run(connection, "finish_job", name=name, period=period, holder=holder)
            if done:
                _run(connection, "forget_jobs", name=name, period=period, kept=kept)
        return bool(done)

    def put_job_off(self, name: str, period: str, holder: str, *, length: Instant) -> None:
        self._write("give_job_back", name=name, period=period, holder=holder, length=length)

    def report(self, holder: str, done: WorkerCounts, *, ended: bool = False) -> None:
        self._write(
            "report",
            holder=holder,
            ended=ended,
            taken=done.taken,
            steps=done.steps,
            failures=done.failures,
            lost=done.lost,
        )

    def colleagues(self, *, silent: Instant) -> list[WorkerInfo]:
        found = self._read("workers", silent=silent)
        return [
            WorkerInfo(holder, began, seen, ended, WorkerCounts(*done))
            for holder, began, seen, ended, *done in found
        ]

    def worked(self) -> WorkerCounts:
        return WorkerCounts(*self._read("worked")[0])

    def add_up(self, *, kept: Instant) -> None:
        self._write("add_up", kept=kept)

    def ring(self) -> None:
        with self._connections.transaction(f"BEGIN; {_JOT}") as connection:
            connection.execute(f"NOTIFY {_CHANNEL}".encode())

    def listen(self, heard: Callable[[], None], stopped: threading.Event) -> None:
        while not stopped.is_set():
            with suppress(psycopg.Error), self._connections.alone() as connection:
                connection.execute(f"LISTEN {_CHANNEL}".encode())
                heard()  # for notifications before LISTEN
                while not stopped.is_set():
                    for _ in connection.notifies(timeout=_LISTEN_S, stop_after=1):
                        heard()
            stopped.wait(_AGAIN_S)

    def _of(self, lease: Lease, query: str, **parameters: Any) -> list[Any]:
        return self._write(query, **_key(lease), **parameters)

    def _read(self, query: str, **parameters: Any) -> list[Any]:
        with self._connections.transaction("BEGIN READ ONLY") as connection:
            return _run(connection, query, **parameters)

    def _write(self, query: str, **parameters: Any) -> list[Any]:
        with self._connections.transaction(f"BEGIN; {_JOT}") as connection:
            return _run(connection, query, **parameters)


def _run(connection: Connection[Any], query: str, **parameters: Any) -> list[Any]:
    cursor = connection.execute(_SQL[query], parameters, binary=True)
    return [] if cursor.description is None else cursor.fetchall()


def _key(lease: Lease) -> dict[str, Any]:
    return {"tenant": lease.tenant_number, "number": lease.owner_number, "holder": lease.holder}
