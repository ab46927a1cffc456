"""What several kinds of writing have in common: a value under a key, and forgetting."""

import msgspec

from memplane.clock import Instant, to_instant
from memplane.errors import LimitReached, MemplaneError, StorageError, StorageFull
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import ForgetPayload, PutPayload
from memplane.memory import projection
from memplane.memory.forget import forget
from memplane.safety.sanitize import has_expired
from memplane.space.recalling import Recalling
from memplane.storage.base import Writer
from memplane.storage.directory import ResourceKind
from memplane.storage.filter import ForgetScope
from memplane.types import Entry, Memory, Op, Receipt

_DOCUMENT_SCOPES = frozenset({"document", "project", "since", "until", "everything"})
"""What a forget may name that reaches documents and collections."""


class Writing(Recalling):
    """How a space puts and forgets; `Space` and `Files` say what."""

    def _put(
        self, writer: Writer, op: Op, fact: PutPayload, now: Instant, *, keep_category: bool = False
    ) -> Memory:
        # An expired value that was not swept yet still occupies the key, but the key begins anew.
        before = writer.holder(fact.key)
        if before is not None and not has_expired(before, now):
            category = before.category if keep_category and before.category else fact.category
            fact = msgspec.structs.replace(fact, created=to_instant(before.created_at), category=category)
        draft = self._draft(new_id(op.value, now), op, fact, None if before is None else before.id)
        entry = projection.record(writer, draft, now)
        return present(writer.memory(entry.id))

    def _forget(self, writer: Writer, scope: ForgetScope, *, reason: str, op: Op = Op.FORGET) -> Receipt:
        limited = self.caller.session and op is Op.FORGET
        if limited and writer.usage(self.caller.session).deletes >= self._settings.session_deletes_max:
            raise LimitReached("delete", self._settings.session_deletes_max)
        while projection.catch_up(writer):  # what a bulk import left behind is in scope too
            pass
        now = self._clock()

        def record(payload: ForgetPayload) -> Entry:
            if op is Op.FORGET:
                self._note_receipts([payload])
            return projection.record(writer, self._draft(payload.receipt, op, payload), now)

        return forget(writer, scope, reason=reason, now=now, record=record)

    def _finish_forget(self, receipt: Receipt) -> Receipt:
        """It is forgotten already; whether its last bytes could be removed now is for the receipt to say."""
        self._parts.indexes.drop(self.tenant, self.owner)
        try:
            with self._store() as store:
                self._derive_again(store)
                off_disk = store.wipe(bytes_max=self._settings.wipe_now_bytes_max)
            off_disk = self._drop_places(receipt) and off_disk
        except StorageFull:
            off_disk = False
        return msgspec.structs.replace(receipt, off_disk=off_disk)

    def _drop_places(self, receipt: Receipt) -> bool:
        """Of documents and collections that are gone, the catalog keeps no ids either; whether that could be done."""
        counted = receipt.counts["documents"] + receipt.counts["collections"]
        if not counted and _DOCUMENT_SCOPES.isdisjoint(receipt.scope):
            return True
        directory, tenant, owner = self._parts.directory, self.tenant, self.owner
        try:
            if (asked := receipt.scope.get("document")) is not None:
                documents, collections = [asked], []
            else:
                documents = directory.of(tenant, ResourceKind.DOCUMENT, owner)
                collections = directory.of(tenant, ResourceKind.COLLECTION, owner)
            with self._read() as reader:
                gone = {
                    ResourceKind.DOCUMENT: [id_ for id_ in documents if reader.document(id_) is None],
                    ResourceKind.COLLECTION: [id_ for id_ in collections if reader.collection(id_) is None],
                }
            for sort, ids in gone.items():
                directory.drop(tenant, sort, ids, owner)
        except StorageError:
            return False
        return True


def present(memory: Memory | None) -> Memory:
    if memory is None:
        raise MemplaneError("a memory vanished while it was written; this is a bug")
    return memory
