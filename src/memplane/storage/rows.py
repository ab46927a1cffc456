"""Rows of the database to types and back."""

from collections.abc import Sequence

import msgspec

from memplane.clock import to_datetime, to_instant
from memplane.storage import conditions
from memplane.storage.engine import Row
from memplane.storage.numbers import (
    SPANS_PER_DOCUMENT_MAX,
    TURNS_PER_ENTRY_MAX,
    section_id,
    span_id,
    span_number,
    turn_number,
)
from memplane.types import (
    Caller,
    Collection,
    Document,
    DocumentStatus,
    Entry,
    Kind,
    Memory,
    MentionedTime,
    Op,
    Section,
    Span,
    State,
    Tier,
    Turn,
)

TURN_COLUMNS = (
    "t.n, l.id, t.role, t.text, t.at, t.conversation, t.project, t.speaker, t.within, t.flags, "
    + conditions.RELEASED_ENTRY
)
MEMORY_COLUMNS = (
    f'm.id, m.kind, m.text, l.id, m.seq, m.start, m."end", m.state, {conditions.TIER}, m.tags, m.key, m.category, '
    "m.created, "
    "m.updated, m.expires, m.supersedes, m.superseded_by, m.superseded, m.conversation, m.project, "
    "l.actor, l.door, l.session, m.turn, m.quote, m.extractor, m.subject, m.predicate, m.object, m.claim, "
    "m.importance, m.confidence, m.times, m.role, m.within, m.chosen, m.passed_over, m.leaning, m.importance_base, "
    f"m.flags, {conditions.RELEASED_IN_ENTRY}, "
    f"{conditions.PINNED} AND m.state <> 'superseded'"
)
LINE_COLUMNS = (
    "p.seq, p.id, p.layer, p.day, p.kind, p.text, p.at, p.sources, p.quote, p.conversation, p.project, p.within, "
    "p.recorded"
)
DOCUMENT_COLUMNS = (
    "d.id, l.id, d.seq, d.name, d.project, d.media_type, d.bytes, d.chars, d.sections, d.spans, d.created, d.updated, "
    "d.status, d.error, d.distillation, (SELECT {list_of:c.id} FROM member b "
    "JOIN collection c ON c.seq = b.collection WHERE b.document = d.id)"
)
SECTION_COLUMNS = 's.n, s.title, s.level, s.path, s.start, s."end", s.distillation'
SPAN_COLUMNS = 'd.id, l.id, s.n, s.section, s.start, s."end", s.text, s.place'
COLLECTION_COLUMNS = (
    "c.id, l.id, c.name, c.project, c.ordered, c.created, (SELECT count(*) FROM member b "
    "JOIN document d ON d.id = b.document WHERE b.collection = c.seq)"
)

_KINDS = {kind.value: kind for kind in Kind}
_STATES = {state.value: state for state in State}
_TIERS = {tier.value: tier for tier in Tier}
"""Dictionaries rather than calls of the enum: a recall reads dozens of memories."""
_decode_tags = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_times = msgspec.json.Decoder(tuple[MentionedTime, ...]).decode
_encode = msgspec.json.Encoder().encode


def entry_from(row: Row) -> Entry:
    seq, id_, op, recorded, actor, adapter, session, ref, body = row[:9]
    return Entry(seq, id_, Op(op), recorded, Caller(actor, adapter, session), ref, body)


def turn_from(row: Row) -> Turn:
    n, entry_id, role, text, at, conversation, project, speaker, within, flags, released = row
    seq, ordinal = divmod(n, TURNS_PER_ENTRY_MAX)
    return Turn(
        entry_id=entry_id,
        seq=seq,
        ordinal=ordinal,
        role=role,
        text=text,
        at=to_datetime(at),
        conversation=conversation,
        project=project,
        speaker=speaker,
        within=within,
        flags=_flags_from(flags),
        released=bool(released),
    )


def turn_row(turn: Turn) -> Row:
    n = turn_number(turn.seq, turn.ordinal)
    at = to_instant(turn.at)
    place = (turn.conversation, turn.project, turn.speaker, turn.within)
    return (n, turn.role, turn.text, at, *place, _flags_text(turn.flags))


def memory_from(row: Row) -> Memory:
    return Memory(
        id=row[0],
        kind=_KINDS[row[1]],
        text=row[2],
        entry_id=row[3],
        seq=row[4],
        start=row[5],
        end=row[6],
        state=_STATES[row[7]],
        tier=_TIERS[row[8]],
        tags=tags_from(row[9]),
        key=row[10],
        category=row[11],
        created_at=to_datetime(row[12]),
        updated_at=to_datetime(row[13]),
        expires_at=None if row[14] is None else to_datetime(row[14]),
        supersedes=row[15],
        superseded_by=row[16],
        superseded_at=None if row[17] is None else to_datetime(row[17]),
        conversation=row[18],
        project=row[19],
        caller=Caller(row[20], row[21], row[22]),
        ordinal=None if row[23] is None else row[23] % TURNS_PER_ENTRY_MAX,
        quote=row[24],
        extractor=row[25],
        subject=row[26],
        predicate=row[27],
        object_text=row[28],
        claim=row[29],
        importance=row[30],
        confidence=row[31],
        times=() if row[32] == "[]" else _decode_times(row[32]),
        role=row[33],
        within=row[34],
        chosen=row[35],
        passed_over=row[36],
        leaning=row[37],
        importance_base=row[38],
        flags=_flags_from(row[39]),
        released=bool(row[40]),
        pinned=bool(row[41]),
    )


def memory_row(memory: Memory) -> Row:
    return (
        memory.id,
        memory.kind,
        int(memory.behavioral),
        memory.text,
        memory.seq,
        memory.start,
        memory.end,
        memory.state,
        memory.tier,
        _encode(memory.tags).decode(),
        memory.key,
        memory.category,
        to_instant(memory.created_at),
        to_instant(memory.updated_at),
        None if memory.expires_at is None else to_instant(memory.expires_at),
        memory.supersedes,
        memory.superseded_by,
        None if memory.superseded_at is None else to_instant(memory.superseded_at),
        memory.conversation,
        memory.project,
        None if memory.ordinal is None else turn_number(memory.seq, memory.ordinal),
        memory.quote,
        memory.extractor,
        memory.subject,
        memory.predicate,
        memory.object_text,
        memory.claim,
        memory.importance,
        memory.confidence,
        _encode(memory.times).decode(),
        min((to_instant(time.begin) for time in memory.times), default=None),
        max((to_instant(time.until) for time in memory.times), default=None),
        memory.role,
        memory.within,
        _flags_text(memory.flags),
    )


def _flags_text(flags: Sequence[str] | None) -> str | None:
    return None if flags is None else " ".join(flags)


def _flags_from(text: str | None) -> tuple[str, ...] | None:
    return () if text == "" else None if text is None else tuple(text.split())


def tags_from(text: str) -> tuple[str, ...]:
    return () if text == "[]" else _decode_tags(text)


def document_from(row: Row) -> Document:
    return Document(
        id=row[0],
        entry_id=row[1],
        seq=row[2],
        name=row[3],
        project=row[4],
        media_type=row[5],
        bytes=row[6],
        chars=row[7],
        sections=row[8],
        spans=row[9],
        created_at=to_datetime(row[10]),
        updated_at=to_datetime(row[11]),
        status=DocumentStatus(row[12]),
        error=row[13],
        distillation=row[14],
        collections=tuple(sorted(tags_from(row[15]))),
    )


def document_row(document: Document) -> Row:
    return (
        document.seq,
        document.id,
        document.name,
        document.project,
        document.media_type,
        document.bytes,
        document.chars,
        document.sections,
        document.spans,
        to_instant(document.created_at),
        to_instant(document.updated_at),
        document.status,
    )


def section_from(row: Row) -> Section:
    entry_id, n, title, level, path, start, end, distillation = row
    ordinal = n % SPANS_PER_DOCUMENT_MAX
    return Section(
        id=section_id(entry_id, ordinal),
        ordinal=ordinal,
        title=title,
        level=level,
        path=tags_from(path),
        start=start,
        end=end,
        distillation=distillation,
    )


def section_row(seq: int, section: Section) -> Row:
    return (
        span_number(seq, section.ordinal),
        section.title,
        section.level,
        _encode(section.path).decode(),
        section.start,
        section.end,
    )


def span_from(row: Row) -> Span:
    document, entry_id, n, section, start, end, text, place = row
    ordinal = n % SPANS_PER_DOCUMENT_MAX
    return Span(
        id=span_id(entry_id, ordinal),
        document=document,
        ordinal=ordinal,
        section=section,
        start=start,
        end=end,
        text=text,
        place=place,
    )


def collection_from(row: Row) -> Collection:
    id_, entry_id, name, project, ordered, created, documents = row
    return Collection(
        id=id_,
        entry_id=entry_id,
        name=name,
        project=project,
        ordered=bool(ordered),
        created_at=to_datetime(created),
        documents=documents,
    )
