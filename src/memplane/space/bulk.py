"""Entries that arrive in bulk, from an import or another replica."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from memplane.clock import Instant
from memplane.ledger.payloads import (
    KEEPING,
    DerivePayload,
    ForgetPayload,
    PromotePayload,
    decode_body,
    encode,
)
from memplane.memory import projection
from memplane.memory.forget import write_tombstones
from memplane.memory.merge import MergeResult, merge
from memplane.memory.recorder import redacted
from memplane.space.context import SpaceContext
from memplane.storage.compaction import RETENTION
from memplane.storage.filter import ForgetScope
from memplane.storage.store import Writer
from memplane.types import LoadResult, MergeReport, NewEntry, Op

_ALONG = "forgotten with what it was read from"


def load_drafts(context: SpaceContext, drafts: Sequence[NewEntry]) -> LoadResult:
    """Append entries that have no time of recording yet; known and forgotten ids are left out."""
    now = context.clock()
    if context.settings.redact_ledger:
        drafts = [_redacted_draft(draft) for draft in drafts]

    def work(writer: Writer) -> LoadResult:
        ids = [draft.id for draft in drafts]
        forgotten = writer.ledger.tombstoned(ids) | _of_forgotten(writer, drafts)
        seen = set(writer.ledger.known(ids))
        fresh: dict[str, NewEntry] = {}
        for draft in drafts:
            if draft.id not in seen and draft.id not in forgotten:
                fresh.setdefault(draft.id, draft)
        context.recorder.note_receipts(_forgets_among(fresh.values()))
        context.recorder.note_library(fresh.values())
        projection.load(writer, list(fresh.values()), now)
        dropped = sum(draft.id in forgotten for draft in drafts)
        return LoadResult(added=len(fresh), known=len(drafts) - len(fresh) - dropped, forgotten=dropped)

    with context.store() as store:
        return store.write(work)


def merge_drafts(
    context: SpaceContext, drafts: Sequence[NewEntry], forgets: Mapping[str, Mapping[str, str]]
) -> MergeReport:
    """Merge entries and tombstones of another replica, and finish what its forgets erased."""
    now = context.clock()
    drafts = [
        draft if draft.recorded is not None else msgspec.structs.replace(draft, recorded=now)
        for draft in drafts
    ]
    if context.settings.redact_ledger:
        drafts = [_redacted_draft(draft) for draft in drafts]

    def work(writer: Writer) -> MergeResult:
        taken = merge(writer, drafts, forgets, now=now, same=_is_redacted)
        context.recorder.note_receipts(_forgets_among(taken.fresh))
        context.recorder.note_library(taken.fresh)
        for forget_id, reasons in taken.unrecorded.items():
            _record_tombstones(context, writer, forget_id, reasons, now)
        along = _forget_promoted(context, writer, forgets, taken.fresh, now)
        for id_ in taken.variants:
            writer.audit.add(
                at=now,
                caller=context.caller,
                action="merge",
                target=id_,
                outcome="variant",
                detail="another body has its id",
            )
        return msgspec.structs.replace(taken, erased=taken.erased or along)

    with context.events.operation(context.owner, "merge"), context.store() as store:
        # What contradicts the arriving entries is weighed in the order of recording.
        context.parts.worker.derive_by_rules(store)
        taken = store.write(work)
        if taken.erased or taken.unrecorded:
            context.parts.indexes.drop(context.tenant, context.owner)
            context.parts.stores.erasures(store, context.tenant, context.owner).finish(
                bytes_max=context.settings.wipe_now_bytes_max
            )
        context.derive_again(store)
    context.parts.notify(context.tenant, context.owner)
    added = sum(not draft.erased for draft in taken.fresh)
    return MergeReport(
        added=added,
        known=len(drafts) - added - taken.forgotten,
        forgotten=taken.forgotten,
        moved=taken.moved,
        variants=taken.variants,
    )


def _record_tombstones(
    context: SpaceContext, writer: Writer, forget_id: str, reasons: Mapping[str, str], now: Instant
) -> None:
    """Record a forget here for tombstones that came without the entry of theirs."""
    ids = list(reasons)
    erasable = {id_: seq for seq, id_ in writer.ledger.in_scope(ForgetScope(entries=tuple(ids)))}
    records = {entry.id for entry in writer.ledger.get_many(ids) if entry.op in projection.RECORDS}
    passed = records | writer.ledger.tombstoned(ids)
    victims = [(erasable.get(id_, 0), id_) for id_ in ids if id_ not in passed]
    if not victims:
        return

    reason = reasons[victims[0][1]]
    record = context.recorder.forget_recorder(writer, now)
    write_tombstones(writer, victims, scope={"imported": forget_id}, reason=reason, now=now, record=record)


def _forget_promoted(
    context: SpaceContext,
    writer: Writer,
    forgets: Mapping[str, Mapping[str, str]],
    fresh: Iterable[NewEntry],
    now: Instant,
) -> bool:
    """Forget what compaction kept of entries that another replica forgot, even where retention had removed those before.
    This is a forget of its own, because the other replica did not know of these lines. Returns whether there were any."""
    forgotten = {
        id_ for reasons in forgets.values() for id_, reason in reasons.items() if reason != RETENTION
    }
    lines = writer.compaction.lines_from(list(forgotten)) if forgotten else []
    came = [draft.id for draft in fresh if draft.op in KEEPING]
    lines += writer.compaction.lines_at(came) if came else []
    lost = writer.compaction.forgotten_by_request([id_ for line in lines for id_ in line.sources])
    victims = {line.id: line.seq for line in lines if not lost.isdisjoint(line.sources)}
    if victims:
        pairs = [(seq, id_) for id_, seq in victims.items()]
        scope = {"promoted_from": sorted(lost)}
        write_tombstones(
            writer,
            pairs,
            scope=scope,
            reason=_ALONG,
            now=now,
            record=context.recorder.forget_recorder(writer, now),
        )
    return bool(victims)


def _of_forgotten(writer: Writer, drafts: Sequence[NewEntry]) -> set[str]:
    """Ids of drafts that a model or compaction derived from a forgotten entry. An entry that only retention removed does not
    count for what compaction kept of it."""
    kept = {
        draft.id: payload.sources
        for draft in drafts
        if draft.op in KEEPING
        and draft.body
        and isinstance(payload := decode_body(draft.op, draft.body), PromotePayload)
    }
    lost = (
        writer.compaction.forgotten_by_request([id_ for ids in kept.values() for id_ in ids])
        if kept
        else set()
    )
    sources = {
        draft.id: record.entry
        for draft in drafts
        if draft.op is Op.DERIVE
        and draft.body
        and isinstance(record := decode_body(draft.op, draft.body), DerivePayload)
    }
    gone = writer.ledger.tombstoned(list(sources.values())) if sources else set()
    return {id_ for id_, source in sources.items() if source in gone} | {
        id_ for id_, ids in kept.items() if not lost.isdisjoint(ids)
    }


def _forgets_among(drafts: Iterable[NewEntry]) -> Iterator[ForgetPayload]:
    for draft in drafts:
        if draft.op is Op.FORGET and draft.body:
            forgotten = decode_body(draft.op, draft.body)
            assert isinstance(forgotten, ForgetPayload)
            yield forgotten


def _redacted_draft(draft: NewEntry) -> NewEntry:
    """The draft without secrets. A history line is not changed, because its id is a digest of its bytes."""
    if draft.op is Op.HISTORY or not draft.body:
        return draft
    return msgspec.structs.replace(draft, body=encode(redacted(decode_body(draft.op, draft.body))))


def _is_redacted(draft: NewEntry, body: bytes) -> bool:
    """Whether the two bodies differ only in that one replica redacts secrets and the other does not."""
    if draft.op is Op.HISTORY or not draft.body or not body:
        return False
    here = msgspec.structs.replace(draft, body=body)
    return _redacted_draft(draft).body == body or _redacted_draft(here).body == draft.body
