"""How the HTTP doors say no: the table from our errors to statuses. No error below a door knows HTTP."""

from http import HTTPStatus
from typing import Any

import msgspec

from memplane.auth.principal import Forbidden, KeySetUnavailable, LockedOut, Unauthenticated
from memplane.errors import (
    Changed,
    CollectionTaken,
    DocumentUnreadable,
    InvalidRequest,
    KeyMismatch,
    LimitReached,
    ManifestUnreadable,
    MemplaneError,
    NotFound,
    PathTaken,
    QuotaExceeded,
    RateLimited,
    RemoteDenied,
    RemoteError,
    RemoteUnavailable,
    SettingsInvalid,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageTooNew,
    StorageUnavailable,
    StorageUncertain,
    StorageUnreachable,
    Unchanged,
)
from memplane.models.embedding import EmbeddingFailed, EmbeddingUnavailable, EmbeddingUnusable
from memplane.models.llm import LLMFailed, LLMUnavailable, LLMUnusable

STATUSES: dict[type[MemplaneError], HTTPStatus] = {
    MemplaneError: HTTPStatus.INTERNAL_SERVER_ERROR,
    InvalidRequest: HTTPStatus.UNPROCESSABLE_ENTITY,
    NotFound: HTTPStatus.NOT_FOUND,
    PathTaken: HTTPStatus.CONFLICT,
    CollectionTaken: HTTPStatus.CONFLICT,
    DocumentUnreadable: HTTPStatus.UNPROCESSABLE_ENTITY,
    LimitReached: HTTPStatus.TOO_MANY_REQUESTS,
    RateLimited: HTTPStatus.TOO_MANY_REQUESTS,
    QuotaExceeded: HTTPStatus.TOO_MANY_REQUESTS,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    LockedOut: HTTPStatus.TOO_MANY_REQUESTS,
    Forbidden: HTTPStatus.FORBIDDEN,
    KeySetUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    SettingsInvalid: HTTPStatus.INTERNAL_SERVER_ERROR,
    EmbeddingFailed: HTTPStatus.BAD_GATEWAY,
    EmbeddingUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    EmbeddingUnusable: HTTPStatus.BAD_GATEWAY,
    LLMFailed: HTTPStatus.BAD_GATEWAY,
    LLMUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    LLMUnusable: HTTPStatus.BAD_GATEWAY,
    StorageError: HTTPStatus.INTERNAL_SERVER_ERROR,
    StorageUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    StorageUnreachable: HTTPStatus.SERVICE_UNAVAILABLE,
    StorageUncertain: HTTPStatus.SERVICE_UNAVAILABLE,
    StorageBusy: HTTPStatus.SERVICE_UNAVAILABLE,
    StorageFull: HTTPStatus.INSUFFICIENT_STORAGE,
    StorageCorrupt: HTTPStatus.INTERNAL_SERVER_ERROR,
    StorageTooNew: HTTPStatus.INTERNAL_SERVER_ERROR,
    KeyMismatch: HTTPStatus.INTERNAL_SERVER_ERROR,
    RemoteError: HTTPStatus.BAD_GATEWAY,
    RemoteUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    RemoteDenied: HTTPStatus.BAD_GATEWAY,
    ManifestUnreadable: HTTPStatus.BAD_GATEWAY,
    Changed: HTTPStatus.SERVICE_UNAVAILABLE,
    Unchanged: HTTPStatus.BAD_GATEWAY,
}

_BUSY_RETRY_S = 1


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A no, before it has a shape."""

    status: int
    code: str
    message: str
    headers: dict[str, str] = {}
    details: dict[str, Any] = {}
    """What a program needs to know, for envelopes that have a place for it."""


class HttpError(Exception):
    """A door says no in words of its own."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.refusal = ErrorInfo(status=status, code=code, message=message, headers=headers or {})


class MalformedBody(InvalidRequest):
    """The body is not what its content type says."""

    code = "malformed_body"


def refusal_of(error: Exception) -> ErrorInfo:
    """What is told of an error. Where the fault is ours, the log has the message and the caller only its kind: messages
    of the storage name files."""
    if isinstance(error, HttpError):
        return error.refusal
    if not isinstance(error, MemplaneError):
        return ErrorInfo(
            status=500, code="internal", message="an error of ours; the log has it under this request's id"
        )
    status = status_of(error)
    message = _kind(error) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else str(error)
    return ErrorInfo(
        status=status,
        code=error.code,
        message=message,
        headers=_headers(error, status),
        details=_details(error),
    )


def status_of(error: MemplaneError) -> HTTPStatus:
    """The status of the class itself, or of the nearest class it derives from."""
    if isinstance(error, MalformedBody):
        return HTTPStatus.BAD_REQUEST
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def _kind(error: MemplaneError) -> str:
    return " ".join((type(error).__doc__ or "an error of ours").split()).rstrip(".")


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
