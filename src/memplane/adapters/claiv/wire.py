"""Request parameters and bodies of the v6 API."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import Response

from memplane.clock import iso, parse_instant, to_datetime
from memplane.server.endpoint import Query
from memplane.server.errors import HttpError
from memplane.server.responses import json_response

PAGE_MAX = 1_000

Name = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=200)]
Position = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Moment = str | float
"""ISO 8601, or Unix seconds."""

Page = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=100_000)]

USER = Query(name="user_id", type=Name, required=True, description="ID of the user.")
MAYBE_USER = Query(
    name="user_id", type=Name, description="ID of the user; needed only where several users have the same ID."
)
PROJECT = Query(name="project_id", type=Name, description="Only those of this project.")


def paging(limit: int) -> tuple[Query, Query]:
    return (
        Query(
            name="limit",
            type=Page,
            default=limit,
            description=f"Maximum number of results; {limit} by default.",
        ),
        Query(name="offset", type=Offset, default=0, description="Number of results to skip."),
    )


def answer(value: Any) -> Response:
    return json_response(value)


def timestamp(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


def moment(value: str | float | None, field: str) -> datetime | None:
    """Parse ISO 8601 or Unix seconds. Errors name the parameter."""
    return None if value is None else to_datetime(parse_instant(value, field=field))


def missing(what: str, name: str) -> HttpError:
    """A 404 that does not reveal whether another user has the item."""
    return HttpError(404, "not_found", f"no {what} {name!r} that this credential may access")


# Request bodies of CLAIV Memory clients. Unknown fields are rejected by name; `null` equals an omitted field.


class _Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request body that rejects unknown fields."""


class IngestBody(_Body, frozen=True, kw_only=True):
    """An event to remember."""

    user_id: Name
    conversation_id: Name
    type: Literal["message", "tool_call", "app_event"]
    content: Name
    role: Literal["user", "assistant", "system", "tool"] | None = None
    project_id: Name | None = None
    scope: Literal["global", "project", "conversation"] | None = None
    document_id: Name | None = None
    document_name: Name | None = None
    metadata: dict[str, Any] | None = None
    event_time: Moment | None = None
    idempotency_key: Name | None = None


class LimitsBody(_Body, frozen=True, kw_only=True):
    """Limits on the size of a recall."""

    answer_facts: Count | None = None
    supporting_facts: Count | None = None
    background_facts: Count | None = None
    max_list_items: Count | None = None
    document_chunks: Annotated[int, msgspec.Meta(ge=1, le=50)] | None = None


class IncludeBody(_Body, frozen=True, kw_only=True):
    """Optional parts of a recall."""

    pending_plan: bool | None = None
    debug: bool | None = None


class RecallBody(_Body, frozen=True, kw_only=True):
    """A recall query and its context."""

    user_id: Name
    conversation_id: Name
    query: str
    project_id: Name | None = None
    document_id: Name | None = None
    collection_id: Name | None = None
    reference_time: Moment | None = None
    mode_hint: str | None = None
    limits: LimitsBody | None = None
    include: IncludeBody | None = None


class FeedbackBody(_Body, frozen=True, kw_only=True):
    """Which recalled facts were useful."""

    selected_ids: Annotated[list[str], msgspec.Meta(max_length=1_000)]
    user_rating: Annotated[int, msgspec.Meta(ge=1, le=5)] | None = None


class ForgetBody(_Body, frozen=True, kw_only=True):
    """What to forget. With only a user, everything of the user."""

    user_id: Name
    conversation_id: Name | None = None
    project_id: Name | None = None
    document_id: Name | None = None
    from_time: Moment | None = None
    to_time: Moment | None = None
    thread_id: Name | None = None
    """The former name of `conversation_id`."""


class UploadBody(_Body, frozen=True, kw_only=True):
    """A document: text or Markdown in `content`, or any format in `data` as base64."""

    user_id: Name
    project_id: Name
    document_name: Name | None = None
    content: str | None = None
    document_id: Name | None = None
    collection_id: Name | None = None
    position: Position | None = None
    data: bytes | None = None
    content_type: Name | None = None
    filename: Name | None = None
    """An alias of `document_name`."""


class CollectionBody(_Body, frozen=True, kw_only=True):
    """A collection to create."""

    user_id: Name
    project_id: Name
    name: Name
    ordered: bool | None = None
    collection_id: Name | None = None


class MemberBody(_Body, frozen=True, kw_only=True):
    """A document to add to a collection."""

    user_id: Name
    document_id: Name
    position: Position | None = None


EXAMPLES: dict[type, Any] = {
    IngestBody: {
        "user_id": "alice",
        "conversation_id": "c1",
        "type": "message",
        "role": "user",
        "content": "I moved to Lisbon last week",
    },
    RecallBody: {"user_id": "alice", "conversation_id": "c1", "query": "Where do I live?"},
    FeedbackBody: {"selected_ids": ["m_4b7e19"], "user_rating": 5},
    ForgetBody: {"user_id": "alice", "conversation_id": "c1"},
    UploadBody: {
        "user_id": "alice",
        "project_id": "home",
        "document_id": "lease",
        "document_name": "Lease.md",
        "content": "# Lease\n\n## Term\n\nThe lease begins in March.\n",
    },
    CollectionBody: {
        "user_id": "alice",
        "project_id": "home",
        "name": "Contracts",
        "collection_id": "contracts",
    },
    MemberBody: {"user_id": "alice", "document_id": "lease"},
}
"""Request examples for the OpenAPI description."""
