"""Errors in Helmdeck's format: `{"error": code, "message": text}`."""

from http import HTTPStatus

import msgspec
from starlette.responses import Response

from memplane.server.errors import ErrorContext, ErrorFormat, HttpError, without_422
from memplane.server.responses import json_response

_CODES = {
    "invalid_request": "invalid_input",
    "malformed_body": "invalid_input",
    "unauthenticated": "invalid_token",
    "missing_credential": "missing_bearer",
}
_MESSAGES = {"missing_credential": "Authorization: Bearer <token> required"}


class FlatError(msgspec.Struct):
    """Helmdeck's error format."""

    error: str
    message: str


def _render(error: HttpError, _context: ErrorContext) -> Response:
    """Helmdeck's clients do not know 422, and have their own codes for invalid credentials."""
    headers = error.headers
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers = headers | {"www-authenticate": 'Bearer realm="helmdeck"'}
    body = FlatError(_CODES.get(error.code, error.code), _MESSAGES.get(error.code, error.message))
    return json_response(body, status=without_422(error.status), headers=headers, newline=True)


FORMAT = ErrorFormat(_render, FlatError)
