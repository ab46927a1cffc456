"""The catalog's file: one connection reads and one writes."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import ClassVar

import apsw

from memplane.storage.sqlite.budget import ConnectionBudget
from memplane.storage.sqlite.connection import translate_sqlite_errors
from memplane.storage.sqlite.database import FATAL, writing
from memplane.storage.sqlite.files import check_file, create_file
from memplane.storage.sqlite.migrate import migrate
from memplane.storage.sqlite.statements import DIALECT, SqliteConnection
from memplane.storage.statements import CATALOG, load

PACKAGE = "memplane.storage.sqlite.catalog"
SQL = load(DIALECT, *CATALOG)


class SqliteCatalog:
    """See `Database`. The file is created with the first write: reading where there is nothing leaves no trace. After `close`, it
    opens again with the next use."""

    single_writer: ClassVar[bool] = True
    own_files: ClassVar[bool] = True
    fatal: ClassVar[tuple[type[Exception], ...]] = FATAL

    def __init__(self, path: Path, key: str | None, budget: ConnectionBudget | None = None) -> None:
        self._path = path
        self._budget = budget or ConnectionBudget()
        self.key = key
        self.attached: object | None = None
        self._reader: apsw.Connection | None = None
        self._writer: apsw.Connection | None = None
        self._reading = threading.Lock()
        self._writing = threading.Lock()

    @contextmanager
    def read(self) -> Iterator[SqliteConnection]:
        with self._reading, translate_sqlite_errors(self._path):
            if self._reader is None and self._path.exists():
                self._reader = self._opened()
            if self._reader is None:
                yield SqliteConnection(apsw.Connection(":memory:"), _NOTHING)
            else:
                yield SqliteConnection(self._reader, SQL)

    def write(self, *, durable: bool = True, wait: bool = True) -> AbstractContextManager[SqliteConnection]:
        return writing(self._opened_writer, self._path, self._writing, SQL, durable=durable, wait=wait)

    def wipe(self, *, bytes_max: int | None = None, retry: bool = False) -> bool:  # noqa: ARG002 - nothing is rewritten
        """The write-ahead log holds pages as they were. Raises `StorageBusy` if a reader is active."""
        if not self._path.exists():
            return True
        with self._writing, translate_sqlite_errors(self._path):
            self._opened_writer().wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        return True

    def check(self) -> list[str]:
        with self.read():
            return []

    def close(self) -> None:
        with self._reading:
            if self._reader is not None:
                self._budget.close(self._reader)
            self._reader = None
        with self._writing:
            if self._writer is not None:
                self._budget.close(self._writer)
            self._writer = None

    def _opened_writer(self) -> apsw.Connection:
        if self._writer is None:
            with translate_sqlite_errors(self._path):
                if not self._path.exists():
                    self._budget.within_limits(lambda: create_file(self._path, self.key, package=PACKAGE))
                self._writer = self._opened()
        return self._writer

    def _opened(self) -> apsw.Connection:
        check_file(self._path)
        connection = self._budget.open(self._path, self.key)
        try:
            migrate(connection, self._path.name, package=PACKAGE)
        except BaseException:
            self._budget.close(connection)
            raise
        return connection


_NOTHING = dict.fromkeys(SQL, "SELECT 1 WHERE FALSE")
