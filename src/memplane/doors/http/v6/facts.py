"""A memory, as clients of CLAIV Memory read a fact."""

from collections.abc import Mapping

from memplane.clock import iso
from memplane.doors.http.v6.shapes import Fact, TemporalMatch, TemporalRange
from memplane.doors.http.v6.wire import spelled
from memplane.types import AboutDocument, Memory, TimeTold

SUBJECT = "user"
"""Whom something is about that was stored on purpose, and names nobody."""

About = Mapping[str, AboutDocument]
"""By entry: the document that the event is about."""


def fact_of(memory: Memory, about: About) -> Fact:
    """What was stored on purpose has no predicate: its key says what it is, or its kind."""
    predicate = memory.predicate or memory.key or memory.kind.value
    said = memory.object_text or memory.text
    document, name = about.get(memory.entry_id, (None, None))
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
