"""Read facts and conversations. These endpoints are Memplane's additions to the CLAIV API."""

import msgspec
from starlette.responses import Response

from memplane.adapters.claiv.documents import space_of
from memplane.adapters.claiv.recall import fact_of
from memplane.adapters.claiv.shapes import (
    ConversationItem,
    ConversationList,
    ConversationRead,
    EvidenceItem,
    FactList,
    FactRead,
    FeedbackCounts,
    TurnItem,
)
from memplane.adapters.claiv.wire import answer, missing
from memplane.clock import iso
from memplane.server.endpoint import HttpCall
from memplane.types import Memory


def facts(call: HttpCall) -> Response:
    query = call.query
    limit, offset = query["limit"], query["offset"]
    space = call.existing_space(query["user_id"])
    found: list[Memory] = []
    if space is not None:
        found = space.memories(
            state=query["state"],
            episodes=False,
            predicate=query["predicate"],
            conversation=query["conversation_id"],
            project=query["project_id"],
            limit=limit + 1,
            offset=offset,
        )
    about = {} if space is None else space.documents.mentioned_by(found)
    page = [fact_of(memory, about) for memory in found[:limit]]
    return answer(FactList(facts=page, limit=limit, offset=offset, more=len(found) > limit))


def fact(call: HttpCall) -> Response:
    fact_id = call.path_params["fact_id"]
    space = space_of(call, call.query["user_id"], "fact", fact_id)
    memory = space.memory(fact_id)
    places, base = space.evidence(fact_id), memory.importance_base
    return answer(
        FactRead(
            **msgspec.structs.asdict(fact_of(memory, space.documents.mentioned_by([memory]))),
            conversation_id=memory.conversation,
            project_id=memory.project,
            superseded_by=memory.superseded_by,
            supersedes=memory.supersedes,
            evidence=[_evidence(place) for place in places],
            feedback=FeedbackCounts(
                selected=memory.chosen,
                ignored=memory.passed_over,
                leaning=memory.leaning,
                importance_before=memory.importance if base is None else base,
            ),
        )
    )


def conversations(call: HttpCall) -> Response:
    limit, offset = call.query["limit"], call.query["offset"]
    space = call.existing_space(call.query["user_id"])
    found = [] if space is None else space.conversations(limit=limit + 1, offset=offset)
    return answer(
        ConversationList(
            conversations=[
                ConversationItem(
                    conversation_id=one.id,
                    project_id=one.project,
                    turns=one.turns,
                    started_at=iso(one.first_at),
                    last_event_at=iso(one.last_at),
                )
                for one in found[:limit]
            ],
            limit=limit,
            offset=offset,
            more=len(found) > limit,
        )
    )


def conversation(call: HttpCall) -> Response:
    conversation_id = call.path_params["conversation_id"]
    limit, offset = call.query["limit"], call.query["offset"]
    space = call.existing_space(call.query["user_id"])
    found = [] if space is None else space.turns(conversation_id, limit=limit + 1, offset=offset)
    if not found and not offset:
        raise missing("conversation", conversation_id)
    return answer(
        ConversationRead(
            conversation_id=conversation_id,
            turns=[
                TurnItem(
                    event_id=turn.entry_id,
                    role=turn.role,
                    content=turn.text,
                    event_time=iso(turn.at),
                    project_id=turn.project,
                )
                for turn in found[:limit]
            ],
            limit=limit,
            offset=offset,
            more=len(found) > limit,
        )
    )


def _evidence(place: Memory) -> EvidenceItem:
    return EvidenceItem(
        event_id=place.entry_id,
        source_text=place.quote,
        start=place.start,
        end=place.end,
        role=place.role,
        conversation_id=place.conversation,
        created_at=iso(place.created_at),
    )
