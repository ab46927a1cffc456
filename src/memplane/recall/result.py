"""What a recall answers: a text to tell the agent, and everything it was made from."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from memplane.documents.result import DocumentSummary, SpanHit, Strategy
from memplane.types import Memory, Turn

SPANS_MAX = 50
DEGRADED = "[DOCUMENT UNDERSTANDING STATUS: DEGRADED]"
"""Stands in the text while a document that is asked for is not told in short yet."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much to look for, and how much to tell."""

    turns: int = 12
    """How many turns are ranked; the best of them are told."""
    facts: int = 24
    answers: int = 12
    """What answers the question and exceeds them is supporting."""
    list_items: int | None = None
    """In their place where the question asks for a list; None: the same."""
    supporting: int | None = None
    """None: as many as `facts` leave."""
    background: int | None = None
    spans: int = 5
    """How many passages of documents are told at most; 50 is the most that can be asked for."""
    tokens: int | None = None
    """Of `text`, counted from above; None: as the settings say."""
    blocks: int | None = None
    """None: as the settings say."""
    bytes: int | None = None
    """Of the texts of all blocks, in UTF-8; None: only their characters are counted, as the settings say."""


class RecallBlock(msgspec.Struct, frozen=True, kw_only=True):
    """One thing told, and why."""

    id: str
    text: str
    kind: str
    source: str
    ts: str
    score: float


class RecallHit(msgspec.Struct, frozen=True, kw_only=True):
    """One thing found: what each channel added to its score, and the rank it had there."""

    id: str
    score: float
    channels: Mapping[str, float]
    ranks: Mapping[str, int]
    turn: Turn | None = None
    memory: Memory | None = None
    replaced: bool = False
    """A turn of which everything that was read out of it was replaced since."""
    flags: tuple[str, ...] = ()
    """What it is flagged for, where nobody has released it: it is told last, and with a warning."""


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Two memories that cannot both be so, and nobody has said which."""

    left: Memory
    right: Memory


class WorkingMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What the conversation is about just now."""

    entities: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


class Routing(msgspec.Struct, frozen=True, kw_only=True):
    """How the question was understood."""

    mode: str
    """`single` for one answer, `list` for all of them, `temporal` for when, `history` for how it came about."""
    kinds: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    temporal_intent: str | None = None
    """`when` where a time is asked for, `range` where one is given."""
    ranges: tuple[tuple[datetime, datetime], ...] = ()
    channels: tuple[str, ...] = ()
    """Those that were asked; the vector channel is missing without an embedding model."""
    strategy: Strategy | None = None
    """How documents were looked into; None where there are none."""


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """What to tell the agent. `text` is fenced, so that it is recognised and never remembered again."""

    query: str
    text: str
    tokens: int = 0
    """How many tokens `text` has, counted from above."""
    blocks: tuple[RecallBlock, ...] = ()
    hits: tuple[RecallHit, ...] = ()
    """Everything that was ranked and is not flagged, turns and memories taking turns, best first."""
    answer_facts: tuple[RecallHit, ...] = ()
    supporting_facts: tuple[RecallHit, ...] = ()
    background_facts: tuple[RecallHit, ...] = ()
    spans: tuple[SpanHit, ...] = ()
    """Passages of documents, best first; those of an ordered collection in its order."""
    documents: tuple[DocumentSummary, ...] = ()
    """Documents that were asked for, in short."""
    suspects: tuple[RecallHit, ...] = ()
    """What is flagged and would have been told: in the text and the blocks it comes after everything else, with a warning,
    and it is in no other list."""
    conflicts: tuple[Conflict, ...] = ()
    episodes: tuple[Memory, ...] = ()
    conversation_history: tuple[Turn, ...] = ()
    working_memory: WorkingMemory = WorkingMemory()
    routing: Routing = Routing(mode="single")
    reference_time: datetime | None = None
    anchor: str = "now"
    """Where the reference time comes from: `request` or `now`."""
    degraded: tuple[str, ...] = ()
    """Why the answer may be incomplete; empty when it is whole."""
    timings: Mapping[str, float] = {}
    """Milliseconds a stage: read, words, documents, embed, near, turns, facts, render, total. `embed` is how long the rest
    had to wait for the question's vector, which is made meanwhile."""

    @property
    def facts(self) -> tuple[RecallHit, ...]:
        return self.answer_facts + self.supporting_facts + self.background_facts
