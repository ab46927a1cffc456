"""Which space a thing lives in, for those who know its id and not whose it is: the part of the catalog that finds them.

A space is the truth about what is in it, and the directory a hint where to look. It is noted before the space commits, so
a crash in between leaves an entry too many and never one too few; whoever looks makes sure in the space itself. Every
engine passes tests/contract/test_directory.py.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from memplane.clock import SECOND, Instant

FRESH = 1_800 * SECOND
"""An entry this new is not written again."""
KEPT = 2 * FRESH
"""An entry this new is not dropped, though its space does not have the thing: it may be about to. So between a note and
the commit it announces, a writer has at least `FRESH`."""


class Sort(StrEnum):
    """What is found by its id alone."""

    DOCUMENT = "document"
    COLLECTION = "collection"
    RECEIPT = "receipt"


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a thing is said to be."""

    id: str
    owner: str


class Directory(Protocol):
    """Durable. Any number of threads and processes use it at once; each read sees what any process finished writing before
    the read began. One id may live in several spaces."""

    def note(self, tenant: str, sort: Sort, id: str, owner: str, *, now: Instant) -> None:
        """Durable when it returns; called before the space commits. Costs a read where it was noted lately."""

    def note_all(
        self, tenant: str, sort: Sort, ids: Mapping[str, Instant], owner: str, *, now: Instant
    ) -> None:
        """As `note`, for many at once; each with the time it is listed under."""

    def forget(self, tenant: str, sort: Sort, id: str, owner: str, *, now: Instant) -> None:
        """Drop an entry whose space does not have the thing, unless it was noted within `KEPT`."""

    def owners(self, tenant: str, sort: Sort, id: str) -> list[str]:
        """In a stable order."""

    def newest(
        self, tenant: str, sort: Sort, *, owners: Collection[str] | None, limit: int, offset: int
    ) -> list[Place]:
        """Those of these owners, or of all; the newest first."""

    def count(self, tenant: str, sort: Sort, *, owners: Collection[str] | None) -> int:
        """How many `newest` would list in all."""

    def complete(self, tenant: str) -> frozenset[str]:
        """Owners of whom everything was noted: what they had before there was a directory too."""

    def set_complete(self, tenant: str, owner: str) -> None:
        """From now on."""
