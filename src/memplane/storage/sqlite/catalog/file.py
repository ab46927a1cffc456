"""The catalog's file: one connection reads and one writes, for everything that belongs to no single space."""

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw

from memplane.errors import StorageError
from memplane.storage.sql.catalog.catalog import CatalogWriter
from memplane.storage.sql.commit import GroupCommit
from memplane.storage.sql.statements import load
from memplane.storage.sql.tables import CATALOG_MOVES
from memplane.storage.sqlite.connection import BUSY_MS, connect, translate_sqlite_errors
from memplane.storage.sqlite.files import check_file, create_file
from memplane.storage.sqlite.migrate import migrate
from memplane.storage.sqlite.statements import SqliteDialect
from memplane.storage.sqlite.transactions import group_commit

PACKAGE = "memplane.storage.sqlite.catalog"
SQL = load(SqliteDialect(), ("memplane.storage.sql.catalog", ["queries.sql"]), CATALOG_MOVES)

_NOTE_WAIT_MS = 20

T = TypeVar("T")


class SqliteCatalogWriter:
    """Named queries inside a transaction that several callers may share."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def run(self, query: str, /, **parameters: Any) -> list[Any]:
        return self._connection.execute(SQL[query], parameters).fetchall()

    def run_many(self, query: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(SQL[query], rows)

    def alone(self, *what: str) -> None:
        """Whoever writes to a file is alone."""

    def begin_work(self) -> None:
        self._connection.execute("SAVEPOINT work")

    def end_work(self) -> None:
        self._connection.execute("RELEASE work")

    def undo_work(self) -> None:
        self._connection.execute("ROLLBACK TO work")
        self._connection.execute("RELEASE work")

    def finish(self) -> None:
        pass


class CatalogFile:
    """Nobody who reads waits for a writer. The file comes into being with the first write: looking for something where
    there is nothing leaves no trace. Closed, it opens again with the next use."""

    def __init__(self, path: Path, key: str | None) -> None:
        self._path = path
        self.key = key
        self._reader: apsw.Connection | None = None
        self._writer: apsw.Connection | None = None
        self._commits: GroupCommit[SqliteCatalogWriter] | None = None
        self._reading = threading.Lock()
        self._opening = threading.Lock()

    def read(self, query: str, /, **parameters: Any) -> list[Any]:
        with self._reading, translate_sqlite_errors(self._path):
            if self._reader is None:
                if not self._path.exists():
                    return []
                self._reader = self._opened()
            return self._reader.execute(SQL[query], parameters).fetchall()

    def listed(self, values: Iterable[str]) -> str:
        return json.dumps(sorted(values))

    def write(self, work: Callable[[CatalogWriter], T]) -> T:
        """Durable when it returns. Callers in several threads share a sync."""
        return self._group().run(work)

    def jot(self, work: Callable[[CatalogWriter], T], *, wait_ms: int = BUSY_MS) -> T:
        """Seen by every process when it returns, and kept when this one is killed. Only a loss of power may take it,
        which saves a sync."""
        group = self._group()
        with group.lock:
            return self._jotted(work, wait_ms)

    def try_jot(self, work: Callable[[CatalogWriter], object]) -> None:
        """As `jot`; gives up silently where it would have to wait or cannot write."""
        with suppress(StorageError):
            group = self._group()
            if not group.lock.acquire(blocking=False):
                return
            try:
                self._jotted(work, _NOTE_WAIT_MS)
            finally:
                group.lock.release()

    def leave_nothing(self) -> None:
        """The write-ahead log holds pages as they were. Raises `StorageBusy` where somebody is in the middle of a read."""
        group = self._group()
        with group.lock, translate_sqlite_errors(self._path):
            assert self._writer is not None
            self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)

    def close(self) -> None:
        with self._reading:
            if self._reader is not None:
                self._reader.close()
            self._reader = None
        with self._opening:
            if self._commits is not None and self._writer is not None:
                with self._commits.lock:
                    self._writer.close()
            self._writer = self._commits = None

    def _group(self) -> GroupCommit[SqliteCatalogWriter]:
        if self._commits is not None:
            return self._commits
        with self._opening:
            if self._commits is None:
                with translate_sqlite_errors(self._path):
                    if not self._path.exists():
                        create_file(self._path, self.key, package=PACKAGE)
                    writer = self._opened()
                self._writer = writer
                self._commits = group_commit(writer, self._path, lambda: SqliteCatalogWriter(writer))
            return self._commits

    def _jotted(self, work: Callable[[CatalogWriter], T], wait_ms: int) -> T:
        connection = self._writer
        assert connection is not None
        with translate_sqlite_errors(self._path):
            connection.set_busy_timeout(wait_ms)
            connection.pragma("synchronous", "normal")
            try:
                if connection.in_transaction:  # an interrupt came before it could be undone
                    connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    done = work(SqliteCatalogWriter(connection))
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            finally:
                connection.pragma("synchronous", "full")
                connection.set_busy_timeout(BUSY_MS)
            return done

    def _opened(self) -> apsw.Connection:
        check_file(self._path)
        connection = connect(self._path, self.key)
        try:
            migrate(connection, self._path.name, package=PACKAGE)
        except BaseException:
            connection.close()
            raise
        return connection
