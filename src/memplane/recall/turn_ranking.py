"""Rank turns for a query, best first, with the reasons."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.extract.relevance import Question
from memplane.models.embedding import Vector
from memplane.models.vectors import DEVIATIONS_MIN, Floats, Ints, dots, unpacked
from memplane.recall.calibration import Signals
from memplane.recall.copies import same_words
from memplane.recall.fusion import FusedScores, best, fuse, word_scores
from memplane.recall.large_spaces import judged
from memplane.recall.memory_index import SimilarMemory
from memplane.recall.periods import Period, date_match
from memplane.recall.query_context import PreparedQuery
from memplane.recall.turn_index import TurnColumns, TurnIndex
from memplane.storage.filter import EVERYWHERE, Audience, Filter
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX
from memplane.storage.store import Reader
from memplane.types import Turn

COMMON = 20_000
"""A word in more turns than this does not help to choose, and scanning them is slow."""
_NEAR = 300
_MOST = 100
_SAMPLE = 300
_SPARE = 4
"""Extra turns fetched, in case some were forgotten since the index was read."""


class RankedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn with its score and the contributions to it."""

    turn: Turn
    score: float
    contributions: Mapping[str, float]
    ranks: Mapping[str, int]
    relevant: bool
    """Whether it is related to the query: it contains a word of it, is similar, or was said at the time it asks for.
    The best of poor candidates may not be."""
    signals: Signals = {}
    """What its probability is computed from."""
    words: tuple[str, ...] = ()
    """Its words, to find copies; empty if they were not needed yet."""

    @property
    def same(self) -> tuple[str, ...]:
        """Equal for turns that say the same."""
        return self.words or same_words(self.turn.text)

    @property
    def copy_key(self) -> tuple[str, ...]:
        """Equal for turns in which the same one says the same. What two people say alike is two statements, and a tool must not
        speak for the user."""
        return (self.turn.role, self.turn.speaker or "", *self.same)


class TurnWords:
    """What the words of the query say about every turn: everything that needs no vector."""

    def __init__(self, prepared: PreparedQuery) -> None:
        turns = prepared.turns
        self.words, self.passage = word_scores(list(prepared.holders.values()), turns)
        self.heard = _visible_turns(prepared)
        if not turns.vectors.exact:
            self.favoured  # noqa: B018  # it is wanted as soon as there is a vector

    @cached_property
    def favoured(self) -> list[Ints]:
        """For a space too large to rank every turn: those that contain the words."""
        return [_most(self.among_visible(opinion), _MOST) for opinion in (self.words, self.passage)]

    def among_visible(self, opinion: Floats) -> Floats:
        return opinion if self.heard is None else np.where(self.heard, opinion, 0.0)


def _visible_turns(prepared: PreparedQuery) -> NDArray[np.bool_] | None:
    """Which turns are in scope; None if all are. Flagged turns are excluded from the start, so they displace nothing."""
    heard = prepared.turns.visible_to(prepared.where.audience)
    if not prepared.apart:
        return heard
    clean = ~np.isin(prepared.turns.n, np.asarray(prepared.apart))
    return clean if heard is None else heard & clean


def rank_turns(
    reader: Reader,
    prepared: PreparedQuery,
    worded: TurnWords | None = None,
    *,
    limit: int,
    leave_out: Sequence[int] = (),
) -> list[RankedTurn]:
    """`leave_out` are numbers of turns that are returned elsewhere."""
    if not limit:
        return []
    found = _judged(reader, prepared, worded) if prepared.large is None else _judged_large(prepared, limit)
    return [] if found is None else _best(reader, prepared, found, limit, leave_out)


class _Judged(msgspec.Struct, frozen=True):
    """Every candidate turn with its score."""

    turns: TurnColumns
    fused: FusedScores
    words: Floats
    """For every turn."""
    meaning: Floats | NDArray[np.float32] | None
    """For the fused turns."""


def _judged_large(prepared: PreparedQuery, limit: int) -> _Judged | None:
    """For a space too large to load."""
    assert prepared.large is not None
    assert prepared.large_words is not None
    read_from = [near.turn for near in prepared.near if near.turn is not None and near.deviations > 0]
    found = judged(
        prepared.large, prepared.large_words, prepared.query, read_from, prepared.where.audience, wanted=limit
    )
    turns = found.turns
    if not turns.count:
        return None
    places = np.flatnonzero(~np.isin(turns.n, np.asarray(prepared.apart, np.int64)))
    meaning = None if found.meaning is None else found.meaning[places]
    fused = fuse(
        turns,
        places,
        prepared.analysis,
        meaning=meaning,
        words=found.words[places],
        passage=found.passage[places],
        fact=_of_memories(turns, prepared.near)[places] if prepared.near else None,
        usual=found.usual,
    )
    return _Judged(turns, fused, found.words, meaning) if len(places) else None


def _judged(reader: Reader, prepared: PreparedQuery, worded: TurnWords | None) -> _Judged | None:
    turns, query = prepared.turns, prepared.query
    if not turns.count:
        return None
    worded = worded or TurnWords(prepared)
    words, passage, heard = worded.words, worded.passage, worded.heard
    fact = _of_memories(turns, prepared.near)
    if turns.vectors.exact:
        places, sample = np.arange(turns.count) if heard is None else np.flatnonzero(heard), None
    else:
        places, sample = _chosen(turns, query, worded, fact, prepared.analysis.periods)
    if not len(places):
        return None
    meaning = None if query is None else turns.vectors.scores(query, places)
    if meaning is None and query is not None and prepared.model is not None:
        meaning = _from_store(reader, prepared.model, turns.n[places], query)
    fused = fuse(
        turns,
        places,
        prepared.analysis,
        meaning=meaning,
        words=words[places],
        passage=passage[places],
        fact=fact[places] if prepared.near else None,
        sample=sample,
    )
    return _Judged(turns, fused, words, meaning)


def _best(
    reader: Reader, prepared: PreparedQuery, judged_turns: _Judged, limit: int, leave_out: Sequence[int]
) -> list[RankedTurn]:
    turns, fused, words, meaning = (
        judged_turns.turns,
        judged_turns.fused,
        judged_turns.words,
        judged_turns.meaning,
    )
    where = prepared.where
    is_near = _near_enough(fused, meaning)
    allowed = _allowed(turns, fused.indexes, where, leave_out)
    if prepared.question.words:
        allowed &= is_near | (words[fused.indexes] > 0) | _compared(meaning, len(fused.indexes))
    masked = msgspec.structs.replace(fused, scores=np.where(allowed, fused.scores, -np.inf))
    chosen = [at for at in best(masked, limit + _SPARE) if np.isfinite(masked.scores[at])]
    found = {
        (turn.seq, turn.ordinal): turn
        for turn in reader.turns.at([int(turns.n[fused.indexes[at]]) for at in chosen], where)
    }
    kept = [
        (at, turn)
        for at in chosen
        if (turn := found.get(divmod(int(turns.n[fused.indexes[at]]), TURNS_PER_ENTRY_MAX))) is not None
    ][:limit]
    indexes, relevance = [at for at, _ in kept], prepared.relevance
    ranks, contributions = fused.ranks(indexes), fused.contributions(indexes)
    best_nearness = 0.0 if meaning is None or np.isnan(meaning).all() else float(np.nanmax(meaning))
    return [
        RankedTurn(
            turn=turn,
            score=round(float(fused.scores[at]), 4),
            contributions={name: round(part, 3) for name, part in contributions[place].items()},
            ranks=ranks[place],
            relevant=bool(words[fused.indexes[at]] > 0) or bool(is_near[at]),
            signals={
                **_signals(prepared, judged_turns, at),
                "best": best_nearness,
                "words": relevance.score(turn.text),
            },
            words=same_words(turn.text),
        )
        for place, (at, turn) in enumerate(kept)
    ]


def _signals(prepared: PreparedQuery, judged_turns: _Judged, at: int) -> Signals:
    fused, meaning = judged_turns.fused, judged_turns.meaning
    score = float(fused.scores[at])
    return {
        "score": score,
        "nearness": 0.0 if meaning is None or math.isnan(meaning[at]) else float(meaning[at]),
        "date": float(fused.channels["date"][at]) if "date" in fused.channels else 0.0,
        "size": math.log1p(prepared.turn_count),
    }


def holders(
    reader: Reader,
    index: TurnIndex,
    turns: TurnColumns,
    question: Question,
    audience: Audience | None = EVERYWHERE,
) -> dict[str, tuple[Ints, Floats]]:
    """Where each stem of the query occurs within the scope, without words too common to select anything."""
    common = reader.words.common(question.words, beyond=COMMON) if turns.count > COMMON else set()
    beyond = {question.stems[word] for word in common}
    stems = [stem for stem in question.lookups if stem not in beyond]
    held, heard = index.occurrences(reader, turns, stems), turns.visible_to(audience)
    if heard is None:
        return held
    return {stem: (places[heard[places]], counts[heard[places]]) for stem, (places, counts) in held.items()}


def _near_enough(fused: FusedScores, meaning: Floats | NDArray[np.float32] | None) -> NDArray[np.bool_]:
    then = fused.channels["date"] > 0 if "date" in fused.channels else np.zeros(len(fused.indexes), np.bool_)
    return then if meaning is None else then | (fused.channels["meaning"] >= DEVIATIONS_MIN)


def _compared(meaning: Floats | NDArray[np.float32] | None, count: int) -> NDArray[np.bool_]:
    """Which turns were compared by meaning. Of the others only those with a word of the query are known to match; who said them
    would outweigh that."""
    return np.zeros(count, np.bool_) if meaning is None else ~np.isnan(meaning)


def _of_memories(turns: TurnColumns, near: Sequence[SimilarMemory]) -> Floats:
    """For every turn, how many deviations above the mean its nearest derived memory is."""
    fact = np.zeros(turns.count)
    of_turns = [memory for memory in near if memory.turn is not None and memory.deviations > 0]
    places, there = turns.find(np.array([memory.turn for memory in of_turns], np.int64))
    values = np.array([memory.deviations for memory in of_turns])
    np.maximum.at(fact, places[there], values[there])
    return fact


def _chosen(
    turns: TurnColumns, query: Vector | None, worded: TurnWords, fact: Floats, periods: Sequence[Period]
) -> tuple[Ints, NDArray[np.bool_]]:
    """For a space too large to rank every turn: the nearest turns by code, the same among those of the time asked
    about, those that contain the words, and a sample for the mean and deviation. Only turns in scope, so none
    displaces another."""
    heard = worded.heard
    sample = np.arange(turns.count) if heard is None else np.flatnonzero(heard)
    sample = sample[:: max(1, len(sample) // _SAMPLE)]
    chosen = [sample, *worded.favoured, _most(worded.among_visible(fact), _MOST)]
    if query is not None:
        near = [turns.vectors.near(query, _NEAR, heard)]
        if periods:
            then = date_match(periods, turns.at) > 0
            near.append(turns.vectors.near(query, _MOST, then if heard is None else heard & then))
        chosen += [places[places < turns.count] for places in near]
    is_chosen, is_sample = np.zeros(turns.count, np.bool_), np.zeros(turns.count, np.bool_)
    is_sample[sample] = True
    for places in chosen:
        is_chosen[places] = True
    found: Ints = np.flatnonzero(is_chosen)
    return found, is_sample[found]


def _most(scores: Floats, limit: int) -> Ints:
    """The places with the largest positive scores."""
    there = np.flatnonzero(scores)
    if len(there) <= limit:
        return there
    return there[np.argpartition(-scores[there], limit)[:limit]]


def _from_store(reader: Reader, model: int, numbers: Ints, query: Vector) -> NDArray[np.float32]:
    """The equivalent of `VectorTable.scores` without vectors in memory."""
    packed = reader.vectors.turns_at(model, numbers.tolist())
    meaning = np.full(len(numbers), np.nan, np.float32)
    there = np.array([int(number) in packed for number in numbers])
    if there.any():
        meaning[there] = dots(unpacked([packed[int(number)] for number in numbers[there]]), query)
    return meaning


def _allowed(turns: TurnColumns, places: Ints, where: Filter, leave_out: Sequence[int]) -> NDArray[np.bool_]:
    allowed = ~turns.system[places]
    if where.as_of is not None:
        allowed &= turns.at[places] <= where.as_of
    if leave_out:
        allowed &= ~np.isin(turns.n[places], np.asarray(leave_out))
    return allowed
