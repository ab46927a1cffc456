"""Errors in the format of Clawdapus' reference service: one line of plain text."""

from http import HTTPStatus

from starlette.responses import Response

from memplane.server.errors import ErrorContext, ErrorFormat, HttpError, without_422
from memplane.server.responses import text_response


def _render(error: HttpError, _context: ErrorContext) -> Response:
    wrong_method = error.status == HTTPStatus.METHOD_NOT_ALLOWED
    message = "method not allowed" if wrong_method else error.message
    return text_response(f"{message}\n", status=without_422(error.status), headers=error.headers)


FORMAT = ErrorFormat(_render, None)
