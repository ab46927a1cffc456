"""`state/tree.json`: which entry each file shows, and what the file was when it was written. With it a reader tells an edit
from an older version, and a file that somebody removed from one that was never there."""

from collections.abc import Mapping
from hashlib import sha256

import msgspec


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
    told = {"schema_version": 1, "files": {path: files[path] for path in sorted(files)}}
    return msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n"


def parse(data: bytes | None) -> WrittenFiles:
    """What it says; nothing where it is missing or damaged, which costs certainty and loses nothing."""
    if data is None:
        return WrittenFiles()
    try:
        return _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return WrittenFiles()
