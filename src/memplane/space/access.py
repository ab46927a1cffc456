"""How a space reaches its store: one write, one read, and what is said about both."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Self, TypeVar

import msgspec

from memplane.clock import Instant
from memplane.config import Settings
from memplane.errors import InvalidRequest, LimitReached, NotFound
from memplane.ledger.payloads import (
    CollectPayload,
    DocumentPayload,
    ForgetPayload,
    Payload,
    decode_body,
    encode,
)
from memplane.memory import projection
from memplane.models.llm import LLMFailed
from memplane.safety.redact import redact
from memplane.space.parts import SpaceServices
from memplane.storage.base import Reader, Store, Writer
from memplane.storage.directory import ResourceKind
from memplane.telemetry import Events, ignore_event
from memplane.types import Caller, NewEntry, Op

T = TypeVar("T")

_CATCH_UP_PER_READ = 2_000


class Access:
    """One owner's store, seen by one caller."""

    def __init__(self, parts: SpaceServices, tenant: str, owner: str, caller: Caller) -> None:
        self.tenant = tenant
        self.owner = owner
        self.caller = caller
        self._parts = parts
        self._stores = parts.stores
        self._settings = parts.settings
        self._clock = parts.clock
        self._events = parts.events

    @property
    def settings(self) -> Settings:
        return self._settings

    def now(self) -> Instant:
        """What time it is for this space."""
        return self._clock()

    def untold(self) -> Self:
        """The same space for whoever tells of its operations themselves, because they know more of them."""
        quiet = msgspec.structs.replace(self._parts, events=Events(self._clock, ignore_event))
        return type(self)(quiet, self.tenant, self.owner, self.caller)

    def note_audit(self, action: str, *, target: str | None, outcome: str, detail: str = "") -> None:
        """Add to the audit log what the ledger does not record."""
        now = self._clock()

        def work(writer: Writer) -> None:
            writer.add_audit(
                at=now,
                caller=self.caller,
                action=action,
                target=target,
                outcome=outcome,
                detail=redact(detail).text,
            )

        with self._store() as store:
            store.write(work)

    def catch_up(self, *, progress: Callable[[int], None] = lambda _: None) -> None:
        """Make everything that was appended searchable."""
        with self._store() as store:
            while (ahead := store.write(projection.catch_up)) > 0:
                progress(ahead)

    def _store(self) -> AbstractContextManager[Store]:
        return self._stores.open(self.tenant, self.owner, create=True)

    @contextmanager
    def _read(self) -> Iterator[Reader]:
        with self._store() as store, store.read() as reader:
            yield reader

    @contextmanager
    def _operation(self, name: str) -> Iterator[Reader]:
        with self._events.operation(self.owner, name), self._reading() as reader:
            yield reader

    @contextmanager
    def _reading(self) -> Iterator[Reader]:
        """A read that first goes on with a bulk import that was cut off, a bounded step at a time."""
        with self._store() as store:
            with store.read() as reader:
                if reader.cursor() == reader.head().seq:
                    yield reader
                    return
            store.write(lambda writer: projection.catch_up(writer, _CATCH_UP_PER_READ))
            with store.read() as reader:
                yield reader

    def _write(self, name: str, work: Callable[[Writer], T]) -> T:
        """A write; that it was refused for a limit or an unknown name goes to the audit log."""
        with self._events.operation(self.owner, name), self._store() as store:
            try:
                done = store.write(work)
            except (LimitReached, NotFound) as exc:
                self.note_audit(name, target=None, outcome=f"refused: {exc.code}", detail=str(exc))
                raise
            self._parts.notify(self.tenant, self.owner)
            return done

    def _derive_again(self, store: Store) -> None:
        """Where everything was dropped to be derived anew, and nobody else is there to do it, it is done now."""
        if self._parts.background is None:
            with store.read() as reader:
                ahead = reader.marks().derived == 0 and int(reader.note(projection.READ) or 0) > 0
            with suppress(LLMFailed):  # it is asked about nothing but what nobody has read before
                while ahead and self._parts.worker.derive(store):
                    with store.read() as reader:
                        ahead = reader.marks().derived < int(reader.note(projection.READ) or 0)

    def _note_receipts(self, forgets: Iterable[ForgetPayload]) -> None:
        """Where they can be found by their ids alone; before they are committed, so that none is ever missing."""
        ids = {forgotten.receipt: forgotten.at for forgotten in forgets}
        if ids:
            self._parts.directory.note_all(
                self.tenant, ResourceKind.RECEIPT, ids, self.owner, now=self._clock()
            )

    def _note_library(self, drafts: Iterable[NewEntry]) -> None:
        """As `_note_receipts`, for what documents and collections these entries bring."""
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
            if ids:
                self._parts.directory.note_all(self.tenant, sort, ids, self.owner, now=self._clock())

    def _draft(
        self, id_: str, op: Op, payload: Payload, ref: str | None = None, *, bytes_max: int | None = None
    ) -> NewEntry:
        """`bytes_max` is for what may be larger than a usual entry."""
        try:
            body = encode(redacted(payload) if self._settings.redact_ledger else payload)
        except (TypeError, ValueError, OverflowError, RecursionError) as exc:
            raise InvalidRequest(f"the entry cannot be written as JSON ({exc}); give plain values") from exc
        bytes_max = self._settings.entry_bytes_max if bytes_max is None else bytes_max
        if len(body) > bytes_max:
            raise InvalidRequest(
                f"the entry has {len(body):,} bytes and at most {bytes_max:,} are kept; split it"
            )
        return NewEntry(id_, op, body, self.caller, ref)


def redacted(payload: Payload) -> Payload:
    """Every text of it by itself: in JSON a secret would end in the middle of an escape, and what follows could then
    pass for another field."""
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
