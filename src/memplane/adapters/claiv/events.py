"""Store and forget events, and record feedback on recalls."""

from datetime import timedelta

from starlette.responses import Response

from memplane.adapters.claiv.recall import read_recall_id
from memplane.adapters.claiv.receipts import counts_of
from memplane.adapters.claiv.shapes import FeedbackResponse, ForgetResponse, IngestResponse
from memplane.adapters.claiv.wire import FeedbackBody, ForgetBody, IngestBody, answer, moment
from memplane.auth.limits import QuotaResource
from memplane.clock import iso
from memplane.errors import InvalidRequest
from memplane.recall.tokens import tokens_of
from memplane.server.endpoint import HttpCall

IDEMPOTENT_FOR = timedelta(hours=24)

_ROLES = {"message": "user", "tool_call": "tool", "app_event": "tool"}
"""The default speaker. Statements from tools and applications never override the user."""


def ingest(call: HttpCall) -> Response:
    """Store an event. It is durable and searchable when the response is sent; facts are extracted later."""
    body: IngestBody = call.body
    if body.scope == "project" and body.project_id is None:
        raise InvalidRequest("scope project requires project_id", field="project_id")
    space, at = call.space(body.user_id), moment(body.event_time, "event_time")
    with call.using(QuotaResource.INGEST):
        kept = space.retain(
            body.content,
            role=body.role or _ROLES[body.type],
            conversation=body.conversation_id,
            project=body.project_id,
            at=at,
            scope=body.scope or "global",
            idempotency_key=body.idempotency_key,
            idempotency_window=None if body.idempotency_key is None else IDEMPOTENT_FOR,
            document=body.document_id,
            document_name=body.document_name,
            metadata=_metadata(body),
        )
    call.spent.tokens += tokens_of(body.content)
    return answer(IngestResponse(event_id=kept.id, deduped=kept.deduped or kept.suppressed))


def _metadata(body: IngestBody) -> dict[str, object] | None:
    """The text as given. The event type is added unless the event is a message."""
    if body.type == "message":
        return body.metadata
    return {**(body.metadata or {}), "event_type": body.type}


def forget(call: HttpCall) -> Response:
    """Forget a selection, or everything of a user if only the user is given."""
    body: ForgetBody = call.body
    conversation = body.conversation_id or body.thread_id
    if body.thread_id is not None and conversation != body.thread_id:
        raise InvalidRequest(
            "thread_id is the former name of conversation_id; use only one of them", field="thread_id"
        )
    narrowed = (conversation, body.project_id, body.document_id, body.from_time, body.to_time)
    receipt = call.space(body.user_id).forget(
        conversation=conversation,
        project=body.project_id,
        document=body.document_id,
        since=moment(body.from_time, "from_time"),
        until=moment(body.to_time, "to_time"),
        everything=all(condition is None for condition in narrowed),
        reason="forgotten through the CLAIV API",
    )
    return answer(
        ForgetResponse(receipt_id=receipt.id, deleted_counts=counts_of(receipt), off_disk=receipt.off_disk)
    )


def feedback(call: HttpCall) -> Response:
    """Returned facts that were not selected count as ignored. Hot facts do not, because they are returned for every
    query."""
    body: FeedbackBody = call.body
    recall_id = call.path_params["recall_id"]
    recalled = read_recall_id(recall_id)
    space = call.existing_space(recalled.owner)
    recorded = 0
    if space is not None:
        recorded = space.feedback(
            body.selected_ids, recalled.facts, recall=iso(recalled.at), rating=body.user_rating
        )
    return answer(FeedbackResponse(recall_id=recall_id, facts_recorded=recorded))
