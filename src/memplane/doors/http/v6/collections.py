"""Collections: documents that are asked together."""

from memplane.clock import iso
from memplane.doors.http.endpoint import Call, Response
from memplane.doors.http.v6.bodies import CollectionBody, MemberBody
from memplane.doors.http.v6.locating import Locator, space_of
from memplane.doors.http.v6.shapes import (
    CollectionDeleted,
    CollectionDocument,
    CollectionList,
    CollectionMade,
    CollectionRead,
    CollectionRow,
    MemberAdded,
    MemberRemoved,
)
from memplane.doors.http.v6.wire import answer
from memplane.storage.directory import Sort
from memplane.types import Collection


class Collections:
    """Answers for what lies under `/v6/collections`."""

    def __init__(self, locator: Locator) -> None:
        self._locator = locator

    def create(self, call: Call) -> Response:
        body: CollectionBody = call.body
        made = call.space(body.user_id).create_collection(
            body.name, project=body.project_id, ordered=bool(body.ordered), id=body.collection_id
        )
        return answer(CollectionMade(collection=_row(call, body.user_id, made)))

    def list(self, call: Call) -> Response:
        query = call.query
        owner = query["user_id"]
        space = call.existing_space(owner)
        found = (
            []
            if space is None
            else space.collections(project=query["project_id"], limit=query["limit"], offset=query["offset"])
        )
        return answer(CollectionList(collections=[_row(call, owner, one) for one in found]))

    def read(self, call: Call) -> Response:
        collection_id, owner = call.path["collection_id"], call.query["user_id"]
        space = space_of(call, owner, "collection", collection_id)
        return answer(
            CollectionRead(
                collection=_row(call, owner, space.collection(collection_id)),
                documents=[
                    CollectionDocument(
                        document_id=member.document,
                        document_name=member.name,
                        position=member.position,
                        added_at=iso(member.added_at),
                    )
                    for member in space.members(collection_id)
                ],
            )
        )

    def delete(self, call: Call) -> Response:
        """Its documents stay."""
        collection_id = call.path["collection_id"]
        _, space = self._locator.space_with(call, Sort.COLLECTION, collection_id)
        space.delete_collection(collection_id)
        return answer(CollectionDeleted(collection_id=collection_id))

    def add(self, call: Call) -> Response:
        body: MemberBody = call.body
        collection_id = call.path["collection_id"]
        space = space_of(call, body.user_id, "collection", collection_id)
        space.add_to_collection(collection_id, body.document_id, position=body.position)
        return answer(MemberAdded(collection_id=collection_id, document_id=body.document_id))

    def remove(self, call: Call) -> Response:
        collection_id, document_id = call.path["collection_id"], call.path["document_id"]
        _, space = self._locator.space_with(call, Sort.COLLECTION, collection_id)
        space.remove_from_collection(collection_id, document_id)
        return answer(MemberRemoved(collection_id=collection_id, document_id=document_id))


def _row(call: Call, owner: str, collection: Collection) -> CollectionRow:
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
