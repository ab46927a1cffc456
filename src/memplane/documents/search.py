"""Search documents with one of four strategies: passages of all documents, a named section, one document, or a
collection."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec

from memplane.clock import Instant, to_instant
from memplane.documents.naming import (
    NAMES_CACHED,
    Phrase,
    asks_for_document,
    asks_for_summary,
    best_sections,
    is_title,
    named_in,
    of_the_kind_in,
    phrases_of,
    significant_stems,
    title_parts,
)
from memplane.documents.result import DocumentSummary, SectionSummary, SpanHit, Strategy
from memplane.documents.span_ranking import RankedSpan
from memplane.errors import NotFound
from memplane.extract.relevance import Question, Relevance
from memplane.safety.redact import redact
from memplane.storage.documents import DocumentHead
from memplane.storage.numbers import SPANS_PER_DOCUMENT_MAX, span_number
from memplane.storage.store import Reader
from memplane.storage.words import stems_of
from memplane.types import Document, Section, Span

# Apportionment of a fixed number of places by weight, by largest remainders.


def apportioned(parties: Mapping[str, tuple[float, int]], seats: int) -> dict[str, int]:
    """The number of places per (weight, size); never more than the size."""
    given = dict.fromkeys(parties, 0)
    while seats:
        open_ = [id_ for id_, (weight, size) in parties.items() if given[id_] < size and weight > 0]
        if not open_:
            break
        whole = sum(parties[id_][0] for id_ in open_)
        due = {id_: seats * parties[id_][0] / whole for id_ in open_}
        sure = {id_: min(int(due[id_]), parties[id_][1] - given[id_]) for id_ in open_}
        if not any(sure.values()):
            for id_ in sorted(open_, key=lambda id_: -due[id_])[:seats]:
                given[id_] += 1
                seats -= 1
            continue
        for id_, count in sure.items():
            given[id_] += count
            seats -= count
    return given


_DOCUMENTS_LISTED_MAX = 100_000
_DOCUMENTS_READ_MAX = 64
_SECTIONS_READ_MAX = 5_000
"""Up to this many documents and sections, all titles are checked; beyond, only those that contain words of the query.
"""
_SPANS_RANKED = 1_000
_SUMMARIES_MAX = 200
"""The maximum number of section summaries of a document."""
_SECTIONS_SELECTED_MAX = 3
"""The maximum number of sections matched by the same name."""
_SHARE_MIN = 0.6
"""A passage with this many words of the query is related to it, even in a space too small for word statistics."""
_TITLES_SPARE = 4
"""Extra passages fetched, in case some are only titles."""
_MEMBERS_MAX = 200
_MEMBERS_SELECTED_MAX = 50
_SPANS_PER_PLACE = 4
"""The multiple of returned passages that is ranked for a collection, to measure each document's relevance."""


class Ranking(NamedTuple):
    """The source of ranked passages."""

    best: Callable[[frozenset[int] | None, int], Sequence[RankedSpan]]
    """From these documents, by seq, or from all; at most this many."""
    heads: Callable[[], Sequence[DocumentHead]]
    """All documents."""


class DocumentQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A document query."""

    query: str
    project: str | None = None
    document: str | None = None
    collection: str | None = None
    as_of: Instant | None = None
    spans: int


class DocumentResults(msgspec.Struct, frozen=True, kw_only=True):
    """The document results."""

    strategy: Strategy | None = None
    documents: tuple[DocumentSummary, ...] = ()
    spans: tuple[SpanHit, ...] = ()

    @property
    def degraded(self) -> bool:
        return any(document.degraded for document in self.documents)


def consult(reader: Reader, query: DocumentQuery, ranking: Ranking) -> DocumentResults:
    """Raises `NotFound` for a document or collection that does not exist or belongs to another project."""
    if query.collection is not None:
        return _collection(reader, query, ranking, query.collection)
    if query.document is not None:
        return _document(reader, query, ranking, _requested_sections(reader, query, query.document))
    if not reader.documents.marks().last_span:
        return DocumentResults()
    shelf = _Library(reader, query, ranking)
    sections = _named_sections(reader, query, shelf)
    if sections:
        return _sections(reader, query, sections)
    document = shelf.in_question()
    if document is not None:
        return _document(reader, query, ranking, document)
    ranked = ranking.best(shelf.seqs(), query.spans + _TITLES_SPARE) if query.spans else ()
    held = _WordOverlap(query.query)
    selected = [each for each in ranked if each.relevant or held.share(each) >= _SHARE_MIN]
    return DocumentResults(strategy=Strategy.LOCAL, spans=_hits(reader, selected)[: query.spans])


def _visible(query: DocumentQuery, document: Document) -> bool:
    """Documents without a project are visible in every project; with `as_of`, later uploads are excluded."""
    return (query.project is None or document.project in (None, query.project)) and (
        query.as_of is None or to_instant(document.updated_at) <= query.as_of
    )


class _Library:
    """The visible documents, loaded only if the query needs them."""

    def __init__(self, reader: Reader, query: DocumentQuery, ranking: Ranking) -> None:
        self._reader = reader
        self._ranking = ranking
        self._asked = query
        self._heads: Sequence[DocumentHead] | None = None

    def heads(self) -> Sequence[DocumentHead]:
        if self._heads is None:
            query, heads = self._asked, self._ranking.heads()
            if query.project is not None:
                heads = [head for head in heads if head.project in (None, query.project)]
            if query.as_of is not None:
                then = self._documents_then()
                heads = [head for head in heads if head.seq in then]
            self._heads = heads
        return self._heads

    def seqs(self) -> frozenset[int] | None:
        """None: all of them."""
        if self._asked.project is None and self._asked.as_of is None:
            return None
        return frozenset(head.seq for head in self.heads())

    def in_question(self) -> Document | None:
        """The document the query asks for as a whole: the one it names, or the only possible one."""
        query = self._asked.query
        whole = asks_for_document(query)
        if not whole and not asks_for_summary(query):
            return None
        found = self.named()
        if whole and not found:
            found = self.heads()
        if whole and len(found) > 1:
            found = [found[place] for place in of_the_kind_in(query, [head.name for head in found])]
        return self._reader.documents.get(found[0].id) if len(found) == 1 else None

    def named(self) -> Sequence[DocumentHead]:
        """The documents the query names; none if there are too many to check."""
        heads = self.heads()
        if len(heads) > NAMES_CACHED:
            return []
        return [heads[place] for place in named_in(self._asked.query, [head.name for head in heads])]

    def _documents_then(self) -> frozenset[int]:
        every = self._reader.documents.find(
            project=None, collection=None, limit=_DOCUMENTS_LISTED_MAX, offset=0
        )
        return frozenset(document.seq for document in every if _visible(self._asked, document))


class _WordOverlap:
    """How many significant words of the query a passage contains."""

    def __init__(self, query: str) -> None:
        self._wanted = frozenset(Question(query).stems.values())

    def share(self, ranked: RankedSpan) -> float:
        return len(self._wanted.intersection(stems_of(ranked.span.text))) / max(1, len(self._wanted))


# ── local ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _hits(reader: Reader, ranked: Sequence[RankedSpan]) -> tuple[SpanHit, ...]:
    """With the titles above them. A title without text is returned only if there is nothing else: the citations of
    its subsections contain it."""
    documents = _documents_of(reader, ranked)
    numbers = [span_number(documents[each.span.document].seq, each.span.section) for each in ranked]
    sections = reader.documents.sections_at(list(dict.fromkeys(numbers)))
    hits = tuple(
        SpanHit(
            span=_sanitized_span(each.span),
            document_name=documents[each.span.document].name,
            section=sections[number].path if number in sections else (),
            updated_at=documents[each.span.document].updated_at,
            score=each.score,
            channels=each.contributions,
            ranks=each.ranks,
        )
        for each, number in zip(ranked, numbers, strict=True)
    )
    return tuple(hit for hit in hits if not is_title(hit.span.text, hit.section)) or hits


def _documents_of(reader: Reader, ranked: Sequence[RankedSpan]) -> dict[str, Document]:
    ids = dict.fromkeys(each.span.document for each in ranked)
    return {id_: document for id_ in ids if (document := reader.documents.get(id_)) is not None}


def _sanitized_span(span: Span) -> Span:
    """Redaction rules may have been added since it was stored."""
    text = redact(span.text).text
    return span if text == span.text else msgspec.structs.replace(span, text=text)


def _sanitized_text(text: str | None) -> str | None:
    return None if text is None else redact(text).text


# ── section ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _named_sections(reader: Reader, query: DocumentQuery, shelf: _Library) -> list[tuple[Document, Section]]:
    """The sections the query names, limited to the document it names, if any."""
    phrases = phrases_of(query.query)
    if not phrases:
        return []
    heads = shelf.heads()
    named = shelf.named()
    pools = [named, heads] if named and len(named) < len(heads) else [heads]
    for pool in pools:
        places = _candidate_sections(reader, pool, phrases)
        of = {section.id: document for document, section in places}
        _, best = best_sections(phrases, [section for _, section in places])
        if best:
            newest = sorted(best, key=lambda section: (-of[section.id].seq, section.ordinal))
            return [(of[section.id], section) for section in newest[:_SECTIONS_SELECTED_MAX]]
    return []


def _candidate_sections(
    reader: Reader, heads: Sequence[DocumentHead], phrases: Sequence[Phrase]
) -> list[tuple[Document, Section]]:
    if len(heads) <= _DOCUMENTS_READ_MAX:
        documents = [document for head in heads if (document := reader.documents.get(head.id)) is not None]
        if sum(document.sections for document in documents) <= _SECTIONS_READ_MAX:
            return [
                (document, section)
                for document in documents
                for section in reader.documents.sections(document.id)
            ]
    of = {head.seq: head for head in heads}
    numbers = dict.fromkeys(
        number
        for phrase in phrases
        for number in reader.documents.sections_titled(title_parts(phrase), limit=_SECTIONS_READ_MAX)
        if number // SPANS_PER_DOCUMENT_MAX in of
    )
    found = reader.documents.sections_at(list(numbers)[:_SECTIONS_READ_MAX])
    ids = dict.fromkeys(of[number // SPANS_PER_DOCUMENT_MAX].id for number in found)
    there = {document.seq: document for id_ in ids if (document := reader.documents.get(id_)) is not None}
    return [
        (there[number // SPANS_PER_DOCUMENT_MAX], section)
        for number, section in found.items()
        if number // SPANS_PER_DOCUMENT_MAX in there
    ]


def _sections(
    reader: Reader, query: DocumentQuery, found: Sequence[tuple[Document, Section]]
) -> DocumentResults:
    """Each with its subsections: its summary, and its passages, best first."""
    selected: dict[str, DocumentSummary] = {}
    ranked: list[RankedSpan] = []
    for document, section in found:
        family = _family(reader, document, section)
        selected[document.id] = _summary(document, selected.get(document.id), family)
        ranked += _in_section(reader, query, document, family[0], family[-1])
    ranked.sort(key=lambda each: -each.score)
    return DocumentResults(
        strategy=Strategy.SECTION,
        documents=tuple(selected.values()),
        spans=_hits(reader, ranked[: query.spans + _TITLES_SPARE])[: query.spans],
    )


def _family(reader: Reader, document: Document, section: Section) -> list[Section]:
    """A section with its subsections."""
    numbers = [
        span_number(document.seq, ordinal)
        for ordinal in range(section.ordinal + 1, min(document.sections, section.ordinal + _SPANS_RANKED))
    ]
    after = reader.documents.sections_at(numbers)
    under = takewhile(lambda each: each.level > section.level, (after[n] for n in numbers if n in after))
    return [section, *under] if section.level else [section]


def _in_section(
    reader: Reader, query: DocumentQuery, document: Document, first: Section, last: Section
) -> list[RankedSpan]:
    """The passages of these sections, by relevance; ties in document order."""

    def section_of(ordinal: int) -> int:
        there = reader.documents.spans(document.id, first=ordinal, limit=1)
        return there[0].section if there else document.sections

    ordinals = range(document.spans)
    begin = bisect_left(ordinals, first.ordinal, key=section_of)
    until = bisect_left(ordinals, last.ordinal + 1, lo=begin, key=section_of)
    spans = reader.documents.spans(document.id, first=begin, limit=min(until - begin, _SPANS_RANKED))
    titled = {*significant_stems(" ".join(first.path)), *significant_stems(document.name)}
    beyond = [word for word in Question(query.query).words if not titled.issuperset(significant_stems(word))]
    relevance = Relevance(Question(" ".join(beyond)), {}, len(spans))
    scores = [relevance.score(span.text) if beyond else 0.0 for span in spans]
    order = sorted(range(len(spans)), key=lambda at: -scores[at])
    return [
        RankedSpan(
            span=spans[at],
            score=round(scores[at], 4),
            contributions={"words": round(scores[at], 4)},
            ranks={"words": rank},
            relevant=True,
        )
        for rank, at in enumerate(order, start=1)
    ]


# ── document ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _requested_sections(reader: Reader, query: DocumentQuery, document_id: str) -> Document:
    document = reader.documents.get(document_id)
    if document is None or not _visible(query, document):
        raise NotFound("document", document_id)
    return document


def _document(reader: Reader, query: DocumentQuery, ranking: Ranking, document: Document) -> DocumentResults:
    """The document's summary, every section's summary, and the best passages."""
    ordinals = range(min(document.sections, _SUMMARIES_MAX))
    sections = reader.documents.sections_at([span_number(document.seq, ordinal) for ordinal in ordinals])
    selected = _summary(document, None, list(sections.values()) if len(sections) > 1 else ())
    count = query.spans + _TITLES_SPARE if query.spans else 0
    ranked = ranking.best(frozenset({document.seq}), count) if count else ()
    if not _with_anything_to_say(query, ranked):
        ranked = _beginning(reader, document, count)
    return DocumentResults(
        strategy=Strategy.DOCUMENT, documents=(selected,), spans=_hits(reader, ranked)[: query.spans]
    )


def _summary(
    document: Document, before: DocumentSummary | None = None, sections: Sequence[Section] = ()
) -> DocumentSummary:
    """The document with these sections, after those already returned."""
    return DocumentSummary(
        id=document.id,
        name=document.name,
        distillation=_sanitized_text(document.distillation),
        degraded=document.distillation is None,
        sections=(() if before is None else before.sections)
        + tuple(
            SectionSummary(
                id=section.id, path=section.path, distillation=_sanitized_text(section.distillation)
            )
            for section in sections
        ),
    )


def _with_anything_to_say(query: DocumentQuery, ranked: Sequence[RankedSpan]) -> list[RankedSpan]:
    """A requested document may return weaker matches: a shared word, or similarity."""
    held = _WordOverlap(query.query)
    return [each for each in ranked if each.relevant or held.share(each)] or [
        each for each in ranked if "meaning" in each.contributions
    ]


def _beginning(reader: Reader, document: Document, count: int) -> list[RankedSpan]:
    """If no passage is related to the query, return the beginning of the document."""
    return [
        RankedSpan(span=span, score=0.0, contributions={}, ranks={}, relevant=False)
        for span in reader.documents.spans(document.id, limit=count)
    ]


# ── collection ───────────────────────────────────────────────────────────────────────────────────────────────────


def _collection(
    reader: Reader, query: DocumentQuery, ranking: Ranking, collection_id: str
) -> DocumentResults:
    """The summary of every document, in the collection's order, and passages: more from more relevant documents."""
    collection = reader.documents.collection(collection_id)
    if collection is None or (query.project is not None and collection.project not in (None, query.project)):
        raise NotFound("collection", collection_id)
    members = [
        document
        for document in reader.documents.find(
            project=None, collection=collection_id, limit=_MEMBERS_MAX, offset=0
        )
        if _visible(query, document)
    ]
    ranked = (
        ranking.best(frozenset(document.seq for document in members), query.spans * _SPANS_PER_PLACE)
        if query.spans and members
        else ()
    )
    ranked = _with_anything_to_say(query, ranked)
    by_document: dict[str, list[RankedSpan]] = defaultdict(list)
    weights: dict[str, float] = defaultdict(float)
    for place, each in enumerate(ranked):
        by_document[each.span.document].append(each)
        weights[each.span.document] += 1 / (1 + place)
    shares = apportioned({id_: (weights[id_], len(by_document[id_])) for id_ in by_document}, query.spans)
    ids = [document.id for document in members if document.id in shares]
    if not collection.ordered:
        ids.sort(key=lambda id_: -weights[id_])
    chosen = [each for id_ in ids for each in by_document[id_][: shares[id_]]]
    return DocumentResults(
        strategy=Strategy.COLLECTION,
        documents=tuple(_summary(document) for document in _most_relevant(members, weights)),
        spans=_hits(reader, chosen),
    )


def _most_relevant(members: Sequence[Document], weights: Mapping[str, float]) -> list[Document]:
    """In order; of a large collection, only the relevant documents."""
    best = sorted(range(len(members)), key=lambda at: (-weights.get(members[at].id, 0.0), at))
    return [members[at] for at in sorted(best[:_MEMBERS_SELECTED_MAX])]
