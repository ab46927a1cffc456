"""From a credential into a space. Every HTTP door goes this way, so that none can forget to ask."""

from memplane.engine import Engine
from memplane.identity.principal import Principal, Right
from memplane.space import Space
from memplane.types import Caller


def open_space(
    plane: Engine, principal: Principal, right: Right, *, door: str, owner: str, session: str = ""
) -> Space:
    """The space of an owner, once the credential was found to open it through this door; raises `Forbidden`."""
    principal.check(right, door=door, space=owner)
    caller = Caller(principal.subject, door, session)
    return plane.space(owner, tenant=principal.tenant, caller=caller)


def existing_space(
    plane: Engine, principal: Principal, right: Right, *, door: str, owner: str
) -> Space | None:
    """As `open_space`; None where there is none yet, since a look must not create it."""
    space = open_space(plane, principal, right, door=door, owner=owner)
    return space if plane.has_space(owner, tenant=principal.tenant) else None
