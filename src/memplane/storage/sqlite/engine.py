"""All spaces of a data directory: a file each, a bounded number of them open."""

import threading
from collections import OrderedDict
from pathlib import Path
from weakref import WeakSet

from memplane.errors import NotFound
from memplane.storage.sqlite.budget import ConnectionBudget
from memplane.storage.sqlite.catalog.database import SqliteCatalog
from memplane.storage.sqlite.database import SqliteDatabase
from memplane.storage.sqlite.files import (
    check_file,
    create_file,
    foreign_file_in,
    probe_directory,
    rekey_file,
)
from memplane.storage.sqlite.names import directory_name, label_path, owners_below, space_path, tenants_below

CATALOG = "catalog.db"

_Name = tuple[str, str]


class _Slot:
    """A database, how many use it, and a lock for opening it."""

    __slots__ = ("database", "opening", "users")

    def __init__(self) -> None:
        self.database: SqliteDatabase | None = None
        self.users = 0
        self.opening = threading.Lock()


class SqliteEngine:
    """See `StorageEngine`: a data directory. Any number of processes may have it open."""

    def __init__(self, root: Path, key: str | None = None, *, open_max: int | None = None) -> None:
        self._root = root
        self._key = key
        self._budget = ConnectionBudget()
        self._budget.reclaim = self._close_unused
        self._open_max = self._budget.spaces_max if open_max is None else open_max
        self._slots: OrderedDict[_Name, _Slot] = OrderedDict()
        self._lock = threading.Lock()
        self._catalogs: WeakSet[SqliteCatalog] = WeakSet()

    def open(self, tenant: str, owner: str, *, create: bool) -> "_Lease":
        return _Lease(self, (tenant, owner), create=create)

    def owners(self, tenant: str) -> list[str]:
        folder = self._folder(tenant)
        return owners_below(folder) if folder.is_dir() else []

    def tenants(self) -> list[str]:
        """Every tenant with a folder, in a stable order."""
        return tenants_below(self._root / "spaces")

    def probe(self) -> None:
        probe_directory(self._root)

    def foreign_file(self) -> str | None:
        return foreign_file_in(self._root, CATALOG)

    def rekey(self, tenant: str, owner: str, new_key: str | None) -> bool:
        """Put one space under another key, or none; False if it was already done. Nobody else may have it open."""
        self._forget_slot((tenant, owner))
        return rekey_file(self._path((tenant, owner)), self._key, new_key)

    def catalog(self) -> SqliteCatalog:
        made = SqliteCatalog(self._root / CATALOG, self._key, self._budget)
        self._catalogs.add(made)
        return made

    def index_vectors(self) -> int:
        """A space of any size is loaded: no other machine has its file open, so that this happens once."""
        return 0

    def rekey_catalog(self, new_key: str | None) -> bool:
        """As `rekey`, for what is not one space's."""
        path = self._root / CATALOG
        self._close_catalogs()
        return path.exists() and rekey_file(path, self._key, new_key)

    def use_key(self, key: str | None) -> None:
        """The key for everything opened from now on."""
        self._key = key
        for catalog in self._catalogs:
            catalog.key = key

    def close(self) -> None:
        with self._lock:
            slots, self._slots = list(self._slots.values()), OrderedDict()
        for slot in slots:
            if slot.database is not None:
                slot.database.close()
        self._close_catalogs()

    def _close_catalogs(self) -> None:
        for catalog in self._catalogs:
            catalog.close()

    def _folder(self, tenant: str) -> Path:
        return self._root / "spaces" / directory_name(tenant)

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

    def opened(self, slot: _Slot, name: _Name, *, create: bool) -> SqliteDatabase:
        if slot.database is not None:
            return slot.database
        with slot.opening:
            if slot.database is None:
                path = self._path(name)
                if not path.exists() and not path.is_symlink():
                    if not create:
                        raise NotFound("space", name[1])
                    self._budget.within_limits(lambda: self._create(path, name[1]))
                check_file(path)
                slot.database = SqliteDatabase(path, self._key, self._budget)
            return slot.database

    def _create(self, path: Path, owner: str) -> None:
        label = label_path(path)
        create_file(path, self._key, label=None if label is None else (label, owner))

    def release(self, name: _Name, slot: _Slot) -> None:
        closing = []
        with self._lock:
            slot.users -= 1
            if slot.database is None and slot.users == 0:
                self._slots.pop(name, None)
            elif len(self._slots) > self._open_max:
                closing = self._idle()
        for database in closing:
            database.close()

    def _idle(self, keep: int | None = None) -> list[SqliteDatabase]:
        """Take out the databases used longest ago, as many as are open beyond the bound."""
        idle = [name for name, slot in self._slots.items() if slot.users == 0]
        beyond = len(self._slots) - (self._open_max if keep is None else keep)
        slots = [self._slots.pop(name) for name in idle[: max(0, beyond)]]
        return [slot.database for slot in slots if slot.database is not None]

    def _close_unused(self) -> int:
        """Close idle readers and the older half of the databases that nobody uses; returns how many."""
        with self._lock:
            unused = sum(slot.users == 0 for slot in self._slots.values())
            closing = self._idle(len(self._slots) - (unused + 1) // 2)
            staying = [slot.database for slot in self._slots.values() if slot.database is not None]
        for database in closing:
            database.close()
        return len(closing) + sum(database.close_idle() for database in staying)

    def _forget_slot(self, name: _Name) -> None:
        with self._lock:
            slot = self._slots.pop(name, None)
        if slot is not None and slot.database is not None:
            slot.database.close()


class _Lease:
    """A database for the length of a `with` block. A plain class, because every operation takes one."""

    __slots__ = ("_create", "_engine", "_name", "_slot")

    def __init__(self, engine: SqliteEngine, name: _Name, *, create: bool) -> None:
        self._engine = engine
        self._name = name
        self._create = create

    def __enter__(self) -> SqliteDatabase:
        self._slot = self._engine.take(self._name)
        try:
            return self._engine.opened(self._slot, self._name, create=self._create)
        except BaseException:
            self._engine.release(self._name, self._slot)
            raise

    def __exit__(self, *_: object) -> None:
        self._engine.release(self._name, self._slot)
