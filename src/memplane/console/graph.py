"""The graph page: the facts around a subject as of any day, as a picture and a list."""

from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.console import drawing
from memplane.console.forms import end_of, parse_day, written
from memplane.console.views import Row, space_of, space_page
from memplane.server.endpoint import HttpCall, Query

TAB = "graph"

_SUBJECTS = 40
_LISTING = (
    Query(name="subject", default=""),
    Query(name="as_of", default=""),
    Query(name="from", default=""),
)


def show(call: HttpCall) -> Response:
    space = space_of(call)
    as_of = parse_day(call.query["as_of"], field="as_of")
    subject = call.query["subject"].strip()
    graph = space.overview.graph(subject or None, as_of=None if as_of is None else end_of(as_of))
    first = call.query["from"].strip()
    subjects = space.overview.subjects(first, limit=_SUBJECTS + 1)
    return space_page(
        call,
        "graph.html",
        TAB,
        space,
        graph=graph,
        drawing=None if graph is None or not graph.all else drawing.drawn(graph),
        as_of="" if as_of is None else written(as_of),
        subjects=subjects[:_SUBJECTS],
        following=subjects[_SUBJECTS] if len(subjects) > _SUBJECTS else "",
        first=first,
        sizes=(drawing.NODE_WIDTH, drawing.NODE_HEIGHT),
    )


def rows() -> list[Row]:
    return [("GET", "/space/{space}/graph", show, Right.READ, _LISTING)]
