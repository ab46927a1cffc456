"""The catalog: named statements about what belongs to no single space."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, TypeVar

from memplane.errors import StorageError
from memplane.storage.commit import GroupCommit
from memplane.storage.engine import Connection, Database, Row

T = TypeVar("T")


class CatalogWriter:
    """Named statements inside a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, query: str, /, **parameters: Any) -> list[Any]:
        return self._connection.execute(query, parameters)

    def run_many(self, query: str, rows: Sequence[Row]) -> None:
        self._connection.execute_many(query, rows)

    def alone(self, *what: str) -> None:
        """Wait for other transactions that name the same, and keep later ones waiting until this one ends."""
        number = int.from_bytes(sha256("\x00".join(what).encode()).digest()[:8], "big", signed=True)
        self._connection.execute("alone", {"number": number})

    def begin_work(self) -> None:
        self._connection.execute("savepoint")

    def end_work(self) -> None:
        self._connection.execute("release_savepoint")

    def undo_work(self) -> None:
        self._connection.execute("rollback_to_savepoint")
        self._connection.execute("release_savepoint")

    def finish(self) -> None:
        """Every work has written what it had to write."""


class Catalog:
    """Reads never wait for a writer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._commits = GroupCommit(self._transaction, database.fatal) if database.single_writer else None

    def read(self, query: str, /, **parameters: Any) -> list[Any]:
        """Every row; none if nothing was ever written."""
        with self._database.read() as connection:
            return connection.execute(query, parameters)

    def write(self, work: Callable[[CatalogWriter], T]) -> T:
        """Durable when it returns."""
        if self._commits is not None:
            return self._commits.run(work)
        with self._database.write() as connection:
            return work(CatalogWriter(connection))

    def write_unsynced(self, work: Callable[[CatalogWriter], T]) -> T:
        """Every process sees it when it returns, and it survives a killed process. Only a loss of power may take it, which
        saves a sync."""
        with self._database.write(durable=False) as connection:
            return work(CatalogWriter(connection))

    def try_write(self, work: Callable[[CatalogWriter], object]) -> None:
        """As `write_unsynced`; gives up silently if it would have to wait or cannot write."""
        with suppress(StorageError), self._database.write(durable=False, wait=False) as connection:
            work(CatalogWriter(connection))

    def wipe(self) -> None:
        """Leave no deleted byte on the disk, as far as the engine can."""
        self._database.wipe()

    def close(self) -> None:
        """Release every connection."""
        self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[tuple[CatalogWriter, CatalogWriter]]:
        with self._database.write() as connection:
            writer = CatalogWriter(connection)
            yield writer, writer
