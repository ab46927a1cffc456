"""Open a space with a credential. Every HTTP adapter uses these functions, so none can skip the check."""

from memplane.auth.principal import Principal, Right
from memplane.engine import Engine
from memplane.errors import InvalidRequest
from memplane.space import Space
from memplane.types import Caller


def open_space(
    plane: Engine, principal: Principal, right: Right, *, adapter: str, owner: str, session: str = ""
) -> Space:
    """Return the owner's space if the credential may access it through this adapter; else raise `Forbidden`."""
    principal.check(right, adapter=adapter, space=owner)
    caller = Caller(principal.subject, adapter, session)
    return plane.space(owner, tenant=principal.tenant, caller=caller)


def existing_space(
    plane: Engine, principal: Principal, right: Right, *, adapter: str, owner: str
) -> Space | None:
    """Like `open_space`, but return None if the space does not exist, because a read must not create it."""
    space = open_space(plane, principal, right, adapter=adapter, owner=owner)
    return space if plane.has_space(owner, tenant=principal.tenant) else None


def check_space_exists(plane: Engine, principal: Principal, *, adapter: str, owner: str) -> None:
    """A space is created on first use. A caller that may only read must not create spaces, because it could fill the
    disk. Spaces that the credential lists are allowed, because their number is fixed."""
    if principal.spaces is not None or owner == principal.subject:
        return
    if principal.allows(Right.WRITE, adapter=adapter, space=owner):
        return
    if not plane.has_space(owner, tenant=principal.tenant):
        raise InvalidRequest("no space has this name", field="space")
