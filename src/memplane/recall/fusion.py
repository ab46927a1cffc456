"""Rank turns: several weak signals about every turn, added up.

Each channel gives every turn a number. The numbers are made comparable per query (mean 0, deviation 1), weighted and
summed, so a turn's score is a sum of contributions that can be shown. The weights were fitted on two data sets and
checked on conversations and questions they were not fitted on; docs/internals/recall.md has the figures and the
alternatives tried.

Everything here is array arithmetic. `places` are the turns to rank; in a space too large to rank every turn, they are
the turns some channel favours plus a random sample that supplies the mean and deviation.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.models.vectors import Floats, Ints, Usual, standard
from memplane.recall.periods import date_match
from memplane.recall.query import QueryAnalysis
from memplane.recall.turn_index import WINDOW_TURNS, TurnColumns

_BM25_K1 = 1.2
_BM25_B = 0.75
SESSION_PASSAGE_SHARE = 0.25
_SPREAD_MAX = 2_000
"""A word in more turns than this counts only for the turn itself: it does not distinguish passages."""
_FEW = 50


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of each channel; zero disables it."""

    meaning: float = 0.68
    """Similarity of the turn's vector, made from the turn and from the turn with the one before it."""
    words: float = 0.07
    """BM25 of the turn."""
    passage: float = 0.25
    """BM25 of the turn with its neighbours."""
    session: float = 0.32
    """The score of the best turn in the same session."""
    fact: float = 0.2
    """Similarity of the nearest memory derived from the turn: a turn says many things, a memory one."""
    speaker: float = 1.35
    """Said by the speaker the query names, or by another."""
    user: float = 2.0
    """Said by the user, if the query is not about what the assistant said. The fitted weight is 4.6, which would
    silence assistants; 2 is a choice that costs a point on LongMemEval."""
    asks: float = -0.43
    """A turn that ends with a question says little."""
    date: float = 2.0
    """Said in the period that the query names, or in the week after the day. Limited to 2 in the same way (fitted:
    3.3)."""


WEIGHTS = Weights()
_ORDERING = frozenset({"meaning", "words", "passage", "session", "fact"})
"""Channels that rank turns; the others are yes or no."""


class FusedScores(msgspec.Struct, frozen=True, kw_only=True):
    """One score per turn, higher is better, with each channel's contribution.

    Scores order the turns of one query. They are not comparable across queries and are not probabilities.
    """

    indexes: Ints
    scores: Floats
    channels: dict[str, Floats]
    """The values of every channel that has an opinion on this query."""
    weights: Weights

    def contributions(self, indexes: Sequence[int]) -> list[dict[str, float]]:
        """The contributions to each turn's score, largest first."""
        names = list(self.channels)
        chosen = list(indexes)
        parts = [getattr(self.weights, name) * self.channels[name][chosen] for name in names]
        return [
            dict(sorted(zip(names, of_turn, strict=True), key=_by_weight))
            for of_turn in np.column_stack(parts).tolist()
        ]

    def ranks(self, indexes: Sequence[int]) -> list[dict[str, int]]:
        """The rank of each turn in every ranking channel, 1 the best."""
        names = [name for name in self.channels if name in _ORDERING]
        chosen = list(indexes)
        ranks = []
        for name in names:
            channel = self.channels[name]
            not_better = np.searchsorted(np.sort(channel), channel[chosen], side="right")
            ranks.append((1 + len(channel) - not_better).tolist())
        return [dict(zip(names, of_turn, strict=True)) for of_turn in zip(*ranks, strict=True)]


def _by_weight(part: tuple[str, float]) -> float:
    return -abs(part[1])


def rarity(holders: int, count: int) -> float:
    """The weight of a word contained in this many of all turns."""
    return math.log(1 + (max(count - holders, 0) + 0.5) / (holders + 0.5)) * (_BM25_K1 + 1)


def word_scores(
    found: Sequence[tuple[Ints, Floats]], turns: TurnColumns, rarities: Sequence[float] | None = None
) -> tuple[Floats, Floats]:
    """BM25 of every turn, and of every turn's passage.

    For each word of the query: the turns that contain it and how often, and its weight, if these turns are only a
    part of the space.
    """
    words, passage = np.zeros(turns.count), np.zeros(turns.count)
    if rarities is None:
        rarities = [rarity(len(places), turns.count) for places, _ in found]
    for (places, counts), weight in zip(found, rarities, strict=True):
        words[places] += weight * counts / (counts + _slack(turns.words[places], turns.words_usual))
        touched, around = _around(places, counts, turns) if len(places) <= _SPREAD_MAX else (places, counts)
        slack = _slack(turns.passage_words[touched], turns.passage_words_usual)
        passage[touched] += weight * around / (around + slack)
    return words, passage


def _around(places: Ints, counts: Floats, turns: TurnColumns) -> tuple[Ints, Floats]:
    """The passages that contain the word, and how often: a turn counts for its own passage and for those it belongs
    to."""
    all_places, all_counts = [places], [counts]
    for following, window in ((turns.after, turns.window_before), (turns.before, turns.window_after)):
        at, held = places, counts
        for reach in range(1, WINDOW_TURNS + 1):
            at = following[at]
            there = (at >= 0) & (at < turns.count)
            at, held = at[there], held[there]
            inside = window[at] >= reach
            all_places.append(at[inside])
            all_counts.append(held[inside])
    joined, held = np.concatenate(all_places), np.concatenate(all_counts)
    if len(joined) * _FEW < turns.count:  # not worth scanning every turn then
        touched, at = np.unique(joined, return_inverse=True)
        return touched, np.bincount(at, held, len(touched)).astype(np.float64)
    summed = np.bincount(joined, held, turns.count).astype(np.float64)
    touched = np.flatnonzero(summed)
    return touched, summed[touched]


def _slack(lengths: Floats, usual: float) -> Floats:
    return _BM25_K1 * (1 - _BM25_B + _BM25_B * lengths / usual)


def best_of_session(values: Floats, sessions: Ints, count: int) -> Floats:
    """For every turn, the best value in its session."""
    best = np.full(count, -np.inf)
    np.maximum.at(best, sessions, values)
    found: Floats = best[sessions]
    return found


def speaker_match(analysis: QueryAnalysis, turns: TurnColumns, places: Ints) -> Floats:
    """1 for the speakers the query names, -1 for others, 0 for turns without a speaker."""
    wanted = [at for at, name in enumerate(turns.speakers) if name in analysis.speakers]
    by = turns.speaker[places]
    return np.where(by < 0, 0.0, np.where(np.isin(by, wanted), 1.0, -1.0))


def fuse(
    turns: TurnColumns,
    places: Ints,
    analysis: QueryAnalysis,
    *,
    meaning: Floats | NDArray[np.float32] | None,
    words: Floats,
    passage: Floats,
    fact: Floats | None = None,
    sample: NDArray[np.bool_] | None = None,
    usual: Mapping[str, Usual] = MappingProxyType({}),
    weights: Weights = WEIGHTS,
) -> FusedScores:
    """Add up the channels. Each array has one number per place.

    `meaning` is the dot product of a turn's vector with the query's; None without an embedder, NaN for a turn without
    a vector. `sample` marks the places that represent all turns; None: all of them. `usual` is the known mean and
    deviation of a channel over all turns.
    """
    channels = {
        "words": standard(words, sample, usual.get("words")),
        "passage": standard(passage, sample, usual.get("passage")),
        "asks": turns.asks[places],
    }
    promising = SESSION_PASSAGE_SHARE * channels["passage"]
    if meaning is not None:
        channels["meaning"] = standard(meaning, sample, usual.get("meaning"))
        promising = promising + channels["meaning"]
    if fact is not None:
        channels["fact"] = fact
    sessions = turns.session[places]
    best_there = best_of_session(promising, sessions, turns.sessions)
    channels["session"] = standard(best_there, sample, usual.get("session"))
    if not analysis.of_assistant:
        channels["user"] = turns.user[places].astype(np.float64)
    named = analysis.speakers.intersection(turns.speakers)
    if len(named) == 1 or 1 < len(named) < len(turns.speakers):
        channels["speaker"] = speaker_match(analysis, turns, places)
    if analysis.periods:
        channels["date"] = date_match(analysis.periods, turns.at[places])
    scores = np.zeros(len(places))
    for name, channel in channels.items():
        scores += getattr(weights, name) * channel
    return FusedScores(indexes=places, scores=scores, channels=channels, weights=weights)


def best(fused: FusedScores, limit: int) -> list[int]:
    """The indexes of the best turns, best first; of two equals the later turn."""
    total = len(fused.scores)
    if limit < total:
        chosen = np.argpartition(-fused.scores, limit)[: limit + 1]
        edge = np.sort(fused.scores[chosen])[0]
        chosen = np.flatnonzero(fused.scores >= edge)
    else:
        chosen = np.arange(total)
    order = np.lexsort((-fused.indexes[chosen], -fused.scores[chosen]))
    return [int(index) for index in chosen[order][:limit]]
