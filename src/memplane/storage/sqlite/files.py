"""Database files: creation, checks before opening, and key rotation."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw

from memplane.errors import (
    KeyMismatch,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageUnavailable,
)
from memplane.storage.sqlite.connection import (
    CIPHER,
    NO_ROOM,
    PLAIN_HEADER,
    connect,
    is_plain,
    translate_sqlite_errors,
)
from memplane.storage.sqlite.migrate import APPLICATION_ID, SPACE, empty, migrate
from memplane.storage.sqlite.names import SUFFIX

_FILE_BYTES_MIN = 512
_OWNER_ONLY = 0o600
_READABLE = 0o644
_SPACES = "spaces"
_BESIDE = frozenset(
    {"ahead", "audit", "backfill.lock", "databases", "lost+found", "proxy-pending", "run", "sync"}
)
"""What may be in a data directory without spaces: files that this machine keeps next to a database, and those
of a file system."""
_UNFINISHED = (".new", ".probe", ".new-label", ".new-wal", ".new-shm", ".new-journal")
"""What `create_file` and `probe_directory` leave behind if they are killed."""
_APPLICATION_ID = slice(68, 72)


def create_file(
    path: Path, key: str | None, *, package: str = SPACE, label: tuple[Path, str] | None = None
) -> None:
    """Build a file under a temporary name and link it into place, so that no process ever sees half of it.
    `label` is a file next to it, and its text."""
    aside = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with translate_sqlite_errors(path):
            if key is None:
                _write(aside, empty(package))
            else:
                _build(aside, key, package)
        if package != SPACE:  # other users may read its folder; spaces have a folder of their own
            aside.chmod(_OWNER_ONLY)
        if label is not None:
            written = aside.with_name(f"{aside.name}-label")
            written.write_text(label[1], encoding="utf-8")
            written.replace(label[0])
        with suppress(FileExistsError):  # another process made it first: use theirs
            os.link(aside, path)
    except OSError as exc:
        raise _unavailable(path, exc) from exc
    finally:
        _remove(aside)


def check_file(path: Path) -> None:
    """Reject files that must not be opened, and clean up after a killed key rotation."""
    if path.is_symlink():
        raise StorageUnavailable(f"{path} is a link; it must be a file of its own, remove the link")
    if path.stat().st_size < _FILE_BYTES_MIN:  # SQLite would take it for a new database
        raise StorageCorrupt(f"{path.name} was cut off; restore it from a backup")
    # The copy of a killed rotation would keep what is forgotten from now on.
    _remove(_aside_for_rekey(path))


def foreign_file_in(root: Path, catalog: str) -> str | None:
    """The name of a foreign file in a directory that is not a data directory; None if it is one, an unfinished
    one, or empty. A directory with one of our databases is ours, whatever else it contains. A foreign database
    is never opened."""
    try:
        databases = [
            path for path in (root / catalog, *root.glob(f"{_SPACES}/*/*{SUFFIX}")) if path.is_file()
        ]
        for path in databases:
            if not _is_ours(path):
                return str(path.relative_to(root))
        if databases:
            return None
        return next((str(path.relative_to(root)) for path in _others(root)), None)
    except OSError as exc:
        raise StorageUnavailable(
            f"{root}: cannot be looked into ({exc.strerror}); check that it is yours"
        ) from exc


def probe_directory(folder: Path) -> None:
    """Write a small file and remove it, to raise the error that a write would raise."""
    aside = folder / f".{uuid.uuid4().hex}.probe"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        aside.write_bytes(b"probe")
    except OSError as exc:
        raise _unavailable(folder, exc) from exc
    finally:
        with suppress(OSError):
            aside.unlink()


def rekey_file(path: Path, key: str | None, new_key: str | None) -> bool:
    """Encrypt a file with another key, or decrypt it; False if it was already done.

    This changes a copy, which then replaces the file in one step, so that a killed process leaves the old key
    or the new one. Changed in place, a kill could leave a journal with one key next to a file with the other,
    and opening them with the wrong key would destroy both. No other process may have the file open.
    """
    with suppress(KeyMismatch, StorageCorrupt):
        connect(path, new_key).close()
        return False
    # A plain file has no key, even if others have one.
    old_key = None if is_plain(path) else key
    aside = _aside_for_rekey(path)
    _remove(aside)
    try:
        with path.open("rb") as file:  # closed last, because that drops every lock this process has on it
            connection = connect(path, old_key)
            try:
                _hold_still(connection, path)
                with aside.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
                shutil.copymode(path, aside)
                _change_key(aside, old_key, new_key)
                _sync(aside)
                aside.replace(path)
                _sync(path.parent)
            finally:
                connection.close()
    except OSError as exc:
        raise _unavailable(path, exc) from exc
    finally:
        _remove(aside)
    return True


def _write(path: Path, content: bytes) -> None:
    with open(path, "xb", opener=_as_sqlite_does) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _as_sqlite_does(path: str, flags: int) -> int:
    return os.open(path, flags, _READABLE)


def _build(path: Path, key: str, package: str) -> None:
    """Run the migrations: every encrypted file has a salt of its own, so an empty file cannot be copied."""
    connection = connect(path, key, create=True)
    try:
        migrate(connection, path.name, package=package)
        connection.pragma("journal_mode", "wal")
    finally:
        connection.close()


def _remove(aside: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal", "-label"):
        with suppress(OSError):
            aside.with_name(f"{aside.name}{suffix}").unlink()


def _aside_for_rekey(path: Path) -> Path:
    return path.with_name(f".{path.stem}.rekey")


def _unavailable(path: Path, exc: OSError) -> StorageError:
    if exc.errno in NO_ROOM:
        return StorageFull(f"{path.name}: no room left on the device; nothing was written, free some space")
    if isinstance(exc, PermissionError):
        return StorageUnavailable(f"{path}: cannot be written ({exc.strerror}); check that it is yours")
    return StorageUnavailable(f"{path}: cannot be written ({exc.strerror}); check the data directory")


def _hold_still(connection: apsw.Connection, path: Path) -> None:
    """Move everything from the log into the file, and block writers until the connection is closed."""
    with translate_sqlite_errors(path):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.execute("BEGIN IMMEDIATE")
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and wal.stat().st_size:
        raise StorageBusy(f"{path.name}: another process is writing to it; stop it and try again")


def _change_key(path: Path, old_key: str | None, new_key: str | None) -> None:
    connection = connect(path, old_key)
    try:
        with translate_sqlite_errors(path):
            connection.pragma("journal_mode", "delete")
            if old_key is None:
                connection.pragma("cipher", CIPHER)
            connection.pragma("rekey", "" if new_key is None else f"raw:{new_key}")
            connection.pragma("journal_mode", "wal")
    finally:
        connection.close()
    connect(path, new_key).close()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _others(root: Path) -> Iterator[Path]:
    for entry in sorted(root.iterdir()) if root.exists() else ():
        if entry.name == _SPACES and entry.is_dir():
            yield from (
                Path(top, name) for top, _, names in os.walk(entry) for name in names if not _left(name)
            )
        elif entry.name not in _BESIDE and not _left(entry.name):
            yield entry


def _left(name: str) -> bool:
    return name.startswith(".") and name.endswith(_UNFINISHED)


def _is_ours(path: Path) -> bool:
    """An encrypted file is checked with its key when it is opened."""
    with path.open("rb") as file:
        header = file.read(_APPLICATION_ID.stop)
    return not header.startswith(PLAIN_HEADER) or header[_APPLICATION_ID] == APPLICATION_ID.to_bytes(4, "big")
