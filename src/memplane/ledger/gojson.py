"""JSON exactly as Go's encoding/json writes it.

A Clawdapus id is a hash of that text, so one different byte is another id. Checked against Go 1.19 and 1.27. They
differ in `\\b` and `\\f`, written as `\\u0008` and `\\u000c` before 1.22, and in invalid UTF-8, once written as
`\\ufffd`; we follow the newer.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias, TypeVar

import msgspec

from memplane.errors import InvalidRequest

Json: TypeAlias = bool | int | float | str | bytes | Sequence["Json"] | Mapping[str, "Json"] | None
"""What `encode` accepts. Bytes are JSON text, like Go's `json.RawMessage`, and are compacted."""

_FLOAT_PLAIN_MIN, _FLOAT_PLAIN_MAX = 1e-6, 1e21

_HTML_ESCAPES = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
_SIGNIFICANT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^" \t\r\n]+')
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# Every escape is consumed in turn, so the `ud800` after an escaped backslash is not taken for one.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_LITERAL = json.JSONEncoder(ensure_ascii=False).encode
_RAW: msgspec.json.Decoder[msgspec.Raw] = msgspec.json.Decoder(msgspec.Raw)

_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+', re.DOTALL)
_STRETCH = re.compile(rb'(?:"(?:[^"\\]++|\\.)*+"?+|[^"]{1,65536}+){1,4096}+', re.DOTALL)
"""A bounded number of strings, and what stands between them: a place to count up to."""
_PARTING = (b",", b"[", b"{")
VALUES_MAX = 1_000_000
"""Each value takes up to a hundred bytes of memory, however short it is in the text."""
REQUEST_VALUES_MAX = 500_000
"""The same for a request, of which a server decodes several at once."""

T = TypeVar("T")


class NotJson(InvalidRequest):
    """The text is not JSON; the message says where parsing failed."""


def check_values(raw: bytes, values_max: int = VALUES_MAX) -> None:
    """Raise `NotJson` if the text has more values, before any of them takes memory.

    Commas and brackets outside strings are counted. Most texts have fewer even with those in strings, which takes no
    look at the strings.
    """
    if sum(map(raw.count, _PARTING)) < values_max:
        return
    count = 0
    for stretch in _STRETCH.finditer(raw):
        outside = _STRINGS.sub(b"", stretch[0])
        count += sum(map(outside.count, _PARTING))
        if count >= values_max:
            raise NotJson(f"more than {values_max:,} values")


def decode(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode like `decoder`, but accept what Go accepts and reject invalid UTF-8.

    Go accepts an unpaired surrogate such as `\\ud83d`, which JavaScript clients write when they cut an emoji in half;
    it is read as U+FFFD. Raises `NotJson`, also for too many values, or `msgspec.ValidationError` for another shape.
    """
    check_values(raw)
    try:
        # msgspec validates only the members it keeps.
        if not raw.isascii():
            str(raw, "utf-8")
        return decoder.decode(raw)
    except UnicodeDecodeError as exc:
        raise NotJson(f"invalid UTF-8 at byte {exc.start}") from exc
    except RecursionError as exc:
        raise NotJson("nested too deeply") from exc
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as exc:
        mended = mend_surrogates(raw)
        if mended == raw:
            raise NotJson(f"not JSON: {exc}") from exc
    return decode(mended, decoder)


def mend_surrogates(raw: bytes) -> bytes:
    """The same JSON with each unpaired surrogate replaced by U+FFFD, as Go's decoder does."""
    if not _SURROGATE.search(raw):
        return raw
    return _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], raw)


def compact(raw: bytes) -> bytes:
    """JSON text without insignificant whitespace and with HTML characters escaped.

    Key order, duplicate keys, number spelling and escapes are kept. Raises `NotJson`.
    """
    decode(raw, _RAW)
    return compact_valid(raw)


def compact_valid(raw: bytes) -> bytes:
    """`compact` for a text that was decoded before."""
    return _escape_html(b"".join(_SIGNIFICANT.findall(raw)))


def encode(value: Json, *, sort_keys: bool = False) -> bytes:
    """The value as `json.Marshal` writes it; `sort_keys` as for a Go map, otherwise in the given order.

    A lone surrogate becomes U+FFFD, as invalid UTF-8 bytes do in Go.
    """
    try:
        return _escape_html(_encode(value, sort_keys=sort_keys))
    except RecursionError as exc:
        raise InvalidRequest("a value nested this deeply cannot be written as JSON") from exc


def format_float(value: float) -> str:
    """The shortest digits that read back the same: plain for 1e-6 <= |x| < 1e21, else `1e-7`, `1e+21`."""
    if not math.isfinite(value):
        raise InvalidRequest(f"JSON has no number for {value!r}")
    if value == 0 or _FLOAT_PLAIN_MIN <= abs(value) < _FLOAT_PLAIN_MAX:
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return repr(value).replace("e-0", "e-")


def _encode(value: Json, *, sort_keys: bool) -> bytes:
    # Scalars first: an isinstance check on an abstract class takes longer than writing one.
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return _encode_scalar(value)
    if isinstance(value, Mapping):
        return _encode_object(value, sort_keys=sort_keys)
    return b"[" + b",".join(_encode(item, sort_keys=sort_keys) for item in value) + b"]"


def _encode_scalar(value: bool | float | str | bytes | None) -> bytes:  # noqa: FBT001  a value, not a flag
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, bytes):
        return compact(value)
    if value is None or isinstance(value, bool):
        return _LITERAL(value).encode()
    return b"%d" % value if isinstance(value, int) else format_float(value).encode()


def _encode_object(value: Mapping[str, Json], *, sort_keys: bool) -> bytes:
    # Code points and UTF-8 bytes sort the same way, so this is Go's order.
    members = sorted(value.items()) if sort_keys else value.items()
    return b"{" + b",".join(_quote(k) + b":" + _encode(v, sort_keys=sort_keys) for k, v in members) + b"}"


def _quote(text: str) -> bytes:
    literal = _LITERAL(text)
    try:
        return literal.encode()
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub("\ufffd", literal).encode()


def _escape_html(text: bytes) -> bytes:
    """In JSON these characters occur only inside strings, so the whole text can be searched."""
    for character, escape in _HTML_ESCAPES:
        text = text.replace(character, escape)
    return text
