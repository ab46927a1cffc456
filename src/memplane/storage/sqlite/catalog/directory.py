"""`Directory` in the catalog database."""

import json
from collections.abc import Collection, Mapping

from memplane.clock import Instant
from memplane.storage.directory import FRESH, KEPT, Place, Sort
from memplane.storage.sqlite.catalog.file import CatalogFile, CatalogWriter


class SqliteDirectory:
    """A look at a page before every write: uploading a document again must not cost a sync."""

    def __init__(self, file: CatalogFile) -> None:
        self._file = file

    def note(self, tenant: str, sort: Sort, id: str, owner: str, *, now: Instant) -> None:
        self.note_all(tenant, sort, {id: now}, owner, now=now)

    def note_all(
        self, tenant: str, sort: Sort, ids: Mapping[str, Instant], owner: str, *, now: Instant
    ) -> None:
        found = self._file.read(
            "noted", tenant=tenant, sort=sort, ids=json.dumps(list(ids)), owner=owner, after=now - FRESH
        )
        fresh = {id_ for (id_,) in found}
        rows = [(tenant, sort.value, id_, owner, at, now) for id_, at in ids.items() if id_ not in fresh]
        if rows:
            self._file.write(lambda writer: writer.run_many("note_place", rows))

    def forget(self, tenant: str, sort: Sort, id: str, owner: str, *, now: Instant) -> None:
        def work(writer: CatalogWriter) -> None:
            writer.run("forget_place", tenant=tenant, sort=sort, id=id, owner=owner, before=now - KEPT)

        self._file.jot(work)

    def owners(self, tenant: str, sort: Sort, id: str) -> list[str]:
        return [owner for (owner,) in self._file.read("owners_of", tenant=tenant, sort=sort, id=id)]

    def newest(
        self, tenant: str, sort: Sort, *, owners: Collection[str] | None, limit: int, offset: int
    ) -> list[Place]:
        found = self._file.read(
            "newest_places",
            tenant=tenant,
            sort=sort,
            owners=_listed(owners),
            limit=limit,
            offset=offset,
        )
        return [Place(*row) for row in found]

    def count(self, tenant: str, sort: Sort, *, owners: Collection[str] | None) -> int:
        found = self._file.read("count_places", tenant=tenant, sort=sort, owners=_listed(owners))
        return int(found[0][0]) if found else 0

    def complete(self, tenant: str) -> frozenset[str]:
        return frozenset(owner for (owner,) in self._file.read("complete", tenant=tenant))

    def set_complete(self, tenant: str, owner: str) -> None:
        self._file.write(lambda writer: writer.run("set_complete", tenant=tenant, owner=owner))


def _listed(owners: Collection[str] | None) -> str | None:
    return None if owners is None else json.dumps(sorted(owners))
