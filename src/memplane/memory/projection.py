"""The projection: ledger entries become turns and memories. The same code runs on arrival and on replay, so a replay
gives the same memories with the same ids."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.documents.preparation import prepare_document
from memplane.errors import MemplaneError
from memplane.extract.told_times import stored_times
from memplane.ledger.history import HistoryLine, parse_line
from memplane.ledger.history_text import extract_turns, within_of
from memplane.ledger.ids import is_variant, original_id, variant_id
from memplane.ledger.payloads import (
    CollectPayload,
    CompactPayload,
    DecidePayload,
    DistilPayload,
    DocumentPayload,
    Payload,
    PinPayload,
    PromotePayload,
    PurgePayload,
    PutPayload,
    ReleasePayload,
    ResolvePayload,
    StorePayload,
    TurnPayload,
    decode,
)
from memplane.memory import digests
from memplane.safety.fence import strip_injected
from memplane.safety.injection import flags_of
from memplane.safety.sanitize import clean
from memplane.storage.documents import PreparedDocument
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX
from memplane.storage.store import Writer
from memplane.types import (
    IMPORTED,
    Collection,
    Document,
    Entry,
    Kind,
    Memory,
    NewEntry,
    Op,
    State,
    Turn,
    within,
)

_TURN_OPS = (Op.TURN, Op.HISTORY)
_LIBRARY_OPS = (Op.DOCUMENT, Op.COLLECT)
_LIVE = (State.ACTIVE, State.CONTESTED)
_CHAIN_MAX = 10_000
RECORDS = (Op.FORGET, Op.SWEEP, Op.PURGE, Op.RESOLVE, Op.COMPACT, Op.DECIDE, Op.RELEASE, Op.PIN)
"""Ops that record decisions; they are never forgotten."""
_CHUNK = 2_000
_PROXY = "proxy"
"""The adapter whose sessions are conversations."""

UNREADABLE = "unreadable"
"""The note that counts entries whose derivation failed."""
READ = "read"
"""The note with the last seq read for facts: up to there a replay calls no LLM."""
DISTILLED = "distilled"
"""The note with the last summarised upload: up to there a replay calls no LLM."""


Prepared = PreparedDocument | HistoryLine | TurnPayload
"""A body that its writer has parsed already."""


def record(writer: Writer, draft: NewEntry, now: Instant, *, ready: Prepared | None = None) -> Entry:
    """Append one entry and make it visible to the next read, even while a bulk import has pending turns: `catch_up`
    skips it later. `ready` is its parsed body, if known."""
    (entry,) = writer.ledger.append([draft], recorded=now)
    apply(writer, entry, ready=ready)
    if writer.state.cursor() == entry.seq - 1:
        writer.state.set_cursor(entry.seq)
    return entry


def load(writer: Writer, drafts: Sequence[NewEntry], now: Instant) -> None:
    """Append many entries that sort after all existing ones. Turns are left to `catch_up`; everything else is applied
    at once, in order."""
    turns: list[NewEntry] = []
    for draft in drafts:
        if draft.op in _TURN_OPS:
            turns.append(draft)
            continue
        writer.ledger.append(turns, recorded=now)
        turns = []
        (entry,) = writer.ledger.append([draft], recorded=now)
        _apply_if_readable(writer, entry, together=True)
        if writer.state.cursor() == entry.seq - 1:
            writer.state.set_cursor(entry.seq)
    writer.ledger.append(turns, recorded=now)


def catch_up(writer: Writer, limit: int = _CHUNK) -> int:
    """Project turns that a bulk import left pending; return how many entries remain.

    Only turns are left pending, and they commute with everything else.
    """
    entries = writer.ledger.entries(after=writer.state.cursor(), limit=limit)
    for entry in entries:
        if entry.op in _TURN_OPS:
            _apply_if_readable(writer, entry)
    if entries:
        writer.state.set_cursor(entries[-1].seq)
    return writer.ledger.head().seq - writer.state.cursor()


def replay(writer: Writer, progress: Callable[[int], None] = lambda _: None) -> int:
    """Drop everything derived and derive it again; return the number of entries read."""
    writer.state.clear_projection()
    writer.state.set_note(UNREADABLE, "0")
    seq = 0
    while entries := writer.ledger.entries(after=seq, limit=_CHUNK):
        for entry in entries:
            _apply_if_readable(writer, entry)
        seq = entries[-1].seq
        writer.state.set_cursor(seq)
        progress(seq)
    return seq


def _apply_if_readable(writer: Writer, entry: Entry, *, together: bool = False) -> None:
    """An unreadable entry never blocks the next. It stays in the ledger, can be forgotten, and is counted by
    `doctor`."""
    try:
        apply(writer, entry, together=together)
    except (MemplaneError, ValueError, TypeError, OverflowError, RecursionError):
        writer.ledger.hide(entry.seq)
        writer.state.set_note(UNREADABLE, str(int(writer.state.note(UNREADABLE) or 0) + 1))


def apply(writer: Writer, entry: Entry, *, ready: Prepared | None = None, together: bool = False) -> None:
    """Apply one entry. With `together`, it arrived with turns that are not yet processed."""
    if entry.ref is not None:
        # Applies even if the body is erased: what a forgotten memory superseded stays superseded.
        if entry.op in _LIBRARY_OPS:
            writer.documents.remove(entry.ref)
        elif not (together and _is_derived(writer, entry.ref)):
            writer.memories.supersede(entry.ref, by=entry.id, at=entry.recorded)
    if entry.body:
        _apply_body(writer, entry, ready)
        if entry.op is Op.STORE and entry.ref is not None:
            _contest(writer, entry.id, entry.ref)
        elif entry.op is Op.RESOLVE:
            _resolve_stored(writer, decode(entry))


def _contest(writer: Writer, new: str, replaced: str) -> None:
    """A writer that supersedes a memory knows its current text. If two replicas superseded the same memory, neither
    knew of the other: both are kept, in conflict."""
    rivals = writer.ledger.replacements(replaced)
    for rival in rivals[: rivals.index(new)]:
        heir = writer.memories.successors((rival,)).get(rival, rival)
        found = writer.memories.get(heir)
        if found is not None and heir != new and found.state in _LIVE:
            writer.claims.contest(heir, new)


def _is_derived(writer: Writer, memory_id: str) -> bool:
    """A derived memory is superseded when the worker reaches the entry, after earlier statements were compared with
    it."""
    memory = writer.memories.get(memory_id)
    return memory is not None and memory.derived


def _clean_value(put: PutPayload) -> str:
    """The value of a key such as `db/password` is redacted with the key as context."""
    named = f"{put.key}: "
    whole = clean(named + put.value)
    return whole.removeprefix(named) if whole.startswith(named) else clean(put.value)


def _clean_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean(tag) for tag in tags))


def _resolve_stored(writer: Writer, resolved: Payload) -> None:
    """Resolve a conflict between stored memories that superseded the same one. The ledger shows that they did, even
    if one is forgotten; an imported decision has no other effect."""
    assert isinstance(resolved, ResolvePayload)
    winners = set(_replaced_before(writer, resolved.winner))
    for loser in resolved.losers:
        memory = writer.memories.get(loser)
        if memory is None or memory.derived or memory.key is not None:
            continue
        if not winners.isdisjoint(_replaced_before(writer, loser)):
            writer.memories.supersede(loser, by=resolved.winner, at=resolved.at)


def _replaced_before(writer: Writer, entry_id: str) -> Iterator[str]:
    """The chain of memories it superseded."""
    entry = writer.ledger.get(entry_id)
    for _ in range(_CHAIN_MAX):
        if entry is None or entry.ref is None:
            return
        yield entry.ref
        entry = writer.ledger.get(entry.ref)


def _repeats(writer: Writer, entry: Entry) -> bool:
    """Whether the same body was recorded under this id before, so that it is not projected twice."""
    if not is_variant(entry.id) or entry.body is None:
        return False
    base = original_id(entry.id, entry.body)
    if base == entry.id or entry.id != variant_id(base, entry.body):
        return base != entry.id
    first = writer.ledger.get(base)
    return first is not None and first.body == entry.body


def _apply_body(writer: Writer, entry: Entry, ready: Prepared | None) -> None:
    if _repeats(writer, entry):
        writer.ledger.hide(entry.seq)
        return
    if entry.op is Op.HISTORY:
        _project_turns(writer, entry, _history_turns(entry, ready))
        return
    match ready if isinstance(ready, TurnPayload) else decode(entry):
        case TurnPayload() as said:
            _note_about(writer, entry, said)
            _project_turns(writer, entry, _turns(entry, said))
        case StorePayload() as stored:
            writer.memories.add([_stored(entry, stored)])
        case PutPayload() as put:
            _free(writer, put.key, entry)
            writer.memories.add([_put(entry, put)])
        case PurgePayload(before=before):
            writer.memories.purge_superseded(before=before)
        case DocumentPayload() as uploaded:
            _shelve(writer, entry, uploaded, ready if isinstance(ready, PreparedDocument) else None)
        case CollectPayload() as collected:
            _collect(writer, entry, collected)
        case (
            DistilPayload()
            | PromotePayload()
            | CompactPayload()
            | DecidePayload()
            | ReleasePayload()
            | PinPayload() as kept
        ):
            _apply_kept(writer, entry, kept)
        case _:
            pass  # tombstones apply a forget; the worker applies the others


def _apply_kept(
    writer: Writer,
    entry: Entry,
    payload: DistilPayload | PromotePayload | CompactPayload | DecidePayload | ReleasePayload | PinPayload,
) -> None:
    """Apply document, compaction and review entries."""
    match payload:
        case DistilPayload() as distilled:
            _note_about(writer, entry, distilled)
        case PromotePayload() as promoted:
            _note_about(writer, entry, promoted)
            digests.promote(writer, entry, promoted, clean(promoted.text))
        case CompactPayload() as compacted:
            digests.judged(writer, compacted)
        case DecidePayload() as verdict:
            digests.decided(writer, entry, verdict)
        case ReleasePayload() | PinPayload() as ruled:
            _rule(writer, ruled)


def _rule(writer: Writer, ruled: ReleasePayload | PinPayload) -> None:
    """The last ruling wins. The memory itself may be derived later."""
    if isinstance(ruled, ReleasePayload):
        writer.review.decide(
            ruled.id, msgspec.structs.replace(writer.review.decision(ruled.id), released=True)
        )
    else:
        writer.review.decide(
            ruled.memory, msgspec.structs.replace(writer.review.decision(ruled.memory), pinned=ruled.pinned)
        )


def _free(writer: Writer, key: str, entry: Entry) -> None:
    """A key has one active value. If the writer did not know the current one, another replica wrote it."""
    holder = writer.memories.holder(key)
    if holder is not None:
        writer.memories.supersede(holder.id, by=entry.id, at=entry.recorded)


def _note_about(
    writer: Writer, entry: Entry, payload: TurnPayload | DocumentPayload | DistilPayload | PromotePayload
) -> None:
    """Turns about a document are erased with it."""
    if payload.document is not None:
        writer.documents.note_upload(
            entry.seq, document=payload.document, collection=None, project=payload.project, at=payload.at
        )


def _shelve(writer: Writer, entry: Entry, uploaded: DocumentPayload, ready: PreparedDocument | None) -> None:
    _note_about(writer, entry, uploaded)
    made = prepare_document(entry.id, uploaded) if ready is None else ready
    writer.documents.add(document_of(entry, uploaded, made), made)


def document_of(entry: Entry, uploaded: DocumentPayload, made: PreparedDocument) -> Document:
    """An upload as a document waiting for its summaries."""
    size = len(uploaded.data) if uploaded.data is not None else len((uploaded.text or "").encode("utf-8"))
    at = to_datetime(uploaded.at)
    return Document(
        id=uploaded.document,
        entry_id=entry.id,
        seq=entry.seq,
        name=clean(uploaded.name),
        project=uploaded.project,
        media_type=uploaded.media_type,
        bytes=size,
        chars=len(made.text),
        sections=len(made.sections),
        spans=len(made.spans),
        created_at=at if uploaded.created is None else to_datetime(uploaded.created),
        updated_at=at,
    )


def _collect(writer: Writer, entry: Entry, collected: CollectPayload) -> None:
    id_, document, at = collected.collection, collected.document, collected.at
    writer.documents.note_upload(
        entry.seq, document=document, collection=id_, project=collected.project, at=at
    )
    if collected.action == "create":
        if writer.documents.collection(id_) is not None:
            return  # another replica made it, too: what either puts into it is in it
        made = Collection(
            id=id_,
            entry_id=entry.id,
            name=clean(collected.name),
            project=collected.project,
            ordered=collected.ordered,
            created_at=to_datetime(at),
        )
        writer.documents.add_collection(made, seq=entry.seq)
    elif collected.action == "add" and document is not None:
        writer.documents.add_member(id_, document, position=collected.position, seq=entry.seq, at=at)


def _project_turns(writer: Writer, entry: Entry, turns: list[Turn]) -> None:
    if turns:
        writer.turns.add(turns)
    else:
        writer.ledger.hide(entry.seq)


def _turns(entry: Entry, said: TurnPayload) -> list[Turn]:
    text = clean(said.content)
    if not text:
        return []
    return [
        Turn(
            entry_id=entry.id,
            seq=entry.seq,
            role=said.role,
            text=text,
            at=to_datetime(said.at),
            conversation=said.conversation,
            project=said.project,
            speaker=None if said.speaker is None else clean(said.speaker),
            within=within(said.scope, conversation=said.conversation, project=said.project),
            flags=flags_of(strip_injected(said.content), said.speaker),
        )
    ]


def _history_turns(entry: Entry, ready: Prepared | None) -> list[Turn]:
    assert entry.body is not None
    line = ready if isinstance(ready, HistoryLine) else parse_line(entry.body, trust_ids=True)
    at = to_datetime(line.at)
    spoken = [
        (turn.role, text, flags_of(strip_injected(turn.text)))
        for turn in extract_turns(entry.body)
        if (text := clean(turn.text))
    ]
    if len(spoken) > TURNS_PER_ENTRY_MAX:
        beyond = spoken[TURNS_PER_ENTRY_MAX - 1 :]
        text = "\n".join(text for _, text, _ in beyond)
        spoken[TURNS_PER_ENTRY_MAX - 1 :] = [(beyond[0][0], text, flags_of(text))]
    place = within_of(entry.body)
    return [
        Turn(
            entry_id=entry.id,
            seq=entry.seq,
            ordinal=ordinal,
            role=role,
            text=text,
            at=at,
            conversation=_conversation(entry),
            within=place,
            flags=flags,
        )
        for ordinal, (role, text, flags) in enumerate(spoken)
    ]


def _conversation(entry: Entry) -> str | None:
    """A line of a session history does not name its conversation. Our own proxy knows it and passes it as the session
    of its call, which is part of the entry and survives a replay."""
    adapter = entry.caller.adapter.removeprefix(IMPORTED)
    return entry.caller.session or None if adapter == _PROXY else None


def _stored(entry: Entry, stored: StorePayload) -> Memory:
    at, text = to_datetime(stored.at), clean(stored.content)
    return Memory(
        id=entry.id,
        kind=stored.kind,
        text=text,
        entry_id=entry.id,
        seq=entry.seq,
        start=0,
        end=len(stored.content),
        tags=_clean_tags(stored.tags),
        created_at=at,
        updated_at=at,
        supersedes=entry.ref,
        conversation=stored.conversation,
        project=stored.project,
        times=stored_times(text, at),
        within=within(stored.scope, conversation=stored.conversation, project=stored.project),
        flags=flags_of(stored.content, *stored.tags),
    )


def _put(entry: Entry, put: PutPayload) -> Memory:
    at, text = to_datetime(put.at), _clean_value(put)
    return Memory(
        id=entry.id,
        kind=Kind.FACT,
        text=text,
        entry_id=entry.id,
        seq=entry.seq,
        start=0,
        end=len(put.value),
        tags=_clean_tags(put.tags),
        key=put.key,
        category=put.category,
        created_at=at if put.created is None else to_datetime(put.created),
        updated_at=at,
        expires_at=None if put.expires is None else to_datetime(put.expires),
        supersedes=entry.ref,
        times=stored_times(text, at),
        flags=flags_of(put.key, put.value, *put.tags),
    )
