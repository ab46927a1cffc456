"""What follows a committed forget: caches, derived memories, the bytes on disk and the catalog."""

from collections.abc import Sequence

import msgspec

from memplane.errors import StorageFull
from memplane.space.context import SpaceContext
from memplane.types import Receipt

_LIBRARY_SCOPES = frozenset({"project", "since", "until", "everything"})
"""Conditions of a forget that can include documents and collections."""


def finish_forget(context: SpaceContext, receipt: Receipt) -> Receipt:
    """The forget is committed already; the receipt says whether its last bytes could be removed from disk now. Where they could
    not, the background worker or the next process that opens the space does it."""
    context.parts.indexes.drop(context.tenant, context.owner)
    try:
        with context.store() as store:
            context.derive_again(store)
            off_disk = context.parts.stores.erasures(store, context.tenant, context.owner).finish(
                bytes_max=context.settings.wipe_now_bytes_max, documents=_documents_of(receipt)
            )
    except StorageFull:
        off_disk = False
    return msgspec.structs.replace(receipt, off_disk=off_disk)


def _documents_of(receipt: Receipt) -> Sequence[str] | None:
    """The documents that a forget can have removed; None for any."""
    if (asked := receipt.scope.get("document")) is not None:
        return [asked]
    counted = receipt.counts["documents"] + receipt.counts["collections"]
    return () if not counted and _LIBRARY_SCOPES.isdisjoint(receipt.scope) else None
