"""Which space a thing lives in, for those who know its id and not whose it is: the part of the catalog that finds them.

A space is the truth about what is in it, and the directory a hint where to look. It is noted before the space commits, so
a crash in between leaves an entry too many and never one too few; whoever looks makes sure in the space itself. Every
engine passes tests/contract/test_directory.py.

A sync for every note would make uploading half as fast. So the directory also says of whom it is complete, and a note
may be lost with the power as long as its owner is not: whoever misses something looks through those spaces first.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from memplane.clock import SECOND, Instant

KEPT = 3_600 * SECOND
"""An entry this new is not dropped, though its space does not have the thing: it may be about to."""


class ResourceKind(StrEnum):
    """What is found by its id alone."""

    DOCUMENT = "document"
    COLLECTION = "collection"
    RECEIPT = "receipt"


class ResourceLocation(msgspec.Struct, frozen=True, gc=False):
    """Where a thing is said to be."""

    id: str
    owner: str


class Directory(Protocol):
    """Any number of threads and processes use it at once; each read sees what any process finished writing before
    the read began. One id may live in several spaces."""

    def note(self, tenant: str, sort: ResourceKind, id: str, owner: str, *, now: Instant) -> None:
        """Called before the space commits. When it returns, every process finds the thing there, and if this is ever lost, the
        owner is not `complete`."""

    def note_all(
        self, tenant: str, sort: ResourceKind, ids: Mapping[str, Instant], owner: str, *, now: Instant
    ) -> None:
        """As `note`, for many at once; each with the time it is listed under."""

    def forget(self, tenant: str, sort: ResourceKind, id: str, owner: str, *, now: Instant) -> None:
        """Drop an entry whose space does not have the thing, unless it was noted within `KEPT`."""

    def drop(self, tenant: str, sort: ResourceKind, ids: Collection[str], owner: str) -> None:
        """Of what was forgotten not even the id is left. Somebody may have noted one of them anew and be about to commit, so
        the owner is not `complete` any more."""

    def of(self, tenant: str, sort: ResourceKind, owner: str) -> list[str]:
        """The ids of all that an owner is said to have."""

    def owners(self, tenant: str, sort: ResourceKind, id: str) -> list[str]:
        """In a stable order."""

    def newest(
        self, tenant: str, sort: ResourceKind, *, owners: Collection[str] | None, limit: int, offset: int
    ) -> list[ResourceLocation]:
        """Those of these owners, or of all; the newest first."""

    def count(self, tenant: str, sort: ResourceKind, *, owners: Collection[str] | None) -> int:
        """How many `newest` would list in all."""

    def complete(self, tenant: str) -> frozenset[str]:
        """Owners of whom everything is noted and durable: what they had before there was a directory too."""

    def set_complete(self, tenant: str, owners: Collection[str]) -> None:
        """After everything of them was noted; each until something new is."""
