"""All spaces of a data directory: a file each, a bounded number of them open."""

import threading
from collections import OrderedDict
from pathlib import Path

from memplane.errors import NotFound
from memplane.storage.sql.catalog.accounts import SqlAccounts
from memplane.storage.sql.catalog.credentials import SqlCredentials
from memplane.storage.sql.catalog.directory import SqlDirectory
from memplane.storage.sql.moving import SqlCatalogRows
from memplane.storage.sqlite.catalog.file import CatalogFile
from memplane.storage.sqlite.files import check_file, create_file, probe_folder, rekey_file
from memplane.storage.sqlite.names import folder_name, label_path, owners_below, space_path, tenants_below
from memplane.storage.sqlite.store import SqliteStore
from memplane.storage.sqlite.strangers import stranger_in

OPEN_SPACES_MAX = 64
CATALOG = "catalog.db"

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
        self._catalog = CatalogFile(root / CATALOG, key)

    def open(self, tenant: str, owner: str, *, create: bool) -> "_Lease":
        return _Lease(self, (tenant, owner), create=create)

    def owners(self, tenant: str) -> list[str]:
        folder = self._folder(tenant)
        return owners_below(folder) if folder.is_dir() else []

    def tenants(self) -> list[str]:
        """Every tenant with a folder, in a stable order."""
        return tenants_below(self._root / "spaces")

    def probe(self) -> None:
        probe_folder(self._root)

    def stranger(self) -> str | None:
        return stranger_in(self._root, CATALOG)

    def rekey(self, tenant: str, owner: str, new_key: str | None) -> bool:
        """Put one space under another key, or none; False if it was already done. Nobody else may have it open."""
        self._forget_slot((tenant, owner))
        return rekey_file(self._path((tenant, owner)), self._key, new_key)

    def credentials(self) -> SqlCredentials:
        """The keys of the installation; whoever asks closes it."""
        return SqlCredentials(CatalogFile(self._root / CATALOG, self._key))

    def directory(self) -> SqlDirectory:
        """Which space a thing lives in; open for as long as the spaces are."""
        return SqlDirectory(self._catalog)

    def accounts(self) -> SqlAccounts:
        """What tenants used and may use; open for as long as the spaces are."""
        return SqlAccounts(self._catalog)

    def catalog_rows(self) -> SqlCatalogRows:
        """The catalog as a move sees it; open for as long as the spaces are."""
        return SqlCatalogRows(self._catalog)

    def index_large_spaces(self) -> int:
        """Nobody else has the file of a space open: what is loaded of it is loaded once."""
        return 0

    def work(self) -> None:
        """Files are of one machine, and whoever serves them enriches them."""

    def rekey_catalog(self, new_key: str | None) -> bool:
        """As `rekey`, for what is not one space's."""
        path = self._root / CATALOG
        self._catalog.close()
        return path.exists() and rekey_file(path, self._key, new_key)

    def use_key(self, key: str | None) -> None:
        """The key for everything opened from now on."""
        self._key = self._catalog.key = key

    def close(self) -> None:
        with self._lock:
            slots, self._slots = list(self._slots.values()), OrderedDict()
        for slot in slots:
            if slot.store is not None:
                slot.store.close()
        self._catalog.close()

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
                if not path.exists() and not path.is_symlink():
                    if not create:
                        raise NotFound("space", name[1])
                    label = label_path(path)
                    create_file(path, self._key, label=None if label is None else (label, name[1]))
                check_file(path)
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
