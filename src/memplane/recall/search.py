"""Search over typed memories, keyed facts and turns."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from memplane.clock import Instant
from memplane.extract.relevance import STOP_WORDS, Question, Relevance
from memplane.safety.sanitize import sanitized_memory, sanitized_turn
from memplane.storage.filter import EVERYWHERE, Audience, Filter
from memplane.storage.store import Reader
from memplane.storage.words import prefix_term, words_of
from memplane.types import Kind, Memory, Turn

LIMIT_DEFAULT = 20
LIMIT_MAX = 100

_CANDIDATES_MIN = 50
_CANDIDATES_PER_HIT = 3
_CANDIDATES_NEWEST = 300
_COMMON = 5_000
"""A word in more texts than this does not select candidates if the query has a rarer one; it still counts in the
score."""
_SCORE_DIGITS = 6
_STEM_CHARS_MIN = 2
_ENDING_CHARS = 12


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A search request. Every condition narrows, and all apply before the limit."""

    query: str = ""
    kinds: tuple[Kind, ...] = ()
    tags: tuple[str, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    conversation: str | None = None
    project: str | None = None
    category: str | None = None
    include_superseded: bool = False
    memories: bool = True
    turns: bool = True
    limit: int = LIMIT_DEFAULT
    typing: bool = False
    """The last word is still being typed: memories with a word that begins with it match too."""
    audience: Audience | None = EVERYWHERE
    """The scope of the caller; see `Filter`."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One result with its relevance: 0 without a query, else above 0 and at most 1."""

    id: str
    text: str
    score: float
    at: datetime
    memory: Memory | None = None
    turn: Turn | None = None

    @property
    def flags(self) -> tuple[str, ...]:
        """Its flags, if not released: it comes after all unflagged results."""
        found = self.memory or self.turn
        return (found.flags or ()) if found is not None and found.quarantined else ()


def search(reader: Reader, request: SearchRequest, now: Instant) -> list[Hit]:
    """The best results first; without a query, the newest."""
    where = _filter(request, now)
    question = Question(request.query)
    if not question.words:
        hits = _hits(_newest(reader, request, where), None) if not request.query.strip() else []
        hits.sort(key=lambda hit: (hit.at, _place(hit)), reverse=True)
    else:
        frequencies = reader.words.frequencies(list(question.stems.values()))
        typed = _typed(request, question)
        relevance = Relevance(question, frequencies, reader.words.corpus_size(), begun=typed)
        rare = [word for word in question.words if frequencies[question.stems[word]] <= _COMMON]
        found = _matching(reader, request, where, rare or question.words, newest=not rare)
        hits = _hits(found, relevance)
        if typed:
            there = {hit.id for hit in hits}
            further = _hits((_beginning(reader, request, where, typed), []), relevance)
            hits += [hit for hit in further if hit.score and hit.id not in there]
        hits.sort(key=lambda hit: (hit.score, hit.at, _place(hit)), reverse=True)
    best = [_sanitized_hit(hit, now) for hit in hits[: request.limit]]
    if any(hit.flags for hit in best):  # leave room for others
        best = [_sanitized_hit(hit, now) for hit in hits]
    return sorted(best, key=lambda hit: bool(hit.flags))[: request.limit]


def _filter(request: SearchRequest, now: Instant) -> Filter:
    return Filter(
        now=now,
        kinds=request.kinds,
        tags=request.tags,
        since=request.since,
        until=request.until,
        conversation=request.conversation,
        project=request.project,
        category=request.category,
        include_superseded=request.include_superseded,
        audience=request.audience,
    )


def _includes_turns(request: SearchRequest) -> bool:
    """Turns have no kinds, tags or categories."""
    of_memories = request.kinds or request.tags or request.category is not None
    return request.turns and not of_memories


def _newest(reader: Reader, request: SearchRequest, where: Filter) -> tuple[Sequence[Memory], Sequence[Turn]]:
    memories = reader.memories.find(where, limit=request.limit) if request.memories else []
    turns = reader.turns.find(where, limit=request.limit) if _includes_turns(request) else []
    return memories, turns


def _matching(
    reader: Reader, request: SearchRequest, where: Filter, words: Sequence[str], *, newest: bool
) -> tuple[Sequence[Memory], Sequence[Turn]]:
    wanted = _CANDIDATES_NEWEST if newest else max(_CANDIDATES_MIN, request.limit * _CANDIDATES_PER_HIT)
    memories = reader.memories.match(words, where, limit=wanted, newest=newest) if request.memories else []
    turns = reader.turns.match(words, where, limit=wanted, newest=newest) if _includes_turns(request) else []
    return memories, turns


def _typed(request: SearchRequest, question: Question) -> str:
    """The word still being typed, if it is worth searching."""
    if not request.typing or request.query != request.query.rstrip():
        return ""
    last = words_of(request.query)[-1]
    return last if last in question.words else ""


def _beginning(reader: Reader, request: SearchRequest, where: Filter, word: str) -> Sequence[Memory]:
    """The newest memories that may contain a word beginning with this one. The index holds stems, which are shorter
    than words, so a stem may be a prefix of what was typed."""
    wanted = max(_CANDIDATES_MIN, request.limit * _CANDIDATES_PER_HIT)
    newest = reader.memories.match([prefix_term(word)], where, limit=wanted, newest=True)
    found = {memory.id: memory for memory in newest}
    shorter = [word[:end] for end in range(max(_STEM_CHARS_MIN, len(word) - _ENDING_CHARS), len(word))]
    if stems := [stem for stem in shorter if stem not in STOP_WORDS]:
        for memory in reader.memories.match(stems, where, limit=wanted, newest=True):
            found.setdefault(memory.id, memory)
    return list(found.values())


def _hits(found: tuple[Sequence[Memory], Sequence[Turn]], relevance: Relevance | None) -> list[Hit]:
    memories, turns = found
    hits = [
        Hit(
            id=memory.id,
            text=memory.text,
            score=_score(relevance, memory.searchable),
            at=memory.updated_at,
            memory=memory,
        )
        for memory in memories
    ]
    hits += [
        Hit(
            id=turn.entry_id,
            text=turn.text,
            score=_score(relevance, turn.text),
            at=turn.at,
            turn=turn,
        )
        for turn in turns
    ]
    return hits


def _sanitized_hit(hit: Hit, now: Instant) -> Hit:
    memory = None if hit.memory is None else sanitized_memory(hit.memory, now)
    turn = None if hit.turn is None else sanitized_turn(hit.turn)
    text = memory.text if memory is not None else turn.text if turn is not None else ""
    return msgspec.structs.replace(hit, text=text, memory=memory, turn=turn)


def _score(relevance: Relevance | None, text: str) -> float:
    return 0.0 if relevance is None else round(relevance.score(text), _SCORE_DIGITS)


def _place(hit: Hit) -> tuple[int, int]:
    """Ties go to the newest."""
    if hit.memory is not None:
        return hit.memory.seq, 0
    assert hit.turn is not None
    return hit.turn.seq, hit.turn.ordinal
