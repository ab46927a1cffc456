"""Errors in CLAIV's format: Memplane's own, with CLAIV's codes and `details`."""

import msgspec
from starlette.responses import Response

from memplane.server.errors import (
    ErrorContext,
    ErrorDetail,
    ErrorFormat,
    HttpError,
    NestedError,
    without_422,
)
from memplane.server.responses import json_response

_FIELDS = {
    "since": "from_time",
    "until": "to_time",
    "conversation": "conversation_id",
    "project": "project_id",
    "document": "document_id",
    "collection": "collection_id",
}
"""The engine's name of a field, and its name in CLAIV's bodies."""
_CODES = {
    "unauthenticated": "unauthorized",
    "missing_credential": "unauthorized",
    "malformed_body": "invalid_request",
    "malformed_path": "invalid_request",
}


def _render(error: HttpError, context: ErrorContext) -> Response:
    """CLAIV's clients do not know 422, have one code for an invalid credential, and read the seconds to wait from
    `details.retry_after` instead of a header."""
    details = dict(error.details)
    if wait := error.headers.get("retry-after"):
        details.setdefault("retry_after", int(wait))
    if "field" in details:
        details["field"] = _FIELDS.get(details["field"], details["field"])
    code = _CODES.get(error.code, error.code)
    detail = ErrorDetail(code, error.message, context.request_id, details or msgspec.UNSET)
    return json_response(NestedError(detail), status=without_422(error.status), headers=error.headers)


FORMAT = ErrorFormat(_render, NestedError)
