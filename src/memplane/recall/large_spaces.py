"""Ranking in a space too large to load: the store returns candidates, and only those are ranked.

The channels are those of any space (`fusion`). The mean and deviation over all turns come from a sample: a few
sessions spread over the space, about a megabyte, kept until the space grows by a tenth or something is forgotten.
"""

import math
import threading
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from memplane.models.embedding import Vector, Vectors
from memplane.models.vectors import DEVIATION_MIN, Floats, Ints, Usual, VectorTable, dots, unpacked
from memplane.recall.fusion import SESSION_PASSAGE_SHARE, best_of_session, rarity, word_scores
from memplane.recall.turn_embedding import ROLES
from memplane.recall.turn_index import WINDOW_TURNS, TurnColumns, TurnColumnsBuilder
from memplane.storage.filter import Audience
from memplane.storage.state import Marks
from memplane.storage.store import Reader
from memplane.storage.vectors import VectorSearch, WordHolders
from memplane.types import PAUSE

_NEAR = 60
"""Minimum number of candidates by similarity, …"""
_HOLDING = 60
"""… and by words, with their neighbours."""
_HOLDERS_MAX = 2_000
"""A word in more turns than this does not select candidates."""
_SITTINGS = 64
_PER_SITTING = 16
_MEMORIES = 512
_SPEAKERS_MAX = 1_000
_GROWTH = 1.1


class Sample(msgspec.Struct, frozen=True):
    """A sample that represents all turns."""

    vectors: Vectors
    sessions: Ints
    words_usual: float
    passage_words_usual: float
    count: int
    """Number of turns in the space."""
    common: set[str]
    """Stems that select nothing. Remembered while this sample is valid, so that they are not looked up again."""


class LargeTurns(msgspec.Struct, frozen=True):
    """A large space as one query sees it."""

    search: VectorSearch
    sample: Sample
    speakers: tuple[str, ...]
    names: Sequence[str]
    """What an operator decided about names of speakers, as stored."""
    unindexed: Mapping[int, Mapping[str, int]]
    """Stems of turns that the word index does not contain yet."""


class LargeIndex:
    """The cached state of a large space. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks: Marks | None = None
        self._sampled: Marks | None = None
        self._sample: Sample | None = None
        self.speakers: tuple[str, ...] | None = None
        """The last known sample; None if the space was not large then."""
        self.names: list[str] = []
        self._memories: tuple[tuple[int, int], Vectors] | None = None

    def refresh(
        self, reader: Reader, search: VectorSearch, model: int, waiting: Mapping[int, Mapping[str, int]]
    ) -> LargeTurns:
        with self._lock:
            marks = reader.state.marks()
            if self._sample is None or _outgrown(self._sampled, marks):
                self._sample, self._sampled = _sampled(reader, search, model), marks
                self._marks = None
            if self._marks is None or self._marks.cursor != marks.cursor:
                named = search.speakers(limit=_SPEAKERS_MAX)
                self.speakers = tuple(name for name in named if name not in ROLES)
                self.names = reader.recall.names()
            self._marks = marks
            return LargeTurns(search, self._sample, self.speakers or (), self.names, waiting)

    def usual_nearness(self, reader: Reader, search: VectorSearch, model: int, query: Vector) -> Usual:
        """Mean and deviation of the similarity of memories."""
        with self._lock:
            marks = reader.state.marks()
            state = (marks.generation, marks.memory_stamp.bit_length())
            if self._memories is None or self._memories[0] != state:
                found = reader.vectors.memories_of(model, search.some_memories(limit=_MEMORIES))
                none = np.zeros((0, len(query)), np.float32)
                self._memories = (state, unpacked(list(found.values())) if found else none)
            vectors = self._memories[1]
        return _usual(dots(vectors, query).astype(np.float64)) if len(vectors) else (0.0, 1.0)


def _outgrown(before: Marks | None, now: Marks) -> bool:
    return (
        before is None
        or now.generation != before.generation
        or now.cursor > before.cursor * _GROWTH + _SITTINGS
    )


def _sampled(reader: Reader, search: VectorSearch, model: int) -> Sample:
    pause = int(PAUSE.total_seconds()) * 1_000_000
    numbers = search.some_turns(sittings=_SITTINGS, each=_PER_SITTING, pause=pause)
    columns = TurnColumnsBuilder()
    for head, _ in search.turns(None, limit=0, also=numbers, audience=None):
        columns.add(head)
    packed = reader.vectors.turns_at(model, numbers)
    turns = TurnColumns(columns, VectorTable(1))
    there = np.array([int(n) in packed for n in turns.n], np.bool_)
    vectors = (
        unpacked([packed[int(n)] for n in turns.n[there]]) if there.any() else np.zeros((0, 1), np.float32)
    )
    return Sample(
        vectors, turns.session[there], turns.words_usual, turns.passage_words_usual, search.size(), set()
    )


class LargeWords:
    """The turns that contain words of the query, with their neighbours: everything that needs no vector."""

    def __init__(self, large: LargeTurns, stems: Sequence[str]) -> None:
        sample = large.sample
        asked = [stem for stem in stems if stem not in sample.common]
        found = (
            large.search.holders(
                asked, turns=sample.count, usual=sample.words_usual, each=_HOLDERS_MAX, best=_HOLDING
            )
            if asked
            else WordHolders({}, {}, 0.0, 0.0)
        )
        self.counts = dict.fromkeys(stems, _HOLDERS_MAX) | dict(found.counts)
        sample.common.update(stem for stem in asked if self.counts[stem] >= _HOLDERS_MAX)
        self._best = {n: dict(held) for n, held in found.best.items()}
        self._total, self._squares = found.total, found.squares
        for n, held in large.unindexed.items():
            here = {stem: held[stem] for stem in stems if held.get(stem)}
            for stem in here:
                self.counts[stem] += 1
            if here:
                self._best[n] = here
        self._choosing = [stem for stem in stems if self.counts[stem] < _HOLDERS_MAX]
        numbers = list(self._best)
        self.numbers = {*numbers, *(large.search.around(numbers, reach=WINDOW_TURNS) if numbers else ())}

    def scores(self, turns: TurnColumns, sample: Sample) -> tuple[Floats, Floats, Mapping[str, Usual]]:
        """BM25 of these turns and their passages, with the mean and deviation of both over all turns."""
        places, _ = turns.find(np.array(list(self._best), np.int64))
        held: list[tuple[Ints, Floats]] = []
        for stem in self._choosing:
            counts = np.array([of_turn.get(stem, 0) for of_turn in self._best.values()], np.float64)
            order = np.argsort(places[counts > 0])
            held.append((places[counts > 0][order], counts[counts > 0][order]))
        rarities = [rarity(self.counts[stem], sample.count) for stem in self._choosing]
        words, passage = word_scores(held, turns, rarities)
        chosen, squared = float(words.sum()), float(np.square(words).sum())
        # Passages that were not read are assumed to be like those that were.
        more = max(1.0, self._squares / squared) if squared else 1.0
        usual = {
            "words": _of_sums(max(self._total, chosen), max(self._squares, squared), sample.count),
            "passage": _of_sums(
                float(passage.sum()) * more, float(np.square(passage).sum()) * more, sample.count
            ),
        }
        return words, passage, usual


class LargeTurnScores(msgspec.Struct, frozen=True):
    """The candidate turns of a large space, ranked as if there were no others."""

    turns: TurnColumns
    meaning: Floats | None
    words: Floats
    passage: Floats
    usual: Mapping[str, Usual]


def judged(
    large: LargeTurns,
    worded: LargeWords,
    query: Vector | None,
    of_facts: Sequence[int],
    audience: Audience | None,
    *,
    wanted: int,
) -> LargeTurnScores:
    """Candidates by similarity, by words, and as sources of similar memories."""
    sample = large.sample
    found = large.search.turns(
        query, limit=max(wanted, _NEAR), also=[*worded.numbers, *of_facts], audience=audience
    )
    columns = TurnColumnsBuilder()
    for head, _ in found:
        columns.add(head)
    turns = TurnColumns(columns, VectorTable(1))
    turns.words_usual, turns.passage_words_usual = sample.words_usual, sample.passage_words_usual
    words, passage, usual = worded.scores(turns, sample)
    if query is None:
        return LargeTurnScores(turns, None, words, passage, usual)
    meaning = np.array([np.nan if nearness is None else nearness for _, nearness in found], np.float64)
    if not len(sample.vectors):
        return LargeTurnScores(turns, meaning, words, passage, usual)
    scores = dots(sample.vectors, query).astype(np.float64)
    mean, deviation = _usual(scores)
    away = -usual["passage"][0] / usual["passage"][1] * SESSION_PASSAGE_SHARE
    best = best_of_session(
        (scores - mean) / deviation + away, sample.sessions, int(sample.sessions.max()) + 1
    )
    return LargeTurnScores(
        turns, meaning, words, passage, {**usual, "meaning": (mean, deviation), "session": _usual(best)}
    )


def _usual(values: Floats) -> Usual:
    deviation = float(values.std())
    return float(values.mean()), deviation if deviation > DEVIATION_MIN else 1.0


def _of_sums(total: float, squares: float, count: int) -> Usual:
    mean = total / max(count, 1)
    deviation = math.sqrt(max(squares / max(count, 1) - mean * mean, 0.0))
    return mean, deviation if deviation > DEVIATION_MIN else 1.0
