"""The endpoints of the v6 door, with the paths of CLAIV Memory's clients and a few that users asked for."""

from typing import Any, Literal

from memplane.adapters.claiv import events, shapes
from memplane.adapters.claiv import wire as bodies
from memplane.adapters.claiv.documents import Collections, Documents, UserLocator
from memplane.adapters.claiv.errors import FORMAT
from memplane.adapters.claiv.reading import conversation, conversations, fact, facts
from memplane.adapters.claiv.recall import ClaivRecallHandler
from memplane.adapters.claiv.receipts import RANGE, Receipts, UsageHandler
from memplane.adapters.claiv.wire import MAYBE_USER, PROJECT, USER, Name, paging
from memplane.auth.principal import Right
from memplane.auth.usage import UsageBreakdown, UsageLimits, UsageSummary
from memplane.config import Settings
from memplane.engine import Engine
from memplane.server.endpoint import Adapter, Endpoint, Handler, Query

ADAPTER = "v6"

_ESCAPED = 3
"""A text as JSON may be so many times as long as in UTF-8; base64 grows by a third only."""
_BODY_BYTES = 64 * 1024
"""Everything beside the document."""

_COLLECTION = Query(name="collection_id", type=Name, description="Only those in it.")
_DOCUMENT_PATH = "/v6/documents/{document_id:path}"
_COLLECTION_PATH = "/v6/collections/{collection_id:path}"
_MEMBER_PATH = f"{_COLLECTION_PATH}/documents/{{document_id:path}}"


def adapter(plane: Engine, settings: Settings) -> Adapter:
    locator = UserLocator(plane)
    return Adapter(
        name=ADAPTER,
        title="CLAIV: memory v6",
        paths=("/v6/", "/v1/usage/", "/v1/deletion-receipts", "/v1/deletion-receipts/"),
        errors=FORMAT,
        routes=(
            *_memory(ClaivRecallHandler(plane.clock)),
            *_documents(Documents(locator), settings),
            *_collections(Collections(locator)),
            *_reading(),
            *_receipts(Receipts(plane)),
            *_usage(UsageHandler(plane)),
        ),
    )


def _memory(recaller: ClaivRecallHandler) -> list[Endpoint]:
    return [
        _writes("/v6/ingest", "Remember an event", events.ingest, bodies.IngestBody, shapes.IngestResponse),
        _writes(
            "/v6/recall",
            "What to tell a model about a user before it answers",
            recaller.handle,
            bodies.RecallBody,
            shapes.RecallResponse,
            right=Right.READ,
        ),
        _writes(
            "/v6/recall/{recall_id}/feedback",
            "Say which of the facts a recall told were of use",
            events.feedback,
            bodies.FeedbackBody,
            shapes.FeedbackResponse,
        ),
        _writes(
            "/v6/forget",
            "Forget for good; with nothing but a user, all of theirs",
            events.forget,
            bodies.ForgetBody,
            shapes.ForgetResponse,
        ),
    ]


def _documents(documents: Documents, settings: Settings) -> list[Endpoint]:
    return [
        _writes(
            "/v6/documents",
            "Keep a document; under the same id again it replaces the one before",
            documents.upload,
            bodies.UploadBody,
            shapes.UploadResponse,
            bytes_max=_ESCAPED * settings.document_bytes_max + _BODY_BYTES,
        ),
        _reads(
            "/v6/documents",
            "Documents of a user, the newest first",
            documents.list,
            shapes.DocumentList,
            (USER, PROJECT, _COLLECTION, *paging(20)),
        ),
        _reads(
            f"{_DOCUMENT_PATH}/status",
            "How far a document is",
            documents.status,
            shapes.DocumentStatusAnswer,
            (MAYBE_USER,),
        ),
        _reads(
            _DOCUMENT_PATH,
            "One document, with its sections",
            documents.read,
            shapes.DocumentRead,
            (MAYBE_USER, Query(name="content", type=bool, default=False, description="With its text.")),
        ),
        _deletes(
            _DOCUMENT_PATH,
            "Forget a document, with its spans, distillations and memberships",
            documents.delete,
            shapes.DocumentDeleted,
        ),
    ]


def _collections(collections: Collections) -> list[Endpoint]:
    return [
        _writes(
            "/v6/collections",
            "Make a collection",
            collections.create,
            bodies.CollectionBody,
            shapes.CollectionCreated,
        ),
        _reads(
            "/v6/collections",
            "Collections of a user, the newest first",
            collections.list,
            shapes.CollectionList,
            (USER, PROJECT, *paging(100)),
        ),
        _deletes(
            _MEMBER_PATH,
            "Take a document out of a collection; it stays a document",
            collections.remove,
            shapes.MemberRemoved,
        ),
        _writes(
            f"{_COLLECTION_PATH}/documents",
            "Put a document into a collection",
            collections.add,
            bodies.MemberBody,
            shapes.MemberAdded,
        ),
        _reads(
            _COLLECTION_PATH,
            "One collection, with its documents",
            collections.read,
            shapes.CollectionRead,
            (USER,),
        ),
        _deletes(
            _COLLECTION_PATH,
            "Give a collection up; its documents stay",
            collections.delete,
            shapes.CollectionDeleted,
        ),
    ]


def _reading() -> list[Endpoint]:
    return [
        _reads(
            "/v6/facts",
            "Facts of a user, the newest first",
            facts,
            shapes.FactList,
            (
                USER,
                Query(
                    name="state",
                    type=Literal["active", "contested", "superseded", "expired"],
                    description="Only those in it; without it, all but those that have expired.",
                ),
                Query(name="predicate", type=Name, description="Only those of it."),
                Query(name="conversation_id", type=Name, description="Only those said in it."),
                PROJECT,
                *paging(100),
            ),
        ),
        _reads(
            "/v6/facts/{fact_id}",
            "One fact: where it was said, and what became of it",
            fact,
            shapes.FactRead,
            (USER,),
        ),
        _reads(
            "/v6/conversations",
            "Conversations of a user, the latest first",
            conversations,
            shapes.ConversationList,
            (USER, *paging(100)),
        ),
        _reads(
            "/v6/conversations/{conversation_id:path}",
            "What was said in a conversation, the latest first",
            conversation,
            shapes.ConversationRead,
            (USER, *paging(100)),
        ),
    ]


def _receipts(receipts: Receipts) -> list[Endpoint]:
    return [
        _reads(
            "/v1/deletion-receipts",
            "Proofs of forgetting, the newest first",
            receipts.list,
            shapes.ReceiptList,
            (Query(name="user_id", type=Name, description="Only theirs."), *paging(20)),
        ),
        _reads(
            "/v1/deletion-receipts/{receipt_id}",
            "One proof of forgetting",
            receipts.one,
            shapes.DeletionReceipt,
            (MAYBE_USER,),
        ),
    ]


def _usage(usage: UsageHandler) -> list[Endpoint]:
    return [
        _reads("/v1/usage/summary", "What was used, day by day", usage.summary, UsageSummary, (RANGE,)),
        _reads(
            "/v1/usage/breakdown",
            "What was used, by endpoint",
            usage.breakdown,
            UsageBreakdown,
            (RANGE,),
        ),
        _reads("/v1/usage/limits", "What is left of the quota", usage.limits, UsageLimits, ()),
    ]


def _writes(
    path: str,
    summary: str,
    handle: Handler,
    body: Any,
    gives: Any,
    *,
    right: Right = Right.WRITE,
    bytes_max: int = 0,
) -> Endpoint:
    return Endpoint(
        method="POST",
        path=path,
        adapter=ADAPTER,
        summary=summary,
        handle=handle,
        right=right,
        body=body,
        body_bytes_max=bytes_max,
        answer=gives,
        statuses=(409,),
    )


def _reads(path: str, summary: str, handle: Handler, gives: Any, query: tuple[Query, ...]) -> Endpoint:
    return Endpoint(
        method="GET",
        path=path,
        adapter=ADAPTER,
        summary=summary,
        handle=handle,
        right=Right.READ,
        answer=gives,
        query=query,
        statuses=(409,),
    )


def _deletes(path: str, summary: str, handle: Handler, gives: Any) -> Endpoint:
    """Answers JSON, since the clients read it whatever the status."""
    return Endpoint(
        method="DELETE",
        path=path,
        adapter=ADAPTER,
        summary=summary,
        handle=handle,
        right=Right.WRITE,
        answer=gives,
        query=(MAYBE_USER,),
        statuses=(409,),
    )
