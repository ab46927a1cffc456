"""The brief page: the text an agent receives at session start."""

from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console.views import Row, space_of, space_page
from memplane.server.endpoint import HttpCall, Query

_QUERY = (Query(name="conversation", default=""), Query(name="project", default=""))


def show(call: HttpCall) -> Response:
    space = space_of(call)
    asked = {query.name: call.query[query.name] for query in _QUERY}
    brief = space.brief(conversation=asked["conversation"] or None, project=asked["project"] or None)
    return space_page(
        call,
        "brief.html",
        "brief",
        space,
        brief=brief,
        asked=asked,
        current=space.overview.summary().memories,
    )


def rows() -> list[Row]:
    return [("GET", "/space/{space}/brief", show, Right.READ, _QUERY)]
