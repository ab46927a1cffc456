"""The directory: in which space a document, a collection or a receipt is, for callers who know only its id.

A space is the truth about its contents, and the directory a hint where to look. An id is noted before the space
commits, so that a crash leaves an entry too many and never one too few; a caller checks the space itself.

A sync for every note would halve the speed of uploads. So the directory also says for which owners it is
complete, and a power failure may lose notes of the others only: a caller who misses an id searches their
spaces.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from memplane.clock import SECOND, Instant
from memplane.storage.catalog.catalog import Catalog, CatalogWriter

KEPT = 3_600 * SECOND
"""An entry this new is not dropped although its space does not contain the id: the space may be about to
commit."""


class ResourceKind(StrEnum):
    """What can be found by its id alone."""

    DOCUMENT = "document"
    COLLECTION = "collection"
    RECEIPT = "receipt"


class ResourceLocation(msgspec.Struct, frozen=True, gc=False):
    """Where an id was noted."""

    id: str
    owner: str


class Directory:
    """Any number of threads and processes use it at once; each read sees what any process finished writing before
    the read began. One id may be in several spaces.

    Notes are not synced. That an owner is no longer complete is synced first, once: until the owner is completed again,
    further notes need no sync. Completing is durable, and with it every note before it.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def note(self, tenant: str, kind: ResourceKind, id: str, owner: str, *, now: Instant) -> None:
        """Note where an id is. Called before the space commits. Every process finds it once this returns; if
        the note is ever lost, the owner is not `complete`."""
        self.note_all(tenant, kind, {id: now}, owner, now=now)

    def note_all(
        self, tenant: str, kind: ResourceKind, ids: Mapping[str, Instant], owner: str, *, now: Instant
    ) -> None:
        """As `note`, for several ids, each with the time by which it is listed."""
        rows = [(tenant, kind.value, id_, owner, at, now) for id_, at in ids.items()]

        def jotted(writer: CatalogWriter) -> bool:
            if writer.run("is_complete", tenant=tenant, owner=owner):
                return False
            writer.run_many("note_place", rows)
            return True

        def written(writer: CatalogWriter) -> None:
            writer.run("unset_complete", tenant=tenant, owner=owner)
            writer.run_many("note_place", rows)

        if rows and not self._catalog.write_unsynced(jotted):
            self._catalog.write(written)

    def forget(self, tenant: str, kind: ResourceKind, id: str, owner: str, *, now: Instant) -> None:
        """Drop an entry whose space does not contain the id, unless it was noted within `KEPT`."""

        def work(writer: CatalogWriter) -> None:
            writer.run("forget_place", tenant=tenant, sort=kind, id=id, owner=owner, before=now - KEPT)

        self._catalog.write_unsynced(work)

    def drop(self, tenant: str, kind: ResourceKind, ids: Collection[str], owner: str) -> None:
        """Remove the ids of what was forgotten. Another process may have noted one of them again and be about
        to commit, so the owner is no longer `complete`."""
        rows = [(tenant, kind.value, id_, owner) for id_ in ids]

        def work(writer: CatalogWriter) -> None:
            writer.run("unset_complete", tenant=tenant, owner=owner)
            writer.run_many("drop_place", rows)

        if rows:
            self._catalog.write(work)
            self._catalog.wipe()

    def wipe(self) -> None:
        """Leave no dropped id on the disk; `drop` does this by itself."""
        self._catalog.wipe()

    def of(self, tenant: str, kind: ResourceKind, owner: str) -> list[str]:
        """Every id noted for an owner."""
        return [id_ for (id_,) in self._catalog.read("places_of", tenant=tenant, sort=kind, owner=owner)]

    def owners(self, tenant: str, kind: ResourceKind, id: str) -> list[str]:
        """The owners an id was noted for, in a stable order."""
        return [owner for (owner,) in self._catalog.read("owners_of", tenant=tenant, sort=kind, id=id)]

    def newest(
        self, tenant: str, kind: ResourceKind, *, owners: Collection[str] | None, limit: int, offset: int
    ) -> list[ResourceLocation]:
        """Entries of these owners, or of all, newest first."""
        found = self._catalog.read(
            "newest_places",
            tenant=tenant,
            sort=kind,
            every=owners is None,
            owners=sorted(owners or ()),
            limit=limit,
            offset=offset,
        )
        return [ResourceLocation(*row) for row in found]

    def count(self, tenant: str, kind: ResourceKind, *, owners: Collection[str] | None) -> int:
        """How many entries `newest` returns without a limit."""
        found = self._catalog.read(
            "count_places",
            tenant=tenant,
            sort=kind,
            every=owners is None,
            owners=sorted(owners or ()),
        )
        return int(found[0][0]) if found else 0

    def complete(self, tenant: str) -> frozenset[str]:
        """Owners whose ids are all noted and durable, including those from before the directory existed."""
        return frozenset(owner for (owner,) in self._catalog.read("complete", tenant=tenant))

    def set_complete(self, tenant: str, owners: Collection[str]) -> None:
        """Mark owners as complete, after all their ids were noted; valid until the next note."""
        rows = [(tenant, owner) for owner in owners]
        self._catalog.write(lambda writer: writer.run_many("set_complete", rows))
