"""What a tenant used, and what is left."""

from memplane.doors.http.endpoint import Call, Query, Response
from memplane.doors.http.v6.wire import answer
from memplane.engine import Engine
from memplane.metering.usage import Period

RANGE = Query(
    name="range",
    type=Period,
    default="7d",
    description="The last seven or thirty days, the month of the calendar so far, or today; in UTC.",
)


class Usage:
    """Answers for what lies under `/v1/usage`, for the tenant of the key."""

    def __init__(self, plane: Engine) -> None:
        self._plane = plane

    def summary(self, call: Call) -> Response:
        return answer(self._plane.usage.summary(call.principal.tenant, call.query["range"]))

    def breakdown(self, call: Call) -> Response:
        return answer(self._plane.usage.breakdown(call.principal.tenant, call.query["range"]))

    def limits(self, call: Call) -> Response:
        return answer(self._plane.usage.limits(call.principal.tenant))
