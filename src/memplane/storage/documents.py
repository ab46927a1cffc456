"""Documents: sections, spans, distillations, and collections of documents."""

from collections.abc import Sequence

import msgspec

from memplane.clock import Instant, to_datetime, to_instant
from memplane.storage import conditions, rows
from memplane.storage.numbers import SPANS_PER_DOCUMENT_MAX, span_number
from memplane.storage.session import SessionReader, WriteSession
from memplane.types import Collection, CollectionMember, Document, Section, Span

_CHARS_PER_WORD = 6


class SpanHead(msgspec.Struct, frozen=True, gc=False):
    """What ranking needs to know about a span, without its text."""

    n: int
    section: int
    words: int


class DocumentHead(msgspec.Struct, frozen=True, gc=False):
    """What ranking needs to know about a document."""

    seq: int
    id: str
    name: str
    project: str | None


class PreparedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that is parsed and split, ready to be stored. Where it came from is in its ledger entry."""

    text: str
    sections: tuple[Section, ...]
    spans: tuple[Span, ...]
    leads: tuple[str, ...]
    """By section, the titles above it: its spans are found by them, too."""


class DocumentMarks(msgspec.Struct, frozen=True):
    """How far a space's documents are; a cache compares it with what it saw."""

    generation: int
    """Grows whenever spans are removed."""
    last_span: int
    stamp: int
    """The last vector of a span."""


class DocumentsReader(SessionReader):
    """Reads of documents."""

    def marks(self) -> DocumentMarks:
        """How far the documents are; cheap at any size."""
        return DocumentMarks(*self._session.one("library_marks"))

    def get(self, document_id: str) -> Document | None:
        """The current document with this id; None if there is none."""
        row = self._session.one("document", id=document_id)
        return None if row is None else rows.document_from(row)

    def find(self, *, project: str | None, collection: str | None, limit: int, offset: int) -> list[Document]:
        """Documents of a project or a collection, or all: newest first, those of a collection in its order."""
        where = conditions.of_documents(project)
        if collection is None:
            found = self._session.filtered("documents", where, limit=limit, offset=offset)
        else:
            found = self._session.filtered(
                "documents_of", where, collection=collection, limit=limit, offset=offset
            )
        return [rows.document_from(row) for row in found]

    def count(self, *, project: str | None, collection: str | None) -> int:
        """How many documents `find` returns without a limit."""
        where = conditions.of_documents(project)
        if collection is None:
            ((count,),) = self._session.filtered("document_count", where)
        else:
            ((count,),) = self._session.filtered("document_count_of", where, collection=collection)
        return int(count)

    def heads(self) -> list[DocumentHead]:
        """Every document, in the ledger's order."""
        return [DocumentHead(*row) for row in self._session.all("document_heads")]

    def sections(self, document_id: str) -> list[Section]:
        """In order."""
        return [rows.section_from(row) for row in self._session.all("sections", id=document_id)]

    def sections_titled(self, parts: Sequence[str], *, limit: int) -> list[int]:
        """The numbers of sections whose titles contain all of these parts, ignoring the case of Latin letters;
        newest first."""
        return [n for (n,) in self._session.all("sections_titled", parts=list(parts), limit=limit)]

    def sections_at(self, numbers: Sequence[int]) -> dict[int, Section]:
        """The sections with these numbers that exist."""
        found = self._session.all("sections_at", numbers=list(numbers))
        return {row[1]: rows.section_from(row) for row in found}

    def spans(self, document_id: str, *, first: int = 0, limit: int = SPANS_PER_DOCUMENT_MAX) -> list[Span]:
        """The spans of a document in order, from the ordinal `first` on."""
        return [
            rows.span_from(row)
            for row in self._session.all("spans", id=document_id, first=first, limit=limit)
        ]

    def spans_at(self, numbers: Sequence[int]) -> list[Span]:
        """The spans with these numbers that exist, in order."""
        return [rows.span_from(row) for row in self._session.all("spans_at", numbers=list(numbers))]

    def span_heads(self, *, after: int, limit: int) -> list[SpanHead]:
        """Spans with n > after, in order."""
        return [SpanHead(*row) for row in self._session.all("span_heads", after=after, limit=limit)]

    def span_count(self) -> int:
        """The number of spans."""
        return int(self._session.one("span_count")[0])

    def undistilled(self, *, limit: int) -> list[Document]:
        """Documents that wait for their distillation, in the ledger's order."""
        return [rows.document_from(row) for row in self._session.all("undistilled", limit=limit)]

    def undistilled_count(self) -> int:
        """How many of them there are."""
        return int(self._session.one("undistilled_count")[0])

    def collection(self, collection_id: str) -> Collection | None:
        """The collection with this id; None if there is none."""
        row = self._session.one("collection", id=collection_id)
        return None if row is None else rows.collection_from(row)

    def collections(self, *, project: str | None, limit: int, offset: int) -> list[Collection]:
        """The newest first."""
        found = self._session.all("collections", project=project, limit=limit, offset=offset)
        return [rows.collection_from(row) for row in found]

    def members(self, collection_id: str) -> list[CollectionMember]:
        """The documents of a collection: by position if it is ordered, then in the order they were added."""
        return [
            CollectionMember(document=document, name=name, position=position, added_at=to_datetime(at))
            for document, name, position, at in self._session.all("members", id=collection_id)
        ]

    def brought_by_others(self, seqs: Sequence[int]) -> bool:
        """Whether another entry brought the same document, collection or membership as one of these."""
        return bool(self._session.one("shelved_beside", seqs=list(seqs))[0])

    def membership(self, collection_id: str, document_id: str) -> str | None:
        """The id of the entry that added the document to the collection."""
        row = self._session.one("membership", collection=collection_id, document=document_id)
        return None if row is None else str(row[0])

    def failed_count(self) -> int:
        """How many documents could not be distilled."""
        return int(self._session.one("failed_document_count")[0])


class DocumentsWriter(DocumentsReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def add(self, document: Document, prepared: PreparedDocument) -> None:
        """Store a document, searchable at once. It replaces the previous document with its id."""
        before = self._session.one("document_seq", id=document.id)
        if before is not None:
            _drop(self._session, before[0])
        seq = document.seq
        self._session.many("add_document", [rows.document_row(document)])
        self._session.many("add_section", [rows.section_row(seq, section) for section in prepared.sections])
        leads = [prepared.leads[span.section] for span in prepared.spans]
        numbers = [span_number(seq, span.ordinal) for span in prepared.spans]
        found_by = [lead + span.text for lead, span in zip(leads, prepared.spans, strict=True)]
        self._session.many(
            "add_span",
            [
                (
                    number,
                    span.section,
                    span.start,
                    span.end,
                    span.place,
                    len(whole) // _CHARS_PER_WORD + 1,
                    lead,
                    span.text,
                )
                for number, span, lead, whole in zip(numbers, prepared.spans, leads, found_by, strict=True)
            ],
        )
        self._session.words.add("span", list(zip(numbers, found_by, strict=True)))

    def remove(self, entry_id: str) -> None:
        """Remove what this entry brought: a document, a collection with its memberships, or a membership. A
        document's memberships stay, for the upload that replaces it."""
        for _, seq in self._session.all("known", ids=[entry_id]):
            _drop(self._session, seq)

    def note_upload(
        self, seq: int, *, document: str | None, collection: str | None, project: str | None, at: Instant
    ) -> None:
        """Record what an entry is about, so that a forget finds it after its document is gone."""
        self._session.many("note_upload", [(seq, document, collection, project, at)])

    def set_distillation(
        self, document_id: str, *, seq: int, whole: str, sections: Sequence[str | None]
    ) -> bool:
        """Store the distillations of a document and mark it as ready, if `seq` is still its entry; returns
        whether it is."""
        if not self._session.run("set_distillation", whole, document_id, seq):
            return False
        self._session.many(
            "set_section_distillation",
            [(text, span_number(seq, ordinal)) for ordinal, text in enumerate(sections)],
        )
        return True

    def reset_distillation(self, seq: int) -> None:
        """Remove the distillations of the upload at this place, so that they are made again."""
        self._session.many("distil_again", [(seq,)])

    def fail(self, document_id: str, *, seq: int, error: str) -> None:
        """Mark a document as failed: its distillations could not be made."""
        self._session.many("fail_document", [(error, document_id, seq)])

    def add_collection(self, collection: Collection, *, seq: int) -> None:
        """Add a collection. Its id must be new."""
        self._session.many(
            "add_collection",
            [
                (
                    seq,
                    collection.id,
                    collection.name,
                    collection.project,
                    int(collection.ordered),
                    to_instant(collection.created_at),
                )
            ],
        )

    def add_member(
        self, collection_id: str, document_id: str, *, position: int | None, seq: int, at: Instant
    ) -> None:
        """Add a document to a collection, or move it to another position; does nothing if there is no such
        collection. The document is given by its id and need not exist."""
        self._session.many("add_member", [(collection_id, document_id, seq, position, at)])


def erase_documents(session: WriteSession, seqs: Sequence[int]) -> None:
    """Remove the documents and collections of these entries, and the record that the entries brought them."""
    for row in session.all("shelf_entries", seqs=list(seqs)):
        _drop(session, row[0])
        session.many("drop_shelf_entry", [row])


def _drop(session: WriteSession, seq: int) -> None:
    """Remove what an entry brought. The record of what the entry is about stays, for a forget."""
    first, beyond = span_number(seq, 0), span_number(seq + 1, 0)
    texts = session.all("span_texts", first=first, beyond=beyond)
    session.words.drop("span", [(n, lead + text) for n, lead, text in texts])
    for query in ("drop_spans", "drop_span_vectors", "drop_sections"):
        session.many(query, [(first, beyond)])
    for query in ("drop_document", "drop_members", "drop_collection", "drop_member"):
        session.many(query, [(seq,)])
    if texts:
        session.run("grow_library")
