"""The result of a recall: a text for the prompt, and everything it was made from."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from memplane.documents.result import DocumentSummary, SpanHit, Strategy
from memplane.recall.mark_text import mark_text
from memplane.types import Memory, Turn

SPANS_MAX = 50
Helps = Literal["likely", "maybe", "unlikely"]
"""Whether memory helps with a turn: the whole budget may be used, a little of it, or none."""
DEGRADED = "[DOCUMENT UNDERSTANDING STATUS: DEGRADED]"
"""Included in the text while a requested document has no summary yet."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much to retrieve and to return."""

    turns: int = 48
    """Maximum number of turns to choose from."""
    facts: int = 24
    """Maximum number of facts in the lists of facts."""
    answers: int = 12
    """Answers beyond this number are supporting facts."""
    list_items: int | None = None
    """The limit for a query that asks for a list; None: the same."""
    supporting: int | None = None
    """None: as many as `facts` leaves."""
    background: int | None = None
    spans: int = 5
    """Maximum number of document passages, at most 50."""
    tokens: int | None = None
    """Limit of `text` in estimated tokens; None: from the settings."""
    blocks: int | None = None
    """None: from the settings."""
    bytes: int | None = None
    """Byte limit of all block texts, in UTF-8; None: only the character limit of the settings applies."""


class RecallBlock(msgspec.Struct, frozen=True, kw_only=True):
    """One returned item with its score."""

    id: str
    text: str
    kind: str
    source: str
    ts: str
    score: float


class RecallHit(msgspec.Struct, frozen=True, kw_only=True):
    """One result: each channel's contribution to its score, and its rank there."""

    id: str
    score: float
    channels: Mapping[str, float]
    ranks: Mapping[str, int]
    turn: Turn | None = None
    memory: Memory | None = None
    probability: float = 0.0
    """How likely it helps with this turn, if anything does."""
    signals: Mapping[str, float] = {}
    """What the probability is computed from."""
    selected: bool = False
    """Whether it was chosen as an item of its own; the token budget may still have left it out of the text, and the maximum
    number of blocks out of the blocks."""
    count: int = 1
    """How often the same was said; the newest is returned."""
    replaced: bool = False
    """It is out of date: a superseded memory, or a turn from which one was read."""
    replaced_by: str | None = None
    """The current statement."""
    replaced_by_id: str | None = None
    """The id of the memory with that statement."""
    contested: bool = False
    """Another memory contradicts it, and the conflict is not resolved."""
    flags: tuple[str, ...] = ()
    """Its flags, if not released: it is returned last, with a warning."""

    @property
    def mark(self) -> str:
        """`replaced` and `contested` as text; empty if it is neither."""
        return mark_text(replaced=self.replaced, now=self.replaced_by, contested=self.contested)

    @property
    def statement(self) -> str:
        """What it says; a keyed fact with its key, so that two keys with one value are two."""
        return (
            self.turn.text if self.turn is not None else self.memory.line if self.memory is not None else ""
        )


class RecallLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the text, and what it was made from."""

    text: str
    ids: tuple[str, ...]
    """Ids of turns' entries, memories, documents or document passages."""
    kind: str
    """`turn`, the kind of the memory, `conflict`, `episode`, `span` or `document`."""
    probability: float = 0.0


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Two memories in an unresolved conflict."""

    left: Memory
    right: Memory


class WorkingMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What the conversation is currently about."""

    entities: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


class Routing(msgspec.Struct, frozen=True, kw_only=True):
    """How the query was understood."""

    mode: str
    """`single` for one answer, `list` for all, `temporal` for a time, `history` for how something changed."""
    kinds: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    temporal_intent: str | None = None
    """`when` if a time is asked for, `range` if one is given."""
    ranges: tuple[tuple[datetime, datetime], ...] = ()
    channels: tuple[str, ...] = ()
    """The channels that ran; the vector channel is missing without an embedding model."""
    strategy: Strategy | None = None
    """How documents were searched; None if there are none."""
    need: float = 1.0
    """The probability that memory helps with this turn. If it is low, nothing but pinned memories and instructions that apply
    is returned."""
    helps: Helps = "likely"
    """What this probability means for the embedding model in use."""
    signals: Mapping[str, float] = {}
    """What that probability is computed from."""


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """Memory for the prompt. `text` is fenced, so it is recognised and never stored again."""

    query: str
    text: str
    tokens: int = 0
    """Estimated tokens of `text`; see `memplane.recall.tokens`."""
    tokens_max: int = 0
    """The most that `text` could have."""
    lines: tuple[RecallLine, ...] = ()
    """The lines of `text` that come from memory or from documents, in its order."""
    blocks: tuple[RecallBlock, ...] = ()
    hits: tuple[RecallHit, ...] = ()
    """Everything ranked and not flagged, the most probable first; what was chosen is in `text` and `blocks`."""
    answer_facts: tuple[RecallHit, ...] = ()
    supporting_facts: tuple[RecallHit, ...] = ()
    background_facts: tuple[RecallHit, ...] = ()
    spans: tuple[SpanHit, ...] = ()
    """Document passages, best first; those of an ordered collection in its order."""
    documents: tuple[DocumentSummary, ...] = ()
    """Summaries of requested documents."""
    suspects: tuple[RecallHit, ...] = ()
    """Flagged items that contain words of the query: in text and blocks they come last, with a warning, if memory may help with
    the turn at all. They are in no other list."""
    conflicts: tuple[Conflict, ...] = ()
    episodes: tuple[Memory, ...] = ()
    conversation_history: tuple[Turn, ...] = ()
    working_memory: WorkingMemory = WorkingMemory()
    routing: Routing = Routing(mode="single")
    reference_time: datetime | None = None
    anchor: str = "now"
    """Where the reference time comes from: `request` or `now`."""
    degraded: tuple[str, ...] = ()
    """Why the answer may be incomplete; empty if it is complete."""
    timings: Mapping[str, float] = {}
    """Milliseconds per stage: read, words, documents, embed, near, turns, facts, render, total. `embed` is the time
    spent waiting for the query's vector, which is computed in parallel."""

    @property
    def facts(self) -> tuple[RecallHit, ...]:
        return self.answer_facts + self.supporting_facts + self.background_facts

    @property
    def used(self) -> tuple[str, ...]:
        """Ids of the memories that were returned: by themselves, with the turn they were read from, or as what replaced it."""
        blocks = [block.id for block in self.blocks if block.source == "memory"]
        return tuple(dict.fromkeys([*blocks, *(hit.id for hit in self.answer_facts)]))
