"""A memory, as clients of CLAIV Memory read a fact."""

from collections.abc import Iterable, Mapping

from memplane.clock import iso
from memplane.doors.http.v6.shapes import Fact, TemporalMatch, TemporalRange
from memplane.doors.http.v6.wire import spelled
from memplane.ledger.payloads import Said, decode
from memplane.space import Space
from memplane.types import Memory, Op, TimeTold

SUBJECT = "user"
"""Whom something is about that was stored on purpose, and names nobody."""

Tags = Mapping[str, tuple[str | None, str | None]]
"""By entry: the id and the name of the document that an event is about."""


def tags_of(space: Space, memories: Iterable[Memory]) -> Tags:
    """The documents that the events are about from which these memories were read."""
    seqs = sorted({memory.seq for memory in memories if memory.derived})
    said = {
        entry.id: decode(entry)
        for entry in (space.entries_at(seqs) if seqs else ())
        if entry.op is Op.TURN and entry.body is not None and b'"document"' in entry.body
    }
    return {
        id_: (payload.document, payload.document_name)
        for id_, payload in said.items()
        if isinstance(payload, Said) and payload.document is not None
    }


def fact_of(memory: Memory, tags: Tags) -> Fact:
    """What was stored on purpose has no predicate: its key says what it is, or its kind."""
    predicate = memory.predicate or memory.key or memory.kind.value
    said = memory.object_text or memory.text
    document, name = tags.get(memory.entry_id, (None, None))
    return Fact(
        fact_id=memory.id,
        subject=memory.subject or SUBJECT,
        kind=memory.kind.value,
        predicate=predicate,
        object=said,
        object_text=said,
        relation_phrase=predicate.replace("_", " "),
        source_text=memory.quote,
        confidence=memory.confidence,
        importance=memory.importance,
        created_at=iso(memory.created_at),
        temporal_matches=[_match(told) for told in memory.times],
        document_id=document,
        document_name=name,
        tier=memory.tier.value,
        state=memory.state.value,
        superseded_at=spelled(memory.superseded_at),
        text=memory.line,
    )


def _match(told: TimeTold) -> TemporalMatch:
    start, end = iso(told.begin), iso(told.until)
    return TemporalMatch(
        ts_start=start,
        ts_end=end,
        raw_expression=told.raw,
        anchor_time=None,
        date_type=told.kind,
        granularity=told.granularity,
        temporal_range=TemporalRange(start, end),
    )
