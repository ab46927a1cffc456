"""`Credentials` in the catalog database."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import apsw
import msgspec

from memplane.clock import Instant
from memplane.errors import StorageError
from memplane.storage import queries
from memplane.storage.credentials import KeyRecord
from memplane.storage.sqlite.connection import BUSY_MS, connect, translate_errors
from memplane.storage.sqlite.files import check_file, create_file
from memplane.storage.sqlite.migrate import migrate

PACKAGE = "memplane.storage.sqlite.catalog"
SQL = queries.load(PACKAGE)

_NOTE_WAIT_MS = 20
_FIELDS = KeyRecord.__struct_fields__
_LISTS = frozenset({"spaces", "doors", "rights"})

_names = msgspec.json.Decoder(tuple[str, ...])

T = TypeVar("T")


class SqliteCredentials:
    """One connection reads and one writes, so that nobody who knocks waits for a writer. The file comes into being with
    the first write: looking for keys where there are none leaves no trace."""

    def __init__(self, path: Path, key: str | None) -> None:
        self._path = path
        self._key = key
        self._reader: apsw.Connection | None = None
        self._writer: apsw.Connection | None = None
        self._reading = threading.Lock()
        self._writing = threading.Lock()

    def add(self, record: KeyRecord, *, once: str | None = None) -> bool:
        def work(connection: apsw.Connection) -> bool:
            if once is not None and not connection.execute(SQL["first_time"], {"word": once}).fetchall():
                return False
            connection.execute(SQL["add_key"], _row(record))
            return True

        return self._write(work)

    def key(self, key_id: str) -> KeyRecord | None:
        found = self._read("key", id=key_id)
        return _record(found[0]) if found else None

    def keys_of_agent(self, agent: str) -> Sequence[KeyRecord]:
        return [_record(row) for row in self._read("keys_of_agent", agent=agent)]

    def list_keys(self) -> Sequence[KeyRecord]:
        return [_record(row) for row in self._read("keys")]

    def revoke(self, key_id: str, at: Instant) -> KeyRecord | None:
        if self.key(key_id) is None:
            return None
        self._write(lambda connection: connection.execute(SQL["revoke"], {"id": key_id, "at": at}))
        return self.key(key_id)

    def touch(self, key_id: str, at: Instant) -> None:
        self._note(lambda connection: connection.execute(SQL["touch"], {"id": key_id, "at": at}))

    def lock(self, place: bytes, until: Instant, *, now: Instant) -> None:
        def work(connection: apsw.Connection) -> None:
            connection.execute(SQL["forget_locks"], {"now": now})
            connection.execute(SQL["lock"], {"place": place, "until": until})

        self._note(work)

    def locked_until(self, place: bytes) -> Instant | None:
        found = self._read("locked_until", place=place)
        return int(found[0][0]) if found else None

    def close(self) -> None:
        with self._reading:
            if self._reader is not None:
                self._reader.close()
            self._reader = None
        with self._writing:
            if self._writer is not None:
                self._writer.close()
            self._writer = None

    def _read(self, query: str, /, **parameters: Any) -> list[Any]:
        with self._reading, translate_errors(self._path):
            if self._reader is None:
                if not self._path.exists():
                    return []
                self._reader = self._opened()
            return self._reader.execute(SQL[query], parameters).fetchall()

    def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        with self._writing:
            return self._written(work, BUSY_MS)

    def _note(self, work: Callable[[apsw.Connection], object]) -> None:
        if not self._writing.acquire(blocking=False):
            return
        try:
            with suppress(StorageError):
                self._written(work, _NOTE_WAIT_MS)
        finally:
            self._writing.release()

    def _written(self, work: Callable[[apsw.Connection], T], wait_ms: int) -> T:
        with translate_errors(self._path):
            if self._writer is None:
                if not self._path.exists():
                    create_file(self._path, self._key, package=PACKAGE)
                self._writer = self._opened()
            connection = self._writer
            connection.set_busy_timeout(wait_ms)
            connection.execute("BEGIN IMMEDIATE")
            try:
                done = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return done

    def _opened(self) -> apsw.Connection:
        check_file(self._path)
        connection = connect(self._path, self._key)
        try:
            migrate(connection, self._path.name, package=PACKAGE)
        except BaseException:
            connection.close()
            raise
        return connection


def _row(record: KeyRecord) -> tuple[Any, ...]:
    return tuple(_column(name, getattr(record, name)) for name in _FIELDS)


def _column(name: str, value: Any) -> Any:
    return msgspec.json.encode(value).decode() if name in _LISTS and value is not None else value


def _record(row: Sequence[Any]) -> KeyRecord:
    fields = dict(zip(_FIELDS, row, strict=True))
    for name in _LISTS:
        if fields[name] is not None:
            fields[name] = _names.decode(fields[name])
    return KeyRecord(**fields)
