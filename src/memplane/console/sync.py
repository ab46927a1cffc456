"""The sync page: the remotes of a space and what is pending."""

from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console.views import Row, space_of, space_page
from memplane.server.endpoint import HttpCall
from memplane.sync.status import sync_overview

TAB = "sync"


def show(call: HttpCall) -> Response:
    space = space_of(call)
    return space_page(call, "sync.html", TAB, space, standing=sync_overview(space))


def rows() -> list[Row]:
    return [("GET", "/space/{space}/sync", show, Right.READ, ())]
