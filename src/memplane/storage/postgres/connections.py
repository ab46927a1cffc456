"""A bounded pool of connections, in the role that sees one space at a time."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, NamedTuple

import psycopg
from psycopg import Connection, errors
from psycopg.conninfo import make_conninfo
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool, PoolTimeout

from memplane.errors import StorageUnavailable, StorageUncertain
from memplane.storage.postgres.address import address_of
from memplane.storage.postgres.errors import translate_postgres_errors
from memplane.storage.postgres.indexing import index_large_spaces
from memplane.storage.postgres.migrate import ROLE, SCHEMA, migrate, tables
from memplane.storage.postgres.text import adapt

CONNECTIONS_MAX = 20
STATEMENT_SECONDS_MAX = 60
"""Statements take milliseconds: one that takes a minute is stuck."""
_WAIT_S = 30.0
"""How long a caller waits for a connection: for one that is in use, or for the server to come back."""
_RECONNECT_S = 0.2
"""How long the pool retries by itself. A waiting caller makes it try again, so that pauses stay short."""
_TURN_S = 1.0
_LOOK_S = 3
"""How long the database may take to say why there is no connection."""
_IDLE_S = 300.0
_PREPARED_MAX = 500
"""Each connection plans a statement once, with its first use: planning takes longer than execution."""
_REWRITE_WAIT_MS = 2_000
_SHORTEST_S = 0.01
SESSION_SETTINGS = {
    "idle_in_transaction_session_timeout": "120s",
    "search_path": f"{SCHEMA}, public",
    "client_encoding": "UTF8",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "hnsw.iterative_scan": "strict_order",
    "plan_cache_mode": "force_generic_plan",
    "random_page_cost": "1.1",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
}
"""The settings of each session.

One plan serves all spaces, and these differ by four orders of magnitude: a full scan is as good as an index for
a hundred rows, and not for a million. So every table is read through an index, row by row.
"""

# The pool retries five times a second, and would log each time. A waiting caller gets an error with the reason.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class _Pools(NamedTuple):
    """The pool for everything, and one for a thread that holds a connection and needs another to finish, such
    as a forget that notes its receipt. With one pool, such threads could wait for each other for ever."""

    first: ConnectionPool[Connection[Any]]
    second: ConnectionPool[Connection[Any]]


class _ThreadState(threading.local):
    """The pools of the connections that this thread holds."""

    def __init__(self) -> None:
        self.pools: list[ConnectionPool[Connection[Any]]] = []


class Connections:
    """Connections to a database, opened and migrated with the first use. Any number of processes may share a
    database."""

    def __init__(
        self,
        url: str,
        *,
        connections_max: int = CONNECTIONS_MAX,
        statement_seconds_max: int = STATEMENT_SECONDS_MAX,
        wait_s: float = _WAIT_S,
    ) -> None:
        self._conninfo, self._where = address_of(url)
        self._connections_max = connections_max
        self._wait_s = wait_s
        self._vectors: TypeInfo | None = None
        patience = f"{statement_seconds_max:d}s"
        self._settings = {**SESSION_SETTINGS, "statement_timeout": patience, "lock_timeout": patience}
        self._pools = self._made()
        self._parents: _Pools | None = None
        """Kept and never used, so that a child process does not clean up its parent's pools."""
        self._process = os.getpid()
        self._held = _ThreadState()
        self._opened = False
        self.losses = 0
        """How often a connection was lost: the server may have been replaced or restored since."""

    def open(self) -> None:
        """Migrate the database and open the pools."""
        with translate_postgres_errors(self._where):
            with psycopg.connect(self._conninfo, autocommit=True) as connection:
                migrate(connection)
                self._vectors = TypeInfo.fetch(connection, "halfvec")
            if self._vectors is None:
                raise StorageUnavailable(
                    "the database has no halfvec type any more; run CREATE EXTENSION vector in it as a superuser"
                )
            for pool in self._pools:
                pool.open()
        self._opened = True

    @contextmanager
    def transaction(self, begin: str, *, wait_s: float | None = None) -> Iterator[Connection[Any]]:
        """A connection on which these statements were run, the first of which begins a transaction. Leaving the
        block commits. A connection that was lost while idle is replaced. Raises `StorageUncertain` if one is
        lost during the commit of a write."""
        try:
            with translate_postgres_errors(self._where), self._begun(begin, wait_s) as connection:
                try:
                    yield connection
                except BaseException as exc:
                    self._undo(connection, exc)
                    raise
                _commit(connection, reads="READ ONLY" in begin)
        except BaseException as exc:
            if not isinstance(exc, Exception | GeneratorExit):
                self._reset_pool()
            raise

    @contextmanager
    def alone(self) -> Iterator[Connection[Any]]:
        """A connection outside the pools, for a caller who waits for long."""
        with psycopg.connect(self._conninfo, autocommit=True) as connection:
            yield connection

    def rewrite(self) -> bool:
        """Rewrite every table without deleted rows; False if one is in use."""
        with (
            translate_postgres_errors(self._where),
            psycopg.connect(self._conninfo, autocommit=True) as connection,
        ):
            connection.execute(f"SET lock_timeout = '{_REWRITE_WAIT_MS}ms'".encode())
            try:
                for table in tables(connection):
                    connection.execute(f"VACUUM (FULL) {SCHEMA}.{table}".encode())
            except errors.LockNotAvailable:
                return False
        return True

    def index_large_spaces(self, large: int) -> int:
        """See `PostgresEngine.index_vectors`."""
        if not self._opened:
            self.open()
        with translate_postgres_errors(self._where):
            return len(index_large_spaces(self._conninfo, large=large))

    def close(self) -> None:
        for pool in self._pools:
            pool.close()

    @contextmanager
    def _begun(self, begin: str, wait_s: float | None) -> Iterator[Connection[Any]]:
        if self._process != os.getpid():
            self._leave_to_parent()
        if not self._opened:
            self.open()
        held = self._held
        pool = self._pools.second if held.pools else self._pools.first
        connection = self._begin(pool, begin, self._wait_s if wait_s is None else wait_s)
        pools = held.pools
        pools.append(pool)
        try:
            yield connection
        finally:
            pools.remove(pool)  # of the thread that began it; another may end it
            self.losses += connection.broken
            pool.putconn(connection)

    def _begin(self, pool: ConnectionPool[Connection[Any]], begin: str, wait_s: float) -> Connection[Any]:
        until = monotonic() + wait_s
        while True:
            connection = self._taken(pool, until)
            try:
                connection.execute(begin.encode(), prepare=False)
            except BaseException as exc:
                lost = connection.broken
                self.losses += lost
                self._undo(connection, exc)
                pool.putconn(connection)
                if not lost or not isinstance(exc, psycopg.OperationalError) or monotonic() >= until:
                    raise
            else:
                return connection

    def _taken(self, pool: ConnectionPool[Connection[Any]], until: float) -> Connection[Any]:
        while True:
            try:
                return pool.getconn(timeout=min(max(until - monotonic(), _SHORTEST_S), _TURN_S))
            except PoolTimeout:
                if monotonic() < until:
                    continue
                # Either all are in use, or the server accepts none: a new connection tells which.
                psycopg.connect(make_conninfo(self._conninfo, connect_timeout=_LOOK_S)).close()
                raise

    def _undo(self, connection: Connection[Any], error: BaseException) -> None:
        """Roll back. A server that rejects writes is not the primary any more: then all connections are
        replaced, with ones to the new primary."""
        if isinstance(error, errors.ReadOnlySqlTransaction):
            connection.close()
            for pool in self._pools:
                pool.drain()
        _reset(connection)

    def _reset_pool(self) -> None:
        """Replace the pools after an interrupt, which may have come in the middle of their own work."""
        left, self._pools, self._opened = self._pools, self._made(), False
        for pool in left:
            pool.close(timeout=0)

    def _leave_to_parent(self) -> None:
        """After a fork, the connections belong to the process that made them."""
        self._parents, self._pools = self._pools, self._made()
        self._held = _ThreadState()
        self._process, self._opened = os.getpid(), False

    def _made(self) -> _Pools:
        return _Pools(self._pool(max(1, self._connections_max - 1)), self._pool(1))

    def _pool(self, connections_max: int) -> ConnectionPool[Connection[Any]]:
        return ConnectionPool(
            self._conninfo,
            min_size=0,
            max_size=connections_max,
            max_idle=_IDLE_S,
            configure=self._configure,
            reset=_reset,
            kwargs={"autocommit": True, "prepare_threshold": 0},
            open=False,
            reconnect_timeout=_RECONNECT_S,
        )

    def _configure(self, connection: Connection[Any]) -> None:
        assert self._vectors is not None
        adapt(connection, self._vectors)
        connection.prepared_max = _PREPARED_MAX
        settings = "; ".join(f"SET {name} = {_value(value)}" for name, value in self._settings.items())
        connection.execute(f"{settings}; SET ROLE {ROLE}".encode(), prepare=False)


def _value(value: str) -> str:
    """A list is not quoted: in quotation marks it would be one name."""
    return value if "," in value else f"'{value}'"


def _commit(connection: Connection[Any], *, reads: bool) -> None:
    try:
        connection.execute("COMMIT", prepare=False)
    except psycopg.Error as exc:
        lost = connection.broken
        _reset(connection)
        if lost and not reads:
            raise StorageUncertain(
                "the connection was lost during the commit, so this may or may not have been written; check whether it "
                "is stored, or send it again with the same id, which stores it once"
            ) from exc
        if not reads:
            raise


def _reset(connection: Connection[Any]) -> None:
    """Roll back a connection, and close it if that fails."""
    if connection.closed or connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        return
    try:
        connection.execute("ROLLBACK", prepare=False)
    except psycopg.Error:
        connection.close()
