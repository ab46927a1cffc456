"""The turns of a space as ranking needs them: a cache, brought up to date from the store before every use.

A turn is identified by its place: 0, 1, 2, … in ledger order. The store's marks show what changed since the last
refresh; after a forget, everything is read again.
"""

import threading
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from memplane.models.vectors import Floats, Ints, VectorTable
from memplane.recall.turn_embedding import ROLES
from memplane.storage.filter import Audience
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.postings import Postings, places_of
from memplane.storage.recall_reads import IndexChanges, IndexPosition
from memplane.storage.state import Marks
from memplane.storage.store import Reader
from memplane.storage.turns import TurnHead
from memplane.storage.vectors import TurnVector
from memplane.storage.words import is_prefix, stems_of
from memplane.types import PAUSE, Role

WINDOW_TURNS = 2
"""A passage is a turn with at most this many turns before and after it …"""
WINDOW_WORDS = 120
"""… as long as they have no more words than this on either side: short turns need context, long ones do not."""

_NO_SPEAKER = -1
_ROWS_MIN = 256
_PAUSE = int(PAUSE.total_seconds()) * 1_000_000
_LOAD = 10_000
_TAIL_MAX = 4_096


class TurnColumns:
    """The current columns, one entry per turn. New entries may be appended; existing ones do not change."""

    def __init__(self, columns: "TurnColumnsBuilder", vectors: VectorTable) -> None:
        self.count = count = columns.count
        self.vectors = vectors
        """One row per turn; there may be spare rows."""
        self.n = columns.n[:count]
        self.session = columns.session[:count]
        """The session of its conversation."""
        self.speaker = columns.speaker[:count]
        """The index of its speaker in `speakers`, or -1."""
        self.user = columns.user[:count]
        self.system = columns.system[:count]
        self.asks = columns.asks[:count]
        """1 for a turn that ends with a question, else 0."""
        self.within = columns.within[:count]
        """The scope it is limited to: 0 for none, else its index in `places`."""
        self.places = dict(columns.places)
        self.at = columns.at[:count]
        self.words = columns.words[:count]
        self.before = columns.before[:count]
        self.after = columns.after[:count]
        """The place of the previous and next turn in its session, or -1."""
        self.window_before = columns.window_before[:count]
        self.window_after = columns.window_after[:count]
        """How many turns before and after it belong to its passage."""
        self.passage_words = columns.passage_words[:count]
        self.sessions = columns.sessions
        self.speakers = tuple(columns.speakers)
        self.words_usual = max(columns.words_total / max(count, 1), 1.0)
        self.passage_words_usual = max(float(self.passage_words.mean()) if count else 0.0, 1.0)

    def visible_to(self, audience: Audience | None) -> NDArray[np.bool_] | None:
        """Which turns are in scope; None if all are."""
        if audience is None or not self.places:
            return None
        here = [self.places[place] for place in audience.places if place in self.places]
        return np.isin(self.within, [0, *here])

    def find(self, numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Where turns with these numbers are, and whether they exist."""
        return places_of(numbers, self.n)


class TurnColumnsBuilder:
    """The columns while they grow. Capacity grows geometrically, so appending a turn is cheap."""

    _TYPES: ClassVar[dict[str, type]] = {
        "n": np.int64,
        "session": np.int64,
        "speaker": np.int64,
        "user": np.bool_,
        "system": np.bool_,
        "asks": np.float64,
        "within": np.int64,
        "at": np.int64,
        "words": np.float64,
        "before": np.int64,
        "after": np.int64,
        "window_before": np.int64,
        "window_after": np.int64,
        "passage_words": np.float64,
    }
    n: Ints
    session: Ints
    speaker: Ints
    user: NDArray[np.bool_]
    system: NDArray[np.bool_]
    asks: Floats
    within: Ints
    at: Ints
    words: Floats
    before: Ints
    after: Ints
    window_before: Ints
    window_after: Ints
    passage_words: Floats

    def __init__(self) -> None:
        self.count = 0
        self.sessions = 0
        self.words_total = 0.0
        self.speakers: dict[str, int] = {}
        self.places: dict[str, int] = {}
        self._last: dict[str | None, int] = {}
        for name, kind in self._TYPES.items():
            setattr(self, name, np.zeros(0, kind))

    @property
    def nbytes(self) -> int:
        """Memory used, about: eight bytes a column."""
        return 8 * len(self._TYPES) * len(self.n)

    def add(self, head: TurnHead) -> None:
        place = self.count
        if place == len(self.n):
            for name, kind in self._TYPES.items():
                grown: NDArray[Any] = np.zeros(max(_ROWS_MIN, place * 3 // 2), kind)
                grown[:place] = getattr(self, name)
                setattr(self, name, grown)
        self.n[place] = head.n
        self.at[place] = head.at
        self.words[place] = head.words
        self.words_total += head.words
        self.asks[place] = head.asks
        self.user[place] = head.role == Role.USER
        self.system[place] = head.role == Role.SYSTEM
        self.speaker[place] = self._speaker(head.speaker)
        if head.within is not None:
            self.within[place] = self.places.setdefault(head.within, len(self.places) + 1)
        self._join(place, head)
        self.count = place + 1

    def correct(self, counted: Iterable[tuple[int, int, bool]]) -> bool:
        """Set (place, words, asks) as counted by the worker, replacing the estimate; return whether anything changed."""
        changed: set[int] = set()
        for place, words, asks in counted:
            if self.words[place] != words or self.asks[place] != asks:
                self.words_total += words - float(self.words[place])
                self.words[place], self.asks[place] = words, asks
                changed.update(
                    (place, *self._following(self.before, place), *self._following(self.after, place))
                )
        for place in changed:
            self._measure(place)
        return bool(changed)

    def _following(self, links: Ints, place: int) -> Iterator[int]:
        """The turns on one side that a passage may include, nearest first."""
        for _ in range(WINDOW_TURNS):
            place = int(links[place])
            if place == _NO_SPEAKER:
                return
            yield place

    def _measure(self, place: int) -> None:
        """Its passage, from the words around it."""
        whole = float(self.words[place])
        for links, window in ((self.before, self.window_before), (self.after, self.window_after)):
            reach, side = 0, 0.0
            for other in self._following(links, place):
                side += float(self.words[other])
                if side > WINDOW_WORDS:
                    break
                reach += 1
                whole += float(self.words[other])
            window[place] = reach
        self.passage_words[place] = whole

    def _speaker(self, name: str | None) -> int:
        if name is None or name in ROLES:
            return _NO_SPEAKER
        return self.speakers.setdefault(name, len(self.speakers))

    def _join(self, place: int, head: TurnHead) -> None:
        """Continue its session, or begin a new one."""
        last = self._last.get(head.conversation, _NO_SPEAKER)
        self._last[head.conversation] = place
        self.after[place] = _NO_SPEAKER
        self.passage_words[place] = head.words
        if last == _NO_SPEAKER or abs(head.at - int(self.at[last])) >= _PAUSE:
            self.before[place] = _NO_SPEAKER
            self.session[place] = self.sessions
            self.sessions += 1
            return
        self.before[place] = last
        self.after[last] = place
        self.session[place] = self.session[last]
        at, between, behind = last, 0.0, 0.0
        for reach in range(1, WINDOW_TURNS + 1):
            behind += self.words[at]
            if behind <= WINDOW_WORDS:
                self.window_before[place] = reach
                self.passage_words[place] += self.words[at]
            if between + head.words <= WINDOW_WORDS and self.window_after[at] == reach - 1:
                self.window_after[at] = reach
                self.passage_words[at] += head.words
            between += self.words[at]
            at = int(self.before[at])
            if at == _NO_SPEAKER:
                break


EMPTY = TurnColumns(TurnColumnsBuilder(), VectorTable(1))


class TurnIndex:
    """The turns of one space. Thread-safe."""

    def __init__(self, model: tuple[str, int]) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._forget_all()

    def _forget_all(self) -> None:
        self._marks: Marks | None = None
        self._tailed: Marks | None = None
        """What `waiting` read, if nothing else is loaded."""
        self._columns = TurnColumnsBuilder()
        self._turns: TurnColumns | None = None
        self._stamp = 0
        self._tail: dict[int, Counter[str]] = {}
        self._postings = Postings()
        self._vectors = VectorTable(self._model[1])
        self.names: list[str] = []
        """What an operator decided about names of speakers, as stored."""
        self.known_names: Mapping[str, str | None] = {}
        """The names the last query used."""
        self.learned: dict[Hashable, str | None] = {}
        """Names learned from turns, for `name_index`; a forget drops them."""

    @property
    def nbytes(self) -> int:
        """Memory used, about."""
        return self._vectors.nbytes + self._postings.nbytes + self._columns.nbytes

    def refresh(self, reader: Reader, changes: IndexChanges | None = None) -> TurnColumns:
        """The turns as this snapshot sees them, or as a later one already did."""
        with self._lock:
            marks = reader.state.marks()
            if marks.was_reset_since(self._marks):
                self._forget_all()
            elif not marks.continues(self._marks):
                return self._known()
            self._load_turns(reader, marks, changes)
            self._load_vectors(reader, changes)
            self._load_tail(reader, marks, changes)
            self.names = reader.recall.names() if changes is None else changes.names
            self._marks = marks
            return self._known()

    @property
    def speakers(self) -> tuple[str, ...]:
        """The last known turns."""
        turns = self._turns
        return () if turns is None else turns.speakers

    def changes(self, reader: Reader, *, memory_stamp: int) -> IndexChanges | None:
        """What is new for this cache and for that of memories, in one round trip; None if nothing is new for this one, or
        if it must be read from the beginning."""
        with self._lock:
            marks = reader.state.marks()
            if not marks.continues(self._marks):
                return None
            since = IndexPosition(
                last_turn=self._last_turn(),
                turn_stamp=self._stamp,
                memory_stamp=memory_stamp,
                last_unindexed=self._last_unindexed(marks),
            )
        return reader.recall.changes(
            since,
            model=reader.vectors.model(*self._model),
            until=_last(marks),
            limit=_LOAD,
            unindexed_max=_TAIL_MAX,
        )

    def unindexed(self, reader: Reader) -> Mapping[int, Counter[str]]:
        """The stems of the few turns the word index does not contain yet, for a space of which nothing else is
        loaded."""
        with self._lock:
            marks = reader.state.marks()
            if self._marks is not None or marks.was_reset_since(self._tailed):
                self._forget_all()
            if marks.continues(self._tailed):
                self._load_tail(reader, marks)
                self._tailed = marks
            return {n: held for n, held in self._tail.items() if n > marks.indexed}

    def occurrences(
        self, reader: Reader, turns: TurnColumns, stems: Iterable[str]
    ) -> dict[str, tuple[Ints, Floats]]:
        """For each stem, the places of the turns that contain it, and how often."""
        indexed = reader.state.marks().indexed
        with self._lock:
            tail = {n: held for n, held in self._tail.items() if n > indexed}
        asked = list(stems)
        read = reader.words.occurrences_of(self._postings.unknown(asked, indexed))
        return {stem: self._occurrences(reader, turns, stem, indexed, tail, read) for stem in asked}

    def _occurrences(
        self,
        reader: Reader,
        turns: TurnColumns,
        stem: str,
        indexed: int,
        tail: Mapping[int, Counter[str]],
        read: Mapping[str, list[int]],
    ) -> tuple[Ints, Floats]:
        numbers, found = self._postings.of(
            stem, indexed, lambda asked: read[asked] if asked in read else reader.words.occurrences(asked)
        )
        waiting = _holding(tail, stem)
        if waiting:
            numbers = np.concatenate([numbers, np.array([n for n, _ in waiting], np.int64)])
            found = np.concatenate([found, np.array([count for _, count in waiting], np.float64)])
        places, there = turns.find(numbers)
        return places[there], found[there]

    def _known(self) -> TurnColumns:
        if self._turns is None or self._turns.count != self._columns.count:
            self._turns = TurnColumns(self._columns, self._vectors)
        return self._turns

    def _load_turns(self, reader: Reader, marks: Marks, changes: IndexChanges | None) -> None:
        more = True
        while more:
            heads = self._heads(reader, marks, changes)
            for head in heads:
                self._columns.add(head)
            more = len(heads) == _LOAD
        self._vectors.extend(self._columns.count)

    def _heads(self, reader: Reader, marks: Marks, changes: IndexChanges | None) -> list[TurnHead]:
        after = self._last_turn()
        if changes is not None and changes.since.last_turn == after:
            return changes.turns
        return reader.turns.heads(after=after, until=_last(marks), limit=_LOAD)

    def _last_turn(self) -> int:
        count = self._columns.count
        return int(self._columns.n[count - 1]) if count else 0

    def _load_vectors(self, reader: Reader, changes: IndexChanges | None) -> None:
        turns = self._known()
        more = True
        while more:
            found = self._stamped(reader, changes)
            if not found:
                return
            places, there = turns.find(np.array([row.n for _, row in found], np.int64))
            rows = [
                (int(place), row) for (_, row), place, here in zip(found, places, there, strict=True) if here
            ]
            if self._columns.correct([(place, row.words, row.asks) for place, row in rows]):
                self._turns = None
            packed = [(place, row.vector) for place, row in rows if row.vector is not None]
            self._vectors.put(np.array([place for place, _ in packed], np.int64), [row for _, row in packed])
            self._stamp = found[-1][0]
            more = len(found) == _LOAD

    def _stamped(self, reader: Reader, changes: IndexChanges | None) -> list[tuple[int, TurnVector]]:
        if changes is not None and changes.since.turn_stamp == self._stamp:
            return changes.turn_vectors
        model = reader.vectors.model(*self._model)
        return [] if model is None else reader.vectors.turns(model, after=self._stamp, limit=_LOAD)

    def _load_tail(self, reader: Reader, marks: Marks, changes: IndexChanges | None = None) -> None:
        """Read the turns the word index does not contain yet, each once."""
        for n in [n for n in self._tail if n <= marks.indexed]:
            del self._tail[n]
        for n, text in self._unindexed(reader, marks, changes):
            self._tail[n] = Counter(stems_of(text))

    def _unindexed(self, reader: Reader, marks: Marks, changes: IndexChanges | None) -> list[tuple[int, str]]:
        after = self._last_unindexed(marks)
        if changes is not None and changes.since.last_unindexed == after:
            return changes.unindexed
        return reader.words.not_indexed(after=after, until=_last(marks), limit=_TAIL_MAX)

    def _last_unindexed(self, marks: Marks) -> int:
        return max((n for n in self._tail if n > marks.indexed), default=0)


def _last(marks: Marks) -> int:
    """The highest possible turn number."""
    return turn_number(marks.cursor, TURNS_PER_ENTRY_MAX - 1)


def _holding(tail: Mapping[int, Counter[str]], stem: str) -> list[tuple[int, int]]:
    """(n, count) for those of these turns that contain the stem."""
    if not is_prefix(stem):
        return [(n, held[stem]) for n, held in tail.items() if stem in held]
    counts = {
        n: sum(count for other, count in held.items() if other.startswith(stem)) for n, held in tail.items()
    }
    return [(n, count) for n, count in counts.items() if count]
