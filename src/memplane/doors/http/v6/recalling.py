"""Recall: a question in, facts and passages and a text for the prompt out."""

from typing import Any

import msgspec

from memplane.clock import Clock, iso, to_datetime
from memplane.doors.http.endpoint import Call, Response
from memplane.doors.http.v6.bodies import IncludeBody, LimitsBody, RecallBody
from memplane.doors.http.v6.facts import About, fact_of
from memplane.doors.http.v6.recall_id import Told, recall_id_of
from memplane.doors.http.v6.shapes import (
    Conflict,
    DocumentSpan,
    DocumentTold,
    Episode,
    Focus,
    LLMContext,
    Message,
    Recalled,
    Routing,
    SectionTold,
    WorkingMemory,
)
from memplane.doors.http.v6.wire import answer, moment, spelled
from memplane.metering.allowance import What
from memplane.recall.result import Limits, Recall, RecallHit
from memplane.recall.tokens import tokens_of
from memplane.space import Space
from memplane.types import Memory

_ANCHORS = {"request": "request", "now": "server_now"}


class Recaller:
    """Answers `POST /v6/recall`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def handle(self, call: Call) -> Response:
        body: RecallBody = call.body
        space = call.existing_space(body.user_id)
        with call.using(What.RECALL):
            told = self._nothing(body) if space is None else _told(space, body)
        call.spent.tokens += tokens_of(body.query) + told.tokens
        about = {} if space is None else _about(space, told)
        recalled = _recalled(body, told, about, self._recall_id(body.user_id, told))
        if (body.include or IncludeBody()).debug:
            recalled = msgspec.structs.replace(recalled, debug=_debug(body, told))
        return answer(recalled)

    def _nothing(self, body: RecallBody) -> Recall:
        """What is told of somebody of whom nothing is known."""
        reference = moment(body.reference_time, "reference_time")
        return Recall(
            query=body.query,
            text="",
            reference_time=reference or to_datetime(self._clock()),
            anchor="now" if reference is None else "request",
        )

    def _recall_id(self, owner: str, told: Recall) -> str:
        """Facts that are always told are not in it: whoever did not need them for this question did not pass them over."""
        ids = tuple(hit.id for hit in told.answer_facts + told.supporting_facts)
        return recall_id_of(Told(owner, self._clock(), ids))


def _told(space: Space, body: RecallBody) -> Recall:
    return space.recall(
        body.query,
        conversation=body.conversation_id,
        project=body.project_id,
        document=body.document_id,
        collection=body.collection_id,
        reference_time=moment(body.reference_time, "reference_time"),
        limits=_limits(body.limits or LimitsBody()),
    )


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


def _about(space: Space, told: Recall) -> About:
    pairs = [memory for conflict in told.conflicts for memory in (conflict.left, conflict.right)]
    facts = [hit.memory for hit in told.facts if hit.memory is not None]
    return space.about_documents([*facts, *pairs])


def _recalled(body: RecallBody, told: Recall, about: About, recall_id: str) -> Recalled:
    def facts(hits: tuple[RecallHit, ...]) -> list[Any]:
        return [fact_of(hit.memory, about) for hit in hits if hit.memory is not None]

    return Recalled(
        answer_facts=facts(told.answer_facts),
        supporting_facts=facts(told.supporting_facts),
        background_context=facts(told.background_facts),
        llm_context=_context(told),
        working_memory=_working(body, told),
        pending_plan=None,
        routing=Routing(
            mode=told.routing.mode,
            kinds=list(told.routing.kinds),
            predicates=list(told.routing.predicates),
            temporal_intent=told.routing.temporal_intent,
            strategy=told.routing.strategy,
            channels=list(told.routing.channels),
        ),
        recall_id=recall_id,
        conflicts=[
            Conflict(
                content=f"{conflict.left.line}; but also: {conflict.right.line}",
                facts=[fact_of(conflict.left, about), fact_of(conflict.right, about)],
            )
            for conflict in told.conflicts
        ],
        episodes=[_episode(episode) for episode in told.episodes],
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
            for hit in told.spans
        ],
        documents=[
            DocumentTold(
                document_id=document.id,
                document_name=document.name,
                distillation=document.distillation,
                degraded=document.degraded,
                sections=[
                    SectionTold(
                        node_id=section.id, path=list(section.path), distillation=section.distillation
                    )
                    for section in document.sections
                ],
            )
            for document in told.documents
        ],
        degraded=list(told.degraded),
    )


def _context(told: Recall) -> LLMContext:
    return LLMContext(
        reference_time=spelled(told.reference_time),
        anchor_source=_ANCHORS[told.anchor],  # type: ignore[arg-type]
        conversation_history=[
            Message(role=turn.role, content=turn.text, event_time=iso(turn.at))
            for turn in told.conversation_history
        ],
        fact_ids=[hit.id for hit in told.facts],
        text=told.text,
    )


def _working(body: RecallBody, told: Recall) -> WorkingMemory | None:
    """Nothing where nothing was said in this conversation yet."""
    if not told.conversation_history:
        return None
    working = told.working_memory
    constraints: dict[str, Any] = {"topics": list(working.topics)} if working.topics else {}
    if told.routing.ranges:
        constraints["times"] = [[iso(begin), iso(until)] for begin, until in told.routing.ranges]
    here = [episode.text for episode in told.episodes if episode.conversation == body.conversation_id]
    return WorkingMemory(
        focus=Focus(
            entities=list(working.entities),
            last_subjects=list(working.subjects),
            last_constraints=constraints,
        ),
        pending_confirmation=None,
        last_plan=None,
        turn_summary=here[0] if here else None,
    )


def _episode(episode: Memory) -> Episode:
    return Episode(
        episode_id=episode.id,
        conversation_id=episode.conversation,
        content=episode.text,
        created_at=iso(episode.created_at),
    )


def _debug(body: RecallBody, told: Recall) -> dict[str, Any]:
    """Why each thing was found: what each channel added to its score, and the rank it had there."""
    return {
        "mode_hint": body.mode_hint,
        "timings_ms": dict(told.timings),
        "tokens": told.tokens,
        "speakers": list(told.routing.speakers),
        "ranges": [[iso(begin), iso(until)] for begin, until in told.routing.ranges],
        "facts": {hit.id: _ranked(hit) for hit in told.facts},
        "events": {hit.id: _ranked(hit) for hit in told.hits if hit.turn is not None},
        "spans": {hit.span.id: _ranked(hit) for hit in told.spans},
    }


def _ranked(hit: Any) -> dict[str, Any]:
    return {"score": hit.score, "channels": dict(hit.channels), "ranks": dict(hit.ranks)}
