"""One SQLite file, one space."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from memplane.errors import StorageBusy
from memplane.storage.base import Reader, Writer
from memplane.storage.sql.view import SqlReader
from memplane.storage.sql.writer import SqlWriter
from memplane.storage.sqlite.connection import BUSY_MS, connect, translate_sqlite_errors
from memplane.storage.sqlite.migrate import migrate
from memplane.storage.sqlite.statements import SqliteStatements
from memplane.storage.sqlite.transactions import group_commit
from memplane.storage.sqlite.wipe import leave_nothing

T = TypeVar("T")

_IDLE_READERS_MAX = 4
_WIPE_WAIT_MS = 2_000


class SqliteStore:
    """`Store` over one file: one connection writes, a few read."""

    def __init__(self, path: Path, owner: str, key: str | None) -> None:
        self.path = path
        self._owner = owner
        self._key = key
        self._readers: list[apsw.Connection] = []
        self._readers_lock = threading.Lock()
        self._writer = connect(path, key)
        try:
            with translate_sqlite_errors(path):
                migrate(self._writer, path.name)
        except BaseException:
            self._writer.close()
            raise
        self._commits = group_commit(
            self._writer, path, lambda: SqlWriter(SqliteStatements(self._writer), owner)
        )

    @contextmanager
    def read(self) -> Iterator[Reader]:
        connection = self._borrow()
        try:
            with translate_sqlite_errors(self.path):
                connection.execute("BEGIN")
                yield SqlReader(SqliteStatements(connection), self._owner)
        finally:
            self._give_back(connection)

    def write(self, work: Callable[[Writer], T]) -> T:
        return self._commits.run(work)

    def wipe(self, *, bytes_max: int | None = None) -> bool:
        try:
            with self._commits.lock, translate_sqlite_errors(self.path):
                # Whoever waits for this also keeps other writers waiting: a reader that takes longer is not worth it.
                self._writer.set_busy_timeout(_WIPE_WAIT_MS)
                try:
                    return leave_nothing(self._writer, bytes_max)
                finally:
                    self._writer.set_busy_timeout(BUSY_MS)
        except StorageBusy:
            return False

    def check(self) -> list[str]:
        # Not a reader that was used before: FTS5 would hold what that one remembers of the index against the file.
        connection = connect(self.path, self._key)
        try:
            with translate_sqlite_errors(self.path):
                found = [str(text) for (text,) in connection.execute("PRAGMA integrity_check").fetchall()]
        finally:
            connection.close()
        return [] if found == ["ok"] else found

    def close(self) -> None:
        with self._readers_lock:
            readers, self._readers = self._readers, []
        for connection in readers:
            connection.close()
        with self._commits.lock:
            self._writer.close()

    def _borrow(self) -> apsw.Connection:
        with self._readers_lock:
            if self._readers:
                return self._readers.pop()
        return connect(self.path, self._key)

    def _give_back(self, connection: apsw.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with self._readers_lock:
            if len(self._readers) < _IDLE_READERS_MAX:
                self._readers.append(connection)
                return
        connection.close()
