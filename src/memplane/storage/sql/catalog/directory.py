"""`Directory` in the catalog database."""

from collections.abc import Collection, Mapping

from memplane.clock import Instant
from memplane.storage.directory import KEPT, ResourceKind, ResourceLocation
from memplane.storage.sql.catalog.catalog import Catalog, CatalogWriter


class SqlDirectory:
    """Notes are jotted down. That an owner is not complete must be on the disk first, and costs a sync, once: until
    somebody completes them, further notes need none. Completing is durable, and with it every jot before it."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def note(self, tenant: str, sort: ResourceKind, id: str, owner: str, *, now: Instant) -> None:
        self.note_all(tenant, sort, {id: now}, owner, now=now)

    def note_all(
        self, tenant: str, sort: ResourceKind, ids: Mapping[str, Instant], owner: str, *, now: Instant
    ) -> None:
        rows = [(tenant, sort.value, id_, owner, at, now) for id_, at in ids.items()]

        def jotted(writer: CatalogWriter) -> bool:
            if writer.run("is_complete", tenant=tenant, owner=owner):
                return False
            writer.run_many("note_place", rows)
            return True

        def written(writer: CatalogWriter) -> None:
            writer.run("unset_complete", tenant=tenant, owner=owner)
            writer.run_many("note_place", rows)

        if rows and not self._catalog.jot(jotted):
            self._catalog.write(written)

    def forget(self, tenant: str, sort: ResourceKind, id: str, owner: str, *, now: Instant) -> None:
        def work(writer: CatalogWriter) -> None:
            writer.run("forget_place", tenant=tenant, sort=sort, id=id, owner=owner, before=now - KEPT)

        self._catalog.jot(work)

    def drop(self, tenant: str, sort: ResourceKind, ids: Collection[str], owner: str) -> None:
        rows = [(tenant, sort.value, id_, owner) for id_ in ids]

        def work(writer: CatalogWriter) -> None:
            writer.run("unset_complete", tenant=tenant, owner=owner)
            writer.run_many("drop_place", rows)

        if rows:
            self._catalog.write(work)
            self._catalog.leave_nothing()

    def of(self, tenant: str, sort: ResourceKind, owner: str) -> list[str]:
        return [id_ for (id_,) in self._catalog.read("places_of", tenant=tenant, sort=sort, owner=owner)]

    def owners(self, tenant: str, sort: ResourceKind, id: str) -> list[str]:
        return [owner for (owner,) in self._catalog.read("owners_of", tenant=tenant, sort=sort, id=id)]

    def newest(
        self, tenant: str, sort: ResourceKind, *, owners: Collection[str] | None, limit: int, offset: int
    ) -> list[ResourceLocation]:
        found = self._catalog.read(
            "newest_places",
            tenant=tenant,
            sort=sort,
            every=owners is None,
            owners=self._catalog.listed(owners or ()),
            limit=limit,
            offset=offset,
        )
        return [ResourceLocation(*row) for row in found]

    def count(self, tenant: str, sort: ResourceKind, *, owners: Collection[str] | None) -> int:
        found = self._catalog.read(
            "count_places",
            tenant=tenant,
            sort=sort,
            every=owners is None,
            owners=self._catalog.listed(owners or ()),
        )
        return int(found[0][0]) if found else 0

    def complete(self, tenant: str) -> frozenset[str]:
        return frozenset(owner for (owner,) in self._catalog.read("complete", tenant=tenant))

    def set_complete(self, tenant: str, owners: Collection[str]) -> None:
        rows = [(tenant, owner) for owner in owners]
        self._catalog.write(lambda writer: writer.run_many("set_complete", rows))
