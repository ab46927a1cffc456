"""What ranking knows about the documents of a space: a cache, brought up to date from the store before every use.

A span is known by its place: 0, 1, 2, … in the order of the ledger, so the spans of a document stand together; a document
by its place among documents. The store says by its marks what changed since the last look; when spans went, everything
is read anew.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memplane.recall.relevance import Question
from memplane.recall.turn_index import Floats, Ints
from memplane.recall.vectors import VectorTable
from memplane.storage.base import Reader
from memplane.storage.library import SPANS_PER_DOCUMENT_MAX, DocumentHead, LibraryMarks, SpanHead

_LOAD = 10_000
_ROWS_MIN = 256
_POSTINGS_KEPT = 2_000_000
"""So many places where words stand are kept in memory, those of the words asked for last: 32 MB."""


class Spans:
    """The columns as they are now: one entry a span, or a document. More may be added behind; what is here stays."""

    def __init__(self, columns: "_Columns", heads: tuple[DocumentHead, ...], vectors: VectorTable) -> None:
        self.count = count = columns.count
        self.vectors = vectors
        """One row a span, and perhaps more behind."""
        self.n = columns.n[:count]
        self.words = columns.words[:count]
        self.documents = heads
        seqs = np.array([head.seq for head in heads], np.int64)
        self.document = np.searchsorted(seqs, self.n // SPANS_PER_DOCUMENT_MAX).astype(np.int64)
        """The place of its document."""
        self.document_words = np.bincount(self.document, self.words, len(heads)).astype(np.float64)
        self.words_usual = max(float(self.words.mean()) if count else 0.0, 1.0)
        held = self.document_words[self.document_words > 0]
        self.document_words_usual = max(float(held.mean()) if len(held) else 0.0, 1.0)

    def find(self, numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Where spans with these numbers would stand, and whether they do."""
        if not self.count:
            return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
        places = np.minimum(np.searchsorted(self.n, numbers), self.count - 1)
        return places, self.n[places] == numbers


class _Columns:
    """The columns while they grow. Their room grows faster than they do, so that adding a span costs next to nothing."""

    def __init__(self) -> None:
        self.count = 0
        self.n: Ints = np.zeros(0, np.int64)
        self.words: Floats = np.zeros(0)

    def add(self, heads: list[SpanHead]) -> None:
        count = self.count + len(heads)
        if count > len(self.n):
            room = max(_ROWS_MIN, count * 3 // 2)
            self.n, self.words = _grown(self.n, self.count, room), _grown(self.words, self.count, room)
        self.n[self.count : count] = [head.n for head in heads]
        self.words[self.count : count] = [head.words for head in heads]
        self.count = count


class SpanIndex:
    """The spans of one space. Safe to use from many threads."""

    def __init__(self, model: tuple[str, int]) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._marks: LibraryMarks | None = None
        self._forget_all()

    @property
    def model(self) -> tuple[str, int]:
        """The embedding model whose vectors it holds, and their dimension."""
        return self._model

    def _forget_all(self) -> None:
        self._columns = _Columns()
        self._spans: Spans | None = None
        self._heads: tuple[DocumentHead, ...] = ()
        self._stamp = 0
        self._postings: OrderedDict[str, tuple[tuple[int, int], Ints, Floats]] = OrderedDict()
        self._postings_held = 0
        self._common: set[str] = set()
        self._vectors = VectorTable(self._model[1])

    def refresh(self, reader: Reader) -> Spans:
        """The spans as this reader sees them, or as a later one saw them already."""
        with self._lock:
            marks = reader.library_marks()
            before = self._marks
            if before is None or marks.generation > before.generation:
                self._forget_all()
            elif marks == before or _is_older(marks, before):
                return self._known()
            self._load_spans(reader)
            self._load_vectors(reader)
            self._marks = marks
            return self._known()

    def common(self, reader: Reader, question: Question, *, beyond: int) -> set[str]:
        """The words of a question that more than `beyond` spans hold. What was common stays it as long as no span goes,
        and of what is read already the number is known."""
        with self._lock:
            common = {word for word in question.words if word in self._common}
            asked = [
                word
                for word in question.words
                if word not in common and question.stems[word] not in self._postings
            ]
        if asked:
            common |= reader.common_in_spans(asked, beyond=beyond)
            with self._lock:
                self._common |= common
        return common

    def occurrences(
        self, reader: Reader, spans: Spans, stems: Iterable[str]
    ) -> dict[str, tuple[Ints, Floats]]:
        """For each stem, the places of the spans that hold it, and how often each does."""
        marks = reader.library_marks()
        seen = (marks.generation, marks.last_span)
        return {stem: self._occurrences(reader, spans, stem, seen) for stem in stems}

    def _occurrences(
        self, reader: Reader, spans: Spans, stem: str, seen: tuple[int, int]
    ) -> tuple[Ints, Floats]:
        with self._lock:
            known = self._postings.get(stem)
        if known is None or known[0] != seen:
            numbers, counts = np.unique(np.array(reader.span_occurrences(stem), np.int64), return_counts=True)
            known = (seen, numbers, counts.astype(np.float64))
            self._keep(stem, known)
        _, numbers, found = known
        places, there = spans.find(numbers)
        return places[there], found[there]

    def _keep(self, stem: str, found: tuple[tuple[int, int], Ints, Floats]) -> None:
        with self._lock:
            before = self._postings.pop(stem, None)
            self._postings[stem] = found
            self._postings_held += _held(found) - (0 if before is None else _held(before))
            while self._postings_held > _POSTINGS_KEPT and len(self._postings) > 1:
                self._postings_held -= _held(self._postings.popitem(last=False)[1])

    def _known(self) -> Spans:
        if self._spans is None or self._spans.count != self._columns.count:
            self._spans = Spans(self._columns, self._heads, self._vectors)
        return self._spans

    def _load_spans(self, reader: Reader) -> None:
        columns = self._columns
        before = columns.count
        after = int(columns.n[before - 1]) if before else 0
        while heads := reader.span_heads(after=after, limit=_LOAD):
            columns.add(heads)
            after = heads[-1].n
        if columns.count > before:
            self._heads = tuple(reader.document_heads())
            self._vectors.extend(columns.count)

    def _load_vectors(self, reader: Reader) -> None:
        model = reader.model(*self._model)
        if model is None:
            return
        spans = self._known()
        while found := reader.span_vectors(model, after=self._stamp, limit=_LOAD):
            places, there = spans.find(np.array([row.n for _, row in found], np.int64))
            packed = [
                (int(place), row.vector)
                for (_, row), place, here in zip(found, places, there, strict=True)
                if here and row.vector is not None
            ]
            self._vectors.put(np.array([place for place, _ in packed], np.int64), [row for _, row in packed])
            self._stamp = found[-1][0]


def _held(found: tuple[tuple[int, int], Ints, Floats]) -> int:
    """What a word takes; one that is nowhere takes a little, too."""
    return len(found[1]) + 1


def _is_older(marks: LibraryMarks, than: LibraryMarks) -> bool:
    return (marks.generation, marks.last_span, marks.stamp) < (than.generation, than.last_span, than.stamp)


def _grown(values: NDArray[Any], count: int, room: int) -> NDArray[Any]:
    grown = np.zeros(room, values.dtype)
    grown[:count] = values[:count]
    return grown
