"""Recall: return facts, passages and a prompt text for a query."""

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from memplane.adapters.claiv.shapes import (
    ConflictItem,
    DocumentSpan,
    DocumentSummaryItem,
    EpisodeItem,
    FactItem,
    Focus,
    LLMContext,
    MessageItem,
    RecallResponse,
    RoutingInfo,
    SectionSummaryItem,
    TemporalMatch,
    TemporalRange,
    WorkingMemoryInfo,
)
from memplane.adapters.claiv.wire import IncludeBody, LimitsBody, RecallBody, answer, moment, timestamp
from memplane.auth.limits import QuotaResource
from memplane.clock import Clock, Instant, iso, to_datetime, to_instant
from memplane.recall.request import RecallRequest
from memplane.recall.result import Limits, Recall, RecallHit
from memplane.recall.tokens import tokens_of
from memplane.server.endpoint import HttpCall
from memplane.server.errors import HttpError
from memplane.space import Space
from memplane.types import AboutDocument, Memory, MentionedTime

# Memories in CLAIV's fact format.


SUBJECT = "user"
"""The subject of an explicitly stored memory that names none."""

About = Mapping[str, AboutDocument]
"""Map each entry id to the document that the event refers to."""


def fact_of(memory: Memory, about: About) -> FactItem:
    """Explicitly stored memories have no predicate; use the key or the kind instead."""
    predicate = memory.predicate or memory.key or memory.kind.value
    said = memory.object_text or memory.text
    document, name = about.get(memory.entry_id, (None, None))
    return FactItem(
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
        temporal_matches=[_match(result) for result in memory.times],
        document_id=document,
        document_name=name,
        tier=memory.tier.value,
        state=memory.state.value,
        superseded_at=timestamp(memory.superseded_at),
        text=memory.line,
    )


def _match(result: MentionedTime) -> TemporalMatch:
    start, end = iso(result.begin), iso(result.until)
    return TemporalMatch(
        ts_start=start,
        ts_end=end,
        raw_expression=result.raw,
        anchor_time=None,
        date_type=result.kind,
        granularity=result.granularity,
        temporal_range=TemporalRange(start, end),
    )


# A recall id encodes the user and the returned facts. Any process can handle feedback at any time, and recalls
# without feedback need no stored state.


_PREFIX = "r1_"
_CHARS_MAX = 32_768
_FACTS_MAX = 400
"""Upper bound on the facts in one recall."""
_LAST: Instant = to_instant(datetime.max.replace(tzinfo=UTC))


class RecallReference(msgspec.Struct, frozen=True, array_like=True):
    """The user, the returned facts and the time of a recall."""

    owner: Annotated[str, msgspec.Meta(min_length=1)]
    at: Annotated[Instant, msgspec.Meta(ge=0, le=_LAST)]
    facts: Annotated[tuple[str, ...], msgspec.Meta(max_length=_FACTS_MAX)]


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(RecallReference)


def recall_id_of(result: RecallReference) -> str:
    kept = msgspec.structs.replace(result, facts=result.facts[:_FACTS_MAX])
    return _PREFIX + base64.urlsafe_b64encode(_encode(kept)).decode().rstrip("=")


def read_recall_id(text: str) -> RecallReference:
    """A forged id gives no access beyond the caller's credential. Facts that do not exist are skipped."""
    try:
        if not text.startswith(_PREFIX) or len(text) > _CHARS_MAX:
            raise ValueError(text)
        coded = text.removeprefix(_PREFIX)
        return _decoder.decode(base64.b64decode(coded + "=" * (-len(coded) % 4), b"-_", validate=True))
    except (ValueError, binascii.Error, msgspec.MsgspecError) as exc:
        raise HttpError(404, "not_found", "unknown recall id; use the recall_id of a response") from exc


_ANCHORS = {"request": "request", "now": "server_now"}


class ClaivRecallHandler:
    """Handles `POST /v6/recall`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def handle(self, call: HttpCall) -> Response:
        body: RecallBody = call.body
        space = call.existing_space(body.user_id)
        with call.using(QuotaResource.RECALL):
            result = self._nothing(body) if space is None else _recall(space, body)
        call.spent.tokens += tokens_of(body.query) + result.tokens
        about = {} if space is None else _about(space, result)
        recalled = _recalled(body, result, about, self._recall_id(body.user_id, result))
        if (body.include or IncludeBody()).debug:
            recalled = msgspec.structs.replace(recalled, debug=_debug(body, result))
        return answer(recalled)

    def _nothing(self, body: RecallBody) -> Recall:
        """The response for a user without any memory."""
        reference = moment(body.reference_time, "reference_time")
        return Recall(
            query=body.query,
            text="",
            reference_time=reference or to_datetime(self._clock()),
            anchor="now" if reference is None else "request",
        )

    def _recall_id(self, owner: str, result: Recall) -> str:
        """Excludes hot facts: they are returned for every query, so an unused one does not count as negative feedback."""
        ids = tuple(hit.id for hit in result.answer_facts + result.supporting_facts)
        return recall_id_of(RecallReference(owner, self._clock(), ids))


def _recall(space: Space, body: RecallBody) -> Recall:
    request = RecallRequest(
        query=body.query,
        conversation=body.conversation_id,
        project=body.project_id,
        document=body.document_id,
        collection=body.collection_id,
        reference_time=moment(body.reference_time, "reference_time"),
        limits=_limits(body.limits or LimitsBody()),
    )
    return space.recall(request)


def _limits(asked: LimitsBody) -> Limits:
    given = {
        "answers": asked.answer_facts,
        "supporting": asked.supporting_facts,
        "background": asked.background_facts,
        "list_items": asked.max_list_items,
        "spans": asked.document_chunks,
    }
    usual = Limits()
    wanted = sum(count for name, count in given.items() if count is not None and name != "spans")
    chosen = {name: count for name, count in given.items() if count is not None}
    return msgspec.structs.replace(usual, facts=max(usual.facts, wanted), **chosen)


def _about(space: Space, result: Recall) -> About:
    pairs = [memory for conflict in result.conflicts for memory in (conflict.left, conflict.right)]
    facts = [hit.memory for hit in result.facts if hit.memory is not None]
    return space.documents.mentioned_by([*facts, *pairs])


def _recalled(body: RecallBody, result: Recall, about: About, recall_id: str) -> RecallResponse:
    def facts(hits: tuple[RecallHit, ...]) -> list[Any]:
        return [fact_of(hit.memory, about) for hit in hits if hit.memory is not None]

    return RecallResponse(
        answer_facts=facts(result.answer_facts),
        supporting_facts=facts(result.supporting_facts),
        background_context=facts(result.background_facts),
        llm_context=_context(result),
        working_memory=_working(body, result),
        pending_plan=None,
        routing=RoutingInfo(
            mode=result.routing.mode,
            kinds=list(result.routing.kinds),
            predicates=list(result.routing.predicates),
            temporal_intent=result.routing.temporal_intent,
            strategy=result.routing.strategy,
            channels=list(result.routing.channels),
        ),
        recall_id=recall_id,
        conflicts=[
            ConflictItem(
                content=f"{conflict.left.line}; but also: {conflict.right.line}",
                facts=[fact_of(conflict.left, about), fact_of(conflict.right, about)],
            )
            for conflict in result.conflicts
        ],
        episodes=[_episode(episode) for episode in result.episodes],
        document_spans=[
            DocumentSpan(
                document_id=hit.span.document,
                document_name=hit.document_name,
                section=list(hit.section),
                start=hit.span.start,
                end=hit.span.end,
                text=hit.span.text,
                score=hit.score,
                place=hit.span.place,
            )
            for hit in result.spans
        ],
        documents=[
            DocumentSummaryItem(
                document_id=document.id,
                document_name=document.name,
                distillation=document.distillation,
                degraded=document.degraded,
                sections=[
                    SectionSummaryItem(
                        node_id=section.id, path=list(section.path), distillation=section.distillation
                    )
                    for section in document.sections
                ],
            )
            for document in result.documents
        ],
        degraded=list(result.degraded),
    )


def _context(result: Recall) -> LLMContext:
    return LLMContext(
        reference_time=timestamp(result.reference_time),
        anchor_source=_ANCHORS[result.anchor],  # type: ignore[arg-type]
        conversation_history=[
            MessageItem(role=turn.role, content=turn.text, event_time=iso(turn.at))
            for turn in result.conversation_history
        ],
        fact_ids=[hit.id for hit in result.facts],
        text=result.text,
    )


def _working(body: RecallBody, result: Recall) -> WorkingMemoryInfo | None:
    """Returns nothing if the conversation has no messages yet."""
    if not result.conversation_history:
        return None
    working = result.working_memory
    constraints: dict[str, Any] = {"topics": list(working.topics)} if working.topics else {}
    if result.routing.ranges:
        constraints["times"] = [[iso(begin), iso(until)] for begin, until in result.routing.ranges]
    here = [episode.text for episode in result.episodes if episode.conversation == body.conversation_id]
    return WorkingMemoryInfo(
        focus=Focus(
            entities=list(working.entities),
            last_subjects=list(working.subjects),
            last_constraints=constraints,
        ),
        pending_confirmation=None,
        last_plan=None,
        turn_summary=here[0] if here else None,
    )


def _episode(episode: Memory) -> EpisodeItem:
    return EpisodeItem(
        episode_id=episode.id,
        conversation_id=episode.conversation,
        content=episode.text,
        created_at=iso(episode.created_at),
    )


def _debug(body: RecallBody, result: Recall) -> dict[str, Any]:
    """Explain each result: the score and the rank from each search channel."""
    return {
        "mode_hint": body.mode_hint,
        "timings_ms": dict(result.timings),
        "tokens": result.tokens,
        "speakers": list(result.routing.speakers),
        "ranges": [[iso(begin), iso(until)] for begin, until in result.routing.ranges],
        "facts": {hit.id: _ranked(hit) for hit in result.facts},
        "events": {hit.id: _ranked(hit) for hit in result.hits if hit.turn is not None},
        "spans": {hit.span.id: _ranked(hit) for hit in result.spans},
    }


def _ranked(hit: Any) -> dict[str, Any]:
    return {"score": hit.score, "channels": dict(hit.channels), "ranks": dict(hit.ranks)}
