"""Reading query strings and bodies, with limits on their size, their depth and the time they take."""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.server.endpoint import Endpoint
from memplane.server.errors import HttpError, MalformedBody

DEPTH_MAX = 64
"""Nothing that is stored nests deeper, and code that reads it later may be recursive."""
_QUERY_PARTS_MAX = 100
_DISCARD_BYTES_MAX = 256 << 20
"""A body that is too large is read up to here and dropped, because most clients read the response only after they have sent
everything."""
_SMALL_BYTES = 64 << 10
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+', re.DOTALL)
"""Possessive, so that a string without an end is not searched again from every quote in it."""
_AT = re.compile(r" - at `\$\.([^`]+)`$")
_MEMBER = re.compile(r"^Object (?:missing required|contains unknown) field `([^`]+)`")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ALIKE = bytes.maketrans(b"{}", b"[]")


def read_query(endpoint: Endpoint, query_string: bytes) -> dict[str, Any]:
    """Every declared parameter, converted to its type. A parameter given twice is an error."""
    if not query_string and not endpoint.query:
        return {}
    try:
        given = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_QUERY_PARTS_MAX,
        )
    except (UnicodeDecodeError, ValueError) as exc:
        raise InvalidRequest("the query string is not percent-encoded UTF-8, or has too many parts") from exc
    values: dict[str, Any] = {}
    for query in endpoint.query:
        found = [value for name, value in given if name == query.name]
        if len(found) > 1:
            raise InvalidRequest(f"{query.name} is given {len(found)} times; give it once", field=query.name)
        if not found and query.required:
            raise InvalidRequest(f"{query.name} is missing", field=query.name)
        values[query.name] = query.default if not found else _converted(query.name, found[0], query.type)
    return values


def _converted(name: str, value: str, type_: Any) -> Any:
    try:
        return msgspec.convert(value, type_, strict=False)
    except msgspec.ValidationError as exc:
        raise InvalidRequest(f"{name} does not fit: {exc}", field=name) from exc


# ── reading a body ───────────────────────────────────────────────────────────────────────────────────────────────


def is_small(headers: Mapping[str, str]) -> bool:
    """Whether the whole body fits into the buffer that the server reads anyway."""
    declared = headers.get("content-length", "0")
    return "transfer-encoding" not in headers and declared.isdecimal() and int(declared) <= _SMALL_BYTES


async def read_body(
    receive: Receive, headers: Mapping[str, str], *, bytes_max: int, seconds_max: float
) -> bytes:
    """The whole body. The limit is on the bytes that arrive, not on the length that the headers declare."""
    too_large = HttpError(
        413, "too_large", f"the body is larger than {bytes_max:,} bytes", {"connection": "close"}
    )
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > bytes_max and "expect" in headers:
        raise too_large
    try:
        async with asyncio.timeout(seconds_max):
            chunks, size, more = [], 0, True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise ClientDisconnect
                chunk = message.get("body", b"")
                size += len(chunk)
                if size <= bytes_max:
                    chunks.append(chunk)
                elif size > _DISCARD_BYTES_MAX:
                    break
                else:
                    chunks.clear()
                more = message.get("more_body", False)
    except TimeoutError as exc:
        raise HttpError(
            408, "timeout", f"the body did not arrive within {seconds_max:g} seconds", {"connection": "close"}
        ) from exc
    if size > bytes_max:
        raise too_large
    return b"".join(chunks)


async def discard_body(receive: Receive, *, seconds_max: float) -> bool:
    """Read the rest of a rejected request, so that the client gets to read the response; whether it ended in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds_max):
            size, more = 0, True
            while more and size <= _DISCARD_BYTES_MAX:
                message = await receive()
                size += len(message.get("body", b""))
                more = message["type"] == "http.request" and message.get("more_body", False)
            return not more
    return False


# ── decoding it ──────────────────────────────────────────────────────────────────────────────────────────────────


def check_media(endpoint: Endpoint, content_type: str) -> None:
    """A form on another site can send three content types without a preflight request; none of them is accepted."""
    media = content_type.partition(";")[0].strip().lower()
    accepted = endpoint.media
    if accepted is None or not media or media in accepted:
        return
    if "application/json" in accepted and media.startswith("application/") and media.endswith("+json"):
        return
    raise HttpError(
        415, "unsupported_media_type", f"the body must be {' or '.join(accepted)}, not {media[:100]}"
    )


def decode_body(endpoint: Endpoint, raw: bytes) -> Any:
    """The body in the type that the endpoint declares."""
    if endpoint.body is None:
        return None
    if endpoint.read is not None:
        return endpoint.read(raw)
    if endpoint.body is bytes:
        return raw
    if not raw.strip() and not endpoint.body_required:
        return None
    return decode_json(raw, endpoint.body)


def decode_json(raw: bytes, type_: Any) -> Any:
    """Strict JSON: UTF-8, unique names in every object, no deeper than `DEPTH_MAX`, and of no more values than fit into
    memory several times. Depth and values are counted in the bytes, before a value is built."""
    check_values(raw)
    check_depth(raw)
    try:
        text = raw.decode("utf-8")
        value = msgspec.json.decode(raw, type=type_)
        _names_decoder.decode(text)
    except msgspec.ValidationError as exc:
        raise InvalidRequest(f"the body does not fit: {exc}", field=_member_of(str(exc))) from exc
    except msgspec.DecodeError as exc:
        raise MalformedBody(f"the body is not JSON: {exc}") from exc
    except UnicodeDecodeError as exc:
        raise MalformedBody("the body is not UTF-8") from exc
    except RecursionError as exc:
        raise MalformedBody(f"the body is nested deeper than {DEPTH_MAX}") from exc
    return value


def _member_of(message: str) -> str | None:
    """The member that does not fit, where msgspec names it: `limits.document_chunks`."""
    path, name = _AT.search(message), _MEMBER.search(message)
    parts = [path[1]] if path else []
    return ".".join([*parts, *([name[1]] if name else [])]) or None


def check_values(raw: bytes) -> None:
    try:
        gojson.check_values(raw, gojson.REQUEST_VALUES_MAX)
    except gojson.NotJson as exc:
        raise MalformedBody(f"the body has {exc}; send it in parts") from exc


def check_depth(raw: bytes) -> None:
    """Remove the innermost pairs of brackets, one level at a time and a whole level at once: a body may have millions."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH_MAX:
        return
    left = _STRING.sub(b"", raw).translate(_ALIKE, _NO_BRACKETS)
    for _ in range(DEPTH_MAX):
        left = left.replace(b"[]", b"")
    if left:
        raise MalformedBody(f"the body is nested deeper than {DEPTH_MAX}, or its brackets do not match")


def _check_names(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise MalformedBody(f"the name {twice[:100]!r} occurs twice in one object")


def _ignored(_: str) -> None:
    return None


_names_decoder = json.JSONDecoder(
    object_pairs_hook=_check_names, parse_int=_ignored, parse_float=_ignored, parse_constant=_ignored
)
