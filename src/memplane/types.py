"""The core data types. One word per concept, the same in code, SQL, HTTP and docs (see docs/glossary.md)."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from memplane.clock import Instant

TENANT_DEFAULT = "default"
"""The tenant of a single-tenant installation."""


class Kind(StrEnum):
    """The type of a memory."""

    PREFERENCE = "preference"
    FACT = "fact"
    INSTRUCTION = "instruction"
    CONTEXT = "context"
    CORRECTION = "correction"
    EPISODE = "episode"

    @property
    def behavioral(self) -> bool:
        """Whether the memory steers how an agent acts. Derived from the kind, so callers cannot set it."""
        return self in _BEHAVIORAL


_BEHAVIORAL = frozenset({Kind.PREFERENCE, Kind.INSTRUCTION, Kind.CORRECTION})

STORABLE_KINDS = tuple(kind for kind in Kind if kind is not Kind.EPISODE)
"""Kinds a caller may store; episodes are always derived."""


SPEAKER_NAMES = "speaker_names"
"""The category of an operator's decisions about names of speakers."""
RESERVED_CATEGORIES = ("pack_history", "pipeline_history", "plan_history", "tree_files", SPEAKER_NAMES)
"""Categories of keyed rows that only the engine writes."""


class State(StrEnum):
    """The lifecycle state of a memory. A forgotten memory is gone; its tombstone remains."""

    ACTIVE = "active"
    CONTESTED = "contested"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"


class Tier(StrEnum):
    """When a memory is recalled: always, when relevant, or as history only."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class Role(StrEnum):
    """The role of a speaker."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class Source(StrEnum):
    """Where a text comes from: the user's own words, or somebody or something else."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    DOCUMENT = "document"
    IMPORTED = "imported"


class Visibility(StrEnum):
    """Where a turn or memory may be recalled: everywhere, in its project, or in its conversation."""

    GLOBAL = "global"
    PROJECT = "project"
    CONVERSATION = "conversation"


def within(reach: Visibility, *, conversation: str | None, project: str | None) -> str | None:
    """The scope a row is limited to, such as `project:x`; None for no limit."""
    if reach is Visibility.GLOBAL:
        return None
    name = project if reach is Visibility.PROJECT else conversation
    if name is None:
        raise ValueError(f"scope {reach.value} needs a {reach.value}")
    return f"{reach.value}:{name}"


class Op(StrEnum):
    """The kind of event a ledger entry records."""

    TURN = "turn"
    HISTORY = "history"
    STORE = "store"
    PUT = "put"
    RUN = "run"
    FORGET = "forget"
    SWEEP = "sweep"
    PURGE = "purge"
    DERIVE = "derive"
    RESOLVE = "resolve"
    DOCUMENT = "document"
    COLLECT = "collect"
    DISTIL = "distil"
    FEEDBACK = "feedback"
    LEARN = "learn"
    DIGEST = "digest"
    SUMMARIZE = "summarize"
    COMPACT = "compact"
    DECIDE = "decide"
    RELEASE = "release"
    PIN = "pin"


class Caller(msgspec.Struct, frozen=True, gc=False):
    """Who makes a call. Set by the adapter, never by a request argument."""

    actor: str = ""
    adapter: str = msgspec.field(default="python", name="door")
    session: str = ""


IMPORTED = "import:"
"""Prefix of the adapter of an imported entry: the original writer is recorded, but is not a caller."""


class NewEntry(msgspec.Struct, frozen=True, gc=False):
    """A ledger entry before it is appended."""

    id: str
    op: Op
    body: bytes
    caller: Caller = Caller()
    ref: str | None = None
    """The entry this one supersedes. It is kept when the body is erased, so forgetting a replacement never restores the
    entry it replaced."""
    recorded: Instant | None = None
    """When another ledger first recorded it; None for new entries."""
    origin: str = ""
    """The replica it came from; empty for this one."""
    erased: bool = False
    """The entry is forgotten; only its header is kept."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An immutable record of one event."""

    seq: int
    id: str
    op: Op
    recorded: Instant
    caller: Caller
    ref: str | None
    body: bytes | None
    """The payload as written; None once erased."""


class LedgerHead(msgspec.Struct, frozen=True, gc=False):
    """The last sequence number of a ledger, the length of its chain, and the chain's digest."""

    seq: int
    digest: bytes
    position: int


class Turn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message as it can be searched: secrets redacted, injected memory removed."""

    entry_id: str
    seq: int
    ordinal: int = 0
    role: str
    text: str
    at: datetime
    conversation: str | None = None
    project: str | None = None
    speaker: str | None = None
    """The name of the speaker, if known."""
    within: str | None = None
    """The scope it is limited to, `project:…` or `conversation:…`; None for no limit."""
    flags: tuple[str, ...] | None = None
    """Injection flags; None for rows written before flagging existed."""
    released: bool = False
    """A person reviewed it and released it from quarantine."""

    @property
    def quarantined(self) -> bool:
        """Flagged and not released: ranked last in a recall, with a warning."""
        return bool(self.flags) and not self.released


class MentionedTime(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A time mentioned in a memory, as a range."""

    begin: datetime
    until: datetime
    raw: str
    granularity: str
    kind: str


class Memory(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing remembered, with the evidence it came from."""

    id: str
    kind: Kind
    text: str
    entry_id: str
    seq: int
    start: int
    end: int
    state: State = State.ACTIVE
    tier: Tier = Tier.WARM
    tags: tuple[str, ...] = ()
    key: str | None = None
    category: str | None = None
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    superseded_at: datetime | None = None
    conversation: str | None = None
    project: str | None = None
    caller: Caller = Caller()
    ordinal: int | None = None
    """The turn of its entry it was derived from; None for stored memories."""
    quote: str | None = None
    """The source text: exactly the turn's text from `start` to `end`."""
    extractor: str | None = None
    role: str | None = None
    """The role of the source turn. Only a user turn can overrule a user statement."""
    subject: str | None = None
    predicate: str | None = None
    object_text: str | None = None
    claim: str | None = None
    """The proposition it was derived from, as JSON; later statements are compared with it."""
    importance: float = 0.5
    confidence: float = 1.0
    times: tuple[MentionedTime, ...] = ()
    within: str | None = None
    """The scope of its source turn; None for no limit."""
    chosen: int = 0
    passed_over: int = 0
    """How often feedback marked it as used or as not used."""
    leaning: float = 0.0
    """The trend of the feedback, from -1 (never used) to 1 (always used)."""
    importance_base: float | None = None
    """Its importance before feedback, if there was any."""
    flags: tuple[str, ...] | None = None
    """Injection flags; None for rows written before flagging existed."""
    released: bool = False
    """A person reviewed it and released it from quarantine."""
    pinned: bool = False
    """Pinned by a person: always recalled while active."""

    @property
    def quarantined(self) -> bool:
        """Flagged and not released: excluded from briefs, never hot, and ranked last in a recall, with a warning."""
        return bool(self.flags) and not self.released

    @property
    def derived(self) -> bool:
        """Whether it was extracted from a turn rather than stored by a caller."""
        return self.extractor is not None

    @property
    def behavioral(self) -> bool:
        return self.kind.behavioral

    @property
    def searchable(self) -> str:
        """The indexed text: key, text and tags."""
        return searchable(self.text, self.key, self.tags)

    @property
    def line(self) -> str:
        """The memory as one readable line; a keyed fact begins with its key."""
        return self.text if self.key is None else f"{self.key}: {self.text}"


def searchable(text: str, key: str | None, tags: Iterable[str]) -> str:
    return " ".join((*((key,) if key else ()), text, *tags))


class DocumentStatus(StrEnum):
    """The processing state of a document. Its spans are searchable at once; summaries follow."""

    PROCESSING = "processing"
    READY = "ready"
    ERROR = "error"


class Document(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An uploaded document: sections, and spans that together make up its text."""

    id: str
    entry_id: str
    seq: int
    name: str
    project: str | None = None
    media_type: str = "text/plain"
    bytes: int
    """The size of the upload."""
    chars: int
    """The length of the text; sections and spans are offsets into it."""
    sections: int
    spans: int
    created_at: datetime
    updated_at: datetime
    status: DocumentStatus = DocumentStatus.PROCESSING
    error: str | None = None
    distillation: str | None = None
    """A short summary."""
    collections: tuple[str, ...] = ()


class AboutDocument(NamedTuple):
    """The document a turn refers to; it need not be stored here."""

    id: str
    name: str | None


class Section(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A part of a document under one heading. Sections are contiguous and cover the whole text."""

    id: str
    ordinal: int
    title: str | None = None
    level: int = 0
    """The heading level, 1 the highest; 0 for text without a heading."""
    path: tuple[str, ...] = ()
    """The titles from the top down to its own."""
    start: int
    end: int
    distillation: str | None = None


class WholeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document with its sections, and its text on request, read in one snapshot."""

    document: Document
    sections: tuple[Section, ...]
    text: str | None = None
    """None unless requested."""


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A passage of a document: exactly the text from `start` to `end`. Spans are contiguous; joined, they are the text."""

    id: str
    document: str
    ordinal: int
    section: int
    """The ordinal of its section."""
    start: int
    end: int
    text: str
    place: int | None = None
    """Its position in the upload: the page of a PDF, from 1, or the character offset in an HTML source."""


class Collection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A group of documents, optionally ordered."""

    id: str
    entry_id: str
    name: str
    project: str | None = None
    ordered: bool = False
    created_at: datetime
    documents: int = 0


class CollectionMember(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A document in a collection."""

    document: str
    name: str
    position: int | None = None
    added_at: datetime


class Conversation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A named run of turns."""

    id: str
    project: str | None = None
    """The project of its last turn."""
    turns: int
    first_at: datetime
    last_at: datetime


class Retained(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The result of a retain: the entry is durable."""

    id: str
    seq: int
    deduped: bool = False
    """An entry with this id already existed."""
    suppressed: bool = False
    """The id was forgotten earlier; nothing was written."""


class LoadResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The result of a bulk append."""

    added: int
    known: int
    forgotten: int


class MergeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a merge with another replica of the same space."""

    added: int
    known: int
    forgotten: int
    """Received entries that are forgotten; only their headers are kept."""
    moved: int = 0
    """Existing entries that moved because an earlier entry was inserted before them."""
    variants: tuple[str, ...] = ()
    """Ids of bodies that arrived under an id another body already has; see `Variant`."""


class Variant(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A body that arrived under an id another body already has. It is kept under its own id, so nothing is lost."""

    id: str
    """The id it is stored under: the original id, `~`, and a prefix of its digest."""
    base: str
    """The original id, which belongs to the body recorded first."""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The record that an entry id is forgotten; it wins over every later replay."""

    id: str
    at: datetime
    reason: str
    position: int
    """The chain position of the forget that created it."""
    forget_id: str
    """The id of that forget."""
    cause: str | None = None
    """The forgotten id that caused this one; None if the forget named it."""


class PinnedTexts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Texts that must be injected again byte for byte, keyed by a digest of their place."""

    erasures: int = 0
    """The space's erasure count when the texts were created."""
    texts: dict[str, str] = {}


class Receipt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Proof of a forget."""

    id: str
    scope: dict[str, Any]
    counts: dict[str, int]
    reason: str = ""
    at: datetime
    dry_run: bool = False
    seq: int = 0
    """The forget's position in this replica's chain; it never changes."""
    digest: str = ""
    """The chain's digest at that position; verification must still reproduce it."""
    off_disk: bool | None = True
    """Whether the erased bytes are off the disk. False while a reader has old pages open, after a process was killed, or if the
    space is too large to rewrite on every forget: the background worker or the next open finishes the first two, `wipe` all. None
    for a dry run."""


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One audited action: actor, time, space and outcome, never the content."""

    at: datetime
    space: str
    actor: str
    adapter: str = msgspec.field(name="door")
    session: str
    action: str
    target: str | None
    outcome: str
    detail: str = ""


PAUSE = timedelta(hours=2)
"""A longer pause between two turns of a conversation ends its episode."""

REBUILD = 0
"""Instead of the time of the last turn: the conversation's episodes must be rebuilt."""
