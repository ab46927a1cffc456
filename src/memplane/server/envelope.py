"""The shape of a refusal, which goes by the path: clients of each door know one, and only one."""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from memplane.console.links import ROOT, sign_in_link
from memplane.console.pages import HEADERS, HTML, rendered
from memplane.server.endpoint import Response, json_response, text_response
from memplane.server.refusal import ErrorInfo

Envelope = Callable[[ErrorInfo, str], Response]
"""A refusal and the request's id make an answer."""

_FACTS_PREFIX = "/api/v1/"
_PLANE_PATHS = frozenset({"/recall", "/retain", "/forget", "/history", "/health", "/.claw-describe.json"})
_PLANE_PREFIXES = ("/history/", "/internal/context/")
_PROXY_PREFIXES = ("/v1/", "/proxy/")

_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}
_OPENAI_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}

_V6_PREFIXES = ("/v6/", "/v1/usage/", "/v1/deletion-receipts")

_V6_FIELDS = {
    "since": "from_time",
    "until": "to_time",
    "conversation": "conversation_id",
    "project": "project_id",
    "document": "document_id",
    "collection": "collection_id",
}
"""What the engine calls a member, and what it is called in a body there."""
_V6_CODES = {
    "unauthenticated": "unauthorized",
    "missing_credential": "unauthorized",
    "malformed_body": "invalid_request",
    "malformed_path": "invalid_request",
}
_FACTS_CODES = {
    "invalid_request": "invalid_input",
    "malformed_body": "invalid_input",
    "unauthenticated": "invalid_token",
    "missing_credential": "missing_bearer",
}
_FACTS_MESSAGES = {"missing_credential": "Authorization: Bearer <token> required"}


class FlatError(msgspec.Struct):
    """How the facts door says no."""

    error: str
    message: str


class ErrorDetail(msgspec.Struct):
    """What went wrong; `code` is stable, `request_id` is in the log."""

    code: str
    message: str
    request_id: str
    details: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    """What a program can act on, where there is something."""


class NestedError(msgspec.Struct):
    """How everything else says no."""

    error: ErrorDetail


class OpenAIDetail(msgspec.Struct):
    """What OpenAI says of an error."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIError(msgspec.Struct):
    """How OpenAI says no."""

    error: OpenAIDetail


class AnthropicDetail(msgspec.Struct):
    """What Anthropic says of an error."""

    type: str
    message: str


class AnthropicError(msgspec.Struct):
    """How Anthropic says no."""

    type: str
    error: AnthropicDetail
    request_id: str


def envelope_of(path: str, headers: Mapping[str, str] = MappingProxyType({}), *, asked: str = "") -> Envelope:
    """`asked` is the page that somebody was going to, for a door where one signs in first."""
    if path.startswith(_FACTS_PREFIX):
        return flat
    if path == ROOT or path.startswith(f"{ROOT}/"):
        in_page = "hx-request" in headers
        back = _page_of(headers.get("hx-current-url", "")) if in_page else asked
        return partial(told_in_page if in_page else shown, asked=back)
    if path in _PLANE_PATHS or path.startswith(_PLANE_PREFIXES):
        return plain
    if path.startswith(_V6_PREFIXES):
        return strict
    if path.startswith(_PROXY_PREFIXES):
        return anthropic if speaks_anthropic(path, headers) else openai
    return nested


def speaks_anthropic(path: str, headers: Mapping[str, str]) -> bool:
    """By its path, or by the header that Anthropic's clients always send. Threads of OpenAI's have messages too."""
    return "/v1/messages/" in f"{path}/" or "anthropic-version" in headers


def _page_of(address: str) -> str:
    """Path and query of an address that a browser names in full."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def shown(refusal: ErrorInfo, _request_id: str, *, asked: str = "") -> Response:
    """A page; whoever has to sign in is led there."""
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        return Response(status=HTTPStatus.SEE_OTHER, media=HTML, headers={"location": sign_in_link(asked)})
    headers = {**HEADERS, **refusal.headers}
    return rendered(
        "refused.html",
        status=refusal.status,
        headers=headers,
        status_shown=refusal.status,
        message=refusal.message,
    )


def told_in_page(refusal: ErrorInfo, _request_id: str, *, asked: str = "") -> Response:
    """For a part of a page: the words alone, which the page says."""
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        return Response(status=HTTPStatus.NO_CONTENT, headers={"hx-redirect": sign_in_link(asked)})
    return text_response(f"{refusal.message}\n", status=refusal.status, headers=refusal.headers)


def nested(refusal: ErrorInfo, request_id: str) -> Response:
    detail = ErrorDetail(refusal.code, refusal.message, request_id)
    return json_response(NestedError(detail), status=refusal.status, headers=refusal.headers)


def strict(refusal: ErrorInfo, request_id: str) -> Response:
    """CLAIV's clients know no 422, have one word for a credential that will not do, and wait as long as
    `details.retry_after` says: they do not look at headers."""
    details = dict(refusal.details)
    if wait := refusal.headers.get("retry-after"):
        details.setdefault("retry_after", int(wait))
    if "field" in details:
        details["field"] = _V6_FIELDS.get(details["field"], details["field"])
    code = _V6_CODES.get(refusal.code, refusal.code)
    error = ErrorDetail(code, refusal.message, request_id, details or msgspec.UNSET)
    return json_response(NestedError(error), status=_bad_request(refusal.status), headers=refusal.headers)


def openai(refusal: ErrorInfo, _request_id: str) -> Response:
    status = _bad_request(refusal.status)
    detail = OpenAIDetail(refusal.message, _kind_of(status, _OPENAI_TYPES), None, refusal.code)
    return json_response(OpenAIError(detail), status=status, headers=refusal.headers)


def anthropic(refusal: ErrorInfo, request_id: str) -> Response:
    status = _bad_request(refusal.status)
    detail = AnthropicDetail(_kind_of(status, _ANTHROPIC_TYPES), refusal.message)
    return json_response(AnthropicError("error", detail, request_id), status=status, headers=refusal.headers)


def _kind_of(status: int, kinds: dict[int, str]) -> str:
    fault = "api_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    return kinds.get(status, fault)


def flat(refusal: ErrorInfo, _request_id: str) -> Response:
    """Helmdeck's clients know no 422, and its own names for what is wrong with a credential."""
    code = _FACTS_CODES.get(refusal.code, refusal.code)
    headers = refusal.headers
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers = headers | {"www-authenticate": 'Bearer realm="helmdeck"'}
    error = FlatError(code, _FACTS_MESSAGES.get(refusal.code, refusal.message))
    return json_response(error, status=_bad_request(refusal.status), headers=headers, newline=True)


def plain(refusal: ErrorInfo, _request_id: str) -> Response:
    """In the words of the reference service, which says little."""
    refused_method = refusal.status == HTTPStatus.METHOD_NOT_ALLOWED
    message = "method not allowed" if refused_method else refusal.message
    return text_response(f"{message}\n", status=_bad_request(refusal.status), headers=refusal.headers)


def _bad_request(status: int) -> int:
    return HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNPROCESSABLE_ENTITY else status
