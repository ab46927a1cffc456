"""A bounded pool of connections, each in the role that sees one space at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import Connection, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool

from memplane.errors import SettingsInvalid, StorageUnavailable
from memplane.storage.postgres.errors import translate_errors
from memplane.storage.postgres.large import index_large_spaces
from memplane.storage.postgres.migrate import ROLE, SCHEMA, migrate, tables
from memplane.storage.postgres.text import adapt

CONNECTIONS_MAX = 20
_WAIT_S = 30.0
_IDLE_S = 300.0
_TRIES = 3
_REWRITE_WAIT_MS = 2_000
_SETTINGS = {
    "statement_timeout": "60s",
    "lock_timeout": "60s",
    "idle_in_transaction_session_timeout": "120s",
    "search_path": f"{SCHEMA}, public",
    "client_encoding": "UTF8",
    "jit": "off",
    "hnsw.ef_search": "100",
    "hnsw.iterative_scan": "strict_order",
    "random_page_cost": "1.1",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""Each session's. A statement of ours takes milliseconds: what takes a minute is stuck.

A plan is made for a space of the usual size, and spaces differ by four orders of magnitude: what reads a whole space is
as good as a look into an index where there are a hundred rows, and not where there are a million. So every table is
looked into by an index, a row at a time, and nothing is read whole that need not be.
"""
PLANNING = {name: value for name, value in _SETTINGS.items() if name.startswith(("enable_", "random_", "jit"))}
"""Those that decide how a statement is carried out."""


class Connections:
    """Opened with the first use, migrated once. Any number of processes may share a database."""

    def __init__(self, url: str, *, connections_max: int = CONNECTIONS_MAX) -> None:
        try:
            named = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise SettingsInvalid(
                "data: this is no address of a database; write postgresql://user@host/name"
            ) from None
        self._conninfo = make_conninfo(
            **{"application_name": "memplane", "connect_timeout": 10, **named}  # type: ignore[arg-type]
        )
        self._vectors: TypeInfo | None = None
        self._pool: ConnectionPool[Connection[Any]] = ConnectionPool(
            self._conninfo,
            min_size=0,
            max_size=connections_max,
            timeout=_WAIT_S,
            max_idle=_IDLE_S,
            configure=self._configure,
            reset=_reset,
            kwargs={"autocommit": True},
            open=False,
            reconnect_timeout=_WAIT_S,
        )
        self._opened = False

    def open(self) -> None:
        """Bring the database up to date, and begin."""
        with translate_errors():
            with psycopg.connect(self._conninfo, autocommit=True) as connection:
                migrate(connection)
                self._vectors = TypeInfo.fetch(connection, "halfvec")
            if self._vectors is None:
                raise StorageUnavailable("the database has no halfvec type; pgvector 0.7 or newer is needed")
            self._pool.open()
        self._opened = True

    @contextmanager
    def transaction(self, begin: str) -> Iterator[Connection[Any]]:
        """A connection on which these statements, the first of which begins a transaction, were just run. Committed
        where the block ends well. A connection that was lost while nobody used it is replaced by another."""
        with translate_errors(), self._begun(begin) as connection:
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                _reset(connection)
                raise

    @contextmanager
    def _begun(self, begin: str) -> Iterator[Connection[Any]]:
        if not self._opened:
            self.open()
        connection = self._begin(begin)
        try:
            yield connection
        finally:
            self._pool.putconn(connection)

    def _begin(self, begin: str) -> Connection[Any]:
        for last in (False,) * _TRIES + (True,):
            connection = self._pool.getconn()
            try:
                connection.execute(begin.encode(), prepare=False)
            except psycopg.OperationalError as exc:
                lost = connection.broken
                _reset(connection)
                self._pool.putconn(connection)
                if last or not lost or exc.sqlstate == "25P03":
                    raise
            except BaseException:
                _reset(connection)
                self._pool.putconn(connection)
                raise
            else:
                return connection
        raise AssertionError("the last try returns or raises")

    def rewrite(self) -> bool:
        """Write every table anew, without what was deleted; False where somebody is in the middle of using one."""
        with translate_errors(), psycopg.connect(self._conninfo, autocommit=True) as connection:
            connection.execute(f"SET lock_timeout = '{_REWRITE_WAIT_MS}ms'".encode())
            try:
                for table in tables(connection):
                    connection.execute(f"VACUUM (FULL) {SCHEMA}.{table}".encode())
            except errors.LockNotAvailable:
                return False
        return True

    def index_large_spaces(self, large: int) -> int:
        """See `PostgresStores`."""
        if not self._opened:
            self.open()
        with translate_errors():
            return len(index_large_spaces(self._conninfo, large=large))

    def close(self) -> None:
        self._pool.close()

    def _configure(self, connection: Connection[Any]) -> None:
        assert self._vectors is not None
        adapt(connection, self._vectors)
        settings = "; ".join(f"SET {name} = {_value(value)}" for name, value in _SETTINGS.items())
        connection.execute(f"{settings}; SET ROLE {ROLE}".encode(), prepare=False)


def _value(value: str) -> str:
    return value if "," in value else f"'{value}'"


def _reset(connection: Connection[Any]) -> None:
    """Whatever was under way on it is undone; one that cannot is thrown away."""
    if connection.closed or connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
        return
    try:
        connection.execute("ROLLBACK", prepare=False)
    except psycopg.Error:
        connection.close()
