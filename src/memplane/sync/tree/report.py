"""What became of the files of a tree. Nothing is passed over in silence."""

import msgspec


class TreeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken in, by path. Each file is in one of the lists; `conflicts` are taken too, and `rejected` stay where
    they are."""

    taken: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    conflicts: tuple[tuple[str, str], ...] = ()
    """(path, what to know of it): edited there and changed here meanwhile; both are kept."""
    rejected: tuple[tuple[str, str], ...] = ()
    """(path, why). A line of a file has its number behind the path."""
    missing: tuple[str, ...] = ()
    """Written before and not there any more."""
    dropped: tuple[str, ...] = ()
    """Of those, what was forgotten because somebody asked for it."""
    forgotten: tuple[str, ...] = ()
    """Says only what was forgotten here; it goes with the next write."""
    left: tuple[str, ...] = ()
    """Belongs to others, or to another part of the tree."""
    entries: int = 0
    """How many entries the ledger gained."""


class WriteReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, by path."""

    written: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """What says only what is forgotten or stands elsewhere now."""
    kept: tuple[tuple[str, str], ...] = ()
    """(path, why): somebody edited it, and it was not taken in yet."""


class TreeTally:
    """Counts while files are taken in."""

    def __init__(self) -> None:
        self.taken: dict[str, None] = {}
        self.unchanged: dict[str, None] = {}
        self.conflicts: list[tuple[str, str]] = []
        self.rejected: list[tuple[str, str]] = []
        self.missing: list[str] = []
        self.dropped: list[str] = []
        self.forgotten: list[str] = []
        self.left: list[str] = []
        self.entries = 0

    def report(self) -> TreeReport:
        return TreeReport(
            taken=tuple(self.taken),
            unchanged=tuple(path for path in self.unchanged if path not in self.taken),
            conflicts=tuple(self.conflicts),
            rejected=tuple(self.rejected),
            missing=tuple(self.missing),
            dropped=tuple(self.dropped),
            forgotten=tuple(self.forgotten),
            left=tuple(self.left),
            entries=self.entries,
        )
