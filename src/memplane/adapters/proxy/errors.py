"""Errors in the format of the provider whose client sent the request: OpenAI's or Anthropic's."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from memplane.server.errors import ErrorContext, ErrorFormat, HttpError, without_422
from memplane.server.responses import json_response

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


class OpenAIDetail(msgspec.Struct):
    """The error in OpenAI's format."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIError(msgspec.Struct):
    """OpenAI's error format."""

    error: OpenAIDetail


class AnthropicDetail(msgspec.Struct):
    """The error in Anthropic's format."""

    type: str
    message: str


class AnthropicError(msgspec.Struct):
    """Anthropic's error format."""

    type: str
    error: AnthropicDetail
    request_id: str


def is_anthropic(path: str, headers: Mapping[str, str]) -> bool:
    """Detect the client by the path, or by the header that Anthropic's clients always send. OpenAI's threads also
    have a messages path."""
    return "/v1/messages/" in f"{path}/" or "anthropic-version" in headers


def _render(error: HttpError, context: ErrorContext) -> Response:
    status = without_422(error.status)
    body: AnthropicError | OpenAIError
    if is_anthropic(context.path, context.headers):
        anthropic = AnthropicDetail(_type_of(status, _ANTHROPIC_TYPES), error.message)
        body = AnthropicError("error", anthropic, context.request_id)
    else:
        body = OpenAIError(OpenAIDetail(error.message, _type_of(status, _OPENAI_TYPES), None, error.code))
    return json_response(body, status=status, headers=error.headers)


def _type_of(status: int, types: dict[int, str]) -> str:
    fault = "api_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid_request_error"
    return types.get(status, fault)


FORMAT = ErrorFormat(_render, OpenAIError)
