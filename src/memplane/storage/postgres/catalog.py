"""`Catalog` in the same database as the spaces."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeVar

from psycopg import Connection

from memplane.errors import StorageError, StorageUnreachable
from memplane.storage.postgres.connections import Connections
from memplane.storage.postgres.statements import PostgresDialect, numbered
from memplane.storage.sql.catalog.catalog import CatalogWriter
from memplane.storage.sql.statements import load
from memplane.storage.sql.tables import CATALOG_MOVES

T = TypeVar("T")

_SQL = {
    name: sql.encode()
    for name, sql in load(
        PostgresDialect(of_space=False),
        ("memplane.storage.sql.catalog", ["queries.sql"]),
        ("memplane.storage.postgres", ["catalog.sql"]),
        CATALOG_MOVES,
    ).items()
}
_BY_NUMBER = frozenset(name for name, sql in _SQL.items() if b"%(_1)s" in sql)
_PROBE_S = 1.0
_JOT = "BEGIN; SET LOCAL synchronous_commit = off"
_TRY = f"{_JOT}; SET LOCAL lock_timeout = '20ms'"


class PostgresCatalogWriter:
    """See `CatalogWriter`."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def run(self, query: str, /, **parameters: Any) -> list[Any]:
        cursor = self._connection.execute(_SQL[query], parameters, binary=True)
        return [] if cursor.description is None else cursor.fetchall()

    def run_many(self, query: str, rows: list[tuple[Any, ...]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_SQL[query], [numbered(row) for row in rows] if query in _BY_NUMBER else rows)

    def alone(self, *what: str) -> None:
        number = int.from_bytes(sha256("\x00".join(what).encode()).digest()[:8], "big", signed=True)
        self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (number,))


class PostgresCatalog:
    """See `Catalog`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def read(self, query: str, /, **parameters: Any) -> list[Any]:
        with self._connections.transaction("BEGIN READ ONLY") as connection:
            return connection.execute(_SQL[query], parameters, binary=True).fetchall()

    def listed(self, values: Iterable[str]) -> list[str]:
        return sorted(values)

    def write(self, work: Callable[[CatalogWriter], T]) -> T:
        return self._done("BEGIN", work)

    def jot(self, work: Callable[[CatalogWriter], T]) -> T:
        return self._done(_JOT, work)

    def try_jot(self, work: Callable[[CatalogWriter], object]) -> None:
        with suppress(StorageError):
            self._done(_TRY, work)

    def leave_nothing(self) -> None:
        """The database cleans up after itself."""

    def probe(self) -> None:
        """Raise what the next write would meet."""
        with self._connections.transaction("BEGIN", wait_s=_PROBE_S) as connection:
            found = connection.execute(
                "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
            )
            if found.fetchone() == (True,):
                raise StorageUnreachable("the database takes no writes now: it is a standby; try again later")

    def close(self) -> None:
        """Whoever opened the connections closes them."""

    def _done(self, begin: str, work: Callable[[CatalogWriter], T]) -> T:
        with self._connections.transaction(begin) as connection:
            return work(PostgresCatalogWriter(connection))
