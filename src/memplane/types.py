"""The nouns. One word per concept, the same in code, SQL, HTTP and docs (see docs/glossary.md)."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from memplane.clock import Instant

TENANT_DEFAULT = "default"
"""Whose everything is in an installation that has one customer."""


class Kind(StrEnum):
    """What sort of thing a memory is."""

    PREFERENCE = "preference"
    FACT = "fact"
    INSTRUCTION = "instruction"
    CONTEXT = "context"
    CORRECTION = "correction"
    EPISODE = "episode"

    @property
    def behavioral(self) -> bool:
        """Whether it steers how an agent acts; derived, so that nobody can set it."""
        return self in _BEHAVIORAL


_BEHAVIORAL = frozenset({Kind.PREFERENCE, Kind.INSTRUCTION, Kind.CORRECTION})

STORABLE_KINDS = tuple(kind for kind in Kind if kind is not Kind.EPISODE)
"""What a caller may store; episodes are only ever derived."""


RESERVED_CATEGORIES = ("pack_history", "pipeline_history", "plan_history", "tree_files")
"""Categories of keyed rows that only the engine writes: what it learned or carries along, not what a user said."""


class State(StrEnum):
    """Where a memory stands in its life. A forgotten one is gone; its tombstone stays."""

    ACTIVE = "active"
    CONTESTED = "contested"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"


class Tier(StrEnum):
    """How a memory surfaces: always, when relevant, or as history only."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class Role(StrEnum):
    """Who spoke."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class Visibility(StrEnum):
    """Where something that was said may be told: everywhere, in its project, or in its conversation."""

    GLOBAL = "global"
    PROJECT = "project"
    CONVERSATION = "conversation"


def within(reach: Visibility, *, conversation: str | None, project: str | None) -> str | None:
    """The place outside of which nothing is told; None where there is no such place."""
    if reach is Visibility.GLOBAL:
        return None
    name = project if reach is Visibility.PROJECT else conversation
    if name is None:
        raise ValueError(f"scope {reach.value} needs a {reach.value}")
    return f"{reach.value}:{name}"


class Op(StrEnum):
    """What a ledger entry records."""

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
    """Who is asking, set by the door and never by an argument."""

    actor: str = ""
    door: str = "python"
    session: str = ""


class NewEntry(msgspec.Struct, frozen=True, gc=False):
    """A ledger entry before the ledger gave it a place."""

    id: str
    op: Op
    body: bytes
    caller: Caller = Caller()
    ref: str | None = None
    """The entry this one supersedes. It is kept when the body is erased, so that forgetting a
    replacement never brings the replaced back."""
    recorded: Instant | None = None
    """When another ledger recorded it first; None for what comes in now."""
    origin: str = ""
    """The replica it comes from; empty for this one."""
    erased: bool = False
    """It is forgotten, so that only its header is kept."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """An immutable record of something that came in."""

    seq: int
    id: str
    op: Op
    recorded: Instant
    caller: Caller
    ref: str | None
    body: bytes | None
    """The payload as it was written; None once it is erased."""


class LedgerHead(msgspec.Struct, frozen=True, gc=False):
    """The last place of a ledger, how long its chain is, and the digest over all of that."""

    seq: int
    digest: bytes
    position: int


class Turn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing said, as it can be searched: scrubbed of secrets, without injected memory."""

    entry_id: str
    seq: int
    ordinal: int = 0
    role: str
    text: str
    at: datetime
    conversation: str | None = None
    project: str | None = None
    speaker: str | None = None
    """Who spoke, where a name is known."""
    within: str | None = None
    """The only place where it is told, `project:…` or `conversation:…`; None: everywhere."""
    flags: tuple[str, ...] | None = None
    """What it is flagged for; None: it was kept before anything was, and nobody has looked."""
    released: bool = False
    """Somebody looked at it, and it is told as any other."""

    @property
    def quarantined(self) -> bool:
        """Told last and with a warning, until somebody has released it."""
        return bool(self.flags) and not self.released


class MentionedTime(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A time that a memory speaks of, told as a range."""

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
    """Which turn of its entry it was read out of; None for what was stored on purpose."""
    quote: str | None = None
    """The words it was read from: the turn's text from `start` to `end`, exactly."""
    extractor: str | None = None
    role: str | None = None
    """Who said what it was read out of. Only a user's word is taken for the user's."""
    subject: str | None = None
    predicate: str | None = None
    object_text: str | None = None
    claim: str | None = None
    """The proposition it was derived from, as JSON: what a later statement is compared with."""
    importance: float = 0.5
    confidence: float = 1.0
    times: tuple[MentionedTime, ...] = ()
    within: str | None = None
    """The only place where it is told, that of the turn it was read out of; None: everywhere."""
    chosen: int = 0
    passed_over: int = 0
    """How often agents said that they used it, or did not."""
    leaning: float = 0.0
    """Which way that points: from -1, never of use, to 1, always."""
    importance_base: float | None = None
    """Its importance without feedback, where there was some."""
    flags: tuple[str, ...] | None = None
    """What it is flagged for; None: it was kept before anything was, and nobody has looked."""
    released: bool = False
    """Somebody looked at it, and it is told as any other."""
    pinned: bool = False
    """Somebody wants it always told, as long as it holds."""

    @property
    def quarantined(self) -> bool:
        """Not in a brief, never hot, and in a recall last and with a warning, until somebody has released it."""
        return bool(self.flags) and not self.released

    @property
    def derived(self) -> bool:
        """Whether it was read out of what was said, rather than stored on purpose."""
        return self.extractor is not None

    @property
    def behavioral(self) -> bool:
        return self.kind.behavioral

    @property
    def searchable(self) -> str:
        """What it is found by: its key, what it says, its tags."""
        return searchable(self.text, self.key, self.tags)

    @property
    def line(self) -> str:
        """The memory as one can read it alone: a keyed fact says its key."""
        return self.text if self.key is None else f"{self.key}: {self.text}"


def searchable(text: str, key: str | None, tags: Iterable[str]) -> str:
    return " ".join((*((key,) if key else ()), text, *tags))


class DocumentStatus(StrEnum):
    """How far a document is. Its spans are found from the moment it is kept; distillations follow."""

    PROCESSING = "processing"
    READY = "ready"
    ERROR = "error"


class Document(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something to look things up in, kept under an id: sections, and spans that together are its text."""

    id: str
    entry_id: str
    seq: int
    name: str
    project: str | None = None
    media_type: str = "text/plain"
    bytes: int
    """Of what was uploaded."""
    chars: int
    """Of its text; sections and spans say where in it they are."""
    sections: int
    spans: int
    created_at: datetime
    updated_at: datetime
    status: DocumentStatus = DocumentStatus.PROCESSING
    error: str | None = None
    distillation: str | None = None
    """What it says, in short."""
    collections: tuple[str, ...] = ()


class AboutDocument(NamedTuple):
    """The document that something said is about; it need not be kept here."""

    id: str
    name: str | None


class Section(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A part of a document under one heading. Sections stand one after the other and leave nothing out."""

    id: str
    ordinal: int
    title: str | None = None
    level: int = 0
    """Of its heading, 1 the highest; 0 for what stands under none."""
    path: tuple[str, ...] = ()
    """The titles it stands under, its own the last."""
    start: int
    end: int
    distillation: str | None = None


class WholeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document and what it is made of, all of it as it was at one moment."""

    document: Document
    sections: tuple[Section, ...]
    text: str | None = None
    """None where it was not asked for."""


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A passage of a document, whose text from `start` to `end` it is, exactly. Spans stand one after the other and
    leave nothing out: joined, they are the text."""

    id: str
    document: str
    ordinal: int
    section: int
    """The ordinal of its section."""
    start: int
    end: int
    text: str
    place: int | None = None
    """Where it stands in what was uploaded: the page of a PDF, counted from 1; the character of an HTML source."""


class Collection(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Documents that belong together, perhaps in an order."""

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
    """That of its last turn."""
    turns: int
    first_at: datetime
    last_at: datetime


class Retained(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer to a retain: it is durable."""

    id: str
    seq: int
    deduped: bool = False
    """An entry with this id was there already."""
    suppressed: bool = False
    """The id was forgotten before; nothing was written."""


class LoadResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer to a bulk append."""

    added: int
    known: int
    forgotten: int


class MergeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a merge with what another replica of the same space knows."""

    added: int
    known: int
    forgotten: int
    """Entries that came and are forgotten; nothing of them but their header is kept."""
    moved: int = 0
    """Entries that were here and have another place now, because something came that was recorded before them."""
    variants: tuple[str, ...] = ()
    """The ids under which bodies are kept that came under an id which another body has; see `Space.variants`."""


class Variant(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A body that came under an id which another body has. Nothing is lost: it is kept under an id of its own."""

    id: str
    """What it is kept under: the id it came under, `~`, and the beginning of its digest."""
    base: str
    """The id it came under, which the body has that was recorded first."""


class Tombstone(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The record that an entry id is forgotten; it wins over every later replay."""

    id: str
    at: datetime
    reason: str
    position: int
    """Where in the chain the forget stands that set it."""
    forget_id: str
    """The id of that forget."""
    cause: str | None = None
    """The forgotten id that took this one along; None for what the forget itself named."""


class PinnedTexts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an agent was told and must be told again in the same words, by the digest of where."""

    erasures: int = 0
    """How often something had been forgotten in the space before any of it was made."""
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
    """Where in this replica's chain the forget stands; it never moves."""
    digest: str = ""
    """The chain's digest at that place: a verified ledger must still pass through it."""
    off_disk: bool | None = True
    """None where it was not asked: for a receipt out of the ledger. False when a reader held old pages open, or the space is too large to be written anew at every forget: `wipe`
    does it."""


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who did what, when, to which space, and how it ended. Never the content."""

    at: datetime
    space: str
    actor: str
    door: str
    session: str
    action: str
    target: str | None
    outcome: str
    detail: str = ""


# Where one sitting of a conversation ends and the next begins.


PAUSE = timedelta(hours=2)
"""Who comes back after that begins something new."""

ANEW = 0
"""In place of when its last turn was: the conversation is told anew as soon as somebody tells."""
