"""What a store does for documents, beside `Reader` and `Writer`: documents, sections, spans, collections."""

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from memplane.clock import Instant
from memplane.types import Collection, CollectionMember, Document, Section, Span

SPANS_PER_DOCUMENT_MAX = 1 << 20
"""How many spans one document may have; a span's number is its entry's seq times this, plus its ordinal."""


_ORDINAL = re.compile("0|[1-9][0-9]{0,9}")


def span_number(seq: int, ordinal: int) -> int:
    """A span's number: spans of one document stand together, in the ledger's order."""
    return seq * SPANS_PER_DOCUMENT_MAX + ordinal


def section_id(entry_id: str, ordinal: int) -> str:
    """It follows from the upload and the place in it: the same on every replica and after every replay."""
    return f"{entry_id}.section-{ordinal}"


def span_place(entry_id: str, id_: str) -> int | None:
    """The ordinal of an entry's span, from its id; None for the id of something else."""
    ordinal = id_.removeprefix(f"{entry_id}.span-")
    return int(ordinal) if _ORDINAL.fullmatch(ordinal) else None


def span_id(entry_id: str, ordinal: int) -> str:
    """As `section_id`."""
    return f"{entry_id}.span-{ordinal}"


class SpanHead(msgspec.Struct, frozen=True, gc=False):
    """What ranking needs to know about a span, without its text."""

    n: int
    section: int
    words: int


class SpanVector(msgspec.Struct, frozen=True, gc=False):
    """A span's vector. `vector` is None where there is no embedding model."""

    n: int
    digest: bytes
    """Of the text it was made from: the same text needs no second vector."""
    vector: bytes | None


class DocumentHead(msgspec.Struct, frozen=True, gc=False):
    """What ranking needs to know about a document."""

    seq: int
    id: str
    name: str
    project: str | None


class PreparedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document made ready to be kept: where it came from is the ledger entry's to say."""

    text: str
    sections: tuple[Section, ...]
    spans: tuple[Span, ...]
    leads: tuple[str, ...]
    """By section, the titles it stands under: its spans are found by them, too."""


class LibraryMarks(msgspec.Struct, frozen=True):
    """How far a space's documents are; a cache compares it with what it saw."""

    generation: int
    """Grows whenever spans go."""
    last_span: int
    stamp: int
    """The last vector of a span."""


class LibraryReader(Protocol):
    """One consistent view of a space's documents."""

    def library_marks(self) -> LibraryMarks:
        """One row, whatever the size."""

    def document(self, document_id: str) -> Document | None:
        """The document that is kept under this id now."""

    def documents(
        self, *, project: str | None, collection: str | None, limit: int, offset: int
    ) -> list[Document]:
        """Those of a project or a collection, or all; the newest first, those of a collection in its order."""

    def document_count(self, *, project: str | None, collection: str | None) -> int:
        """How many `documents` would list in all."""

    def document_heads(self) -> list[DocumentHead]:
        """Every document, in the ledger's order."""

    def sections(self, document_id: str) -> list[Section]:
        """In order."""

    def sections_titled(self, parts: Sequence[str], *, limit: int) -> list[int]:
        """The numbers of sections whose titles hold all of these, whatever the case of Latin letters; the newest first."""

    def sections_at(self, numbers: Sequence[int]) -> dict[int, Section]:
        """Those of these that are there; a section's number is counted as a span's."""

    def spans(self, document_id: str, *, first: int = 0, limit: int = SPANS_PER_DOCUMENT_MAX) -> list[Span]:
        """In order, from the ordinal `first` on."""

    def spans_at(self, numbers: Sequence[int]) -> list[Span]:
        """Those of these that are there, in order."""

    def span_heads(self, *, after: int, limit: int) -> list[SpanHead]:
        """Spans with n > after, in order."""

    def span_vectors(self, model: int, *, after: int, limit: int) -> list[tuple[int, SpanVector]]:
        """(stamp, vector) of this model with a stamp beyond `after`, in the order of stamps."""

    def span_vectors_at(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """The vectors of these spans, as far as there are any."""

    def spans_waiting(self, *, limit: int) -> list[tuple[int, str]]:
        """(n, text with the titles it stands under) of spans without a vector of the current model, in order."""

    def spans_waiting_count(self) -> int:
        """How many of them there are."""

    def span_count(self) -> int:
        """Every span."""

    def span_digests(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """Of these spans, those with a vector of this model, and what it was made from."""

    def span_occurrences(self, stem: str) -> list[int]:
        """The number of every span that holds the stem, once for each time it does; see `IndexReader.occurrences`."""

    def common_in_spans(self, words: Sequence[str], *, beyond: int) -> set[str]:
        """Of these words, those that more than `beyond` spans hold."""

    def undistilled(self, *, limit: int) -> list[Document]:
        """Documents whose distillations are still to come, in the ledger's order."""

    def undistilled_count(self) -> int:
        """How many of them there are."""

    def collection(self, collection_id: str) -> Collection | None:
        """None if there is none."""

    def collections(self, *, project: str | None, limit: int, offset: int) -> list[Collection]:
        """The newest first."""

    def members(self, collection_id: str) -> list[CollectionMember]:
        """The documents of a collection: by position where it is ordered, then as they were added."""

    def shelved_beside(self, seqs: Sequence[int]) -> bool:
        """Whether another entry made the same document or collection as one of these, or put the same one into the other."""

    def membership(self, collection_id: str, document_id: str) -> str | None:
        """The id of the entry that brought the document in."""


class LibraryWriter(LibraryReader, Protocol):
    """The same inside a write transaction."""

    def shelve(self, document: Document, shelved: PreparedDocument) -> None:
        """Keep a document; findable within the commit. What was kept under its id before is gone with it."""

    def unshelve(self, entry_id: str) -> None:
        """Take away what this entry brought: a document, a collection with its memberships, or a membership. That a
        document was in collections stays, for the upload that takes its place."""

    def note_upload(
        self, seq: int, *, document: str | None, collection: str | None, project: str | None, at: Instant
    ) -> None:
        """Remember what an entry is about, so that a forget finds it when it shows nothing any more."""

    def add_span_vectors(self, model: int, vectors: Sequence[SpanVector]) -> None:
        """Add or replace; such a span does not wait any more. Spans that are gone meanwhile get none."""

    def keep_span_vectors(self, model: int, numbers: Sequence[int]) -> None:
        """The vectors that these spans have from before are still theirs; they get a new stamp."""

    def distil(self, document_id: str, *, seq: int, whole: str, sections: Sequence[str | None]) -> bool:
        """Give a document its distillations and call it ready, if `seq` is still where it comes from."""

    def distil_again(self, seq: int) -> None:
        """The upload at this place waits for its distillations, where it has some."""

    def fail_document(self, document_id: str, *, seq: int, error: str) -> None:
        """Its distillations could not be made."""

    def add_collection(self, collection: Collection, *, seq: int) -> None:
        """Its id must be new."""

    def add_member(
        self, collection_id: str, document_id: str, *, position: int | None, seq: int, at: Instant
    ) -> None:
        """Add, or move to another position; nothing where there is no such collection. The document is meant by its id,
        whichever upload is under it, and need not be there."""
