"""How an error becomes an HTTP response: its status comes from the error's category, its format from the adapter."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response

from memplane.auth.principal import LockedOut
from memplane.errors import (
    InvalidRequest,
    MemplaneError,
    QuotaExceeded,
    RateLimited,
    StorageBusy,
    StorageFull,
    StorageUnreachable,
)
from memplane.server.responses import json_response

_BUSY_RETRY_S = 1


class HttpError(HTTPException):
    """An error with an HTTP status and a stable code. Adapters raise it for what only their protocol knows."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(status, message)
        self.headers: dict[str, str] = dict(headers or {})
        self.code = code
        self.details = dict(details or {})
        """Data for programs, in error formats that have a field for it."""

    @property
    def status(self) -> int:
        return self.status_code

    @property
    def message(self) -> str:
        return self.detail

    def replaced(self, other: "HttpError | None") -> "HttpError":
        """`other` with the headers that its status needs; this error where there is no other."""
        if other is None:
            return self
        needed = self.headers if other.status == self.status else {}
        return HttpError(
            other.status, other.code, other.message, needed | other.headers, details=other.details
        )


class MalformedBody(InvalidRequest):
    """The body is not what its content type says."""

    code = "malformed_body"


_STATUSES: dict[type[MemplaneError], HTTPStatus] = {
    MalformedBody: HTTPStatus.BAD_REQUEST,
    StorageFull: HTTPStatus.INSUFFICIENT_STORAGE,
}
"""Errors whose status differs from that of their category."""


class ErrorContext(msgspec.Struct, frozen=True, kw_only=True):
    """What an error format may need to know about the request."""

    request_id: str
    path: str = ""
    headers: Mapping[str, str] = Headers()
    page: str = ""
    """Path and query of a GET request, to return to after signing in."""


class ErrorFormat(msgspec.Struct, frozen=True):
    """The format in which an adapter's clients expect errors."""

    render: Callable[[HttpError, ErrorContext], Response]
    schema: Any
    """The type of the JSON body, for the OpenAPI description; None is plain text."""


class ErrorDetail(msgspec.Struct):
    """What went wrong. `code` is stable; `request_id` is the ID in the server's log."""

    code: str
    message: str
    request_id: str
    details: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """Data a program can act on, for example the field or the number of seconds to wait."""


class NestedError(msgspec.Struct):
    """The error format of Memplane's own interfaces and of CLAIV."""

    error: ErrorDetail


def _nested(error: HttpError, context: ErrorContext) -> Response:
    detail = ErrorDetail(error.code, error.message, context.request_id)
    return json_response(NestedError(detail), status=error.status, headers=error.headers)


NESTED = ErrorFormat(_nested, NestedError)


def http_error(error: Exception) -> HttpError:
    """The response to an error. A fault of the server is described by its kind only: the message stays in the log, because
    messages of the storage contain file names."""
    if isinstance(error, HttpError):
        return error
    if not isinstance(error, MemplaneError):
        return HttpError(500, "internal", "Internal error; see the log for this request ID")
    status = status_of(error)
    message = _kind(error) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else str(error)
    return HttpError(status, error.code, message, _headers(error, status), details=_details(error))


def status_of(error: MemplaneError) -> int:
    own = next((_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES), None)
    return own or error.category.http_status


def without_422(status: int) -> int:
    """For clients that do not know 422."""
    return HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNPROCESSABLE_ENTITY else status


def _kind(error: MemplaneError) -> str:
    return " ".join((type(error).__doc__ or "Internal error").split()).rstrip(".")


def _details(error: MemplaneError) -> dict[str, Any]:
    if isinstance(error, QuotaExceeded):
        return {
            "plan": error.plan,
            "reset_date": error.reset_date,
            "usage": {"ingest_events": error.used, "limit": error.limit},
        }
    if isinstance(error, RateLimited):
        return {"retry_after": error.retry_after_s}
    field = error.field if isinstance(error, InvalidRequest) else None
    return {} if field is None else {"field": field}


def _headers(error: MemplaneError, status: int) -> dict[str, str]:
    if isinstance(error, LockedOut | RateLimited):
        return {"retry-after": str(error.retry_after_s)}
    if status == HTTPStatus.UNAUTHORIZED:
        return {"www-authenticate": 'Bearer realm="memplane"'}
    if isinstance(error, StorageBusy | StorageUnreachable):
        return {"retry-after": str(_BUSY_RETRY_S)}
    return {}
