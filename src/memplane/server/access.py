"""Open a space with a credential. Every HTTP adapter uses these functions, so that none skips the check."""

from memplane.auth.principal import Principal, Right
from memplane.engine import Engine
from memplane.errors import InvalidRequest
from memplane.space import Space
from memplane.types import Caller


def open_space(
    plane: Engine, principal: Principal, right: Right, *, adapter: str, owner: str, session: str = ""
) -> Space:
    """The space of an owner. Raise `Forbidden` unless the credential opens it through this adapter."""
    principal.check(right, adapter=adapter, space=owner)
    caller = Caller(principal.subject, adapter, session)
    return plane.space(owner, tenant=principal.tenant, caller=caller)


def existing_space(
    plane: Engine, principal: Principal, right: Right, *, adapter: str, owner: str
) -> Space | None:
    """As `open_space`; None where there is none yet, since a look must not create it."""
    space = open_space(plane, principal, right, adapter=adapter, owner=owner)
    return space if plane.has_space(owner, tenant=principal.tenant) else None


def check_space_exists(plane: Engine, principal: Principal, *, adapter: str, owner: str) -> None:
    """A space comes into being with its first use. Whoever may only read, and names any space they like, must not make
    spaces that way: they could fill the disk with them. Those that the credential itself names are as many as it names."""
    if principal.spaces is not None or owner == principal.subject:
        return
    if principal.allows(Right.WRITE, adapter=adapter, space=owner):
        return
    if not plane.has_space(owner, tenant=principal.tenant):
        raise InvalidRequest("there is no space of that name", field="space")
