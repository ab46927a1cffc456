"""Documents of a space, and collections of them."""

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from memplane.clock import to_instant
from memplane.documents.media import PLAIN, media_type_of
from memplane.documents.parsed import ParseLimits
from memplane.documents.preparation import prepare_document
from memplane.errors import CollectionTaken, InvalidRequest, NotFound
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import CollectPayload, DocumentPayload, Payload, TurnPayload, decode
from memplane.memory import projection
from memplane.memory.checks import (
    check_counts,
    check_encodable,
    check_limit,
    check_name,
    check_query,
    check_text,
)
from memplane.space.context import SpaceContext
from memplane.space.deprecated import CallableListing
from memplane.space.forgetting import finish_forget
from memplane.storage.catalog.directory import ResourceKind
from memplane.storage.filter import ForgetScope
from memplane.storage.store import Reader, Writer
from memplane.types import (
    AboutDocument,
    Collection,
    CollectionMember,
    Document,
    Memory,
    NewEntry,
    Op,
    Receipt,
    Section,
    Span,
    WholeDocument,
)

_NAME_CHARS_MAX = 512
_SPANS_DEFAULT = 1_000


class Documents(CallableListing):
    """`space.documents`: documents, and collections of them. Each call is one transaction, so a reader sees a whole version
    of a document."""

    def __init__(self, context: SpaceContext) -> None:
        self._context = context

    # ── documents ────────────────────────────────────────────────────────────────────────────────────────────

    def upload(
        self,
        content: str | bytes,
        *,
        name: str,
        project: str | None = None,
        id: str | None = None,
        media_type: str | None = None,
        collection: str | None = None,
        position: int | None = None,
    ) -> Document:
        """Store a document: text, Markdown, HTML, PDF or DOCX. Returns when its spans can be found by keyword; vectors and
        distillations follow.

        An upload under an existing id replaces that document. `collection` adds it to a collection.
        """
        return self.upload_whole(
            content,
            name=name,
            project=project,
            id=id,
            media_type=media_type,
            collection=collection,
            position=position,
        ).document

    def upload_whole(
        self,
        content: str | bytes,
        *,
        name: str,
        project: str | None = None,
        id: str | None = None,
        media_type: str | None = None,
        collection: str | None = None,
        position: int | None = None,
    ) -> WholeDocument:
        """As `upload`, with the sections of this upload even if another caller replaces or deletes it at the same time."""
        now = self._context.clock()
        name = check_text(name, field="name", chars_max=_NAME_CHARS_MAX)
        document_id = check_name(id, field="id") or new_id("doc", now)
        project = check_name(project, field="project")
        kind = media_type_of(content, name=name, given=media_type)
        uploaded = DocumentPayload(
            document=document_id,
            name=name,
            media_type=kind,
            at=now,
            text=self._checked_text(content) if isinstance(content, str) else None,
            data=self._checked_data(content) if isinstance(content, bytes) else None,
            project=project,
        )
        entry_id = new_id("document", now)
        # Reading it may take long, and a write must not.
        ready = prepare_document(entry_id, uploaded, self._parse_limits())
        if uploaded.data is not None and self._context.settings.redact_ledger:
            # No secret can be taken out of a PDF, so its text is kept in its place.
            uploaded = msgspec.structs.replace(uploaded, data=None, text=ready.text, media_type=PLAIN)
            ready = prepare_document(entry_id, uploaded)
        check_counts(position=position or 0)

        def work(writer: Writer) -> WholeDocument:
            before = writer.documents.get(document_id)
            made = uploaded
            if before is not None:
                made = msgspec.structs.replace(uploaded, created=to_instant(before.created_at))
            if collection is not None:
                _existing_collection(writer, collection)
            draft = self._document_draft(entry_id, made, None if before is None else before.entry_id)
            projection.record(writer, draft, now, ready=ready)
            if collection is not None:
                self._add_member(writer, collection, document_id, position)
            return WholeDocument(document=_present(writer, document_id), sections=ready.sections)

        self._context.recorder.note(ResourceKind.DOCUMENT, document_id, now)
        return self._context.write("upload", work)

    def get(self, document_id: str) -> Document:
        """One document: its name, its size and the state of its distillation."""
        check_query(id=document_id)
        with self._context.operation("document") as reader:
            return _present(reader, document_id)

    def count(self, *, project: str | None = None, collection: str | None = None) -> int:
        """How many documents there are."""
        check_query(project=project, collection=collection)
        with self._context.operation("documents") as reader:
            return reader.documents.count(project=project, collection=collection)

    def get_whole(self, document_id: str, *, text: bool = True) -> WholeDocument:
        """A document with its sections and its text, all of the same upload."""
        check_query(id=document_id)
        with self._context.operation("document") as reader:
            return WholeDocument(
                document=_present(reader, document_id),
                sections=tuple(reader.documents.sections(document_id)),
                text="".join(span.text for span in reader.documents.spans(document_id)) if text else None,
            )

    def text(self, document_id: str) -> str:
        """The whole text, as sections and spans count it."""
        check_query(id=document_id)
        with self._context.operation("document") as reader:
            _present(reader, document_id)
            return "".join(span.text for span in reader.documents.spans(document_id))

    def sections(self, document_id: str) -> list[Section]:
        """The sections of a document, in order."""
        check_query(id=document_id)
        with self._context.operation("sections") as reader:
            _present(reader, document_id)
            return reader.documents.sections(document_id)

    def spans(self, document_id: str, *, first: int = 0, limit: int = _SPANS_DEFAULT) -> list[Span]:
        """The spans of a document, in order."""
        check_query(id=document_id)
        check_counts(first=first)
        check_limit(limit)
        with self._context.operation("spans") as reader:
            _present(reader, document_id)
            return reader.documents.spans(document_id, first=first, limit=limit)

    def delete(self, document_id: str) -> Receipt:
        """Forget a document: every version, its spans and distillations, and its place in collections."""
        check_query(id=document_id)

        def work(writer: Writer) -> Receipt:
            _present(writer, document_id)
            return self._context.recorder.forget(writer, ForgetScope(document=document_id), reason="deleted")

        return finish_forget(self._context, self._context.write("delete_document", work))

    def mentioned_by(self, memories: Iterable[Memory]) -> dict[str, AboutDocument]:
        """The documents that the source turns of these memories are about, by entry id."""
        seqs = sorted({memory.seq for memory in memories if memory.derived})
        if not seqs:
            return {}
        with self._context.read() as reader:
            entries = reader.ledger.at(seqs)
        said = [(entry.id, decode(entry)) for entry in entries if entry.op is Op.TURN]
        return {
            id_: AboutDocument(payload.document, payload.document_name)
            for id_, payload in said
            if isinstance(payload, TurnPayload) and payload.document is not None
        }

    # ── collections ──────────────────────────────────────────────────────────────────────────────────────────

    def create_collection(
        self, name: str, *, project: str | None = None, ordered: bool = False, id: str | None = None
    ) -> Collection:
        """A new collection; in an `ordered` one documents have positions."""
        now = self._context.clock()
        collected = CollectPayload(
            action="create",
            collection=check_name(id, field="id") or new_id("col", now),
            at=now,
            name=check_text(name, field="name", chars_max=_NAME_CHARS_MAX),
            project=check_name(project, field="project"),
            ordered=ordered,
        )

        def work(writer: Writer) -> Collection:
            if writer.documents.collection(collected.collection) is not None:
                raise CollectionTaken(collected.collection)
            self._collect(writer, collected)
            return _existing_collection(writer, collected.collection)

        self._context.recorder.note(ResourceKind.COLLECTION, collected.collection, now)
        return self._context.write("create_collection", work)

    def collection(self, collection_id: str) -> Collection:
        """One collection."""
        check_query(id=collection_id)
        with self._context.operation("collection") as reader:
            return _existing_collection(reader, collection_id)

    def collections(
        self, *, project: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[Collection]:
        """Collections, the newest first."""
        check_query(project=project)
        check_limit(limit)
        check_counts(offset=offset)
        with self._context.operation("collections") as reader:
            return reader.documents.collections(project=project, limit=limit, offset=offset)

    def members(self, collection_id: str) -> list[CollectionMember]:
        """The documents of a collection: by position in an ordered one, then as they were added."""
        check_query(id=collection_id)
        with self._context.operation("members") as reader:
            _existing_collection(reader, collection_id)
            return reader.documents.members(collection_id)

    def delete_collection(self, collection_id: str) -> None:
        """Delete a collection; its documents stay."""
        check_query(id=collection_id)

        def work(writer: Writer) -> None:
            there = _existing_collection(writer, collection_id)
            collected = CollectPayload(
                action="delete", collection=collection_id, at=self._context.clock(), project=there.project
            )
            self._collect(writer, collected, undoes=there.entry_id)

        self._context.write("delete_collection", work)

    def add_to_collection(self, collection_id: str, document_id: str, *, position: int | None = None) -> None:
        """Add a document to a collection, or move it to another position there."""
        check_query(collection=collection_id, document=document_id)
        check_counts(position=position or 0)

        def work(writer: Writer) -> None:
            _present(writer, document_id)
            self._add_member(writer, collection_id, document_id, position)

        self._context.write("add_to_collection", work)

    def remove_from_collection(self, collection_id: str, document_id: str) -> None:
        """Remove a document from a collection; the document stays."""
        check_query(collection=collection_id, document=document_id)

        def work(writer: Writer) -> None:
            there = _existing_collection(writer, collection_id)
            brought = writer.documents.membership(collection_id, document_id)
            if brought is None:
                raise NotFound("document", document_id, place=f"collection {collection_id!r}")
            collected = CollectPayload(
                action="remove",
                collection=collection_id,
                at=self._context.clock(),
                project=there.project,
                document=document_id,
            )
            self._collect(writer, collected, undoes=brought)

        self._context.write("remove_from_collection", work)

    def _add_member(self, writer: Writer, collection_id: str, document_id: str, position: int | None) -> None:
        there = _existing_collection(writer, collection_id)
        collected = CollectPayload(
            action="add",
            collection=collection_id,
            at=self._context.clock(),
            project=there.project,
            document=document_id,
            position=position,
        )
        self._collect(writer, collected, undoes=writer.documents.membership(collection_id, document_id))

    def _collect(self, writer: Writer, collected: CollectPayload, undoes: str | None = None) -> None:
        now = self._context.clock()
        self._context.recorder.record(writer, new_id("collect", now), Op.COLLECT, collected, undoes, now=now)

    def _document_draft(self, id_: str, payload: Payload, ref: str | None) -> NewEntry:
        """A document may be larger than any other entry."""
        return self._context.recorder.draft(
            id_, Op.DOCUMENT, payload, ref, bytes_max=2 * self._context.settings.document_bytes_max + 65_536
        )

    def _checked_text(self, content: str) -> str:
        check_text(content, field="content")
        with suppress(UnicodeEncodeError):
            self._check_size(len(content) if content.isascii() else len(content.encode("utf-8")))
        return content

    def _checked_data(self, content: bytes) -> bytes:
        self._check_size(len(content))
        return content

    def _check_size(self, size: int) -> None:
        bytes_max = self._context.settings.document_bytes_max
        if size > bytes_max:
            raise InvalidRequest(
                f"the document has {size:,} bytes and at most {bytes_max:,} are kept; split it, or raise "
                "document_bytes_max",
                field="content",
            )

    def _parse_limits(self) -> ParseLimits:
        return ParseLimits(bytes=self._context.settings.document_bytes_max)

    # Last, because in a class body the name of this method hides the type `list` from what follows.
    def list(
        self, *, project: str | None = None, collection: str | None = None, limit: int = 20, offset: int = 0
    ) -> list[Document]:
        """Documents, the newest first; those of a collection in its order."""
        check_query(project=project, collection=collection)
        check_limit(limit)
        check_counts(offset=offset)
        with self._context.operation("documents") as reader:
            if collection is not None:
                _existing_collection(reader, collection)
            return reader.documents.find(project=project, collection=collection, limit=limit, offset=offset)


def _present(reader: Reader, document_id: str) -> Document:
    check_encodable(document_id, field="id")
    found = reader.documents.get(document_id)
    if found is None:
        raise NotFound("document", document_id)
    return found


def _existing_collection(reader: Reader, collection_id: str) -> Collection:
    found = reader.documents.collection(collection_id)
    if found is None:
        raise NotFound("collection", collection_id)
    return found
