"""What every object store must do. Each passes tests/contract/test_objects.py.

A store keeps bytes under keys: relative paths with `/` between their parts, any Unicode, no part empty, `.` or `..`.
Every write of other content gives an object another version, an opaque word that no other content of that key ever had
(S3 makes it of the content alone, so what is written back to what it was may have its old version back). There is no
lock and no order between keys: whoever changes what others change too reads, writes with `expect`, and begins again
when that raises `Changed`.

A write whose answer is lost may have happened all the same. Adapters try again what is safe to try again, so `Changed`
may also mean that the caller's own write went through: look before you conclude.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, Protocol

import msgspec

ABSENT: Final = ""
"""As `expect`: only where there is no such object yet. No version is an empty word."""


class Got(msgspec.Struct, frozen=True, gc=False):
    """An object and the version it was read in."""

    data: bytes
    version: str


class Listed(msgspec.Struct, frozen=True, gc=False):
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

    def get(self, key: str, *, unless: str | None = None) -> Got | None:
        """The object as it is now; None where there is none. Raises `Unchanged` where its version is `unless`."""

    def put(self, key: str, data: bytes, *, expect: str | None = None) -> str:
        """Write the whole object or nothing, and return its version. With `expect`, only where its version is that one
        still (`ABSENT`: only where there is none); otherwise raise `Changed` and leave it as it is."""

    def delete(self, key: str) -> None:
        """Remove it; no error where there is none."""

    def list(self, prefix: str = "") -> Iterator[Listed]:
        """Every object whose key begins with `prefix` (letter by letter, not part by part), in the order of their keys'
        UTF-8; however many there are."""
