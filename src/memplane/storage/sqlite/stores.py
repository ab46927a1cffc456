"""All spaces of a data directory: a file each, a bounded number of them open."""

import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memplane.errors import KeyMismatch, NotFound, StorageCorrupt, StorageUnavailable
from memplane.storage.sqlite.connection import connect, is_plain, translate_errors
from memplane.storage.sqlite.migrate import migrate
from memplane.storage.sqlite.names import encode_name, owners_below, space_path
from memplane.storage.sqlite.store import SqliteStore

OPEN_SPACES_MAX = 64

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

    def rekey(self, tenant: str, owner: str, new_key: str | None) -> bool:
        """Encrypt one space under another key, or none; False if it was already done.

        SQLite does it in place inside a transaction, so that a kill leaves the old key or the new one, and
        never a mixture. Nobody else may have the space open.
        """
        path = self._path((tenant, owner))
        self._forget_slot((tenant, owner))
        with suppress(KeyMismatch, StorageCorrupt):
            connect(path, new_key).close()
            return False
        connection = connect(path, self._key)
        with translate_errors(path):
            try:
                connection.pragma("journal_mode", "delete")
                if new_key is not None and is_plain(path):
                    connection.pragma("cipher", "aegis")
                connection.pragma("rekey", "" if new_key is None else f"raw:{new_key}")
                connection.pragma("journal_mode", "wal")
            finally:
                connection.close()
        connect(path, new_key).close()
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
        return self._root / "spaces" / encode_name(tenant, field="tenant")

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
                if not path.exists():
                    if not create:
                        raise NotFound("space", name[1])
                    _create(path, self._key)
                elif path.stat().st_size == 0:
                    raise StorageCorrupt(
                        f"{path.name} is empty: something cut it off; restore it from a backup"
                    )
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


def _create(path: Path, key: str | None) -> None:
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
        with suppress(FileExistsError):  # another process made it first: use theirs
            os.link(aside, path)
    except OSError as exc:
        raise StorageUnavailable(
            f"{path}: cannot be created ({exc.strerror}); check the data directory"
        ) from exc
    finally:
        for leftover in path.parent.glob(f"{aside.name}*"):
            with suppress(OSError):
                leftover.unlink()
