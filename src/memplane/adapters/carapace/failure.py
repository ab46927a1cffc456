"""Error payloads for failed requests: Carapace's codes, and the mapping from Memplane's errors to them."""

from enum import StrEnum

import msgspec

from memplane.adapters.carapace.schema import ArgumentsInvalid
from memplane.auth.principal import Forbidden
from memplane.errors import InvalidRequest, LimitReached, MemplaneError, NotFound


class Code(StrEnum):
    """The error codes."""

    UNKNOWN_TOOL = "UNKNOWN_TOOL"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    UNAUTHORIZED = "UNAUTHORIZED"
    RATE_LIMITED = "RATE_LIMITED"
    PLUGIN_TIMEOUT = "PLUGIN_TIMEOUT"
    PLUGIN_UNAVAILABLE = "PLUGIN_UNAVAILABLE"
    PLUGIN_ERROR = "PLUGIN_ERROR"
    HANDLER_ERROR = "HANDLER_ERROR"


class Stage(StrEnum):
    """The stage at which a request was stopped."""

    CONSTRUCT = "construct"
    TOPIC = "topic"
    PAYLOAD = "payload"
    AUTHORIZE = "authorize"
    ROUTE = "route"

    @property
    def number(self) -> int:
        """Carapace's numbering. The fifth stage, confirmation, is for tools that are not low risk."""
        return {"construct": 1, "topic": 2, "payload": 3, "authorize": 4, "route": 6}[self.value]


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The error payload on the wire. `stage` is set if the request did not reach the tool."""

    code: Code
    message: str
    retriable: bool
    stage: int | None = None
    field: str | None = None
    retry_after: int | None = None


class IpcError(Exception):
    """A rejected request, and the stage that rejected it."""

    def __init__(
        self,
        stage: Stage,
        code: Code,
        message: str,
        *,
        field: str | None = None,
        retriable: bool = False,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.stage = stage
        self.failure = Failure(
            code=code,
            message=message,
            retriable=retriable,
            stage=stage.number,
            field=field,
            retry_after=retry_after,
        )


_LIMITS = {
    "store": "Maximum {limit} memory_store calls per session reached.",
    "supersede": "Maximum {limit} supersedes per session reached.",
    "delete": "Maximum {limit} memory_delete calls per session reached.",
}

_NOT_FOUND = {
    "memory_store": 'Superseded entry "{name}" not found',
    "memory_delete": 'Memory entry "{name}" not found.',
}

_UNAVAILABLE = "Memory is temporarily unavailable; try again."
_BROKEN = "Memory has a problem on the host; see its log."


def refused(error: MemplaneError) -> IpcError | None:
    """Errors that stop a request before it reaches the tool."""
    if isinstance(error, ArgumentsInvalid):
        return IpcError(Stage.PAYLOAD, Code.VALIDATION_FAILED, str(error), field=error.field)
    if isinstance(error, Forbidden):
        return IpcError(Stage.AUTHORIZE, Code.UNAUTHORIZED, str(error))
    return None


def handler_failure(tool: str, error: MemplaneError) -> Failure:
    """Errors of the tool itself. Only errors that the caller can fix are explained; paths and causes stay on the
    host."""
    match error:
        case LimitReached():
            message = _LIMITS[error.action].format(limit=error.limit)
            return Failure(code=Code.RATE_LIMITED, message=message, retriable=False)
        case NotFound() if tool in _NOT_FOUND:
            message = _NOT_FOUND[tool].format(name=error.name)
            return Failure(code=Code.HANDLER_ERROR, message=message, retriable=False)
        case InvalidRequest():
            return Failure(code=Code.HANDLER_ERROR, message=str(error), retriable=False)
    if error.retryable:
        return Failure(code=Code.PLUGIN_UNAVAILABLE, message=_UNAVAILABLE, retriable=True)
    return Failure(code=Code.PLUGIN_ERROR, message=_BROKEN, retriable=False)
