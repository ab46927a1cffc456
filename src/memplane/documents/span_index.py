"""The documents of a space as ranking needs them: a cache, brought up to date from the store before every use.

A span is identified by its place: 0, 1, 2, … in ledger order, so the spans of a document are adjacent; a document by
its place among documents. The store's marks show what changed since the last refresh; when spans were removed,
everything is read again.
"""

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from memplane.documents.naming import NameParts
from memplane.extract.relevance import Question
from memplane.models.vectors import Floats, Ints, VectorTable, grown
from memplane.storage.documents import DocumentHead, DocumentMarks, SpanHead
from memplane.storage.numbers import SPANS_PER_DOCUMENT_MAX
from memplane.storage.postings import Postings, places_of
from memplane.storage.store import Reader

_LOAD = 10_000


class SpanColumns:
    """The current columns, one entry per span or document. New entries may be appended; existing ones do not change."""

    def __init__(self, columns: "_Columns", heads: tuple[DocumentHead, ...], vectors: VectorTable) -> None:
        self.count = count = columns.count
        self.vectors = vectors
        """One row per span; there may be spare rows."""
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
        self._names: NameParts | None = None

    def named_in(self, question: str) -> NDArray[np.bool_] | None:
        """By document, whether the query contains a part of its name; None if that selects nothing."""
        if self._names is None:
            self._names = NameParts(head.name for head in self.documents)
        named = self._names.named_in(question)
        if not 0 < len(named) < len(self.documents):
            return None
        return np.isin(np.arange(len(self.documents)), list(named))

    def find(self, numbers: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Where spans with these numbers are, and whether they exist."""
        return places_of(numbers, self.n)


class _Columns:
    """The columns while they grow. Capacity grows geometrically, so appending a span is cheap."""

    def __init__(self) -> None:
        self.count = 0
        self.n: Ints = np.zeros(0, np.int64)
        self.words: Floats = np.zeros(0)

    def add(self, heads: list[SpanHead]) -> None:
        count = self.count + len(heads)
        self.n, self.words = grown(self.n, count), grown(self.words, count)
        self.n[self.count : count] = [head.n for head in heads]
        self.words[self.count : count] = [head.words for head in heads]
        self.count = count


class SpanIndex:
    """The spans of one space. Thread-safe."""

    def __init__(self, model: tuple[str, int]) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._forget_all()

    @property
    def nbytes(self) -> int:
        """Memory used, about."""
        return self._vectors.nbytes + self._postings.nbytes

    @property
    def model(self) -> tuple[str, int]:
        """The embedding model of its vectors, and their dimension."""
        return self._model

    def _forget_all(self) -> None:
        self._marks: DocumentMarks | None = None
        self._columns = _Columns()
        self._spans: SpanColumns | None = None
        self._heads: tuple[DocumentHead, ...] = ()
        self._stamp = 0
        self._postings = Postings()
        self._common: set[str] = set()
        self._vectors = VectorTable(self._model[1])

    def refresh(self, reader: Reader) -> SpanColumns:
        """The spans as this snapshot sees them, or as a later one already did."""
        with self._lock:
            marks = reader.documents.marks()
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
        """The words of the query that occur in more than `beyond` spans. A common word stays common while no span is
        removed, and known counts are reused."""
        with self._lock:
            common = {word for word in question.words if word in self._common}
            asked = [
                word
                for word in question.words
                if word not in common and question.stems[word] not in self._postings
            ]
        if asked:
            common |= reader.words.common_in_spans(asked, beyond=beyond)
            with self._lock:
                self._common |= common
        return common

    def occurrences(
        self, reader: Reader, spans: SpanColumns, stems: Iterable[str]
    ) -> dict[str, tuple[Ints, Floats]]:
        """For each stem, the places of the spans that contain it, and how often."""
        marks = reader.documents.marks()
        state = (marks.generation, marks.last_span)
        found: dict[str, tuple[Ints, Floats]] = {}
        for stem in stems:
            numbers, counts = self._postings.of(stem, state, reader.words.span_occurrences)
            places, there = spans.find(numbers)
            found[stem] = (places[there], counts[there])
        return found

    def _known(self) -> SpanColumns:
        if self._spans is None or self._spans.count != self._columns.count:
            self._spans = SpanColumns(self._columns, self._heads, self._vectors)
        return self._spans

    def _load_spans(self, reader: Reader) -> None:
        columns = self._columns
        after = int(columns.n[columns.count - 1]) if columns.count else 0
        heads = reader.documents.span_heads(after=after, limit=_LOAD)
        if heads:  # documents first, so that no span is ever without its document
            self._heads = tuple(reader.documents.heads())
        while heads:
            columns.add(heads)
            heads = reader.documents.span_heads(after=heads[-1].n, limit=_LOAD)
        self._vectors.extend(columns.count)

    def _load_vectors(self, reader: Reader) -> None:
        model = reader.vectors.model(*self._model)
        if model is None:
            return
        spans = self._known()
        while found := reader.vectors.spans(model, after=self._stamp, limit=_LOAD):
            places, there = spans.find(np.array([row.n for _, row in found], np.int64))
            packed = [
                (int(place), row.vector)
                for (_, row), place, here in zip(found, places, there, strict=True)
                if here and row.vector is not None
            ]
            self._vectors.put(np.array([place for place, _ in packed], np.int64), [row for _, row in packed])
            self._stamp = found[-1][0]


def _is_older(marks: DocumentMarks, than: DocumentMarks) -> bool:
    return (marks.generation, marks.last_span, marks.stamp) < (than.generation, than.last_span, than.stamp)
