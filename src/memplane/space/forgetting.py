"""What follows a committed forget: caches, derived memories, the bytes on disk and the catalog."""

import msgspec

from memplane.errors import StorageError, StorageFull
from memplane.space.context import SpaceContext
from memplane.storage.catalog.directory import ResourceKind
from memplane.types import Receipt

_LIBRARY_SCOPES = frozenset({"document", "project", "since", "until", "everything"})
"""Conditions of a forget that can include documents and collections."""


def finish_forget(context: SpaceContext, receipt: Receipt) -> Receipt:
    """The forget is committed already; the receipt says whether its last bytes could be removed from disk now."""
    context.parts.indexes.drop(context.tenant, context.owner)
    try:
        with context.store() as store:
            context.derive_again(store)
            off_disk = store.wipe(bytes_max=context.settings.wipe_now_bytes_max)
        off_disk = _drop_places(context, receipt) and off_disk
    except StorageFull:
        off_disk = False
    return msgspec.structs.replace(receipt, off_disk=off_disk)


def _drop_places(context: SpaceContext, receipt: Receipt) -> bool:
    """Drop the ids of erased documents and collections from the catalog; False if that failed."""
    counted = receipt.counts["documents"] + receipt.counts["collections"]
    if not counted and _LIBRARY_SCOPES.isdisjoint(receipt.scope):
        return True
    directory, tenant, owner = context.parts.directory, context.tenant, context.owner
    try:
        if (asked := receipt.scope.get("document")) is not None:
            documents, collections = [asked], []
        else:
            documents = directory.of(tenant, ResourceKind.DOCUMENT, owner)
            collections = directory.of(tenant, ResourceKind.COLLECTION, owner)
        with context.read() as reader:
            gone = {
                ResourceKind.DOCUMENT: [id_ for id_ in documents if reader.documents.get(id_) is None],
                ResourceKind.COLLECTION: [
                    id_ for id_ in collections if reader.documents.collection(id_) is None
                ],
            }
        for sort, ids in gone.items():
            directory.drop(tenant, sort, ids, owner)
    except StorageError:
        return False
    return True
