"""The ledger turned into turns and memories. The same code runs when an entry arrives and when it is replayed,
so a replay gives the same memories with the same ids."""

from collections.abc import Callable, Sequence

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.errors import MemplaneError
from memplane.governance.fence import strip_injected
from memplane.governance.neutral import visible
from memplane.governance.redact import redact
from memplane.ledger.history import parse_line
from memplane.ledger.history_text import extract_turns
from memplane.ledger.payloads import (
    Derived,
    Forgotten,
    Purged,
    Put,
    Resolved,
    Said,
    Stored,
    decode,
    decode_body,
)
from memplane.storage.base import TURNS_PER_ENTRY_MAX, Writer
from memplane.types import Draft, Entry, Kind, Memory, Op, Turn

_TURN_OPS = (Op.TURN, Op.HISTORY)
_CHUNK = 2_000
_PROXY = "proxy"
"""The door whose sessions are conversations."""

UNREADABLE = "unreadable"
"""The note that counts entries no memory could be derived from."""


def record(writer: Writer, draft: Draft, now: Instant) -> Entry:
    """Append one entry and show it to the very next read, even while a bulk import has turns waiting: `catch_up` will
    meet this one again and leave it as it is."""
    (entry,) = writer.append([draft], recorded=now)
    apply(writer, entry)
    if writer.cursor() == entry.seq - 1:
        writer.set_cursor(entry.seq)
    return entry


def load(writer: Writer, drafts: Sequence[Draft], now: Instant) -> None:
    """Append many entries. Turns are left for `catch_up`; everything else is applied at once, in order."""
    turns: list[Draft] = []
    for draft in drafts:
        if draft.op in _TURN_OPS:
            turns.append(draft)
            continue
        writer.append(turns, recorded=now)
        turns = []
        record(writer, _onto_live_key(writer, draft), now)
    writer.append(turns, recorded=now)


def _onto_live_key(writer: Writer, draft: Draft) -> Draft:
    """A key has one live value: what arrives from elsewhere replaces the one that is here."""
    if draft.op not in (Op.PUT, Op.RUN) or not draft.body:
        return draft
    put = decode_body(draft.op, draft.body)
    assert isinstance(put, Put)
    live = writer.holder(put.key)
    return draft if live is None or live.id == draft.ref else msgspec.structs.replace(draft, ref=live.id)


def catch_up(writer: Writer, limit: int = _CHUNK) -> int:
    """Project turns that a bulk import appended and left behind; returns how many entries are still ahead.

    Only turns are ever left behind, and they commute with everything else: what else came in was applied at once.
    """
    entries = writer.entries(after=writer.cursor(), limit=limit)
    for entry in entries:
        if entry.op in _TURN_OPS:
            _apply_if_readable(writer, entry)
    if entries:
        writer.set_cursor(entries[-1].seq)
    return writer.head().seq - writer.cursor()


def replay(writer: Writer, progress: Callable[[int], None]) -> int:
    """Drop everything derived and derive it again; returns how many entries were read."""
    writer.clear_projection()
    writer.set_note(UNREADABLE, "0")
    seq = 0
    while entries := writer.entries(after=seq, limit=_CHUNK):
        for entry in entries:
            _apply_if_readable(writer, entry)
        seq = entries[-1].seq
        writer.set_cursor(seq)
        progress(seq)
    return seq


def _apply_if_readable(writer: Writer, entry: Entry) -> None:
    """One entry that cannot be understood never keeps the next from being understood. It stays in the ledger, can be
    forgotten, and the doctor counts it."""
    try:
        apply(writer, entry)
    except (MemplaneError, ValueError, TypeError, OverflowError, RecursionError):
        writer.hide(entry.seq)
        writer.set_note(UNREADABLE, str(int(writer.note(UNREADABLE) or 0) + 1))


def apply(writer: Writer, entry: Entry) -> None:
    """What one entry means for memory."""
    if entry.ref is not None:
        # Done even when the body is erased: what a forgotten memory replaced stays replaced.
        writer.supersede(entry.ref, by=entry.id, at=entry.recorded)
    if entry.body:
        _apply_body(writer, entry)


def clean(text: str) -> str:
    """What may reach derived memory: nothing we injected ourselves, nothing invisible, no secrets. What is invisible
    goes first, because it could hide a secret from the eye of the redactor and not from the reader's."""
    return redact(visible(strip_injected(text))).text


def _clean_value(put: Put) -> str:
    """A value under a name such as `db/password` is judged by that name too."""
    named = f"{put.key}: "
    whole = clean(named + put.value)
    return whole.removeprefix(named) if whole.startswith(named) else clean(put.value)


def _clean_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean(tag) for tag in tags))


def _apply_body(writer: Writer, entry: Entry) -> None:
    if entry.op is Op.HISTORY:
        _project_turns(writer, entry, _history_turns(entry))
        return
    match decode(entry):
        case Said() as said:
            _project_turns(writer, entry, _turns(entry, said))
        case Stored() as stored:
            writer.project(memories=[_stored(entry, stored)])
        case Put() as put:
            writer.project(memories=[_put(entry, put)])
        case Purged(before=before):
            writer.purge_superseded(before=before)
        case Forgotten() | Derived() | Resolved():
            pass  # the tombstones do a forget's work, the worker that of the others


def _project_turns(writer: Writer, entry: Entry, turns: list[Turn]) -> None:
    if turns:
        writer.project(turns=turns)
    else:
        writer.hide(entry.seq)


def _turns(entry: Entry, said: Said) -> list[Turn]:
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
        )
    ]


def _history_turns(entry: Entry) -> list[Turn]:
    assert entry.body is not None
    at = to_datetime(parse_line(entry.body, trust_ids=True).at)
    spoken = [(turn.role, text) for turn in extract_turns(entry.body) if (text := clean(turn.text))]
    if len(spoken) > TURNS_PER_ENTRY_MAX:
        beyond = spoken[TURNS_PER_ENTRY_MAX - 1 :]
        spoken[TURNS_PER_ENTRY_MAX - 1 :] = [(beyond[0][0], "\n".join(text for _, text in beyond))]
    return [
        Turn(
            entry_id=entry.id,
            seq=entry.seq,
            ordinal=ordinal,
            role=role,
            text=text,
            at=at,
            conversation=_conversation(entry),
        )
        for ordinal, (role, text) in enumerate(spoken)
    ]


def _conversation(entry: Entry) -> str | None:
    """A line of a session history does not say which conversation it belongs to. Our own proxy knows, and says it as
    the session of its call, which is a part of the entry that a replay still has."""
    return entry.caller.session or None if entry.caller.door == _PROXY else None


def _stored(entry: Entry, stored: Stored) -> Memory:
    at = to_datetime(stored.at)
    return Memory(
        id=entry.id,
        kind=stored.kind,
        text=clean(stored.content),
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
    )


def _put(entry: Entry, put: Put) -> Memory:
    at = to_datetime(put.at)
    return Memory(
        id=entry.id,
        kind=Kind.FACT,
        text=_clean_value(put),
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
    )
