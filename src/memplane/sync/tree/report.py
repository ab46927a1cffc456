"""The result of reading or writing a tree. Every file is accounted for."""

from collections.abc import Mapping
from hashlib import sha256

import msgspec


class TreeReport(msgspec.Struct, frozen=True, kw_only=True):
    """Imported files by path. Each file is in one of the lists; `conflicts` are imported too, `rejected` files stay
    unchanged."""

    taken: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    conflicts: tuple[tuple[str, str], ...] = ()
    """(path, explanation): edited there and changed here; both versions are kept."""
    rejected: tuple[tuple[str, str], ...] = ()
    """(path, why). A line of a file has its number behind the path."""
    missing: tuple[str, ...] = ()
    """Written before and not there any more."""
    dropped: tuple[str, ...] = ()
    """Of those, memories forgotten on request."""
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
    """Files whose content is forgotten or stored elsewhere now."""
    kept: tuple[tuple[str, str], ...] = ()
    """(path, reason): edited and not imported yet."""


class TreeTally:
    """Counts during an import."""

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


# `state/tree.json`: which entry each file shows, and the file's digest when it was written. It distinguishes an edit
# from an older version, and a removed file from one that never existed.


class WrittenFile(msgspec.Struct, frozen=True):
    """What was written."""

    entry: str
    sha256: str


class WrittenFiles(msgspec.Struct, frozen=True):
    """By path."""

    files: dict[str, WrittenFile] = {}
    schema_version: int = 1

    def base(self, path: str) -> str | None:
        """The entry that the file showed when it was written last."""
        record = self.files.get(path)
        return None if record is None else record.entry

    def is_as_written(self, path: str, data: bytes) -> bool:
        record = self.files.get(path)
        return record is not None and record.sha256 == digest_of(data)


_decoder = msgspec.json.Decoder(WrittenFiles)


def digest_of(data: bytes) -> str:
    return sha256(data).hexdigest()


def compose(files: Mapping[str, WrittenFile]) -> bytes:
    document = {"schema_version": 1, "files": {path: files[path] for path in sorted(files)}}
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def parse(data: bytes | None) -> WrittenFiles:
    """What it says; nothing where it is missing or damaged, which costs certainty and loses nothing."""
    if data is None:
        return WrittenFiles()
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return WrittenFiles()
