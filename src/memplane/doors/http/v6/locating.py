"""Whose a document or a collection is, where a request names the thing and not its user."""

from memplane.doors.http.endpoint import Call
from memplane.doors.http.refusal import Refused
from memplane.doors.http.v6.wire import missing
from memplane.engine import Engine
from memplane.space import Space
from memplane.storage.directory import Sort


class Locator:
    """Looks only among users whose space the credential opens, so that nobody learns what others have."""

    def __init__(self, plane: Engine) -> None:
        self._plane = plane

    def space_with(self, call: Call, sort: Sort, id_: str) -> tuple[str, Space]:
        """The user who has it, and their space; a 404 where nobody has, a 409 where several do."""
        owner = call.query["user_id"] or self._owner_of(call, sort, id_)
        return owner, space_of(call, owner, sort.value, id_)

    def _owner_of(self, call: Call, sort: Sort, id_: str) -> str:
        owners = [owner for owner in self._plane.whose(call.principal.tenant, sort, id_) if call.opens(owner)]
        if not owners:
            raise missing(sort.value, id_)
        if len(owners) > 1:
            raise Refused(
                409,
                "ambiguous",
                f"{len(owners)} users have a {sort.value} with the id {id_!r}; say whose with the query parameter user_id",
            )
        return owners[0]


def space_of(call: Call, owner: str, what: str, id_: str) -> Space:
    """The space of the user who is said to have it; a 404 where they have none."""
    space = call.existing_space(owner)
    if space is None:
        raise missing(what, id_)
    return space
