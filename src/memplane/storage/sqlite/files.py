"""A database file as a whole: made, checked before it is opened, and put under another key."""

import os
import shutil
import uuid
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
from memplane.storage.sqlite.connection import CIPHER, NO_ROOM, connect, is_plain, translate_sqlite_errors
from memplane.storage.sqlite.migrate import SPACE, empty, migrate

_FILE_BYTES_MIN = 512
_OWNER_ONLY = 0o600
_READABLE = 0o644


def create_file(
    path: Path, key: str | None, *, package: str = SPACE, label: tuple[Path, str] | None = None
) -> None:
    """Build the file aside and link it into place, so that no one ever sees half of it. `label` is a file to stand
    beside it, and what it says."""
    aside = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with translate_sqlite_errors(path):
            if key is None:
                _write(aside, empty(package))
            else:
                _build(aside, key, package)
        if package != SPACE:  # it stands in a folder that others may look into; spaces have one of their own
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
    """Refuse what must not be opened, and tidy up behind a rotation that was killed."""
    if path.is_symlink():
        raise StorageUnavailable(f"{path} is a link; it must be a file of its own, remove the link")
    if path.stat().st_size < _FILE_BYTES_MIN:  # SQLite would take it for a new database
        raise StorageCorrupt(f"{path.name} was cut off; restore it from a backup")
    # A copy that a killed rotation left behind would keep what is forgotten from now on.
    _remove(_aside_for_rekey(path))


def probe_folder(folder: Path) -> None:
    """Write a small file and remove it, to learn beforehand what a write would meet."""
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
    """Put a file under another key, or none; False if it was already done.

    It is done to a copy, which then takes the place of the file in one step, so that a kill leaves the old key or
    the new one. Done in place, it would leave a journal under one key beside a file under the other, and whoever
    opened them with the wrong one would destroy both. Nobody else may have the file open.
    """
    with suppress(KeyMismatch, StorageCorrupt):
        connect(path, new_key).close()
        return False
    # A file that is plain has no key, whatever the others have.
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
    """Step by step: every file under a key has a salt of its own, so none is a copy of another."""
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
    """Everything that was written is in the file itself, and nobody can write until the connection is closed."""
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
