"""Responses: Starlette's, with JSON written by msgspec."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html; charset=utf-8"
NDJSON = "application/x-ndjson"

_encode = msgspec.json.Encoder().encode


def json_response(
    value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None, newline: bool = False
) -> Response:
    body = _encode(value)
    return Response(body + b"\n" if newline else body, status, headers, JSON)


def text_response(text: str, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(text, status, headers, TEXT)
