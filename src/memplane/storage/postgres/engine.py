"""All spaces of a PostgreSQL database."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memplane.errors import NotFound
from memplane.storage.names import checked_name
from memplane.storage.postgres.connections import CONNECTIONS_MAX, STATEMENT_SECONDS_MAX, Connections
from memplane.storage.postgres.database import PostgresCatalog, PostgresDatabase
from memplane.storage.postgres.indexing import LARGE
from memplane.storage.postgres.place import SpaceKey
from memplane.storage.postgres.statements import PostgresConnection
from memplane.storage.postgres.work import PostgresWork

_KNOWN_MAX = 10_000
_OWNERS_PER_LOOK = 1_000


class PostgresEngine:
    """See `StorageEngine`: one database. Any number of processes on any number of machines may have it open."""

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
        self._known: OrderedDict[tuple[str, str], tuple[PostgresDatabase, int]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def open(self, tenant: str, owner: str, *, create: bool) -> Iterator[PostgresDatabase]:
        yield self._database(tenant, owner, create=create)

    def tenants(self) -> list[str]:
        return [name for (name,) in self._read("tenants")]

    def owners(self, tenant: str) -> Iterator[str]:
        after = ""
        while True:
            found = self._read("owners", tenant=tenant, after=after, limit=_OWNERS_PER_LOOK)
            for (owner,) in found:
                yield owner
            if len(found) < _OWNERS_PER_LOOK:
                return
            after = found[-1][0]

    def index_vectors(self, *, large: int = LARGE) -> int:
        """Spaces with so many vectors get an index. Takes minutes for a million vectors. See `indexing`."""
        return self._connections.index_large_spaces(large)

    def catalog(self) -> PostgresCatalog:
        return PostgresCatalog(self._connections)

    def work(self) -> PostgresWork:
        """The queue of spaces with pending work."""
        return PostgresWork(self._connections)

    def probe(self) -> None:
        self._catalog.probe()

    def foreign_file(self) -> None:
        """Everything of ours is in a schema of its own, and nothing else is touched."""

    def close(self) -> None:
        self._connections.close()

    def _database(self, tenant: str, owner: str, *, create: bool) -> PostgresDatabase:
        """The database of a space, cached. It is looked up again after a connection was lost: if a database was
        restored, the numbers of a space may belong to another."""
        name, losses = (tenant, owner), self._connections.losses
        with self._lock:
            database, known_at = self._known.get(name, (None, 0))
            if database is not None and known_at == losses:
                self._known.move_to_end(name)
                return database
        place = self._find(tenant, owner, create=create)
        with self._lock:
            database, _ = self._known.get(name, (None, 0))
            if database is None or database.place != place:
                database = PostgresDatabase(self._connections, place)
            self._known[name] = (database, losses)
            self._known.move_to_end(name)
            if len(self._known) > _KNOWN_MAX:
                self._known.popitem(last=False)
        return database

    def _find(self, tenant: str, owner: str, *, create: bool) -> SpaceKey:
        checked_name(tenant, "tenant")
        checked_name(owner, "owner")
        found = self._read("place", tenant=tenant, owner=owner)
        if found:
            return SpaceKey(*found[0])
        if not create:
            raise NotFound("space", owner)
        with self._catalog.write() as catalog:
            catalog.execute("add_tenant", {"tenant": tenant})
        # In one transaction, or a crash would leave a space half created.
        with self._connections.transaction("BEGIN") as connection:
            catalog, name = PostgresConnection(connection, None), {"tenant": tenant, "owner": owner}
            catalog.execute("add_space", name)
            place = SpaceKey(*catalog.execute("place", name)[0])
            connection.execute(place.said().encode(), prepare=False)
            PostgresConnection(connection, place).execute("begin_space")
        return place

    def _read(self, query: str, /, **parameters: Any) -> list[Any]:
        with self._catalog.read() as catalog:
            return catalog.execute(query, parameters)
