"""What was used, and what is left."""

from typing import Literal

from memplane.doors.http.endpoint import Call, Query, Response
from memplane.engine import Engine

RANGE = Query(
    name="range",
    type=Literal["7d", "30d", "month", "today"],
    default="7d",
    description="The last seven or thirty days, the calendar month, or today; in UTC.",
)


class Usage:
    """Answers for what lies under `/v1/usage`, for the tenant of the key."""

    def __init__(self, plane: Engine) -> None:
        self._plane = plane

    def summary(self, call: Call) -> Response:
        raise NotImplementedError

    def breakdown(self, call: Call) -> Response:
        raise NotImplementedError

    def limits(self, call: Call) -> Response:
        raise NotImplementedError
