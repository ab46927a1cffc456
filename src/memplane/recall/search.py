"""Search over typed memories, keyed facts and turns: by words, and by meaning where there are vectors.

A text that contains all words of the query comes before one that is only similar: a search for a name, an id or a rare
word should find the text that contains it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from memplane.clock import Instant
from memplane.extract.relevance import STOP_WORDS, Question, Relevance
from memplane.models.embedding import Vector, folder_of
from memplane.recall.caches import Questions
from memplane.recall.calibration import calibration_of, wording
from memplane.recall.mark_text import mark_text
from memplane.recall.marks import Marks, as_it_was, current_first, with_mark
from memplane.recall.memory_index import MemoryIndex
from memplane.recall.need import match_signal
from memplane.recall.query import replace_speakers
from memplane.recall.similar import REFERENCE_TEXTS, SimilarityQuery, similar_memories, similar_turns
from memplane.recall.turn_index import EMPTY, TurnIndex
from memplane.safety.sanitize import sanitized_memory, sanitized_turn
from memplane.storage.filter import EVERYWHERE, Audience, Filter
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
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
_NAME_CHARS_MAX = 512
_NEED_POWER = 0.75
"""Need was fitted on turns, and keywords do not look like turns. A power below 1 softens its effect."""
NOT_EMBEDDED = "vectors: nothing is embedded yet, so only words were compared"
NO_MODEL = "embedding: no model is configured, so only words were compared"


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
    as_of: Instant | None = None
    """The state of the space at that time; see `Filter`."""
    include_faded: bool = True
    """Include memories that negative feedback has hidden from recall."""
    memories: bool = True
    turns: bool = True
    limit: int = LIMIT_DEFAULT
    typing: bool = False
    """The last word is still being typed: memories with a word that begins with it match too."""
    words_only: bool = False
    """Do not search by meaning."""
    audience: Audience | None = EVERYWHERE
    """The scope of the caller; see `Filter`."""


class SearchServices(msgspec.Struct, frozen=True, kw_only=True):
    """What a search by meaning needs besides the store."""

    questions: Questions
    turn_index: TurnIndex
    memory_index: MemoryIndex


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One result with its relevance: 0 without a query, else above 0 and at most 1."""

    id: str
    text: str
    score: float
    at: datetime
    memory: Memory | None = None
    turn: Turn | None = None
    channels: Mapping[str, float] = {}
    """What it was found by, with the value of each: `words`, the share of the query's words, and `meaning`, how certainly
    it is related. Both are between 0 and 1."""
    replaced: bool = False
    """It is out of date: a superseded memory, or a turn from which one was read."""
    replaced_by: str | None = None
    """The current statement."""
    replaced_by_id: str | None = None
    """The id of the memory with that statement."""
    contested: bool = False
    """Another memory contradicts it, and the conflict is not resolved."""

    @property
    def mark(self) -> str:
        """`replaced` and `contested` as text; empty if it is neither."""
        return mark_text(replaced=self.replaced, now=self.replaced_by, contested=self.contested)

    @property
    def flags(self) -> tuple[str, ...]:
        """Its flags, if not released: it comes after all unflagged results."""
        found = self.memory or self.turn
        return (found.flags or ()) if found is not None and found.quarantined else ()


class SearchResults(list[Hit]):
    """The hits, best first. A list, so that they can be used like one."""

    def __init__(self, hits: Iterable[Hit] = (), degraded: Sequence[str] = ()) -> None:
        super().__init__(hits)
        self.degraded = tuple(degraded)
        """Why something similar may be missing."""


def search(
    reader: Reader, request: SearchRequest, now: Instant, services: SearchServices | None = None
) -> SearchResults:
    """The best results first; without a query, the newest. Without `services`, only by words."""
    where = _filter(request, now)
    question = Question(request.query)
    degraded: tuple[str, ...] = ()
    if not question.words:
        hits = _hits(_newest(reader, request, where), None) if not request.query.strip() else []
        hits.sort(key=lambda hit: (hit.at, _place(hit)), reverse=True)
    else:
        similar = None
        if services is not None and not request.words_only:
            similar = _SimilarSearch(reader, request, where, services)
        relevance, hits = _by_words(reader, request, where, question)
        if similar is not None:
            near, degraded = similar.results()
            hits = _merged(hits, near, relevance)
        hits = _named_first(reader, request, where, hits)
        hits.sort(key=lambda hit: (hit.score, hit.at, _place(hit)), reverse=True)
    best = [_sanitized_hit(hit, where) for hit in hits[: request.limit]]
    if any(hit.flags for hit in best):  # leave room for others
        best = [_sanitized_hit(hit, where) for hit in hits]
        best = [hit for hit in best if not hit.flags or set(hit.channels) != {"meaning"}]
    best = sorted(best, key=lambda hit: bool(hit.flags))[: request.limit]
    return SearchResults(_marked(reader, best, where), degraded)


def _marked(reader: Reader, hits: Sequence[Hit], where: Filter) -> list[Hit]:
    """The hits with their marks; the current statement comes before what it replaced."""
    marks = Marks(
        reader,
        [hit.memory for hit in hits if hit.memory is not None],
        # At an earlier time, what was replaced since was still current.
        [hit.turn for hit in hits if hit.turn is not None] if where.as_of is None else [],
        where,
    )
    marked = [
        with_mark(hit, marks.of(found)) for hit in hits if (found := hit.memory or hit.turn) is not None
    ]
    return current_first(marked, marks.heirs)


def _by_words(
    reader: Reader, request: SearchRequest, where: Filter, question: Question
) -> tuple[Relevance, list[Hit]]:
    frequencies = reader.words.frequencies(list(question.stems.values()))
    typed = _typed(request, question)
    relevance = Relevance(question, frequencies, reader.words.corpus_size(), begun=typed)
    rare = [word for word in question.words if frequencies[question.stems[word]] <= _COMMON]
    found = _matching(reader, request, where, rare or question.words, newest=not rare)
    hits = _hits(found, relevance)
    if question.ambiguous:
        hits = [hit for hit in hits if hit.score]
    if typed:
        there = {hit.id for hit in hits}
        further = _hits((_beginning(reader, request, where, typed), []), relevance)
        hits += [hit for hit in further if hit.score and hit.id not in there]
    return relevance, hits


class _SimilarSearch:
    """The search by meaning. The query is embedded while the search by words runs."""

    def __init__(
        self, reader: Reader, request: SearchRequest, where: Filter, services: SearchServices
    ) -> None:
        self._reader = reader
        self._request = request
        self._where = msgspec.structs.replace(where, quarantined=False)
        self._services = services
        self._turns = EMPTY
        embedder = services.questions.embedder
        self._model = (
            None if embedder is None else reader.vectors.model(embedder.model_id, embedder.dimension)
        )
        begin, index = services.questions.begin, services.turn_index
        text = _without_names(request, index.speakers)
        self._text = text
        self._embedded = begin(text)
        if (
            self._model is not None
            and _includes_turns(request)
            and reader.vectors.search(self._model) is None
        ):
            self._turns = index.refresh(reader)
            if (named := _without_names(request, self._turns.speakers)) != text:
                self._text = named
                self._embedded = begin(named)

    def results(self) -> tuple[list[Hit], tuple[str, ...]]:
        """The hits, with how certainly each is related, and why there may be more."""
        vector, failed = self._embedded()
        if vector is None or self._model is None:
            return [], failed or (NOT_EMBEDDED,)
        services, request, where = self._services, self._request, self._where
        query = SimilarityQuery(
            vector=vector,
            model=self._model,
            reference=lambda: services.questions.vectors_of(REFERENCE_TEXTS),
            expected=self._expected(vector),
        )
        memories = (
            similar_memories(self._reader, services.memory_index, query, where, request.limit)
            if request.memories
            else []
        )
        indexes = services.turn_index, services.memory_index
        turns = (
            similar_turns(self._reader, indexes, self._turns, query, where, request.limit)
            if _includes_turns(request)
            else []
        )
        certainty = {id(found): sure for found, sure in (*memories, *turns)}
        hits = _hits(([memory for memory, _ in memories], [turn for turn, _ in turns]), None)
        return [
            msgspec.structs.replace(hit, channels={"meaning": certainty[id(hit.memory or hit.turn)]})
            for hit in hits
        ], ()

    def _expected(self, vector: Vector) -> Callable[[float], float]:
        """Expect more related texts for a question about the user's life than for `volcano`, so that less evidence is enough. At
        `likely_min`, one is expected."""
        embedder = self._services.questions.embedder
        assert embedder is not None
        calibration = calibration_of(embedder.model_id, folder_of(embedder))
        signals = {
            "personal": 0.0 if calibration.personal is None else calibration.personal(vector),
            "wording": wording()(self._request.query),
            "speaker": float(self._text != self._request.query),
        }

        def expected(nearness: float) -> float:
            match = match_signal(nearness, calibration.match_min)
            need = calibration.need({**signals, "nearness": nearness, "match": match})
            return float((need / calibration.likely_min) ** _NEED_POWER)

        return expected


def _without_names(request: SearchRequest, speakers: Sequence[str]) -> str:
    """Turns do not contain the name of their speaker, and speak of them as `I`; memories name them."""
    if not _includes_turns(request):
        return request.query
    text, _ = replace_speakers(request.query, speakers)
    return text if any(word not in STOP_WORDS for word in words_of(text)) else request.query


def _merged(by_words: Sequence[Hit], by_meaning: Sequence[Hit], relevance: Relevance) -> list[Hit]:
    """Both in one list. A text that contains all words scores above one half, one that is only similar below it."""
    hits = {_key(hit): hit for hit in by_meaning}
    for hit in by_words:
        similar = hits.get(_key(hit))
        channels = {**hit.channels, **({} if similar is None else similar.channels)}
        hits[_key(hit)] = msgspec.structs.replace(hit, channels=channels)
    merged = []
    for hit in hits.values():
        words, meaning = hit.channels.get("words", 0.0), hit.channels.get("meaning", 0.0)
        score = words + (1.0 - words) * meaning / 2
        if words and relevance.has_all(_searchable(hit)):
            score = (1.0 + score) / 2
        merged.append(msgspec.structs.replace(hit, score=round(score, _SCORE_DIGITS)))
    return merged


def _named_first(reader: Reader, request: SearchRequest, where: Filter, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, and whatever the query is the id or the key of."""
    name = request.query.strip()
    if request.typing or not name or len(name) > _NAME_CHARS_MAX or any(char.isspace() for char in name):
        return list(hits)
    memories: Sequence[Memory] = []
    turns: Sequence[Turn] = []
    if request.memories:
        keyed = reader.memories.by_key(name, now=where.now)
        memories = reader.memories.get_many([name] if keyed is None else [name, keyed.id], where)
    if _includes_turns(request) and (seq := reader.ledger.known([name]).get(name)) is not None:
        numbers = [turn_number(seq, ordinal) for ordinal in range(TURNS_PER_ENTRY_MAX)]
        turns = reader.turns.at(numbers, where)
    named = {_key(hit): hit for hit in _hits((memories, turns), None)}
    others = [hit for hit in hits if _key(hit) not in named]
    return [msgspec.structs.replace(hit, score=1.0, channels={"id": 1.0}) for hit in named.values()] + others


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
        as_of=request.as_of,
        include_faded=request.include_faded,
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
    if relevance is None:
        return hits
    return [msgspec.structs.replace(hit, channels={"words": hit.score}) for hit in hits]


def _sanitized_hit(hit: Hit, where: Filter) -> Hit:
    memory = None if hit.memory is None else as_it_was(sanitized_memory(hit.memory, where.now), where)
    turn = None if hit.turn is None else sanitized_turn(hit.turn)
    text = memory.text if memory is not None else turn.text if turn is not None else ""
    return msgspec.structs.replace(hit, text=text, memory=memory, turn=turn)


def _score(relevance: Relevance | None, text: str) -> float:
    return 0.0 if relevance is None else round(relevance.score(text), _SCORE_DIGITS)


def _searchable(hit: Hit) -> str:
    return hit.text if hit.memory is None else hit.memory.searchable


def _key(hit: Hit) -> tuple[str, tuple[int, int]]:
    return hit.id, _place(hit)


def _place(hit: Hit) -> tuple[int, int]:
    """Ties go to the newest."""
    if hit.memory is not None:
        return hit.memory.seq, 0
    assert hit.turn is not None
    return hit.turn.seq, hit.turn.ordinal
