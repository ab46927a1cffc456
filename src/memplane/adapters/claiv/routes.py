"""The endpoints of the v6 API: CLAIV Memory's paths and some additions."""

from typing import Any, Literal

from memplane.adapters.claiv import events, shapes
from memplane.adapters.claiv import wire as bodies
from memplane.adapters.claiv.documents import CollectionsHandler, DocumentsHandler, UserLocator
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
"""JSON escapes can make a text this many times longer than UTF-8; base64 adds only a third."""
_BODY_BYTES = 64 * 1024
"""Space for all fields except the document."""

_COLLECTION = Query(name="collection_id", type=Name, description="Only documents in this collection.")
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
            *_documents(DocumentsHandler(locator), settings),
            *_collections(CollectionsHandler(locator)),
            *_reading(),
            *_receipts(Receipts(plane)),
            *_usage(UsageHandler(plane)),
        ),
    )


def _memory(recaller: ClaivRecallHandler) -> list[Endpoint]:
    return [
        _writes("/v6/ingest", "Ingest an event", events.ingest, bodies.IngestBody, shapes.IngestResponse),
        _writes(
            "/v6/recall",
            "Recall what is known about a user, for a model's next answer",
            recaller.handle,
            bodies.RecallBody,
            shapes.RecallResponse,
            right=Right.READ,
        ),
        _writes(
            "/v6/recall/{recall_id}/feedback",
            "Report which recalled facts were useful",
            events.feedback,
            bodies.FeedbackBody,
            shapes.FeedbackResponse,
        ),
        _writes(
            "/v6/forget",
            "Forget permanently; with only a user ID, everything of the user",
            events.forget,
            bodies.ForgetBody,
            shapes.ForgetResponse,
        ),
    ]


def _documents(documents: DocumentsHandler, settings: Settings) -> list[Endpoint]:
    return [
        _writes(
            "/v6/documents",
            "Upload a document; the same ID replaces the earlier version",
            documents.upload,
            bodies.UploadBody,
            shapes.UploadResponse,
            bytes_max=_ESCAPED * settings.document_bytes_max + _BODY_BYTES,
        ),
        _reads(
            "/v6/documents",
            "List documents of a user, newest first",
            documents.list,
            shapes.DocumentList,
            (USER, PROJECT, _COLLECTION, *paging(20)),
        ),
        _reads(
            f"{_DOCUMENT_PATH}/status",
            "Get the processing status of a document",
            documents.status,
            shapes.DocumentStatusAnswer,
            (MAYBE_USER,),
        ),
        _reads(
            _DOCUMENT_PATH,
            "Get a document with its sections",
            documents.read,
            shapes.DocumentRead,
            (MAYBE_USER, Query(name="content", type=bool, default=False, description="Include the text.")),
        ),
        _deletes(
            _DOCUMENT_PATH,
            "Forget a document with its passages, summaries and collection memberships",
            documents.delete,
            shapes.DocumentDeleted,
        ),
    ]


def _collections(collections: CollectionsHandler) -> list[Endpoint]:
    return [
        _writes(
            "/v6/collections",
            "Create a collection",
            collections.create,
            bodies.CollectionBody,
            shapes.CollectionCreated,
        ),
        _reads(
            "/v6/collections",
            "List collections of a user, newest first",
            collections.list,
            shapes.CollectionList,
            (USER, PROJECT, *paging(100)),
        ),
        _deletes(
            _MEMBER_PATH,
            "Remove a document from a collection; the document stays",
            collections.remove,
            shapes.MemberRemoved,
        ),
        _writes(
            f"{_COLLECTION_PATH}/documents",
            "Add a document to a collection",
            collections.add,
            bodies.MemberBody,
            shapes.MemberAdded,
        ),
        _reads(
            _COLLECTION_PATH,
            "Get a collection with its documents",
            collections.read,
            shapes.CollectionRead,
            (USER,),
        ),
        _deletes(
            _COLLECTION_PATH,
            "Delete a collection; its documents stay",
            collections.delete,
            shapes.CollectionDeleted,
        ),
    ]


def _reading() -> list[Endpoint]:
    return [
        _reads(
            "/v6/facts",
            "List facts of a user, newest first",
            facts,
            shapes.FactList,
            (
                USER,
                Query(
                    name="state",
                    type=Literal["active", "contested", "superseded", "expired"],
                    description="Only facts in this state; by default all but expired ones.",
                ),
                Query(name="predicate", type=Name, description="Only facts with this predicate."),
                Query(name="conversation_id", type=Name, description="Only facts from this conversation."),
                PROJECT,
                *paging(100),
            ),
        ),
        _reads(
            "/v6/facts/{fact_id}",
            "Get a fact with its evidence and history",
            fact,
            shapes.FactRead,
            (USER,),
        ),
        _reads(
            "/v6/conversations",
            "List conversations of a user, latest first",
            conversations,
            shapes.ConversationList,
            (USER, *paging(100)),
        ),
        _reads(
            "/v6/conversations/{conversation_id:path}",
            "Get the messages of a conversation, latest first",
            conversation,
            shapes.ConversationRead,
            (USER, *paging(100)),
        ),
    ]


def _receipts(receipts: Receipts) -> list[Endpoint]:
    return [
        _reads(
            "/v1/deletion-receipts",
            "List deletion receipts, newest first",
            receipts.list,
            shapes.ReceiptList,
            (Query(name="user_id", type=Name, description="Only receipts of this user."), *paging(20)),
        ),
        _reads(
            "/v1/deletion-receipts/{receipt_id}",
            "Get a deletion receipt",
            receipts.one,
            shapes.DeletionReceipt,
            (MAYBE_USER,),
        ),
    ]


def _usage(usage: UsageHandler) -> list[Endpoint]:
    return [
        _reads("/v1/usage/summary", "Get usage per day", usage.summary, UsageSummary, (RANGE,)),
        _reads(
            "/v1/usage/breakdown",
            "Get usage per endpoint",
            usage.breakdown,
            UsageBreakdown,
            (RANGE,),
        ),
        _reads("/v1/usage/limits", "Get the quota and what is left of it", usage.limits, UsageLimits, ()),
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
        example=bodies.EXAMPLES[body],
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
    """Error responses are JSON, because the clients parse every response as JSON."""
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
