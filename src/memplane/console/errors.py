"""Error pages of the console."""

from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.responses import Response

from memplane.console.links import sign_in_link
from memplane.console.pages import HEADERS, rendered
from memplane.server.errors import ErrorContext, ErrorFormat, HttpError
from memplane.server.responses import HTML, text_response


def _render(error: HttpError, context: ErrorContext) -> Response:
    """Return an error page, or one line of text for a fragment that htmx requested. A browser that is not signed in
    is redirected to the sign-in page."""
    in_page = "hx-request" in context.headers
    if error.status == HTTPStatus.UNAUTHORIZED:
        if in_page:
            link = sign_in_link(_page_of(context.headers.get("hx-current-url", "")))
            return Response(status_code=HTTPStatus.NO_CONTENT, headers={"hx-redirect": link})
        location = {"location": sign_in_link(context.page)}
        return Response(status_code=HTTPStatus.SEE_OTHER, media_type=HTML, headers=location)
    if in_page:
        return text_response(f"{error.message}\n", status=error.status, headers=error.headers)
    return rendered(
        "refused.html",
        status=error.status,
        headers=HEADERS | error.headers,
        status_shown=error.status,
        message=error.message,
    )


def _page_of(address: str) -> str:
    """Return the path and query of an absolute URL."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


FORMAT = ErrorFormat(_render, None)
