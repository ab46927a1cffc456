"""All spaces of a PostgreSQL database."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from memplane.errors import NotFound
from memplane.storage.names import checked_name
from memplane.storage.postgres.catalog import PostgresCatalog, PostgresCatalogWriter
from memplane.storage.postgres.connections import CONNECTIONS_MAX, STATEMENT_SECONDS_MAX, Connections
from memplane.storage.postgres.indexing import LARGE
from memplane.storage.postgres.place import SpaceKey
from memplane.storage.postgres.statements import PostgresStatements
from memplane.storage.postgres.store import PostgresStore
from memplane.storage.postgres.work import PostgresWork
from memplane.storage.sql.catalog.accounts import SqlAccounts
from memplane.storage.sql.catalog.credentials import SqlCredentials
from memplane.storage.sql.catalog.directory import SqlDirectory
from memplane.storage.sql.moving import SqlCatalogRows

_KNOWN_MAX = 10_000
_OWNERS_PER_LOOK = 1_000


class PostgresStores:
    """`Stores` over one database. Any number of processes on any number of machines may have it open."""

    def __init__(
        self,
        url: str,
        *,
        connections_max: int = CONNECTIONS_MAX,
        statement_seconds_max: int = STATEMENT_SECONDS_MAX,
    ) -> None:
        self._connections = Connections(
            url, connections_max=connections_max, statement_seconds_max=statement_seconds_max
        )
        self._catalog = PostgresCatalog(self._connections)
        self._known: OrderedDict[tuple[str, str], tuple[PostgresStore, int]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def open(self, tenant: str, owner: str, *, create: bool) -> Iterator[PostgresStore]:
        yield self._store(tenant, owner, create=create)

    def tenants(self) -> list[str]:
        return [name for (name,) in self._catalog.read("tenants")]

    def owners(self, tenant: str) -> Iterator[str]:
        after = ""
        while True:
            found = self._catalog.read("owners", tenant=tenant, after=after, limit=_OWNERS_PER_LOOK)
            for (owner,) in found:
                yield owner
            if len(found) < _OWNERS_PER_LOOK:
                return
            after = found[-1][0]

    def index_large_spaces(self, *, large: int = LARGE) -> int:
        """Give spaces with so many vectors an index of their own; returns how many got one. Takes minutes where a space
        has a million, and keeps nobody waiting meanwhile. See `indexing`."""
        return self._connections.index_large_spaces(large)

    def directory(self) -> SqlDirectory:
        return SqlDirectory(self._catalog)

    def accounts(self) -> SqlAccounts:
        return SqlAccounts(self._catalog)

    def work(self) -> PostgresWork:
        """Which spaces have something waiting."""
        return PostgresWork(self._connections)

    def credentials(self) -> SqlCredentials:
        """The keys of the installation."""
        return SqlCredentials(self._catalog)

    def catalog_rows(self) -> SqlCatalogRows:
        return SqlCatalogRows(self._catalog)

    def probe(self) -> None:
        self._catalog.probe()

    def stranger(self) -> None:
        """What is ours is in a schema of its own, and nothing else is touched."""

    def close(self) -> None:
        self._connections.close()

    def _store(self, tenant: str, owner: str, *, create: bool) -> PostgresStore:
        """Looked up once, and again whenever a connection was lost: where a database was restored meanwhile, the numbers
        of a space may be those of another."""
        name, losses = (tenant, owner), self._connections.losses
        with self._lock:
            store, known_at = self._known.get(name, (None, 0))
            if store is not None and known_at == losses:
                self._known.move_to_end(name)
                return store
        place = self._find(tenant, owner, create=create)
        with self._lock:
            store, _ = self._known.get(name, (None, 0))
            if store is None or store.place != place:
                store = PostgresStore(self._connections, place, owner)
            self._known[name] = (store, losses)
            self._known.move_to_end(name)
            if len(self._known) > _KNOWN_MAX:
                self._known.popitem(last=False)
        return store

    def _find(self, tenant: str, owner: str, *, create: bool) -> SpaceKey:
        checked_name(tenant, "tenant")
        checked_name(owner, "owner")
        found = self._catalog.read("place", tenant=tenant, owner=owner)
        if found:
            return SpaceKey(*found[0])
        if not create:
            raise NotFound("space", owner)
        self._catalog.write(lambda writer: writer.run("add_tenant", tenant=tenant))
        # In one transaction, or a crash would leave a space half begun.
        with self._connections.transaction("BEGIN") as connection:
            writer = PostgresCatalogWriter(connection)
            writer.run("add_space", tenant=tenant, owner=owner)
            place = SpaceKey(*writer.run("place", tenant=tenant, owner=owner)[0])
            connection.execute(place.said().encode(), prepare=False)
            PostgresStatements(connection).run("begin_space")
        return place
