"""All spaces of an installation, and its catalog."""

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import TracebackType

from memplane.storage.catalog.accounts import Accounts
from memplane.storage.catalog.catalog import Catalog
from memplane.storage.catalog.credentials import CredentialStore
from memplane.storage.catalog.directory import Directory
from memplane.storage.catalog.tables import CatalogTables
from memplane.storage.engine import Database, StorageEngine
from memplane.storage.store import Store
from memplane.storage.work import Work


class Stores:
    """All spaces of an installation, and its catalog, over one engine."""

    def __init__(self, engine: StorageEngine, work: Work | None = None) -> None:
        self.engine = engine
        self.work = work
        """The queue of spaces with pending work, if several machines share the database; None if the process that writes
        also enriches."""
        self._lock = threading.Lock()
        self._catalog = Catalog(engine.catalog())

    def open(self, tenant: str, owner: str, *, create: bool) -> AbstractContextManager[Store]:
        """The store of one space, for the length of the block; raises `NotFound` unless `create`."""
        return _Lease(self, self.engine.open(tenant, owner, create=create), owner)

    def tenants(self) -> Iterable[str]:
        """Every tenant with a space, in the order of their bytes."""
        return self.engine.tenants()

    def owners(self, tenant: str) -> Iterable[str]:
        """Every owner with a space, in the order of their bytes."""
        return self.engine.owners(tenant)

    def directory(self) -> Directory:
        """In which space a document, a collection or a receipt is."""
        return Directory(self._catalog)

    def accounts(self) -> Accounts:
        """What tenants used, and their limits."""
        return Accounts(self._catalog)

    def credentials(self) -> CredentialStore:
        """The keys of the installation, over connections of their own; the caller closes it."""
        return CredentialStore(Catalog(self.engine.catalog()))

    def catalog_tables(self) -> CatalogTables:
        """The catalog row by row, for a move."""
        return CatalogTables(self._catalog)

    def index_large_spaces(self) -> int:
        """See `StorageEngine.index_vectors`."""
        return self.engine.index_vectors()

    def probe(self) -> None:
        """See `StorageEngine.probe`."""
        self.engine.probe()

    def foreign_file(self) -> str | None:
        """See `StorageEngine.foreign_file`."""
        return self.engine.foreign_file()

    def close(self) -> None:
        """Release every file and connection."""
        self._catalog.close()
        self.engine.close()

    def store_of(self, database: Database, owner: str) -> Store:
        """One store for each database, so that concurrent writers share commits."""
        store = database.attached
        if not isinstance(store, Store):
            with self._lock:
                store = database.attached
                if not isinstance(store, Store):
                    store = database.attached = Store(database, owner)
        return store


class _Lease:
    """A store for the length of a block. A plain class, because every operation takes one."""

    __slots__ = ("_database", "_owner", "_stores")

    def __init__(self, stores: Stores, database: AbstractContextManager[Database], owner: str) -> None:
        self._stores = stores
        self._database = database
        self._owner = owner

    def __enter__(self) -> Store:
        return self._stores.store_of(self._database.__enter__(), self._owner)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.__exit__(kind, error, trace)
