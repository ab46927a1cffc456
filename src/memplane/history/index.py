"""`history.index.json`: where in a session history every 128th entry begins, so that reading from a moment on need not
begin at the first byte. The same file that cllama and claw write."""

import os
from datetime import datetime
from typing import Annotated, BinaryIO

import msgspec

from memplane.clock import Instant, zoned_instant
from memplane.folder import Folder
from memplane.ledger import gojson
from memplane.ledger.gojson import Json
from memplane.ledger.history import HISTORY_NAME, LINE_BYTES_MAX, BadLine

VERSION = 1
INDEX_NAME = "history.index.json"
ENTRIES_PER_CHECKPOINT = 128

_INDEX_BYTES_MAX = 64 * 1024 * 1024


class Checkpoint(msgspec.Struct, frozen=True):
    """A line, by its first byte, and its time as it is spelled there."""

    offset: Annotated[int, msgspec.Meta(ge=0)]
    ts: str


class Index(msgspec.Struct, frozen=True):
    """What is known of the first `history_size` bytes."""

    version: int = VERSION
    history_size: Annotated[int, msgspec.Meta(ge=0)] = 0
    entry_count: Annotated[int, msgspec.Meta(ge=0)] = 0
    checkpoints: tuple[Checkpoint, ...] = ()

    def start(self, after: Instant) -> int:
        """Where to begin reading: the last checkpoint before the first that is later than `after`."""
        offset = 0
        for checkpoint in self.checkpoints:
            if zoned_instant(checkpoint.ts) > after:
                break
            offset = checkpoint.offset
        return offset


EMPTY = Index()


class _Line(msgspec.Struct):
    ts: Annotated[datetime, msgspec.Meta(tz=True)]


class _Spelled(msgspec.Struct):
    ts: str


_INDEX = msgspec.json.Decoder(Index)
_LINE = msgspec.json.Decoder(_Line)
_SPELLED = msgspec.json.Decoder(_Spelled)


def spell_index(index: Index) -> bytes:
    members: dict[str, Json] = {
        "version": index.version,
        "history_size": index.history_size,
        "entry_count": index.entry_count,
    }
    if index.checkpoints:
        members["checkpoints"] = [{"offset": it.offset, "ts": it.ts} for it in index.checkpoints]
    return gojson.encode(members) + b"\n"


def load_index(folder: Folder, history_size: int) -> Index:
    """The index as far as it is there and may be of this file; otherwise an empty one, to be built from the start."""
    raw = folder.read(INDEX_NAME, bytes_max=_INDEX_BYTES_MAX)
    try:
        index = EMPTY if raw is None else gojson.decode(raw, _INDEX)
        for checkpoint in index.checkpoints:
            zoned_instant(checkpoint.ts)
    except (gojson.NotJson, msgspec.ValidationError, ValueError):
        return EMPTY
    return index if index.version == VERSION and index.history_size <= history_size else EMPTY


def build_index(file: BinaryIO, known: Index = EMPTY) -> Index:
    """Extend what is known to the last whole line. Raises `BadLine` at a line that is no entry, as the original does."""
    size, count = known.history_size, known.entry_count
    checkpoints = list(known.checkpoints)
    file.seek(size)
    while (raw := file.readline(LINE_BYTES_MAX + 2)).endswith(b"\n"):
        if not raw.isspace():
            if count % ENTRIES_PER_CHECKPOINT == 0:
                checkpoints.append(Checkpoint(size, _ts(raw)))
            else:
                _ts(raw)
            count += 1
        size += len(raw)
    if len(raw) > LINE_BYTES_MAX:
        raise BadLine(f"parse history entry for index: longer than {LINE_BYTES_MAX} bytes")
    return Index(VERSION, size, count, tuple(checkpoints))


def current_index(folder: Folder, file: BinaryIO) -> Index:
    """The index of an opened history as it is now. Built without the lock, since a long file takes seconds and writers
    would wait; written down where it grew, unless the file was rotated meanwhile.

    One that does not fit the file it stands beside, because somebody put another there, is built anew.
    """
    known = load_index(folder, os.fstat(file.fileno()).st_size)
    if not _fits(file, known):
        known = EMPTY
    index = build_index(file, known)
    if index != known or not folder.has(INDEX_NAME):
        with folder.locked():
            if folder.is_same(HISTORY_NAME, file.fileno()):
                folder.replace(INDEX_NAME, spell_index(index), durable=False)
    return index


def first_instant(file: BinaryIO) -> Instant | None:
    """When the first entry was; None where it cannot be told."""
    file.seek(0)
    try:
        return zoned_instant(_ts(file.readline(LINE_BYTES_MAX + 2)))
    except (BadLine, ValueError):
        return None


def _fits(file: BinaryIO, index: Index) -> bool:
    """Whether the last line it knows by its place is there, and lines end where it says."""
    if not index.history_size:
        return True
    file.seek(index.history_size - 1)
    if file.read(1) != b"\n" or not index.checkpoints:
        return False
    last = index.checkpoints[-1]
    file.seek(last.offset)
    try:
        return _ts(file.readline(LINE_BYTES_MAX + 2)) == last.ts
    except BadLine:
        return False


def _ts(raw: bytes) -> str:
    try:
        gojson.decode(raw.strip(), _LINE)
        return gojson.decode(raw.strip(), _SPELLED).ts
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise BadLine(f"parse history entry for index: {exc}") from exc
