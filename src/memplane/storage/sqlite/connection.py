"""Open a SQLite file, and translate the errors of apsw."""

import errno
import json
from pathlib import Path

import apsw

from memplane.errors import (
    KeyMismatch,
    SettingsInvalid,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageUnavailable,
)

BUSY_MS = 60_000
CIPHER = "aegis"  # AEGIS-256: authenticated, 256-bit key
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
PLAIN_HEADER = b"SQLite format 3\0"
CACHE_KIB = 8_192
"""The largest page cache of one connection."""

_KEY_HEX_CHARS = 64
_LOG_BYTES = 16 * 1024 * 1024
"""The write-ahead log is moved into the file when it is this long."""
PAGE_BYTES = 1_024
"""Of new files. A space has about a hundred tables and indexes, and each takes a page at least: with 4,096 bytes an empty space was
four times as large. A large one grows by a tenth. Older files keep theirs."""


def parse_key(value: str) -> str:
    """Check a key: 32 bytes as 64 hexadecimal digits."""
    key = value.strip().lower()
    if len(key) != _KEY_HEX_CHARS or not all(c in "0123456789abcdef" for c in key):
        raise SettingsInvalid(
            "the encryption key must be 64 hexadecimal digits (32 bytes); `memplane encryption generate` makes one"
        )
    return key


def connect(
    path: Path, key: str | None, *, create: bool = False, cache_kib: int = CACHE_KIB
) -> apsw.Connection:
    """Open one file. Raises `KeyMismatch` if it is encrypted with another key."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    with translate_sqlite_errors(path):
        connection = apsw.Connection(str(path), flags=flags)
    try:
        with translate_sqlite_errors(path):
            if create:
                connection.pragma("page_size", PAGE_BYTES)
            _configure(connection, path, key, cache_kib)
    except BaseException:
        connection.close()
        raise
    return connection


def use_key(connection: apsw.Connection, key: str | None) -> None:
    if key is not None:
        connection.pragma("cipher", CIPHER)
        connection.pragma("key", f"raw:{key}")


def _configure(connection: apsw.Connection, path: Path, key: str | None, cache_kib: int) -> None:
    connection.set_busy_timeout(BUSY_MS)
    connection.convert_binding = _bind_list
    # A process with the wrong key must not checkpoint the log of a crashed one when it closes the file.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    use_key(connection, key)
    _check_key(connection, path, key)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    connection.pragma("temp_store", "memory")  # a sort or a statement journal must not reach the disk
    connection.pragma("secure_delete", "on")
    connection.pragma("synchronous", "full")
    connection.wal_autocheckpoint(_LOG_BYTES // connection.pragma("page_size"))
    connection.pragma("cache_size", -cache_kib)
    connection.pragma("trusted_schema", "off")
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # Without it, a parameter that may decide whether a partial index serves has the statement prepared again with every
    # value, which takes longer than the statement. Where such an index must serve, its condition is written out.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def _bind_list(_cursor: object, _number: int, value: object) -> str:
    """A list as a parameter is JSON."""
    return json.dumps(value)


def _check_key(connection: apsw.Connection, path: Path, key: str | None) -> None:
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.NotADBError as exc:
        plain = is_plain(path)
        if plain and key is not None:
            raise KeyMismatch(
                f"{path.name} is not encrypted but a key is set; `memplane encryption rotate` encrypts it, "
                "or unset MEMPLANE_KEY"
            ) from exc
        if plain:
            raise StorageCorrupt(f"{path.name} is damaged: {exc}; restore it from a backup") from exc
        if key is None:
            raise KeyMismatch(
                f"{path.name} is encrypted or not a database; set MEMPLANE_KEY or MEMPLANE_KEY_FILE"
            ) from exc
        raise KeyMismatch(f"the key does not fit {path.name}; set the key it was written with") from exc


def is_plain(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(PLAIN_HEADER)) == PLAIN_HEADER


class translate_sqlite_errors:  # noqa: N801 - used like the function it would be, were that not too slow
    """Translates the errors of apsw."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, apsw.Error):
            translated = _translated(error, self._path)
            if translated is not None:
                raise translated from error


def _translated(error: apsw.Error, path: Path) -> StorageError | None:  # noqa: PLR0911 - a table
    name = path.name
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return StorageBusy(
                f"{name}: another process held it for over {BUSY_MS // 1000} s; nothing was written, try again"
            )
        case apsw.Error() if isinstance(error, apsw.FullError) or _no_room(error):
            return StorageFull(f"{name}: no room left on the device; nothing was written, free some space")
        case apsw.CantOpenError() | apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StorageUnavailable(
                f"{path}: cannot be opened for writing ({error}); check that it is yours"
            )
        case apsw.IOError():
            return StorageUnavailable(
                f"{path}: the disk reported an error ({error}); nothing was written, check the device"
            )
        case apsw.ConnectionClosedError():
            return StorageUnavailable(f"{name} was closed while it was in use; open it again")
        case apsw.CorruptError() | apsw.NotADBError():
            return StorageCorrupt(
                f"{name} is damaged ({error}) and was left as it is; restore it from a backup, or move it away "
                "and import an export into a new one"
            )
        case _:
            return None


def _no_room(exc: apsw.Error) -> bool:
    return getattr(exc, "system_errno", None) in NO_ROOM
