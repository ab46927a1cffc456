"""Shared by every page of a space: resolve the space and render its tabs."""

from typing import Any

from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console.links import owner_of
from memplane.console.pages import page
from memplane.errors import NotFound
from memplane.server.endpoint import Handler, HttpCall, Query
from memplane.space import Space

Row = tuple[str, str, Handler, Right | None, tuple[Query, ...]]
"""One page: method, path below the root, handler, required right (None: public), parameters."""


def space_of(call: HttpCall) -> Space:
    """Return the space in the path; never creates one."""
    owner = owner_of(call.path_params["space"])
    space = call.existing_space(owner)
    if space is None:
        raise NotFound("space", owner, place="this installation")
    return space


def writable_space(call: HttpCall) -> Space:
    """Like `space_of`, for a form that writes."""
    return call.space(space_of(call).owner, Right.WRITE)


def space_page(call: HttpCall, template: str, tab: str, space: Space, **values: Any) -> Response:
    """Render a page of a space with its tabs."""
    may_write = call.principal.allows(Right.WRITE, adapter=call.endpoint.adapter, space=space.owner)
    around: dict[str, Any] = {"owner": space.owner, "tab": tab, "may_write": may_write}
    return page(call, template, **(around | values))
