"""The compare page: memories learned, changed and forgotten between two days."""

from starlette.responses import Response

from memplane.auth.principal import Right
from memplane.clock import DAY
from memplane.console.forms import before, end_of, parse_day, written
from memplane.console.views import Row, space_of, space_page
from memplane.server.endpoint import HttpCall, Query

TAB = "compare"

_PAGE_SIZE = 25
_PAGES_MAX = 200
"""Further pages are not shown; choose days that are closer together instead."""
_DAYS = 7
_QUERY = (
    Query(name="begin", default=""),
    Query(name="end", default=""),
    Query(name="page", type=int, default=1),
)


def show(call: HttpCall) -> Response:
    space = space_of(call)
    end = parse_day(call.query["end"], field="end")
    end = space.now() // DAY if end is None else end
    begin = parse_day(call.query["begin"], field="begin")
    begin = before(end, _DAYS) if begin is None else begin
    begin, end = sorted((begin, end))
    number = min(max(1, call.query["page"]), _PAGES_MAX)
    found = space.overview.compare(
        end_of(begin), end_of(end), limit=_PAGE_SIZE, offset=(number - 1) * _PAGE_SIZE
    )
    return space_page(
        call,
        "compare.html",
        TAB,
        space,
        found=found,
        begin=written(begin),
        end=written(end),
        number=number,
        more=bool(found.more) and number < _PAGES_MAX,
    )


def rows() -> list[Row]:
    return [("GET", "/space/{space}/compare", show, Right.READ, _QUERY)]
