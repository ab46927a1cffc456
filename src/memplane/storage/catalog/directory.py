"""Which space a thing lives in, for those who know its id and not whose it is: the part of the catalog that finds them.

A space is the truth about what is in it, and the directory a hint where to look. It is noted before the space commits, so
a crash in between leaves an entry too many and never one too few; whoever looks makes sure in the space itself. Every
engine passes tests/storage/contract/test_directory.py.

A sync for every note would make uploading half as fast. So the directory also says of whom it is complete, and a note
may be lost with the power as long as its owner is not: whoever misses something looks through those spaces first.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from memplane.clock import SECOND, Instant
from memplane.storage.catalog.catalog import Catalog, CatalogWriter

KEPT = 3_600 * SECOND
"""An entry this new is not dropped, though its space does not have the thing: it may be about to."""


class ResourceKind(StrEnum):
    """What is found by its id alone."""

    DOCUMENT = "document"
    COLLECTION = "collection"
    RECEIPT = "receipt"


class ResourceLocation(msgspec.Struct, frozen=True, gc=False):
    """Where a thing is said to be."""

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
        """Called before the space commits. When it returns, every process finds the thing there, and if this is ever lost, the
        owner is not `complete`."""
        self.note_all(tenant, kind, {id: now}, owner, now=now)

    def note_all(
        self, tenant: str, kind: ResourceKind, ids: Mapping[str, Instant], owner: str, *, now: Instant
    ) -> None:
        """As `note`, for many at once; each with the time it is listed under."""
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
        """Drop an entry whose space does not have the thing, unless it was noted within `KEPT`."""

        def work(writer: CatalogWriter) -> None:
            writer.run("forget_place", tenant=tenant, sort=kind, id=id, owner=owner, before=now - KEPT)

        self._catalog.write_unsynced(work)

    def drop(self, tenant: str, kind: ResourceKind, ids: Collection[str], owner: str) -> None:
        """Of what was forgotten not even the id is left. Somebody may have noted one of them anew and be about to commit, so
        the owner is not `complete` any more."""
        rows = [(tenant, kind.value, id_, owner) for id_ in ids]

        def work(writer: CatalogWriter) -> None:
            writer.run("unset_complete", tenant=tenant, owner=owner)
            writer.run_many("drop_place", rows)

        if rows:
            self._catalog.write(work)
            self._catalog.wipe()

    def of(self, tenant: str, kind: ResourceKind, owner: str) -> list[str]:
        """The ids of all that an owner is said to have."""
        return [id_ for (id_,) in self._catalog.read("places_of", tenant=tenant, sort=kind, owner=owner)]

    def owners(self, tenant: str, kind: ResourceKind, id: str) -> list[str]:
        """In a stable order."""
        return [owner for (owner,) in self._catalog.read("owners_of", tenant=tenant, sort=kind, id=id)]

    def newest(
        self, tenant: str, kind: ResourceKind, *, owners: Collection[str] | None, limit: int, offset: int
    ) -> list[ResourceLocation]:
        """Those of these owners, or of all; the newest first."""
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
        """How many `newest` would list in all."""
        found = self._catalog.read(
            "count_places",
            tenant=tenant,
            sort=kind,
            every=owners is None,
            owners=sorted(owners or ()),
        )
        return int(found[0][0]) if found else 0

    def complete(self, tenant: str) -> frozenset[str]:
        """Owners of whom everything is noted and durable: what they had before there was a directory too."""
        return frozenset(owner for (owner,) in self._catalog.read("complete", tenant=tenant))

    def set_complete(self, tenant: str, owners: Collection[str]) -> None:
        """After everything of them was noted; each until something new is."""
        rows = [(tenant, owner) for owner in owners]
        self._catalog.write(lambda writer: writer.run_many("set_complete", rows))
