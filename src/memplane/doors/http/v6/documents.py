"""Documents: upload, list, read, delete."""

import msgspec

from memplane.clock import iso
from memplane.doors.http.endpoint import Call, Response
from memplane.doors.http.v6.bodies import UploadBody
from memplane.doors.http.v6.locating import Locator
from memplane.doors.http.v6.shapes import (
    DocumentDeleted,
    DocumentItem,
    DocumentList,
    DocumentRead,
    DocumentStatusAnswer,
    SectionItem,
    StatusInfo,
    Uploaded,
    UploadSection,
)
from memplane.doors.http.v6.wire import answer
from memplane.errors import InvalidRequest
from memplane.storage.directory import Sort
from memplane.types import Document, Section


class Documents:
    """Answers for what lies under `/v6/documents`."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator

    def upload(self, call: Call) -> Response:
        """Answers when its spans are found. The same id again replaces the document."""
        body: UploadBody = call.body
        space = call.space(body.user_id)
        content, media_type = _content(body)
        kept = space.upload_whole(
            content,
            name=_name(body),
            project=body.project_id,
            id=body.document_id,
            media_type=media_type,
            collection=body.collection_id,
            position=body.position,
        )
        document = kept.document
        return answer(
            Uploaded(
                document_id=document.id,
                document_name=document.name,
                project_id=body.project_id,
                collection_id=body.collection_id,
                sections=[
                    UploadSection(node_id=section.id, title=section.title) for section in kept.sections
                ],
                spans_created=document.spans,
            )
        )

    def list(self, call: Call) -> Response:
        query = call.query
        limit, offset, owner = query["limit"], query["offset"], query["user_id"]
        space = call.existing_space(owner)
        if space is None:
            return answer(DocumentList(documents=[], total=0, limit=limit, offset=offset))
        where = {"project": query["project_id"], "collection": query["collection_id"]}
        found = space.documents(**where, limit=limit, offset=offset)
        return answer(
            DocumentList(
                documents=[_item(document, owner) for document in found],
                total=space.document_count(**where),
                limit=limit,
                offset=offset,
            )
        )

    def status(self, call: Call) -> Response:
        document_id = call.path["document_id"]
        _, space = self._locator.space_with(call, Sort.DOCUMENT, document_id)
        document = space.document(document_id)
        return answer(
            DocumentStatusAnswer(
                document_id=document_id,
                status=document.status.value,
                spans_created=document.spans,
                error_message=document.error,
            )
        )

    def read(self, call: Call) -> Response:
        document_id = call.path["document_id"]
        owner, space = self._locator.space_with(call, Sort.DOCUMENT, document_id)
        whole = space.whole_document(document_id, text=call.query["content"])
        document = whole.document
        return answer(
            DocumentRead(
                **msgspec.structs.asdict(_item(document, owner)),
                content_type=document.media_type,
                chars=document.chars,
                updated_at=iso(document.updated_at),
                distillation=document.distillation,
                sections=[_section(section) for section in whole.sections],
                content=msgspec.UNSET if whole.text is None else whole.text,
            )
        )

    def delete(self, call: Call) -> Response:
        document_id = call.path["document_id"]
        _, space = self._locator.space_with(call, Sort.DOCUMENT, document_id)
        receipt = space.delete_document(document_id)
        return answer(DocumentDeleted(document_id=document_id, receipt_id=receipt.id))


def _content(body: UploadBody) -> tuple[str | bytes, str | None]:
    """Text stays text; what came as base64 is what its media type says, or what its first bytes look like."""
    if body.content is not None and body.data is not None:
        raise InvalidRequest("give content or data, not both", field="data")
    if body.data is not None:
        return body.data, body.content_type
    if body.content is None:
        raise InvalidRequest("content is missing; give text or Markdown, or base64 in data", field="content")
    return body.content, body.content_type


def _name(body: UploadBody) -> str:
    name = body.document_name or body.filename
    if name is None:
        raise InvalidRequest("document_name is missing", field="document_name")
    return name


def _item(document: Document, owner: str) -> DocumentItem:
    return DocumentItem(
        document_id=document.id,
        document_name=document.name,
        project_id=document.project,
        user_id=owner,
        byte_size=document.bytes,
        created_at=iso(document.created_at),
        collection_ids=list(document.collections),
        document_status=StatusInfo(
            status=document.status.value, spans_created=document.spans, error_message=document.error
        ),
    )


def _section(section: Section) -> SectionItem:
    return SectionItem(
        node_id=section.id,
        title=section.title,
        level=section.level,
        path=list(section.path),
        start=section.start,
        end=section.end,
        distillation=section.distillation,
    )
