"""The contract of an object store. Each implementation passes tests/sync/test_object_stores.py.

A store keeps bytes under keys: relative paths with `/` between their parts, any Unicode, no part empty, `.` or
`..`. Every write of different content gives an object a new version, an opaque string that no other content of that
key has had (S3 derives it from the content, so restored content may have its old version). There are no locks and
no order between keys: a concurrent writer reads, writes with `expect`, and starts again after `Changed`.

A write whose response is lost may have succeeded. Adapters retry what is safe to retry, so `Changed` may also mean
that the caller's own write succeeded: read the object before you conclude.
"""

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime
from typing import Final, Protocol

import msgspec

from memplane.errors import InvalidRequest

# Stored names of keys. A key is any Unicode, but Azure drops a dot at the end of a part and turns `\` into `/`, XML
# listings cannot contain control characters, and file systems limit a part to 255 bytes. Such characters, and no
# others, are percent-encoded, and a part that is too long continues in a subfolder. The rules are the same for every
# store, so a tree can be copied between stores. A name that no key encodes to (`a%20b` would be `a b`) is not listed.

KEY_BYTES_MAX = 1_000
"""Of a whole name, with the prefix of its store: Azure, S3 and GCS take 1,024."""

_PART_BYTES_MAX = 240
"""Of a part of a name: file systems, and object stores that are built on them, take 255."""

_GOES_ON = "%"
"""Ends a part of a name that goes on in the next. No part of a key is written so."""

_AWKWARD = re.compile(
    r"[\x00-\x1f\x7f-\x9f\\\ufffe\uffff]"  # what XML cannot say, or a provider takes for something else
    r"|%(?=[0-9A-Fa-f]{2})|^%|%$"  # what would read as written by us
    r"|[. ]$"  # what Azure and Windows drop
)
_WRITTEN = re.compile(r"(?:%[0-9A-F]{2})+")


def checked(key: str) -> str:
    """The key itself, or `InvalidRequest` where it is none."""
    parts = key.split("/")
    if "" in parts or "." in parts or ".." in parts:
        raise InvalidRequest(
            f"{display_key(key)} is no key: give a relative path such as notes/today.md, without . or .. in it",
            field="key",
        )
    try:
        size = len(key.encode())
    except UnicodeEncodeError as exc:
        raise InvalidRequest(f"{display_key(key)} is no key: it holds half a character", field="key") from exc
    if size > KEY_BYTES_MAX:
        raise InvalidRequest(
            f"{display_key(key)} is too long a key: {size} bytes, {KEY_BYTES_MAX} are possible", field="key"
        )
    return key


def display_key(key: str) -> str:
    """A key for a message: on one line, and not all of a long one."""
    return repr(key if len(key) <= 80 else f"{key[:80]}…")  # noqa: PLR2004 - about a line


def to_name(key: str) -> str:
    """The name of the object: the key, but for what could not be kept so."""
    parts = (_AWKWARD.sub(_write, part) for part in checked(key).split("/"))
    return "/".join(piece for part in parts for piece in _pieces(part))


def from_name(name: str) -> str | None:
    """The key whose name this is; None where there is none."""
    try:
        key = _WRITTEN.sub(_read, name.replace(f"{_GOES_ON}/", ""))
        return key if to_name(key) == name else None
    except (UnicodeError, InvalidRequest):
        return None


def order(key: str) -> bytes:
    """By which keys are sorted: providers agree on their UTF-8 and on nothing else."""
    return key.encode()


def _write(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _read(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode()


def _pieces(part: str) -> list[str]:
    pieces: list[str] = []
    left = part
    while len(left.encode()) > _PART_BYTES_MAX:
        piece = left.encode()[:_PART_BYTES_MAX].decode(errors="ignore")
        while piece and unicodedata.combining(left[len(piece)]):
            piece = piece[:-1]  # a mark stays with its letter, or some systems would recompose them
        pieces.append(piece + _GOES_ON)
        left = left[len(piece) :]
    return [*pieces, left]


ABSENT: Final = ""
"""As `expect`: only where there is no such object yet. No version is an empty word."""


class StoredObject(msgspec.Struct, frozen=True, gc=False):
    """An object and the version it was read in."""

    data: bytes
    version: str


class ObjectInfo(msgspec.Struct, frozen=True, gc=False):
    """What a listing says of an object."""

    key: str
    size: int
    version: str
    modified: datetime


class ObjectStore(Protocol):
    """Bytes under keys, with conditional writes. Safe to use from many threads.

    Raises `RemoteUnavailable` where it cannot be reached or keeps refusing, `RemoteDenied` where a credential is
    missing, expired or may not do this, and `InvalidRequest` for a key that is none.
    """

    @property
    def url(self) -> str:
        """Where it is, without anything secret; for messages."""

    def get(self, key: str, *, unless: str | None = None) -> StoredObject | None:
        """The object as it is now; None where there is none. Raises `Unchanged` where its version is `unless`."""

    def put(self, key: str, data: bytes, *, expect: str | None = None) -> str:
        """Write the whole object or nothing, and return its version. With `expect`, only where its version is that one
        still (`ABSENT`: only where there is none); otherwise raise `Changed` and leave it as it is."""

    def delete(self, key: str) -> None:
        """Remove it; no error where there is none."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Every object whose key begins with `prefix` (letter by letter, not part by part), in the order of their keys'
        UTF-8; however many there are."""
