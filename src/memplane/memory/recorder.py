"""How one caller's writes reach the ledger of one space: every method runs inside a write transaction that is open already."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from memplane.clock import Clock, Instant, to_instant
from memplane.config import Settings
from memplane.errors import InvalidRequest, LimitReached, MemplaneError
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import (
    CollectPayload,
    DocumentPayload,
    ForgetPayload,
    Payload,
    PutPayload,
    decode_body,
    encode,
)
from memplane.memory import projection
from memplane.memory.forget import forget
from memplane.safety.redact import redact
from memplane.safety.sanitize import has_expired
from memplane.storage.catalog.directory import Directory, ResourceKind
from memplane.storage.filter import ForgetScope
from memplane.storage.store import Writer
from memplane.types import Caller, Entry, Memory, NewEntry, Op, Receipt


class Recorder(msgspec.Struct, frozen=True, kw_only=True):
    """Makes the entries of one caller and appends them, so that limits and redaction apply to every kind of write."""

    tenant: str
    owner: str
    caller: Caller
    settings: Settings
    clock: Clock
    directory: Directory

    def draft(
        self, id_: str, op: Op, payload: Payload, ref: str | None = None, *, bytes_max: int | None = None
    ) -> NewEntry:
        """An entry that is not appended yet. `bytes_max` replaces the usual limit, for documents."""
        try:
            body = encode(redacted(payload) if self.settings.redact_ledger else payload)
        except (TypeError, ValueError, OverflowError, RecursionError) as exc:
            raise InvalidRequest(f"the entry cannot be written as JSON ({exc}); give plain values") from exc
        bytes_max = self.settings.entry_bytes_max if bytes_max is None else bytes_max
        if len(body) > bytes_max:
            raise InvalidRequest(
                f"the entry has {len(body):,} bytes and at most {bytes_max:,} are kept; split it"
            )
        return NewEntry(id_, op, body, self.caller, ref)

    def record(
        self, writer: Writer, id_: str, op: Op, payload: Payload, ref: str | None = None, *, now: Instant
    ) -> Entry:
        """Append one entry and apply it to memory."""
        return projection.record(writer, self.draft(id_, op, payload, ref), now)

    def put(
        self, writer: Writer, op: Op, fact: PutPayload, now: Instant, *, keep_category: bool = False
    ) -> Memory:
        """Append a keyed fact that replaces the live value of its key."""
        # An expired value that was not swept yet still occupies the key, but does not pass on when it was created.
        before = writer.memories.holder(fact.key)
        if before is not None and not has_expired(before, now):
            category = before.category if keep_category and before.category else fact.category
            fact = msgspec.structs.replace(fact, created=to_instant(before.created_at), category=category)
        ref = None if before is None else before.id
        entry = self.record(writer, new_id(op.value, now), op, fact, ref, now=now)
        return present(writer.memories.get(entry.id))

    def forget(self, writer: Writer, scope: ForgetScope, *, reason: str, op: Op = Op.FORGET) -> Receipt:
        """Erase what is in scope, within the limits of the caller's session."""
        limited = self.caller.session and op is Op.FORGET
        if limited and writer.ledger.usage(self.caller.session).deletes >= self.settings.session_deletes_max:
            raise LimitReached("delete", self.settings.session_deletes_max)
        while projection.catch_up(writer):  # what a bulk import left behind is in scope too
            pass
        now = self.clock()
        return forget(writer, scope, reason=reason, now=now, record=self.forget_recorder(writer, now, op))

    def forget_recorder(
        self, writer: Writer, now: Instant, op: Op = Op.FORGET
    ) -> Callable[[ForgetPayload], Entry]:
        """A function that appends the record of a forget, for code that finds out itself what is erased."""

        def record(payload: ForgetPayload) -> Entry:
            if op is Op.FORGET:
                self.note_receipts([payload])
            return self.record(writer, payload.receipt, op, payload, now=now)

        return record

    def note_receipts(self, forgets: Iterable[ForgetPayload]) -> None:
        """Enter receipts in the catalog. This happens before they are committed, so that none is ever missing there."""
        self._note(ResourceKind.RECEIPT, {forgotten.receipt: forgotten.at for forgotten in forgets})

    def note_library(self, drafts: Iterable[NewEntry]) -> None:
        """The same for the documents and collections that these entries bring."""
        found: dict[ResourceKind, dict[str, Instant]] = {
            ResourceKind.DOCUMENT: {},
            ResourceKind.COLLECTION: {},
        }
        for draft in drafts:
            if draft.op in (Op.DOCUMENT, Op.COLLECT) and draft.body:
                match decode_body(draft.op, draft.body):
                    case DocumentPayload(document=id_, at=at):
                        found[ResourceKind.DOCUMENT][id_] = at
                    case CollectPayload(action="create", collection=id_, at=at):
                        found[ResourceKind.COLLECTION][id_] = at
        for sort, ids in found.items():
            self._note(sort, ids)

    def note(self, sort: ResourceKind, id_: str, now: Instant) -> None:
        """The same for one id."""
        self.directory.note(self.tenant, sort, id_, self.owner, now=now)

    def _note(self, sort: ResourceKind, ids: dict[str, Instant]) -> None:
        if ids:
            self.directory.note_all(self.tenant, sort, ids, self.owner, now=self.clock())


def present(memory: Memory | None) -> Memory:
    """The memory that the same transaction has just written."""
    if memory is None:
        raise MemplaneError("a memory vanished while it was written; this is a bug")
    return memory


def redacted(payload: Payload) -> Payload:
    """The payload without secrets. Each text is redacted by itself: in JSON a secret could end in the middle of an escape,
    and the text after it could then pass for another field."""
    plain = {name: _redacted_value(value) for name, value in msgspec.to_builtins(payload).items()}
    return msgspec.convert(plain, type(payload))


def _redacted_value(value: Any, name: str = "") -> Any:
    match value:
        case str():
            named = f"{name}=" if name else ""
            return redact(named + value).text.removeprefix(named)
        case dict():
            return {redact(key).text: _redacted_value(inner, key) for key, inner in value.items()}
        case list() | tuple():
            return [_redacted_value(inner, name) for inner in value]
    return value
