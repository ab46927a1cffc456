"""Find the space of an id: the directory names candidates, and the space confirms."""

import threading
from collections.abc import Collection

import msgspec

from memplane.clock import Clock, to_instant
from memplane.errors import NotFound, StorageError
from memplane.memory.checks import check_limit, check_query
from memplane.memory.forget import receipt_of
from memplane.storage.catalog.directory import Directory, ResourceKind
from memplane.storage.store import Reader
from memplane.storage.stores import Stores
from memplane.types import Op, Receipt

_COLLECTIONS_MAX = 1 << 31
_OFFSET_MAX = 1 << 62
_SPACES_PER_SYNC = 256


class OwnedReceipt(msgspec.Struct, frozen=True, gc=False):
    """A receipt and the owner of its space."""

    owner: str
    receipt: Receipt


class ReceiptPage(msgspec.Struct, frozen=True):
    """A page of receipts, and the total."""

    receipts: tuple[OwnedReceipt, ...]
    total: int


class Locator:
    """Finds documents, collections and receipts of a tenant by id. It never creates a space."""

    def __init__(self, stores: Stores, directory: Directory, clock: Clock) -> None:
        self._stores = stores
        self._directory = directory
        self._clock = clock
        self._completing = threading.Lock()

    def owners_of(self, tenant: str, kind: ResourceKind, id: str) -> list[str]:
        """The owners whose spaces contain it."""
        check_query(id=id)
        found = self._locations(tenant, kind, id)
        if not found and self._complete(tenant, None):
            found = self._locations(tenant, kind, id)
        return found

    def receipts(
        self, tenant: str, *, owners: Collection[str] | None, limit: int, offset: int
    ) -> ReceiptPage:
        check_limit(limit)
        offset = min(max(0, offset), _OFFSET_MAX)
        self._complete(tenant, owners)
        places = self._directory.newest(
            tenant, ResourceKind.RECEIPT, owners=owners, limit=limit, offset=offset
        )
        found = [
            OwnedReceipt(place.owner, receipt)
            for place in places
            if (receipt := self._receipt(tenant, place.owner, place.id)) is not None
        ]
        total = self._directory.count(tenant, ResourceKind.RECEIPT, owners=owners)
        return ReceiptPage(tuple(found), total - len(places) + len(found))

    def receipt(self, tenant: str, receipt_id: str, *, owners: Collection[str] | None) -> OwnedReceipt:
        for owner in self.owners_of(tenant, ResourceKind.RECEIPT, receipt_id):
            if owners is None or owner in owners:
                receipt = self._receipt(tenant, owner, receipt_id)
                if receipt is not None:
                    return OwnedReceipt(owner, receipt)
        raise NotFound("receipt", receipt_id)

    def _locations(self, tenant: str, kind: ResourceKind, id: str) -> list[str]:
        return [
            owner
            for owner in self._directory.owners(tenant, kind, id)
            if self._is_in(tenant, owner, kind, id)
        ]

    def _is_in(self, tenant: str, owner: str, kind: ResourceKind, id: str) -> bool:
        try:
            with self._stores.open(tenant, owner, create=False) as store, store.read() as reader:
                there = _has(reader, kind, id)
        except NotFound:
            there = False
        if not there:
            self._directory.forget(tenant, kind, id, owner, now=self._clock())
        return there

    def _receipt(self, tenant: str, owner: str, receipt_id: str) -> Receipt | None:
        if not self._is_in(tenant, owner, ResourceKind.RECEIPT, receipt_id):
            return None
        with self._stores.open(tenant, owner, create=False) as store, store.read() as reader:
            (row,) = reader.ledger.rows(after=reader.ledger.known([receipt_id])[receipt_id] - 1, limit=1)
            return receipt_of(row, reader)

    # ── spaces the directory may not know all of ─────────────────────────────────────────────────────────────────

    def _complete(self, tenant: str, owners: Collection[str] | None) -> bool:
        """Add the ids of spaces that the directory does not know completely; returns whether there were any. Concurrent writers
        add their own ids."""
        with self._completing:
            known = self._directory.complete(tenant)
            todo = [
                owner
                for owner in self._stores.owners(tenant)
                if owner not in known and (owners is None or owner in owners)
            ]
            for start in range(0, len(todo), _SPACES_PER_SYNC):
                some = todo[start : start + _SPACES_PER_SYNC]
                self._directory.set_complete(
                    tenant, [owner for owner in some if self._note_everything(tenant, owner)]
                )
        return bool(todo)

    def _note_everything(self, tenant: str, owner: str) -> bool:
        """A space that cannot be read is skipped, and tried again the next time."""
        now = self._clock()
        try:
            with self._stores.open(tenant, owner, create=False) as store, store.read() as reader:
                receipts = [receipt_of(row, reader) for row in reader.ledger.forgets()]
                documents = [head.id for head in reader.documents.heads()]
                collections = [
                    collection.id
                    for collection in reader.documents.collections(
                        project=None, limit=_COLLECTIONS_MAX, offset=0
                    )
                ]
        except (NotFound, StorageError):
            return False
        note_all = self._directory.note_all
        note_all(
            tenant, ResourceKind.RECEIPT, {one.id: to_instant(one.at) for one in receipts}, owner, now=now
        )
        note_all(tenant, ResourceKind.DOCUMENT, dict.fromkeys(documents, now), owner, now=now)
        note_all(tenant, ResourceKind.COLLECTION, dict.fromkeys(collections, now), owner, now=now)
        return True


def _has(reader: Reader, kind: ResourceKind, id: str) -> bool:
    match kind:
        case ResourceKind.DOCUMENT:
            return reader.documents.get(id) is not None
        case ResourceKind.COLLECTION:
            return reader.documents.collection(id) is not None
        case ResourceKind.RECEIPT:
            entry = reader.ledger.get(id)
            return entry is not None and entry.op is Op.FORGET
