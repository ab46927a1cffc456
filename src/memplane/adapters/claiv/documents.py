"""Documents: upload, list, read, delete."""

import msgspec
from starlette.responses import Response

from memplane.adapters.claiv.shapes import (
    CollectionCreated,
    CollectionDeleted,
    CollectionDocument,
    CollectionList,
    CollectionRead,
    CollectionRow,
    DocumentDeleted,
    DocumentItem,
    DocumentList,
    DocumentRead,
    DocumentStatusAnswer,
    MemberAdded,
    MemberRemoved,
    SectionItem,
    StatusInfo,
    UploadResponse,
    UploadSection,
)
from memplane.adapters.claiv.wire import CollectionBody, MemberBody, UploadBody, answer, missing
from memplane.clock import iso
from memplane.engine import Engine
from memplane.errors import InvalidRequest
from memplane.server.endpoint import HttpCall
from memplane.server.errors import HttpError
from memplane.space import Space
from memplane.storage.catalog.directory import ResourceKind
from memplane.types import Collection, Document, Section

# Requests may name a document or collection without its user. These functions find the owner.


class UserLocator:
    """Search only spaces that the credential may access, so that a caller cannot learn about other users' data."""

    def __init__(self, plane: Engine) -> None:
        self._plane = plane

    def space_with(self, call: HttpCall, sort: ResourceKind, id_: str) -> tuple[str, Space]:
        """Return the owner and their space. Raises a 404 if no user has this id, and a 409 if several do."""
        owner = call.query["user_id"] or self._owner_of(call, sort, id_)
        return owner, space_of(call, owner, sort.value, id_)

    def _owner_of(self, call: HttpCall, sort: ResourceKind, id_: str) -> str:
        owners = [
            owner for owner in self._plane.owners_of(call.principal.tenant, sort, id_) if call.opens(owner)
        ]
        if not owners:
            raise missing(sort.value, id_)
        if len(owners) > 1:
            raise HttpError(
                409,
                "ambiguous",
                f"{len(owners)} users have a {sort.value} with the id {id_!r}; add the query parameter user_id",
            )
        return owners[0]


def space_of(call: HttpCall, owner: str, what: str, id_: str) -> Space:
    """Return the space of the given user, or raise a 404 if the user has no such item."""
    space = call.existing_space(owner)
    if space is None:
        raise missing(what, id_)
    return space


class DocumentsHandler:
    """Endpoints under `/v6/documents`."""

    def __init__(self, locator: UserLocator) -> None:
        self._locator = locator

    def upload(self, call: HttpCall) -> Response:
        """Store a document. It is searchable when the response is sent. The same id replaces an earlier version."""
        body: UploadBody = call.body
        space = call.space(body.user_id)
        content, media_type = _content(body)
        kept = space.documents.upload_whole(
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
            UploadResponse(
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

    def list(self, call: HttpCall) -> Response:
        query = call.query
        limit, offset, owner = query["limit"], query["offset"], query["user_id"]
        space = call.existing_space(owner)
        if space is None:
            return answer(DocumentList(documents=[], total=0, limit=limit, offset=offset))
        where = {"project": query["project_id"], "collection": query["collection_id"]}
        found = space.documents.list(**where, limit=limit, offset=offset)
        return answer(
            DocumentList(
                documents=[_item(document, owner) for document in found],
                total=space.documents.count(**where),
                limit=limit,
                offset=offset,
            )
        )

    def status(self, call: HttpCall) -> Response:
        document_id = call.path_params["document_id"]
        _, space = self._locator.space_with(call, ResourceKind.DOCUMENT, document_id)
        document = space.documents.get(document_id)
        return answer(
            DocumentStatusAnswer(
                document_id=document_id,
                status=document.status.value,
                spans_created=document.spans,
                error_message=document.error,
            )
        )

    def read(self, call: HttpCall) -> Response:
        document_id = call.path_params["document_id"]
        owner, space = self._locator.space_with(call, ResourceKind.DOCUMENT, document_id)
        whole = space.documents.get_whole(document_id, text=call.query["content"])
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

    def delete(self, call: HttpCall) -> Response:
        document_id = call.path_params["document_id"]
        _, space = self._locator.space_with(call, ResourceKind.DOCUMENT, document_id)
        receipt = space.documents.delete(document_id)
        return answer(
            DocumentDeleted(document_id=document_id, receipt_id=receipt.id, off_disk=receipt.off_disk)
        )


def _content(body: UploadBody) -> tuple[str | bytes, str | None]:
    """Text is stored as text. Base64 data is parsed by its media type, or by its first bytes if none is given."""
    if body.content is not None and body.data is not None:
        raise InvalidRequest("use content or data, not both", field="data")
    if body.data is not None:
        return body.data, body.content_type
    if body.content is None:
        raise InvalidRequest("content is missing; send text or Markdown, or base64 in data", field="content")
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


# Collections: documents that are searched together.


class CollectionsHandler:
    """Endpoints under `/v6/collections`."""

    def __init__(self, locator: UserLocator) -> None:
        self._locator = locator

    def create(self, call: HttpCall) -> Response:
        body: CollectionBody = call.body
        made = call.space(body.user_id).documents.create_collection(
            body.name, project=body.project_id, ordered=bool(body.ordered), id=body.collection_id
        )
        return answer(CollectionCreated(collection=_row(call, body.user_id, made)))

    def list(self, call: HttpCall) -> Response:
        query = call.query
        owner = query["user_id"]
        space = call.existing_space(owner)
        found = (
            []
            if space is None
            else space.documents.collections(
                project=query["project_id"], limit=query["limit"], offset=query["offset"]
            )
        )
        return answer(CollectionList(collections=[_row(call, owner, one) for one in found]))

    def read(self, call: HttpCall) -> Response:
        collection_id, owner = call.path_params["collection_id"], call.query["user_id"]
        space = space_of(call, owner, "collection", collection_id)
        return answer(
            CollectionRead(
                collection=_row(call, owner, space.documents.collection(collection_id)),
                documents=[
                    CollectionDocument(
                        document_id=member.document,
                        document_name=member.name,
                        position=member.position,
                        added_at=iso(member.added_at),
                    )
                    for member in space.documents.members(collection_id)
                ],
            )
        )

    def delete(self, call: HttpCall) -> Response:
        """Delete a collection. Its documents stay."""
        collection_id = call.path_params["collection_id"]
        _, space = self._locator.space_with(call, ResourceKind.COLLECTION, collection_id)
        space.documents.delete_collection(collection_id)
        return answer(CollectionDeleted(collection_id=collection_id))

    def add(self, call: HttpCall) -> Response:
        body: MemberBody = call.body
        collection_id = call.path_params["collection_id"]
        space = space_of(call, body.user_id, "collection", collection_id)
        space.documents.add_to_collection(collection_id, body.document_id, position=body.position)
        return answer(MemberAdded(collection_id=collection_id, document_id=body.document_id))

    def remove(self, call: HttpCall) -> Response:
        collection_id, document_id = call.path_params["collection_id"], call.path_params["document_id"]
        _, space = self._locator.space_with(call, ResourceKind.COLLECTION, collection_id)
        space.documents.remove_from_collection(collection_id, document_id)
        return answer(MemberRemoved(collection_id=collection_id, document_id=document_id))


def _row(call: HttpCall, owner: str, collection: Collection) -> CollectionRow:
    return CollectionRow(
        collection_id=collection.id,
        tenant_id=call.principal.tenant,
        user_id=owner,
        project_id=collection.project,
        name=collection.name,
        ordered=collection.ordered,
        created_at=iso(collection.created_at),
        document_count=collection.documents,
    )
