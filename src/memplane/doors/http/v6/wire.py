"""How the v6 door reads queries and spells what it answers."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from memplane.clock import iso, parse_instant, to_datetime
from memplane.doors.http.endpoint import Query, Response, json_response
from memplane.doors.http.refusal import Refused
from memplane.doors.http.v6.bodies import Name

PAGE_MAX = 1_000

Page = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=100_000)]

USER = Query(name="user_id", type=Name, required=True, description="Whose.")
MAYBE_USER = Query(
    name="user_id", type=Name, description="Whose; needed only where several users have the same id."
)
PROJECT = Query(name="project_id", type=Name, description="Only those of it.")


def paging(limit: int) -> tuple[Query, Query]:
    return (
        Query(name="limit", type=Page, default=limit, description=f"At most so many; {limit} by default."),
        Query(name="offset", type=Offset, default=0, description="So many are passed over."),
    )


def answer(value: Any) -> Response:
    return json_response(value)


def spelled(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


def moment(value: str | float | None, field: str) -> datetime | None:
    """ISO 8601 or Unix seconds, refused under the name it came with."""
    return None if value is None else to_datetime(parse_instant(value, field=field))


def missing(what: str, name: str) -> Refused:
    """For one who may not know whether anybody else has it."""
    return Refused(404, "not_found", f"no {what} {name!r} that this credential may open")
