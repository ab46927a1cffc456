"""All spaces of a data directory: a file each, a bounded number of them open."""

import os
import shutil
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw

from memplane.errors import (
    KeyMismatch,
    NotFound,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageUnavailable,
)
from memplane.storage.sqlite.connection import CIPHER, NO_ROOM, connect, is_plain, translate_errors
from memplane.storage.sqlite.migrate import migrate
from memplane.storage.sqlite.names import folder_name, label_path, owners_below, space_path, tenants_below
from memplane.storage.sqlite.store import SqliteStore

OPEN_SPACES_MAX = 64
_FILE_BYTES_MIN = 512

_Name = tuple[str, str]


class _Slot:
    """A store, whether someone is using it, and a lock for whoever opens it first."""

    __slots__ = ("opening", "store", "users")

    def __init__(self) -> None:
        self.store: SqliteStore | None = None
        self.users = 0
        self.opening = threading.Lock()


class SqliteStores:
    """`Stores` over a data directory. Any number of processes may have it open."""

    def __init__(self, root: Path, key: str | None = None, *, open_max: int = OPEN_SPACES_MAX) -> None:
        self._root = root
        self._key = key
        self._open_max = open_max
        self._slots: OrderedDict[_Name, _Slot] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, tenant: str, owner: str, *, create: bool) -> "_Lease":
        return _Lease(self, (tenant, owner), create=create)

    def owners(self, tenant: str) -> Iterator[str]:
        folder = self._folder(tenant)
        return owners_below(folder) if folder.is_dir() else iter(())

    def tenants(self) -> list[str]:
        """Every tenant with a folder, in a stable order."""
        return tenants_below(self._root / "spaces")

    def probe(self) -> None:
        """Write a small file and remove it."""
        aside = self._root / f".{uuid.uuid4().hex}.probe"
        try:
            self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
            aside.write_bytes(b"probe")
        except OSError as exc:
            raise _unavailable(self._root, exc) from exc
        finally:
            with suppress(OSError):
                aside.unlink()

    def rekey(self, tenant: str, owner: str, new_key: str | None) -> bool:
        """Put one space under another key, or none; False if it was already done.

        It is done to a copy, which then takes the place of the file in one step, so that a kill leaves the old key or
        the new one. Done in place, it would leave a journal under one key beside a file under the other, and whoever
        opened them with the wrong one would destroy both. Nobody else may have the space open.
        """
        path = self._path((tenant, owner))
        self._forget_slot((tenant, owner))
        with suppress(KeyMismatch, StorageCorrupt):
            connect(path, new_key).close()
            return False
        # A file that is plain has no key, whatever the others have.
        old_key = None if is_plain(path) else self._key
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

    def use_key(self, key: str | None) -> None:
        """The key for every space opened from now on."""
        self._key = key

    def close(self) -> None:
        with self._lock:
            slots, self._slots = list(self._slots.values()), OrderedDict()
        for slot in slots:
            if slot.store is not None:
                slot.store.close()

    def _folder(self, tenant: str) -> Path:
        return self._root / "spaces" / folder_name(tenant)

    def _path(self, name: _Name) -> Path:
        return space_path(self._folder(name[0]), name[1])

    def take(self, name: _Name) -> _Slot:
        with self._lock:
            slot = self._slots.get(name)
            if slot is None:
                slot = self._slots[name] = _Slot()
            self._slots.move_to_end(name)
            slot.users += 1
            return slot

    def opened(self, slot: _Slot, name: _Name, *, create: bool) -> SqliteStore:
        if slot.store is not None:
            return slot.store
        with slot.opening:
            if slot.store is None:
                path = self._path(name)
                if path.is_symlink():
                    raise StorageUnavailable(
                        f"{path} is a link; a space is a file of its own, remove the link"
                    )
                if not path.exists():
                    if not create:
                        raise NotFound("space", name[1])
                    _create(path, name[1], self._key)
                elif path.stat().st_size < _FILE_BYTES_MIN:  # SQLite would take it for a new database
                    raise StorageCorrupt(f"{path.name} was cut off; restore it from a backup")
                else:
                    # A copy that a killed rotation left behind would keep what is forgotten from now on.
                    _remove(_aside_for_rekey(path))
                slot.store = SqliteStore(path, name[1], self._key)
            return slot.store

    def release(self, name: _Name, slot: _Slot) -> None:
        closing = []
        with self._lock:
            slot.users -= 1
            if slot.store is None and slot.users == 0:
                self._slots.pop(name, None)
            elif len(self._slots) > self._open_max:
                closing = self._idle()
        for store in closing:
            store.close()

    def _idle(self) -> list[SqliteStore]:
        """Take out the stores used longest ago, as many as are open beyond the bound."""
        idle = [name for name, slot in self._slots.items() if slot.users == 0]
        slots = [self._slots.pop(name) for name in idle[: len(self._slots) - self._open_max]]
        return [slot.store for slot in slots if slot.store is not None]

    def _forget_slot(self, name: _Name) -> None:
        with self._lock:
            slot = self._slots.pop(name, None)
        if slot is not None and slot.store is not None:
            slot.store.close()


class _Lease:
    """A store for the length of a `with` block. A plain class, because every operation takes one."""

    __slots__ = ("_create", "_name", "_slot", "_stores")

    def __init__(self, stores: SqliteStores, name: _Name, *, create: bool) -> None:
        self._stores = stores
        self._name = name
        self._create = create

    def __enter__(self) -> SqliteStore:
        self._slot = self._stores.take(self._name)
        try:
            return self._stores.opened(self._slot, self._name, create=self._create)
        except BaseException:
            self._stores.release(self._name, self._slot)
            raise

    def __exit__(self, *_: object) -> None:
        self._stores.release(self._name, self._slot)


def _create(path: Path, owner: str, key: str | None) -> None:
    """Build the file aside and link it into place, so that no one ever sees half a space."""
    aside = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = connect(aside, key, create=True)
        with translate_errors(path):
            try:
                migrate(connection, path.name)
                connection.pragma("journal_mode", "wal")
            finally:
                connection.close()
        label = label_path(path)
        if label is not None:
            written = aside.with_name(f"{aside.name}-label")
            written.write_text(owner, encoding="utf-8")
            written.replace(label)
        with suppress(FileExistsError):  # another process made it first: use theirs
            os.link(aside, path)
    except OSError as exc:
        raise _unavailable(path, exc) from exc
    finally:
        _remove(aside)


def _remove(aside: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal", "-label"):
        with suppress(OSError):
            aside.with_name(f"{aside.name}{suffix}").unlink()


def _aside_for_rekey(path: Path) -> Path:
    return path.with_name(f".{path.stem}.rekey")


def _unavailable(path: Path, exc: OSError) -> StorageError:
    if exc.errno in NO_ROOM:
        return StorageFull(f"{path.name}: no room left on the device; nothing was written, free some space")
    return StorageUnavailable(f"{path}: cannot be written ({exc.strerror}); check the data directory")


def _hold_still(connection: apsw.Connection, path: Path) -> None:
    """Everything that was written is in the file itself, and nobody can write until the connection is closed."""
    with translate_errors(path):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.execute("BEGIN IMMEDIATE")
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and wal.stat().st_size:
        raise StorageBusy(f"{path.name}: another process is writing to it; stop it and try again")


def _change_key(path: Path, old_key: str | None, new_key: str | None) -> None:
    connection = connect(path, old_key)
    try:
        with translate_errors(path):
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
