"""Response bodies for CLAIV Memory clients. Docstrings name the fields that Memplane adds; the clients ignore them."""

from typing import Any, Literal

import msgspec


class IngestResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The event is stored."""

    event_id: str
    deduped: bool


class TemporalRange(msgspec.Struct, frozen=True):
    """A time range; the end is exclusive."""

    start: str
    end: str


class TemporalMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A time that a fact refers to. `temporal_range` is a Memplane addition."""

    ts_start: str
    ts_end: str | None
    raw_expression: str | None
    anchor_time: str | None
    date_type: str
    granularity: str
    temporal_range: TemporalRange


class FactItem(msgspec.Struct, frozen=True, kw_only=True):
    """A fact. The fields from `tier` on are Memplane additions."""

    fact_id: str
    subject: str
    kind: str
    predicate: str
    object: Any
    object_text: str
    relation_phrase: str | None
    source_text: str | None
    confidence: float | None
    importance: float | None
    created_at: str
    temporal_matches: list[TemporalMatch]
    document_id: str | None
    document_name: str | None
    tier: str
    state: str
    superseded_at: str | None
    text: str


class MessageItem(msgspec.Struct, frozen=True, kw_only=True):
    """Recent messages of this conversation."""

    role: str | None
    content: str
    event_time: str | None


class LLMContext(msgspec.Struct, frozen=True, kw_only=True):
    """Text for the prompt."""

    reference_time: str | None
    anchor_source: Literal["request", "conversation_event", "server_now"]
    conversation_history: list[MessageItem]
    fact_ids: list[str]
    text: str


class Focus(msgspec.Struct, frozen=True, kw_only=True):
    """The topic of the conversation."""

    entities: list[str]
    last_subjects: list[str]
    last_constraints: dict[str, Any]


class WorkingMemoryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the conversation. Plans are not stored, so the fields about them are null."""

    focus: Focus
    pending_confirmation: None
    last_plan: None
    turn_summary: str | None


class RoutingInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How the query was parsed. `strategy` and `channels` are Memplane additions."""

    mode: str
    kinds: list[str]
    predicates: list[str]
    temporal_intent: str | None
    strategy: str | None
    channels: list[str]


class ConflictItem(msgspec.Struct, frozen=True, kw_only=True):
    """Two facts that contradict each other. Ask the user before relying on either."""

    content: str
    facts: list[FactItem]


class EpisodeItem(msgspec.Struct, frozen=True, kw_only=True):
    """The topic of an earlier conversation."""

    episode_id: str
    conversation_id: str | None
    content: str
    created_at: str


class DocumentSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A passage of a document: exactly the document's text from `start` to `end`."""

    document_id: str
    document_name: str
    section: list[str]
    start: int
    end: int
    text: str
    score: float
    place: int | None


class SectionSummaryItem(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a section."""

    node_id: str
    path: list[str]
    distillation: str | None


class DocumentSummaryItem(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a document. `degraded` is true until the summary exists."""

    document_id: str
    document_name: str
    distillation: str | None
    degraded: bool
    sections: list[SectionSummaryItem]


class RecallResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recall response. The fields from `recall_id` on are Memplane additions."""

    answer_facts: list[FactItem]
    supporting_facts: list[FactItem]
    background_context: list[FactItem]
    llm_context: LLMContext
    working_memory: WorkingMemoryInfo | None
    pending_plan: None
    routing: RoutingInfo
    recall_id: str
    conflicts: list[ConflictItem]
    episodes: list[EpisodeItem]
    document_spans: list[DocumentSpan]
    documents: list[DocumentSummaryItem]
    degraded: list[str]
    debug: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class FeedbackResponse(msgspec.Struct, frozen=True, kw_only=True):
    recall_id: str
    facts_recorded: int


class DeletedCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of deleted items."""

    events: int = 0
    chunks: int = 0
    episodes: int = 0
    facts: int = 0
    claims: int = 0
    open_loops: int = 0


class ForgetResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`off_disk` is a Memplane addition: whether the erased bytes are off the disk already."""

    receipt_id: str
    deleted_counts: DeletedCounts
    off_disk: bool | None


class DeletionScope(msgspec.Struct, frozen=True, kw_only=True):
    """The scope of a forget request. `document_id` is a Memplane addition."""

    user_id: str
    conversation_id: str | None
    project_id: str | None
    thread_id: str | None
    from_time: str | None
    to_time: str | None
    document_id: str | None


class DeletionReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """Proof of a forget. `seq`, `digest` and `off_disk` are Memplane additions: the position in the ledger, the chain's digest
    there, and whether the erased bytes are off the disk."""

    receipt_id: str
    scope: DeletionScope
    requested_at: str
    completed_at: str | None
    deleted_counts: DeletedCounts
    seq: int
    digest: str
    off_disk: bool | None


class ReceiptList(msgspec.Struct, frozen=True, kw_only=True):
    receipts: list[DeletionReceipt]
    total: int
    limit: int
    offset: int


class UploadSection(msgspec.Struct, frozen=True, kw_only=True):
    node_id: str
    title: str | None


class UploadResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The document's passages are searchable now; summaries follow."""

    document_id: str
    document_name: str
    project_id: str
    collection_id: str | None
    sections: list[UploadSection]
    spans_created: int
    status: Literal["processing"] = "processing"


class StatusInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The processing status of a document."""

    status: Literal["processing", "ready", "error"]
    spans_created: int
    error_message: str | None


class DocumentStatusAnswer(StatusInfo, frozen=True, kw_only=True):
    document_id: str


class DocumentItem(msgspec.Struct, frozen=True, kw_only=True):
    """A document in a list."""

    document_id: str
    document_name: str
    project_id: str | None
    user_id: str
    byte_size: int | None
    created_at: str
    collection_ids: list[str]
    document_status: StatusInfo | None


class DocumentList(msgspec.Struct, frozen=True, kw_only=True):
    documents: list[DocumentItem]
    total: int
    limit: int
    offset: int


class SectionItem(msgspec.Struct, frozen=True, kw_only=True):
    """A section: the document's text from `start` to `end`."""

    node_id: str
    title: str | None
    level: int
    path: list[str]
    start: int
    end: int
    distillation: str | None


class DocumentRead(DocumentItem, frozen=True, kw_only=True, omit_defaults=True):
    """A document with its sections, and `content` on request."""

    content_type: str
    chars: int
    updated_at: str
    distillation: str | None
    sections: list[SectionItem]
    content: str | msgspec.UnsetType = msgspec.UNSET


class DocumentDeleted(msgspec.Struct, frozen=True, kw_only=True):
    """`receipt_id` and `off_disk` are Memplane additions."""

    document_id: str
    receipt_id: str
    off_disk: bool | None
    deleted: Literal[True] = True


class CollectionRow(msgspec.Struct, frozen=True, kw_only=True):
    collection_id: str
    tenant_id: str
    user_id: str
    project_id: str | None
    name: str
    ordered: bool
    created_at: str
    document_count: int


class CollectionCreated(msgspec.Struct, frozen=True, kw_only=True):
    collection: CollectionRow


class CollectionList(msgspec.Struct, frozen=True, kw_only=True):
    collections: list[CollectionRow]


class CollectionDocument(msgspec.Struct, frozen=True, kw_only=True):
    document_id: str
    document_name: str
    position: int | None
    added_at: str


class CollectionRead(msgspec.Struct, frozen=True, kw_only=True):
    collection: CollectionRow
    documents: list[CollectionDocument]


class CollectionDeleted(msgspec.Struct, frozen=True, kw_only=True):
    collection_id: str
    deleted: Literal[True] = True


class MemberAdded(msgspec.Struct, frozen=True, kw_only=True):
    collection_id: str
    document_id: str
    added: Literal[True] = True


class MemberRemoved(msgspec.Struct, frozen=True, kw_only=True):
    collection_id: str
    document_id: str
    removed: Literal[True] = True


class FactList(msgspec.Struct, frozen=True, kw_only=True):
    """Facts, newest first."""

    facts: list[FactItem]
    limit: int
    offset: int
    more: bool
    """Whether there are more results."""


class EvidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence of a fact: the event's text from `start` to `end`."""

    event_id: str
    source_text: str | None
    start: int
    end: int
    role: str | None
    conversation_id: str | None
    created_at: str


class FeedbackCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How often the fact was returned and marked useful, or returned and ignored; the resulting score from -1 to 1;
    and the importance before feedback."""

    selected: int
    ignored: int
    leaning: float
    importance_before: float


class FactRead(FactItem, frozen=True, kw_only=True):
    """A fact with its evidence, history and feedback."""

    conversation_id: str | None
    project_id: str | None
    superseded_by: str | None
    supersedes: str | None
    evidence: list[EvidenceItem]
    feedback: FeedbackCounts


class ConversationItem(msgspec.Struct, frozen=True, kw_only=True):
    conversation_id: str
    project_id: str | None
    turns: int
    started_at: str
    last_event_at: str


class ConversationList(msgspec.Struct, frozen=True, kw_only=True):
    conversations: list[ConversationItem]
    limit: int
    offset: int
    more: bool


class TurnItem(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str
    role: str
    content: str
    event_time: str
    project_id: str | None


class ConversationRead(msgspec.Struct, frozen=True, kw_only=True):
    """Messages, latest first."""

    conversation_id: str
    turns: list[TurnItem]
    limit: int
    offset: int
    more: bool
