"""`LibraryReader` and `LibraryWriter` in SQL: documents and collections."""

from collections.abc import Sequence

from memplane.clock import Instant, to_datetime, to_instant
from memplane.storage.library import (
    SPANS_PER_DOCUMENT_MAX,
    DocumentHead,
    LibraryMarks,
    PreparedDocument,
    SpanHead,
    SpanVector,
    span_number,
)
from memplane.storage.sql import conditions, rows
from memplane.storage.sql.session import SqlSession
from memplane.types import Collection, CollectionMember, Document, Section, Span

_CHARS_PER_WORD = 6


class SqlLibraryReader(SqlSession):
    """See `LibraryReader`."""

    def library_marks(self) -> LibraryMarks:
        return LibraryMarks(*self._one("library_marks"))

    def document(self, document_id: str) -> Document | None:
        row = self._one("document", id=document_id)
        return None if row is None else rows.document_from(row)

    def documents(
        self, *, project: str | None, collection: str | None, limit: int, offset: int
    ) -> list[Document]:
        where = conditions.of_documents(project)
        if collection is None:
            found = self._filtered("documents", where, limit=limit, offset=offset)
        else:
            found = self._filtered("documents_of", where, collection=collection, limit=limit, offset=offset)
        return [rows.document_from(row) for row in found]

    def document_count(self, *, project: str | None, collection: str | None) -> int:
        where = conditions.of_documents(project)
        if collection is None:
            ((count,),) = self._filtered("document_count", where)
        else:
            ((count,),) = self._filtered("document_count_of", where, collection=collection)
        return int(count)

    def document_heads(self) -> list[DocumentHead]:
        return [DocumentHead(*row) for row in self._all("document_heads")]

    def sections(self, document_id: str) -> list[Section]:
        return [rows.section_from(row) for row in self._all("sections", id=document_id)]

    def sections_titled(self, parts: Sequence[str], *, limit: int) -> list[int]:
        return [n for (n,) in self._all("sections_titled", parts=self._list(parts), limit=limit)]

    def sections_at(self, numbers: Sequence[int]) -> dict[int, Section]:
        found = self._all("sections_at", numbers=self._list(numbers))
        return {row[1]: rows.section_from(row) for row in found}

    def spans(self, document_id: str, *, first: int = 0, limit: int = SPANS_PER_DOCUMENT_MAX) -> list[Span]:
        return [rows.span_from(row) for row in self._all("spans", id=document_id, first=first, limit=limit)]

    def spans_at(self, numbers: Sequence[int]) -> list[Span]:
        return [rows.span_from(row) for row in self._all("spans_at", numbers=self._list(numbers))]

    def span_heads(self, *, after: int, limit: int) -> list[SpanHead]:
        return [SpanHead(*row) for row in self._all("span_heads", after=after, limit=limit)]

    def span_vectors(self, model: int, *, after: int, limit: int) -> list[tuple[int, SpanVector]]:
        found = self._all("span_vectors", model=model, after=after, limit=limit)
        return [(stamp, SpanVector(n, digest, vector)) for stamp, n, digest, vector in found]

    def span_vectors_at(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        return dict(self._all("span_vectors_at", model=model, numbers=self._list(numbers)))

    def spans_waiting(self, *, limit: int) -> list[tuple[int, str]]:
        return [(n, text) for n, text in self._all("spans_waiting", limit=limit)]

    def spans_waiting_count(self) -> int:
        return int(self._one("spans_waiting_count")[0])

    def span_count(self) -> int:
        return int(self._one("span_count")[0])

    def span_digests(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        return dict(self._all("span_digests", model=model, numbers=self._list(numbers)))

    def span_occurrences(self, stem: str) -> list[int]:
        return self._words.holding("span", stem)

    def common_in_spans(self, words: Sequence[str], *, beyond: int) -> set[str]:
        return self._words.common("span", words, beyond)

    def undistilled(self, *, limit: int) -> list[Document]:
        return [rows.document_from(row) for row in self._all("undistilled", limit=limit)]

    def undistilled_count(self) -> int:
        return int(self._one("undistilled_count")[0])

    def collection(self, collection_id: str) -> Collection | None:
        row = self._one("collection", id=collection_id)
        return None if row is None else rows.collection_from(row)

    def collections(self, *, project: str | None, limit: int, offset: int) -> list[Collection]:
        found = self._all("collections", project=project, limit=limit, offset=offset)
        return [rows.collection_from(row) for row in found]

    def members(self, collection_id: str) -> list[CollectionMember]:
        return [
            CollectionMember(document=document, name=name, position=position, added_at=to_datetime(at))
            for document, name, position, at in self._all("members", id=collection_id)
        ]

    def shelved_beside(self, seqs: Sequence[int]) -> bool:
        return bool(self._one("shelved_beside", seqs=self._list(seqs))[0])

    def membership(self, collection_id: str, document_id: str) -> str | None:
        row = self._one("membership", collection=collection_id, document=document_id)
        return None if row is None else str(row[0])


class SqlLibraryWriter(SqlLibraryReader):
    """See `LibraryWriter`."""

    def shelve(self, document: Document, shelved: PreparedDocument) -> None:
        self._ready()
        before = self._one("document_seq", id=document.id)
        if before is not None:
            self._drop_library(before[0])
        seq = document.seq
        self._many("add_document", [rows.document_row(document)])
        self._many("add_section", [rows.section_row(seq, section) for section in shelved.sections])
        leads = [shelved.leads[span.section] for span in shelved.spans]
        numbers = [span_number(seq, span.ordinal) for span in shelved.spans]
        found_by = [lead + span.text for lead, span in zip(leads, shelved.spans, strict=True)]
        self._many(
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
                for number, span, lead, whole in zip(numbers, shelved.spans, leads, found_by, strict=True)
            ],
        )
        self._words.add("span", list(zip(numbers, found_by, strict=True)))

    def unshelve(self, entry_id: str) -> None:
        self._ready()
        for _, seq in self._all("known", ids=self._list([entry_id])):
            self._drop_library(seq)

    def note_upload(
        self, seq: int, *, document: str | None, collection: str | None, project: str | None, at: Instant
    ) -> None:
        self._ready()
        self._many("note_upload", [(seq, document, collection, project, at)])

    def add_span_vectors(self, model: int, vectors: Sequence[SpanVector]) -> None:
        self._ready()
        self._many("drop_span_vector", [(vector.n,) for vector in vectors])
        self._many("add_span_vector", [(vector.n, model, vector.digest, vector.vector) for vector in vectors])
        self._many("set_span_embedded", [(model, vector.n) for vector in vectors])

    def keep_span_vectors(self, model: int, numbers: Sequence[int]) -> None:
        self._ready()
        self._many("stamp_span_vector", [(n,) for n in numbers])
        self._many("set_span_embedded", [(model, n) for n in numbers])

    def distil(self, document_id: str, *, seq: int, whole: str, sections: Sequence[str | None]) -> bool:
        self._ready()
        if not self._run("set_distillation", whole, document_id, seq):
            return False
        self._many(
            "set_section_distillation",
            [(text, span_number(seq, ordinal)) for ordinal, text in enumerate(sections)],
        )
        return True

    def distil_again(self, seq: int) -> None:
        self._ready()
        self._many("distil_again", [(seq,)])

    def fail_document(self, document_id: str, *, seq: int, error: str) -> None:
        self._ready()
        self._many("fail_document", [(error, document_id, seq)])

    def add_collection(self, collection: Collection, *, seq: int) -> None:
        self._ready()
        self._many(
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
        self._ready()
        self._many("add_member", [(collection_id, document_id, seq, position, at)])

    def _erase_library(self, seqs: Sequence[int]) -> None:
        """What these entries brought, and that they did."""
        for row in self._all("shelf_entries", seqs=self._list(seqs)):
            self._drop_library(row[0])
            self._many("drop_shelf_entry", [row])

    def _drop_library(self, seq: int) -> None:
        """Whatever of it an entry brought; what it is about stays on record for a forget."""
        first, beyond = span_number(seq, 0), span_number(seq + 1, 0)
        texts = self._all("span_texts", first=first, beyond=beyond)
        self._words.drop("span", [(n, lead + text) for n, lead, text in texts])
        for query in ("drop_spans", "drop_span_vectors", "drop_sections"):
            self._many(query, [(first, beyond)])
        for query in ("drop_document", "drop_members", "drop_collection", "drop_member"):
            self._many(query, [(seq,)])
        if texts:
            self._run("grow_library")
