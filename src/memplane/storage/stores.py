"""All spaces of an installation, and its catalog."""

import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from types import TracebackType

from memplane.config import WIPE_NOW_BYTES_MAX
from memplane.errors import StorageError
from memplane.storage.catalog.accounts import Accounts
from memplane.storage.catalog.catalog import Catalog
from memplane.storage.catalog.credentials import CredentialStore
from memplane.storage.catalog.directory import Directory
from memplane.storage.catalog.tables import CatalogTables
from memplane.storage.engine import Database, StorageEngine
from memplane.storage.erasure import ErasureJournal
from memplane.storage.store import Store
from memplane.storage.work import Work


class Stores:
    """All spaces of an installation, and its catalog, over one engine."""

    def __init__(
        self,
        engine: StorageEngine,
        work: Work | None = None,
        *,
        wipe_bytes_max: int | None = WIPE_NOW_BYTES_MAX,
    ) -> None:
        """`wipe_bytes_max` is the largest space that is rewritten when it is opened with an unfinished erasure."""
        self.engine = engine
        self._wipe_bytes_max = wipe_bytes_max
        self.work = work
        """The queue of spaces with pending work, if several machines share the database; None if the process that writes
        also enriches."""
        self._lock = threading.Lock()
        self._catalog = Catalog(engine.catalog())

    def open(self, tenant: str, owner: str, *, create: bool) -> AbstractContextManager[Store]:
        """The store of one space, for the length of the block; raises `NotFound` unless `create`."""
        return _Lease(self, self.engine.open(tenant, owner, create=create), tenant, owner)

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

    def erasures(self, store: Store, tenant: str, owner: str) -> ErasureJournal:
        """What is left to do after forgets in a space."""
        return ErasureJournal(store, self.directory(), tenant, owner)

    def finish_erasures(self, store: Store, tenant: str, owner: str) -> None:
        """Finish what a killed process or a reader prevented, unless the space is too large or in use now."""
        journal = self.erasures(store, tenant, owner)
        if journal.is_pending():
            journal.finish(bytes_max=self._wipe_bytes_max, retry=True)

    def store_of(self, database: Database, tenant: str, owner: str) -> Store:
        """One store for each database, so that concurrent writers share commits. The first one finishes erasures of the process
        before."""
        store = database.attached
        if isinstance(store, Store):
            return store
        with self._lock:
            store = database.attached
            if isinstance(store, Store):
                return store
            made = database.attached = Store(database, owner)
        if database.own_files:
            with suppress(StorageError):  # it is tried again; the space can be used
                self.finish_erasures(made, tenant, owner)
        return made


class _Lease:
    """A store for the length of a block. A plain class, because every operation takes one."""

    __slots__ = ("_database", "_owner", "_stores", "_tenant")

    def __init__(
        self, stores: Stores, database: AbstractContextManager[Database], tenant: str, owner: str
    ) -> None:
        self._stores = stores
        self._database = database
        self._tenant = tenant
        self._owner = owner

    def __enter__(self) -> Store:
        database = self._database.__enter__()
        if isinstance(database.attached, Store):
            return database.attached
        try:
            return self._stores.store_of(database, self._tenant, self._owner)
        except BaseException:
            self._database.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.__exit__(kind, error, trace)
