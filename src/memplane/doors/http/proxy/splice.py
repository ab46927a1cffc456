"""Where things stand in a JSON text, so that something can be put between them and every other byte stays as it was.

Providers cache the beginning of a prompt by what it says, and a body that is decoded and written anew may spell the same
thing differently. So nothing of a client's body is ever written anew.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from memplane.ledger import gojson

_MEMBERS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_NAME_TEXT: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_OPENING = re.compile(rb"[ \t\r\n]*[{\[]")
_NAME = re.compile(rb'[ \t\r\n,]*("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_GAP = re.compile(rb"[ \t\r\n,]*")

_encode = msgspec.json.Encoder().encode


class Extent(NamedTuple):
    """From the first byte of a value to behind its last."""

    start: int
    end: int


class NotPlain(ValueError):
    """No JSON object, or one in which a name stands twice, so that two readers would take different values."""


def members_of(raw: bytes) -> dict[str, Extent]:
    """Where the value of each member of the outermost object stands."""
    text = gojson.mend_surrogates(raw)  # as long as before, so places stay what they are
    try:
        members = gojson.decode(text, _MEMBERS)
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise NotPlain(str(exc)) from exc
    opening = _OPENING.match(text)
    assert opening is not None
    at, found = opening.end(), {}
    for name, value in members.items():
        key = _NAME.match(text, at)
        if key is None or _NAME_TEXT.decode(key[1]) != name or not text.startswith(bytes(value), key.end()):
            raise NotPlain("a name stands twice")
        at = key.end() + len(memoryview(value))
        found[name] = Extent(key.end(), at)
    if text[at:].strip() != b"}":
        raise NotPlain("a name stands twice")
    return found


def items_of(raw: bytes, array: Extent) -> list[Extent]:
    """Where each item of an array stands."""
    text = gojson.mend_surrogates(raw[array.start : array.end])
    at, found = 1, []
    for item in gojson.decode(text, _ITEMS):
        gap = _GAP.match(text, at)
        assert gap is not None
        at = gap.end() + len(memoryview(item))
        found.append(Extent(array.start + gap.end(), array.start + at))
    return found


def put_items(
    array: Extent, items: list[Extent], additions: Iterable[tuple[int, Any]]
) -> list[tuple[Extent, bytes]]:
    """Changes that put a value before each named place; the number of items is the place behind the last."""
    changes = []
    for place, value in additions:
        written = _encode(value)
        if place < len(items):
            start = items[place].start
            changes.append((Extent(start, start), written + b","))
        elif items:
            end = items[-1].end
            changes.append((Extent(end, end), b"," + written))
        else:  # behind the bracket; a second one needs a comma, which the first of them cannot know of
            comma = b"," if changes else b""
            changes.append((Extent(array.start + 1, array.start + 1), comma + written))
    return changes


def changed(raw: bytes, changes: Iterable[tuple[Extent, bytes]]) -> bytes:
    """The text with each span replaced. Changes at one place stay in the order they are given."""
    parts: list[bytes] = []
    at = 0
    for span, new in sorted(changes, key=lambda change: change[0].start):
        parts += raw[at : span.start], new
        at = span.end
    return b"".join((*parts, raw[at:]))
