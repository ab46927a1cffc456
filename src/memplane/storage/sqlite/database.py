"""One SQLite file, one space."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import ClassVar

import apsw

from memplane.errors import StorageBusy
from memplane.storage.sqlite.budget import ConnectionBudget
from memplane.storage.sqlite.connection import BUSY_MS, translate_sqlite_errors
from memplane.storage.sqlite.migrate import migrate
from memplane.storage.sqlite.statements import SQL, SqliteConnection
from memplane.storage.sqlite.wipe import is_larger, leave_nothing

FATAL = (apsw.FullError, apsw.IOError, apsw.CorruptError, apsw.NotADBError)

_IDLE_READERS_MAX = 4
_WIPE_WAIT_MS = 2_000
_TRY_WAIT_MS = 20


class SqliteDatabase:
    """See `Database`. One connection writes, a few read."""

    single_writer: ClassVar[bool] = True
    own_files: ClassVar[bool] = True
    fatal: ClassVar[tuple[type[Exception], ...]] = FATAL

    def __init__(self, path: Path, key: str | None, budget: ConnectionBudget | None = None) -> None:
        self.path = path
        self._budget = budget or ConnectionBudget()
        self.attached: object | None = None
        self._key = key
        self._readers: list[apsw.Connection] = []
        self._readers_lock = threading.Lock()
        self._writing = threading.Lock()
        self._writer = self._budget.open(path, key)
        try:
            with translate_sqlite_errors(path):
                migrate(self._writer, path.name)
        except BaseException:
            self._budget.close(self._writer)
            raise

    @contextmanager
    def read(self) -> Iterator[SqliteConnection]:
        connection = self._borrow()
        try:
            with translate_sqlite_errors(self.path):
                connection.execute("BEGIN")
                yield SqliteConnection(connection)
        finally:
            self._give_back(connection)

    def write(self, *, durable: bool = True, wait: bool = True) -> AbstractContextManager[SqliteConnection]:
        return writing(lambda: self._writer, self.path, self._writing, SQL, durable=durable, wait=wait)

    def wipe(self, *, bytes_max: int | None = None, retry: bool = False) -> bool:
        try:
            with self._writing, translate_sqlite_errors(self.path):
                # This blocks other writers, so a reader that takes longer is not waited for.
                self._writer.set_busy_timeout(_TRY_WAIT_MS if retry else _WIPE_WAIT_MS)
                try:
                    if retry and is_larger(self._writer, bytes_max):
                        return False
                    return leave_nothing(self._writer, bytes_max)
                finally:
                    self._writer.set_busy_timeout(BUSY_MS)
        except StorageBusy:
            return False

    def check(self) -> list[str]:
        # A new connection: FTS5 would compare the file with what a used one remembers of the index.
        connection = self._budget.open(self.path, self._key)
        try:
            with translate_sqlite_errors(self.path):
                found = [str(text) for (text,) in connection.execute("PRAGMA integrity_check").fetchall()]
        finally:
            self._budget.close(connection)
        return [] if found == ["ok"] else found

    def close(self) -> None:
        self.close_idle()
        with self._writing:
            self._budget.close(self._writer)

    def close_idle(self) -> int:
        """Close the connections that nobody reads from; returns how many."""
        with self._readers_lock:
            readers, self._readers = self._readers, []
        self._budget.reader_left(len(readers))
        for connection in readers:
            self._budget.close(connection)
        return len(readers)

    def _borrow(self) -> apsw.Connection:
        with self._readers_lock:
            if self._readers:
                self._budget.reader_left()
                return self._readers.pop()
        return self._budget.open(self.path, self._key)

    def _give_back(self, connection: apsw.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with self._readers_lock:
            if len(self._readers) < _IDLE_READERS_MAX and self._budget.may_keep_reader():
                self._readers.append(connection)
                return
        self._budget.close(connection)


@contextmanager
def writing(
    writer: Callable[[], apsw.Connection],
    path: Path,
    lock: threading.Lock,
    sql: dict[str, str],
    *,
    durable: bool,
    wait: bool,
) -> Iterator[SqliteConnection]:
    """A write transaction on the one connection that writes, which `writer` returns under the lock."""
    if not wait and lock.locked():
        raise StorageBusy(f"{path.name}: another thread is writing to it; nothing was written")
    with lock, translate_sqlite_errors(path):
        connection = writer()
        if not durable:
            connection.pragma("synchronous", "normal")
        if not wait:
            connection.set_busy_timeout(_TRY_WAIT_MS)
        try:
            if connection.in_transaction:  # an interrupt came before it could be undone
                connection.execute("ROLLBACK")
            connection.execute("BEGIN IMMEDIATE")
            yield SqliteConnection(connection, sql)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        finally:
            if not durable:
                connection.pragma("synchronous", "full")
            if not wait:
                connection.set_busy_timeout(BUSY_MS)
