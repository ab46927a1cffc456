"""What a ledger is among replicas of the same space: entries in the order that all agree on, whenever they came in."""

from collections.abc import Sequence
from typing import Protocol

from memplane.clock import Instant
from memplane.types import Entry, NewEntry, Variant


class ReplicaReader(Protocol):
    """What merging asks of a store, beside `Reader`."""

    def entries_of(self, entry_ids: Sequence[str]) -> list[Entry]:
        """Those of these ids that are in the ledger, erased or not, in order."""

    def decisions(self) -> list[Entry]:
        """Every forget and every sweep, in order."""

    def positions(self, entry_ids: Sequence[str]) -> dict[str, int]:
        """Of these ids, those in the ledger, each with its position in the chain."""

    def recordings(self, entry_ids: Sequence[str]) -> dict[str, tuple[int, Instant]]:
        """The same, each with when it was recorded too."""

    def buried(self, forget_id: str) -> set[str]:
        """The ids that this forget named."""

    def stones(self, entry_ids: Sequence[str]) -> dict[str, tuple[int, Instant, str]]:
        """Of these ids, the forgotten ones, each with the position, time and reason of one forget that buried it."""

    def variants(self, bases: Sequence[str] | None = None) -> list[Variant]:
        """Bodies that came under an id which another body has; those of these ids, or all of them."""

    def ordered(self) -> bool:
        """Whether entries are known to be in the order that replicas agree on."""

    def misplaced(self) -> tuple[int, str] | None:
        """Position and id of an entry that does not stand where it belongs: places have no gaps, and follow `recorded` and
        then the id in a ledger that is ordered. Looks at every entry."""

    def merged(self) -> bool:
        """Whether entries came from another replica."""


class ReplicaWriter(Protocol):
    """The same inside a write transaction."""

    def sorts_last(self, recorded: Instant, entry_id: str) -> bool:
        """Whether an entry with this time and id comes after all that are there."""

    def place(self, drafts: Sequence[NewEntry]) -> list[tuple[int, int]]:
        """Append these to the chain, and put each where it belongs by `recorded` and then by id; returns the entries that
        had to move, each as (seq before, seq now). Vectors move along; everything else that is derived must be
        cleared. In a ledger that is not ordered, all entries are put in order."""

    def rename(self, entry_id: str, variant_id: str) -> None:
        """Another body has this id from now on."""

    def note_variant(self, variant: Variant) -> None:
        """Noting again changes nothing."""

    def set_merged(self) -> None:
        """Entries came from another replica."""
