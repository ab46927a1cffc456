"""Rank memories for a query: by predicate, meaning, words and time, plus hot memories.

Each channel returns candidates in order; the store decides whether they are still active. A channel's opinion of a
memory is a number, weighted and summed as for turns.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

import msgspec

from memplane.clock import DAY, Instant, to_instant
from memplane.extract.relevance import Relevance
from memplane.recall.calibration import Signals
from memplane.recall.names import fold
from memplane.recall.periods import time_match
from memplane.recall.query import QueryAnalysis
from memplane.recall.query_context import PreparedQuery
from memplane.safety.sanitize import with_flags
from memplane.storage.filter import Filter
from memplane.storage.recall_reads import CandidateQuery, Candidates
from memplane.storage.store import Reader
from memplane.types import Kind, Memory, State, Tier

_PER_CHANNEL = 12
_PER_PREDICATE = 8
_HOT_MAX = 6
_STANDING_MAX = 40
_WORDS_MAX = 3
"""Only the rarest words select candidates; all words count in the score."""
_HOLDERS_MAX = 100
"""A common word selects candidates only if no rarer word does, because every match must be ranked."""
_RECENT_DAYS = 30.0


class FactWeights(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of each channel."""

    meaning: float = 0.35
    """Similarity, in deviations above the mean."""
    words: float = 2.0
    """The share of the query's distinctive words it contains."""
    predicate: float = 0.8
    """Its predicate is one the query asks for; the first predicate counts most."""
    replaces: float = 1.0
    """How well the memory it superseded would have answered: asking for a replaced value returns the current one."""
    time: float = 1.0
    """It mentions a time the query asks about or was said then (1), or is about another time (down to -1)."""
    speaker: float = 0.8
    """Its subject is the person the query names, or another person."""
    importance: float = 0.4
    recent: float = 0.1
    hot: float = 0.1


WEIGHTS = FactWeights()
_WEIGHTS: dict[str, float] = msgspec.structs.asdict(WEIGHTS)


class RankedFact(msgspec.Struct, frozen=True, kw_only=True):
    """A memory with its score, the channels' contributions, and its rank in each channel."""

    memory: Memory
    score: float
    contributions: Mapping[str, float]
    ranks: Mapping[str, int]
    signals: Signals = {}
    """What its probability is computed from."""


class FactCandidates(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates found without the query's vector, by channel."""

    predicates: Sequence[str]
    """Predicates the query asks for, best first."""
    of_predicates: Sequence[Memory]
    worded: Sequence[Memory]
    """Superseded memories among the candidates."""
    selected: Sequence[Memory]
    hot: Sequence[Memory]
    newest: Sequence[Memory]
    standing: Sequence[Memory]
    """Instructions, which may apply to a turn without a common word."""
    relevance: Relevance


def candidate_query(
    prepared: PreparedQuery, predicates: Sequence[str], *, conversation: str | None, turns: int
) -> CandidateQuery:
    """Which memories and turns to read before the query is embedded."""
    return CandidateQuery(
        where=prepared.where,
        conversation=conversation,
        turns=turns,
        predicates=predicates,
        per_predicate=_PER_PREDICATE,
        words=_rarest(prepared),
        times=prepared.analysis.ranges,
        per_channel=_PER_CHANNEL,
        hot=_HOT_MAX,
        newest=not prepared.question.words,
        standing=_STANDING_MAX,
    )


def gather_facts(found: Candidates, prepared: PreparedQuery, predicates: Sequence[str]) -> FactCandidates:
    """Candidates to rank once the query is embedded."""
    relevance = prepared.relevance
    if prepared.question.words:
        for memory in (*found.of_predicates, *found.matching, *found.of_times, *found.hot):
            relevance.score(memory.searchable)
    return FactCandidates(
        predicates=predicates,
        of_predicates=found.of_predicates,
        worded=found.matching,
        selected=found.of_times,
        hot=found.hot,
        newest=found.newest,
        standing=found.standing,
        relevance=relevance,
    )


def facts_apart(
    reader: Reader, prepared: PreparedQuery, gathered: FactCandidates, *, limit: int, now: Instant
) -> tuple[list[RankedFact], list[RankedFact]]:
    """Ranked memories, and separately the flagged ones: only those that contain words of the query, so that none
    displaces another memory."""
    known = rank_facts(reader, prepared, gathered, now=now)
    suspects = [
        fact for fact in known if with_flags(fact.memory).quarantined
    ]  # stored before flagging existed
    if suspects:
        known = [fact for fact in known if fact not in suspects]
    if limit and prepared.question.words and prepared.flagged_count:
        flagged = msgspec.structs.replace(prepared.where, quarantined=True)
        found = reader.memories.match(_rarest(prepared), flagged, limit=_PER_CHANNEL)
        suspects += [_suspect(memory, rank, gathered) for rank, memory in enumerate(found, start=1)]
    return known, suspects


def _suspect(memory: Memory, rank: int, gathered: FactCandidates) -> RankedFact:
    score = WEIGHTS.words * gathered.relevance.score(memory.searchable)
    return _ranked(memory, score, {"words": rank}, {"words": score / WEIGHTS.words})


def rank_facts(
    reader: Reader, prepared: PreparedQuery, gathered: FactCandidates, *, now: Instant
) -> list[RankedFact]:
    """All candidates, best first."""
    analysis, question, where = prepared.analysis, prepared.question, prepared.where
    predicates, relevance = gathered.predicates, gathered.relevance
    meaning = {memory.id: memory.deviations for memory in prepared.near}
    nearness = {memory.id: memory.nearness for memory in prepared.near}
    near, ends = _near_and_heirs(reader, meaning, gathered.worded, where)
    heirs = _heirs(reader, ends, [*near, *gathered.worded], where)
    brought: dict[str, Sequence[Memory]] = {
        "predicate": gathered.of_predicates,
        "meaning": [memory for memory in near if _holds(memory, where)],
        "words": [memory for memory in gathered.worded if _holds(memory, where)],
        "replaces": [heir for heir, _ in heirs],
        "time": gathered.selected,
        "hot": gathered.hot,
        "newest": gathered.newest,
        "standing": gathered.standing,
    }
    memories = {memory.id: memory for found in brought.values() for memory in found}
    ranks: dict[str, dict[str, int]] = {}
    for channel, found in brought.items():
        for rank, memory in enumerate(found, start=1):
            ranks.setdefault(memory.id, {})[channel] = rank
    replaced: dict[str, Memory] = {}
    for heir, before in heirs:
        replaced.setdefault(heir.id, before)
    times = time_match(memories.values(), analysis.periods)
    opinions = {
        memory.id: {
            "meaning": max(meaning.get(memory.id, 0.0), 0.0),
            "words": relevance.score(memory.searchable) if question.words else 0.0,
            "replaces": _inherited(memory, replaced.get(memory.id), meaning, relevance),
            "predicate": _of_predicate(memory, predicates),
            "time": times.get(memory.id, 0.0),
            "speaker": _about(memory, analysis),
            "importance": memory.importance,
            "recent": _recent(memory, now),
            "hot": float(memory.tier is Tier.HOT),
        }
        for memory in memories.values()
        if memory.kind is not Kind.EPISODE
    }
    scores = {
        id_: sum(weight * opinion[name] for name, weight in _WEIGHTS.items())
        for id_, opinion in opinions.items()
    }

    def place(id_: str) -> tuple[float, datetime, int]:
        return scores[id_], memories[id_].updated_at, memories[id_].seq

    sizes = math.log1p(prepared.turn_count), math.log1p(prepared.stored_count)
    return [
        _ranked(
            memories[id_],
            scores[id_],
            ranks[id_],
            opinions[id_],
            {
                "score": scores[id_],
                "nearness": nearness.get(id_, 0.0),
                "stored": float(not memories[id_].derived),
                "size": sizes[not memories[id_].derived],
            },
        )
        for id_ in sorted(opinions, key=place, reverse=True)
    ]


def _ranked(
    memory: Memory,
    score: float,
    ranks: Mapping[str, int],
    opinions: Mapping[str, float],
    signals: Mapping[str, float] = MappingProxyType({}),
) -> RankedFact:
    parts = {name: _WEIGHTS[name] * value for name, value in opinions.items() if value}
    return RankedFact(
        memory=memory,
        score=round(score, 4),
        contributions={name: round(part, 3) for name, part in sorted(parts.items(), key=_by_weight)},
        ranks=ranks,
        signals={**opinions, **signals},
    )


def _by_weight(part: tuple[str, float]) -> float:
    return -abs(part[1])


def _ever(where: Filter) -> Filter:
    """Including everything that was superseded."""
    return msgspec.structs.replace(where, include_superseded=True)


def _holds(memory: Memory, where: Filter) -> bool:
    """Whether a memory from a lookup that includes superseded ones may be returned."""
    if where.include_superseded:
        return True
    if where.as_of is None:
        return memory.state is not State.SUPERSEDED
    return memory.superseded_at is None or to_instant(memory.superseded_at) > where.as_of


def _near_and_heirs(
    reader: Reader, meaning: Mapping[str, float], worded: Iterable[Memory], where: Filter
) -> tuple[list[Memory], Mapping[str, str]]:
    """The nearest memories, and the successors of superseded ones that match."""
    ids = list(meaning)
    gone = [memory.id for memory in worded if not _holds(memory, where)]
    maybe_gone = [] if where.include_superseded else list(dict.fromkeys([*ids, *gone]))

    found, ends = reader.recall.with_successors(ids, maybe_gone, _ever(where))
    return sorted(found, key=lambda memory: -meaning[memory.id]), ends


def _heirs(
    reader: Reader, ends: Mapping[str, str], found: Iterable[Memory], where: Filter
) -> list[tuple[Memory, Memory]]:
    """Pairs (active memory, memory it superseded) for candidates that are superseded."""
    gone = {memory.id: memory for memory in found if not _holds(memory, where)}
    replaced: dict[str, Memory] = {}
    for start, end in ends.items():
        if start in gone:
            replaced.setdefault(end, gone[start])
    if not replaced:
        return []
    return [(memory, replaced[memory.id]) for memory in reader.memories.get_many(list(replaced), where)]


def _inherited(
    memory: Memory, before: Memory | None, meaning: Mapping[str, float], relevance: Relevance
) -> float:
    """Only what was said about the same one: a correction may be about another person or thing."""
    if before is None or before.subject != memory.subject:
        return 0.0
    return WEIGHTS.words * relevance.score(before.searchable) + WEIGHTS.meaning * max(
        meaning.get(before.id, 0.0), 0.0
    )


def _rarest(prepared: PreparedQuery) -> list[str]:
    """Words that select candidates: the rarest ones among turns, and those that occur only in stored memories."""
    held = prepared.rarity
    rarity = {word: held[stem] for word, stem in prepared.question.stems.items() if stem in held}
    said = sorted((word for word, count in rarity.items() if count), key=lambda word: rarity[word])
    unsaid = [word for word, count in rarity.items() if not count]
    few = [word for word in said[:_WORDS_MAX] if rarity[word] <= _HOLDERS_MAX] or said[:1]
    return [*few, *unsaid[:_WORDS_MAX]] or list(prepared.question.words)


def _of_predicate(memory: Memory, predicates: Sequence[str]) -> float:
    if memory.predicate is None or memory.predicate not in predicates:
        return 0.0
    return 1.0 / (1 + predicates.index(memory.predicate))


def _about(memory: Memory, analysis: QueryAnalysis) -> float:
    """1 if the subject is the one person the query names, by whole or first name, -1 for another named person."""
    if len(analysis.speakers) != 1 or memory.subject is None:
        return 0.0
    (name,) = analysis.speakers
    subject, label = fold(memory.subject), fold(name)
    first = subject.replace("'s ", " ").split(" ", 1)[0]
    return 1.0 if first == label.split(" ", 1)[0] or subject.startswith(label) else -1.0


def _recent(memory: Memory, now: Instant) -> float:
    age_days = max(0, now - to_instant(memory.updated_at)) / DAY
    return float(2.0 ** (-age_days / _RECENT_DAYS))
