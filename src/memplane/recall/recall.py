"""Recall: select the memory an agent gets before a turn. Stages: route, channels, fuse, govern, render."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.config import Settings
from memplane.documents.result import SpanHit
from memplane.documents.search import DocumentQuery, DocumentResults, Ranking, consult
from memplane.documents.span_index import SpanIndex
from memplane.documents.span_ranking import RankedSpan, rank_spans
from memplane.extract.catalog import PredicateCatalog
from memplane.extract.relevance import Question
from memplane.models.embedding import Vector, folder_of
from memplane.recall.blocks import blocks_of
from memplane.recall.caches import Embedded, Questions
from memplane.recall.calibration import Calibration, calibration_of
from memplane.recall.distinct import rank_distinct
from memplane.recall.fact_ranking import (
    FactCandidates,
    RankedFact,
    candidate_query,
    facts_apart,
    gather_facts,
)
from memplane.recall.large_spaces import LargeTurns, LargeWords
from memplane.recall.memory_index import MemoryIndex
from memplane.recall.name_index import decided_names, names_in
from memplane.recall.need import need_signals
from memplane.recall.opening import is_empty, with_opening
from memplane.recall.query import (
    QueryAnalysis,
    as_of_named,
    read_nameless,
    replace_speakers,
    route,
    working_memory,
)
from memplane.recall.query_context import PreparedQuery
from memplane.recall.render import RenderedText, Sanitizer, render, share_of
from memplane.recall.request import RecallRequest
from memplane.recall.result import Limits, Recall, RecallBlock, RecallHit, Routing
from memplane.recall.search import LIMIT_MAX, SearchRequest, search
from memplane.recall.selection import (
    MAYBE_BLOCKS,
    STANDING_BLOCKS,
    SUSPECTS_MAX,
    Selection,
    by_words,
    select,
    with_suspects,
)
from memplane.recall.standing import with_standing_signals
from memplane.recall.turn_index import EMPTY, TurnColumns, TurnIndex
from memplane.recall.turn_ranking import RankedTurn, TurnWords, holders
from memplane.safety.sanitize import sanitized_turn, turn_with_flags
from memplane.storage.filter import Filter
from memplane.storage.numbers import turn_number
from memplane.storage.review import QUARANTINED_TURNS_MAX
from memplane.storage.status import FLAGGED_MAX
from memplane.storage.store import Reader
from memplane.types import Role, Turn

_NEAR_MEMORIES = 60
_TURN_CHARS_MAX = 20_000
BY_WORDS = "words: only keyword matches; the full ranking was not ready in time"
_SYSTEM_TURNS_SPARE = 8
"""Turns fetched per turn returned, since system turns are dropped."""


class RecallServices(msgspec.Struct, frozen=True, kw_only=True):
    """What recall works with, besides the store."""

    questions: Questions
    catalog: PredicateCatalog
    settings: Settings
    turn_index: TurnIndex
    memory_index: MemoryIndex
    span_index: SpanIndex

    def calibration(self, vector: Vector | None) -> Calibration:
        """How signals become probabilities; without the query's vector only words count."""
        embedder = self.questions.embedder
        if vector is None or embedder is None:
            return calibration_of(None)
        return calibration_of(embedder.model_id, folder_of(embedder))


class _StageTimer:
    """Duration of each stage in milliseconds, without the stages inside it."""

    def __init__(self) -> None:
        self.timings: dict[str, float] = {}
        self._begun = time.perf_counter()
        self._counted = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begun, before = time.perf_counter(), self._counted
        yield
        took = time.perf_counter() - begun - (self._counted - before)
        self._counted += took
        self.timings[name] = round(self.timings.get(name, 0.0) + took * 1_000, 3)

    def stop(self) -> dict[str, float]:
        return {**self.timings, "total": round((time.perf_counter() - self._begun) * 1_000, 3)}


def recall(
    reader: Reader,
    request: RecallRequest,
    tools: RecallServices,
    *,
    now: Instant,
    lags: Callable[[Reader], tuple[str, ...]],
) -> Recall:
    """Answer a query; an empty query returns what is useful without one. `lags` says why the answer may be incomplete.

    Everything that needs no vector runs while the query is embedded.
    """
    watch = _StageTimer()
    limits, settings = request.limits, tools.settings
    request, reference = _with_times(request, now)
    where = _where(request, now)
    with watch.stage("read"):
        embedding, prepared = _begin(reader, request.query, reference, tools, where, watch)
        routing = route(request.query, prepared.analysis, tools.catalog, has_vectors=True)
        request = _with_answers(request, routing)
    with watch.stage("words"):
        history, gathered = _candidates(reader, request, prepared, routing, settings)
        degraded = lags(reader)
        leave_out = [turn_number(turn.seq, turn.ordinal) for turn in history]
        worded = TurnWords(prepared)
        unsettled = _unsettled(reader, request, where, leave_out)
    with watch.stage("documents"):
        consulted = _consulted(reader, request, prepared.analysis, tools, embedding)
    vector, failed = embedding()
    with watch.stage("near"):
        prepared = _with_vector(reader, prepared, vector, tools)
    with watch.stage("turns"):
        said = rank_distinct(reader, prepared, worded, limit=limits.turns, leave_out=leave_out)
        said = _joined(said, unsettled, prepared, limits.turns)
        said, suspect_turns = _turns_apart(reader, prepared, said, limit=min(limits.turns, SUSPECTS_MAX))
    with watch.stage("facts"):
        known, suspects = facts_apart(reader, prepared, gathered, limit=limits.facts, now=now)
    with watch.stage("render"):
        calibration = tools.calibration(vector)
        known = with_standing_signals(reader, prepared, known, calibration)
        routing = _with_need(prepared, said, known, routing, calibration)
        selection = select(reader, request, said, known, calibration, routing.helps, where)
        selection = with_suspects(selection, suspect_turns, suspects, where)
        selection, limits = with_opening(reader, request, selection, limits, settings, where)
        tame = Sanitizer(prepared.question.words)
        rendered, blocks = _shown(selection, routing, consulted, limits, settings, tame)
    return Recall(
        query=request.query,
        text=rendered.text,
        tokens=rendered.tokens,
        tokens_max=_tokens_max(limits, settings),
        lines=rendered.lines,
        blocks=blocks,
        hits=selection.hits,
        answer_facts=selection.answers,
        supporting_facts=selection.supporting,
        background_facts=selection.background,
        spans=consulted.spans,
        documents=consulted.documents,
        suspects=selection.suspects,
        conflicts=selection.conflicts,
        episodes=selection.episodes,
        conversation_history=tuple(history),
        working_memory=working_memory(history, [hit.memory for hit in selection.answers if hit.memory]),
        routing=_final_routing(routing, consulted, has_vectors=vector is not None),
        reference_time=to_datetime(reference),
        anchor=_anchor(request),
        degraded=degraded + failed,
        timings=watch.stop(),
    )


def _with_times(request: RecallRequest, now: Instant) -> tuple[RecallRequest, Instant]:
    """The time the query refers to, and the request with the time that the query itself names: `as of March`."""
    reference = now if request.reference is None else request.reference
    named = None if request.as_of is not None else as_of_named(request.query, reference)
    as_of = request.as_of if named is None else to_datetime(named)
    return msgspec.structs.replace(request, as_of=as_of), reference


def _anchor(request: RecallRequest) -> str:
    return "now" if request.reference is None else "request"


def _where(request: RecallRequest, now: Instant) -> Filter:
    return Filter(
        now=now,
        as_of=request.as_of_instant,
        include_superseded=request.include_superseded,
        include_faded=request.include_superseded or request.as_of is not None,
        quarantined=False,
        audience=request.audience,
    )


def _with_answers(request: RecallRequest, routing: Routing) -> RecallRequest:
    """A list may have more items than an answer."""
    items = request.limits.list_items
    if routing.mode != "list" or items is None:
        return request
    return msgspec.structs.replace(request, limits=msgspec.structs.replace(request.limits, answers=items))


def _begin(
    reader: Reader, query: str, reference: Instant, tools: RecallServices, where: Filter, watch: _StageTimer
) -> tuple[Callable[[], Embedded], PreparedQuery]:
    """The query while it is being embedded; the returned function waits for the vector. Embedding starts before the
    space is read, with the names known from the last query removed; if the query names another speaker, which is rare
    after the first query to a space, it is embedded again."""
    known = tools.memory_index.large.speakers
    guessed, _ = replace_speakers(
        query, tools.turn_index.speakers if known is None else known, tools.turn_index.known_names
    )
    embedded = tools.questions.begin(guessed)
    large = _large(reader, tools)
    turns = _refreshed(reader, tools) if large is None else EMPTY
    if large is None:
        names = names_in(reader, tools.turn_index, turns, query, where)
        nameless = replace_speakers(query, turns.speakers, names)
    else:
        nameless = replace_speakers(query, large.speakers, decided_names(large.names))
    if nameless[0] != guessed:
        embedded = tools.questions.begin(nameless[0])

    def waited() -> Embedded:
        with watch.stage("embed"):
            return embedded()

    analysis = read_nameless(query, nameless, reference)
    question = Question(analysis.text)
    prepared = PreparedQuery(
        text=query,
        analysis=analysis,
        question=question,
        turns=turns,
        holders=holders(reader, tools.turn_index, turns, question, where.audience) if large is None else {},
        flagged_count=reader.review.flagged_count(limit=FLAGGED_MAX),
        apart=reader.review.quarantined_turns(limit=QUARANTINED_TURNS_MAX),
        where=where,
        large=large,
        large_words=None if large is None else LargeWords(large, question.lookups),
    )
    return waited, prepared


def _refreshed(reader: Reader, tools: RecallServices) -> TurnColumns:
    changes = tools.turn_index.changes(reader, memory_stamp=tools.memory_index.stamp)
    tools.memory_index.refresh(reader, changes)
    return tools.turn_index.refresh(reader, changes)


def _large(reader: Reader, tools: RecallServices) -> LargeTurns | None:
    """The handle of a large space, where the store searches vectors itself and nothing is loaded."""
    embedder = tools.questions.embedder
    model = None if embedder is None else reader.vectors.model(embedder.model_id, embedder.dimension)
    search = None if model is None else reader.vectors.search(model)
    if model is None or search is None:
        return None
    return tools.memory_index.large.refresh(reader, search, model, tools.turn_index.unindexed(reader))


def _candidates(
    reader: Reader, request: RecallRequest, prepared: PreparedQuery, routing: Routing, settings: Settings
) -> tuple[list[Turn], FactCandidates]:
    """The recent turns and the candidate memories, in one round trip."""
    turns = settings.recall_turns_max
    query = candidate_query(
        prepared, routing.predicates, conversation=request.conversation, turns=turns * _SYSTEM_TURNS_SPARE
    )
    found = reader.recall.candidates(query)
    spoken = [turn for turn in found.recent if turn.role != Role.SYSTEM][:turns]
    recent = [sanitized_turn(_cut(turn)) for turn in reversed(spoken)]
    return recent, gather_facts(found, prepared, routing.predicates)


def _with_vector(
    reader: Reader, prepared: PreparedQuery, vector: Vector | None, tools: RecallServices
) -> PreparedQuery:
    embedder = tools.questions.embedder
    model = None if embedder is None else reader.vectors.model(embedder.model_id, embedder.dimension)
    if vector is None or model is None:
        return msgspec.structs.replace(prepared, query=vector, model=model)
    wanted = _NEAR_MEMORIES + prepared.flagged_count
    near = tools.memory_index.nearest(reader, model, vector, wanted, prepared.where.audience)
    kept = (
        reader.review.quarantined_among([memory.id for memory in near])
        if prepared.flagged_count
        else frozenset[str]()
    )
    near = [memory for memory in near if memory.id not in kept]
    return msgspec.structs.replace(
        prepared,
        query=vector,
        model=model,
        near=near,
        stored_count=tools.memory_index.stored_count or sum(memory.turn is None for memory in near),
    )


def _with_need(
    prepared: PreparedQuery,
    said: Sequence[RankedTurn],
    known: Sequence[RankedFact],
    routing: Routing,
    calibration: Calibration,
) -> Routing:
    """An empty query always needs memory, and so does a summary; one of signs alone does not. A query about a past time from which something is known may be
    about that, whatever its words."""
    signals = need_signals(prepared, said, known, routing, calibration)
    without_words = 1.0 if is_empty(prepared.text) else 0.0
    need = round(calibration.need(signals), 4) if signals["length"] else without_words
    if signals["summary"]:
        need = max(need, calibration.likely_min)
    if signals["then"]:
        need = max(need, calibration.maybe_min)
    return msgspec.structs.replace(routing, need=need, helps=calibration.helps(need), signals=signals)


def _shown(
    selection: Selection,
    routing: Routing,
    consulted: DocumentResults,
    limits: Limits,
    settings: Settings,
    tame: Sanitizer,
) -> tuple[RenderedText, tuple[RecallBlock, ...]]:
    """As text and as blocks. A turn that memory does not help with gets nothing flagged either."""
    if routing.helps == "unlikely":
        selection = msgspec.structs.replace(selection, suspects=())
    text = _as_text(selection, consulted, limits, settings, tame)
    return text, blocks_of(_best_first(selection, consulted.spans), limits, settings, tame)


def _best_first(selection: Selection, spans: Sequence[SpanHit]) -> list[RecallHit | SpanHit]:
    """Turns and memories by probability, alternating with passages, whose scores are not probabilities. Pinned memories and the first
    instructions come first, flagged items last."""
    items = selection.items if selection.helps == "likely" else selection.items[:MAYBE_BLOCKS]
    worth = [hit for pair in zip_longest(items, spans) for hit in pair if hit is not None]
    pinned = sum(hit.memory is not None and hit.memory.pinned for hit in selection.standing)
    first = pinned + STANDING_BLOCKS
    return [*selection.standing[:first], *worth, *selection.standing[first:], *selection.suspects]


def _final_routing(routing: Routing, consulted: DocumentResults, *, has_vectors: bool) -> Routing:
    channels = (channel for channel in routing.channels if has_vectors or channel != "vector")
    return msgspec.structs.replace(routing, strategy=consulted.strategy, channels=tuple(channels))


def _consulted(
    reader: Reader,
    request: RecallRequest,
    analysis: QueryAnalysis,
    tools: RecallServices,
    embedding: Callable[[], Embedded],
) -> DocumentResults:
    to_ask = DocumentQuery(
        query=request.query,
        project=request.project,
        document=request.document,
        collection=request.collection,
        as_of=request.as_of_instant,
        spans=request.limits.spans,
    )

    def rank(among: frozenset[int] | None, limit: int) -> list[RankedSpan]:
        # Speaker names were removed from the query because every turn has them, but a document may be about one.
        whole = embedding if analysis.text == request.query else tools.questions.begin(request.query)

        def embedded() -> Vector | None:
            # If the query without names has no vector, the one with names is not used either.
            return None if embedding()[0] is None else whole()[0]

        return rank_spans(reader, tools.span_index, request.query, embedded, among=among, limit=limit)

    return consult(reader, to_ask, Ranking(rank, lambda: tools.span_index.refresh(reader).documents))


def _as_text(
    selection: Selection, consulted: DocumentResults, limits: Limits, settings: Settings, tame: Sanitizer
) -> RenderedText:
    documents = share_of(consulted, settings.recall_memory_percent, tame)
    return render(selection, tokens_max=_tokens_max(limits, settings), tame=tame, documents=documents)


def _tokens_max(limits: Limits, settings: Settings) -> int:
    return settings.recall_tokens_max if limits.tokens is None else limits.tokens


def _turns_apart(
    reader: Reader, prepared: PreparedQuery, said: list[RankedTurn], *, limit: int
) -> tuple[list[RankedTurn], list[RankedTurn]]:
    """Drop flagged turns, but keep a few that contain words of the query."""
    clean = [ranked for ranked in said if not turn_with_flags(ranked.turn).quarantined]
    suspects = [ranked for ranked in said if ranked not in clean]  # stored before flagging existed
    if limit and prepared.apart and prepared.question.words:
        flagged = msgspec.structs.replace(prepared.where, quarantined=True)
        found = reader.turns.match(prepared.question.words, flagged, limit=limit)
        suspects += [_by_words(turn, rank, prepared) for rank, turn in enumerate(found, start=1)]
    return clean, suspects


def _by_words(turn: Turn, rank: int, prepared: PreparedQuery) -> RankedTurn:
    score = round(prepared.relevance.score(turn.text), 4)
    return RankedTurn(
        turn=turn,
        score=score,
        contributions={"words": score},
        ranks={"words": rank},
        relevant=turn.role != Role.SYSTEM,
    )


def _cut(turn: Turn) -> Turn:
    """Cut a very long turn."""
    if len(turn.text) <= _TURN_CHARS_MAX:
        return turn
    return msgspec.structs.replace(turn, text=turn.text[:_TURN_CHARS_MAX] + "…")


def _unsettled(
    reader: Reader, request: RecallRequest, where: Filter, leave_out: Sequence[int]
) -> list[RankedTurn]:
    """Turns that arrive during an import are not ranked yet; find them by keyword."""
    cursor = reader.state.cursor()
    if not request.limits.turns or reader.ledger.head().seq == cursor:
        return []
    analysis = SearchRequest(
        query=request.query, as_of=where.as_of, memories=False, limit=LIMIT_MAX, audience=request.audience
    )
    hits = search(reader, analysis, where.now)
    return [
        RankedTurn(
            turn=hit.turn,
            score=hit.score,
            contributions={"words": hit.score},
            ranks={"words": rank},
            relevant=True,
        )
        for rank, hit in enumerate(hits, start=1)
        if hit.turn is not None
        and hit.turn.seq > cursor
        and hit.turn.role != Role.SYSTEM
        and turn_number(hit.turn.seq, hit.turn.ordinal) not in leave_out
    ]


def _joined(
    ranked: list[RankedTurn], late: list[RankedTurn], prepared: PreparedQuery, limit: int
) -> list[RankedTurn]:
    """Keyword matches that could not be ranked come before turns that ranked low. They take up to half of the places,
    or more if there is room."""
    if not late:
        return ranked
    relevant = [turn for turn in ranked if turn.relevant]
    others = [turn for turn in ranked if not turn.relevant]
    late = _with_signals(late, prepared, relevant, others)
    late = late[: max(limit - len(relevant), limit // 2)]
    return [*relevant[: limit - len(late)], *late, *others][:limit]


def _with_signals(
    late: list[RankedTurn], prepared: PreparedQuery, relevant: list[RankedTurn], others: list[RankedTurn]
) -> list[RankedTurn]:
    """On the scale of the ranked turns: better than those that are not relevant, and as good as the best one as far as they
    contain the words."""
    least = max((turn.score for turn in others), default=0.0)
    span = max(1.0, max((turn.score for turn in relevant), default=0.0) - least)
    size, relevance = math.log1p(prepared.turn_count), prepared.relevance
    measured: list[RankedTurn] = []
    for turn in late:
        words = relevance.score(turn.turn.text)
        score = round(least + words * span, 4)
        signals = {"score": score, "words": words, "size": size}
        measured.append(msgspec.structs.replace(turn, score=score, signals=signals))
    return measured


def recall_by_words(reader: Reader, request: RecallRequest, settings: Settings, *, now: Instant) -> Recall:
    """Keyword matches only, for callers that cannot wait for the full ranking. The same memories and turns are visible."""
    request, reference = _with_times(request, now)
    where = _where(request, now)
    analysis = SearchRequest(
        query=request.query,
        include_superseded=where.include_superseded,
        as_of=where.as_of,
        include_faded=where.include_faded,
        limit=max(1, min(request.limits.turns, LIMIT_MAX)),
        audience=where.audience,
    )
    matches = [
        RecallHit(
            id=hit.id,
            score=hit.score,
            probability=hit.score,
            selected=not hit.flags,
            channels={"words": hit.score},
            ranks={"words": rank},
            turn=hit.turn,
            memory=hit.memory,
            replaced=hit.replaced,
            replaced_by=hit.replaced_by,
            replaced_by_id=hit.replaced_by_id,
            contested=hit.contested,
            flags=hit.flags,
        )
        for rank, hit in enumerate(search(reader, analysis, now), start=1)
        if hit.turn is None or hit.turn.role != Role.SYSTEM
    ]
    found = by_words(matches, request.query)
    limits, tame = request.limits, Sanitizer(Question(request.query).words)
    rendered = render(found, tokens_max=_tokens_max(limits, settings), tame=tame)
    return Recall(
        query=request.query,
        text=rendered.text,
        tokens=rendered.tokens,
        tokens_max=_tokens_max(limits, settings),
        lines=rendered.lines,
        blocks=blocks_of((*found.items, *found.suspects), limits, settings, tame),
        hits=tuple(matches),
        reference_time=to_datetime(reference),
        anchor=_anchor(request),
        degraded=(BY_WORDS,),
    )
