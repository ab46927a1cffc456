"""Reading a body from whoever may send too much, too slowly, or nonsense."""

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
from starlette.types import Receive

from memplane.errors import InvalidRequest
from memplane.server.endpoint import Endpoint
from memplane.server.refusal import HttpError, MalformedBody

DEPTH_MAX = 64
"""Nothing that is kept nests deeper, and what reads it later may be recursive."""
_DISCARD_BYTES_MAX = 256 << 20
"""A client that sends too much is listened to this long, because most look for the answer only when they are done."""
_SMALL_BYTES = 64 << 10
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+', re.DOTALL)
"""Taken whole or to the end of the body, and never tried again from within: whoever waits for it holds up everybody."""
_AT = re.compile(r" - at `\$\.([^`]+)`$")
_MEMBER = re.compile(r"^Object (?:missing required|contains unknown) field `([^`]+)`")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ALIKE = bytes.maketrans(b"{}", b"[]")


class ClientGone(Exception):
    """Whoever asked has hung up."""


def is_small(headers: Mapping[str, str]) -> bool:
    """Whether the server has, or will have, all of the body in its own buffer anyway."""
    declared = headers.get("content-length", "0")
    return "transfer-encoding" not in headers and declared.isdecimal() and int(declared) <= _SMALL_BYTES


async def read_body(
    receive: Receive, headers: Mapping[str, str], *, bytes_max: int, seconds_max: float
) -> bytes:
    """All of the body. What counts is what comes, whatever the headers say of it."""
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
                    raise ClientGone
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
    """Let a client that is refused beforehand finish, so that it gets to read why; whether it did."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds_max):
            size, more = 0, True
            while more and size <= _DISCARD_BYTES_MAX:
                message = await receive()
                size += len(message.get("body", b""))
                more = message["type"] == "http.request" and message.get("more_body", False)
            return not more
    return False


def check_media(endpoint: Endpoint, content_type: str) -> None:
    """A form of a foreign page can send three content types without asking; none of them is taken."""
    media = content_type.partition(";")[0].strip().lower()
    taken = endpoint.media
    if taken is None or not media or media in taken:
        return
    if "application/json" in taken and media.startswith("application/") and media.endswith("+json"):
        return
    raise HttpError(
        415, "unsupported_media_type", f"the body must be {' or '.join(taken)}, not {media[:100]}"
    )


def decode_body(endpoint: Endpoint, raw: bytes) -> Any:
    """The body as the endpoint wants it."""
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
    """Strict JSON: UTF-8, no name twice in one object, no deeper than anything that is kept."""
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
    """Which member does not fit, where that can be told: `limits.document_chunks`."""
    path, name = _AT.search(message), _MEMBER.search(message)
    parts = [path[1]] if path else []
    return ".".join([*parts, *([name[1]] if name else [])]) or None


def check_depth(raw: bytes) -> None:
    """Innermost pairs are taken away, a level at a time, all of a level in one go: a body may hold millions."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH_MAX:
        return
    left = _STRING.sub(b"", raw).translate(_ALIKE, _NO_BRACKETS)
    for _ in range(DEPTH_MAX):
        left = left.replace(b"[]", b"")
    if left:
        raise MalformedBody(f"the body is nested deeper than {DEPTH_MAX}, or its brackets do not match")


def _names(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise MalformedBody(f"the name {twice[:100]!r} stands twice in one object; which is meant?")


def _nothing(_: str) -> None:
    return None


_names_decoder = json.JSONDecoder(
    object_pairs_hook=_names, parse_int=_nothing, parse_float=_nothing, parse_constant=_nothing
)
