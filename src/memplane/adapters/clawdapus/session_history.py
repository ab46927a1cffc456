"""The session recorder: appends every turn of an agent as one line to its `history.jsonl`."""

import os
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated, BinaryIO
from urllib.parse import quote

import msgspec

from memplane.clock import SECOND, Instant, zoned_instant
from memplane.config import SESSION_HISTORY_MAX_BYTES
from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.ledger.gojson import Json
from memplane.ledger.history import (
    HISTORY_NAME,
    LINE_BYTES_MAX,
    ROTATED_NAME,
    BadLine,
    HistoryReader,
    Opened,
    parse_line,
    rotated_number,
)
from memplane.safety.safe_directory import SafeDirectory, checked, translated

# `history.index.json` holds the offset of every 128th entry, so that reading from a given time need not start at the
# first byte. cllama and claw write the same file.


VERSION = 1
INDEX_NAME = "history.index.json"
ENTRIES_PER_CHECKPOINT = 128

_INDEX_BYTES_MAX = 64 * 1024 * 1024


class Checkpoint(msgspec.Struct, frozen=True):
    """The offset of a line, and its time as written there."""

    offset: Annotated[int, msgspec.Meta(ge=0)]
    ts: str


class Index(msgspec.Struct, frozen=True):
    """The index of the first `history_size` bytes."""

    version: int = VERSION
    history_size: Annotated[int, msgspec.Meta(ge=0)] = 0
    entry_count: Annotated[int, msgspec.Meta(ge=0)] = 0
    checkpoints: tuple[Checkpoint, ...] = ()

    def start(self, after: Instant) -> int:
        """The offset to read from: the last checkpoint before the first one later than `after`."""
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


def encode_index(index: Index) -> bytes:
    members: dict[str, Json] = {
        "version": index.version,
        "history_size": index.history_size,
        "entry_count": index.entry_count,
    }
    if index.checkpoints:
        members["checkpoints"] = [{"offset": it.offset, "ts": it.ts} for it in index.checkpoints]
    return gojson.encode(members) + b"\n"


def load_index(folder: SafeDirectory, history_size: int) -> Index:
    """The stored index if it can belong to this file; otherwise an empty one to rebuild."""
    raw = folder.read(INDEX_NAME, bytes_max=_INDEX_BYTES_MAX)
    try:
        index = EMPTY if raw is None else gojson.decode(raw, _INDEX)
        for checkpoint in index.checkpoints:
            zoned_instant(checkpoint.ts)
    except (gojson.NotJson, msgspec.ValidationError, ValueError):
        return EMPTY
    return index if index.version == VERSION and index.history_size <= history_size else EMPTY


def build_index(file: BinaryIO, known: Index = EMPTY) -> Index:
    """Extend the index to the last complete line. Raises `BadLine` at a line that is not an entry, as the original
    does."""
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


def current_index(folder: SafeDirectory, file: BinaryIO) -> Index:
    """The current index of an open history. It is built without the lock, because a long file takes seconds and
    writers would wait. A longer index is saved, unless the file was rotated during the build.

    An index that does not match its file, for example because the file was replaced, is rebuilt.
    """
    known = load_index(folder, os.fstat(file.fileno()).st_size)
    if not _fits(file, known):
        known = EMPTY
    index = build_index(file, known)
    if index != known or not folder.has(INDEX_NAME):
        with folder.locked():
            if folder.is_same(HISTORY_NAME, file.fileno()):
                folder.replace(INDEX_NAME, encode_index(index), durable=False)
    return index


def first_instant(file: BinaryIO) -> Instant | None:
    """The time of the first entry; None if it cannot be read."""
    file.seek(0)
    try:
        return zoned_instant(_ts(file.readline(LINE_BYTES_MAX + 2)))
    except (BadLine, ValueError):
        return None


def _fits(file: BinaryIO, index: Index) -> bool:
    """Whether the last indexed line is at its offset, and lines end at the recorded size."""
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


# Read an agent's session history from all of its files, optionally from a given time, with the help of the index.


OVERLAP = 900 * SECOND
"""Longer than any turn takes. Lines are sorted by when a turn ended but carry its start time, so a turn that began
later may come before one that began earlier."""

_BUFFER_BYTES = 256 * 1024


def agent_directory_name(agent: str) -> str:
    """The directory of an agent: its id if that is a valid service name, otherwise URL-escaped."""
    name = quote(agent, safe="")
    return checked({".": "%2E", "..": "%2E%2E"}.get(name, name))


def history_names(folder: SafeDirectory) -> list[str]:
    """The files of a history, oldest first."""
    names = folder.names()
    older = sorted(((number, name) for name in names if (number := rotated_number(name))), reverse=True)
    return [*(name for _, name in older), *([HISTORY_NAME] if HISTORY_NAME in names else [])]


def read_session(
    folder: SafeDirectory,
    *,
    after: Instant | None = None,
    near: Instant | None = None,
    line_bytes_max: int = LINE_BYTES_MAX,
) -> HistoryReader:
    """Entries later than `after`, oldest file first; with `near`, all entries from shortly before it.

    Files are opened under the lock, so that a rotation hides none, and read after it. Ids are not checked here; code
    that acts on them checks them.
    """
    path = folder.path
    start = near if near is not None else after

    def opening(stack: ExitStack) -> Opened:
        with folder.locked():
            opened = [(name, _open(folder, name, stack)) for name in history_names(folder)]
        if start is not None:
            opened = _later(folder, opened, start - OVERLAP)
        reader.bytes_total = sum(os.fstat(file.fileno()).st_size - file.tell() for _, file in opened)
        return opened

    reader = HistoryReader(path, opening, 0, trust_ids=True, line_bytes_max=line_bytes_max, after=after)
    return reader


def _open(folder: SafeDirectory, name: str, stack: ExitStack) -> BinaryIO:
    with translated(folder.path / name):
        return stack.enter_context(os.fdopen(folder.open(name), "rb", buffering=_BUFFER_BYTES))


def _later(folder: SafeDirectory, opened: Opened, moment: Instant) -> Opened:
    """Open files from the newest back, as long as they may contain later entries. The newest is read from the offset
    in its index."""
    wanted: Opened = []
    for name, file in reversed(opened):
        start = _start(folder, file, moment) if name == HISTORY_NAME else 0
        first = first_instant(file)
        file.seek(start)
        wanted.insert(0, (name, file))
        if first is not None and first <= moment:
            break
    return wanted


def _start(folder: SafeDirectory, file: BinaryIO, moment: Instant) -> int:
    try:
        return current_index(folder, file).start(moment)
    except BadLine:  # an unreadable line invalidates only the index
        return 0


MAX_BYTES_DEFAULT = SESSION_HISTORY_MAX_BYTES
TORN_NAME = "history.torn"
"""The file for a partial line after a crash. It is not an entry, and Clawdapus' readers would fail on it in the
history."""

_TAIL_BYTES = 64 * 1024
_OWNER_ONLY = 0o600
"""A history contains whole conversations. The original lets other users of the machine read it."""


class HistoryRecorder:
    """Appends to histories. Several recorders in several processes may write to one directory.

    A file that would exceed `max_bytes` becomes `history.jsonl.1`, as in the original. The original deletes the
    previous `.1`; this recorder renames it to `.2` and so on, so that nothing is lost. Clawdapus reads `.1` and the
    current file, Memplane reads all.
    """

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES_DEFAULT, *, durable: bool = False) -> None:
        self._directory = directory
        self._max_bytes = max_bytes if max_bytes > 0 else MAX_BYTES_DEFAULT
        self._durable = durable

    def append(self, agent: str, line: bytes) -> None:
        """Append one entry, given without its newline. It is in the file when this returns. Raises `StorageError` on
        failure."""
        if b"\n" in line or not line.strip():
            raise InvalidRequest("a session history entry must be one line")
        with (
            SafeDirectory.root(self._directory, create=True) as root,
            root.below(agent_directory_name(agent), create=True) as folder,
            folder.locked(),
        ):
            size = _mended_size(folder)
            if size and size + len(line) + 1 > self._max_bytes:
                rotate(folder)
            folder.append(HISTORY_NAME, line + b"\n", durable=self._durable, mode=_OWNER_ONLY)


def rotate(folder: SafeDirectory) -> None:
    """Rotate the files; the caller holds the lock.

    The index is removed first: after an interruption, the next reader rebuilds it. A gap in the numbers, which a
    crash may leave, is filled before other files are moved.
    """
    folder.replace(INDEX_NAME, encode_index(EMPTY), durable=False)
    taken = {number for name in folder.names() if (number := rotated_number(name))}
    free = next(number for number in range(1, len(taken) + 2) if number not in taken)
    for number in range(free, 1, -1):
        folder.rename(f"{HISTORY_NAME}.{number - 1}", f"{HISTORY_NAME}.{number}")
    folder.rename(HISTORY_NAME, ROTATED_NAME)


def _mended_size(folder: SafeDirectory) -> int:
    """The length of the file after repairing its end: a complete entry gets its newline, a partial one is moved to
    another file."""
    with translated(folder.path / HISTORY_NAME):
        try:
            descriptor = folder.open(HISTORY_NAME, os.O_RDWR)
        except FileNotFoundError:
            return 0
        try:
            size = os.fstat(descriptor).st_size
            if not size or os.pread(descriptor, 1, size - 1) == b"\n":
                return size
            begin = _last_line(descriptor, size)
            torn = os.pread(descriptor, size - begin, begin)
            if _is_entry(torn):
                os.lseek(descriptor, 0, os.SEEK_END)
                os.write(descriptor, b"\n")
                return size + 1
            folder.append(TORN_NAME, torn + b"\n", durable=True, mode=_OWNER_ONLY)
            os.ftruncate(descriptor, begin)
            return begin
        finally:
            os.close(descriptor)


def _last_line(descriptor: int, size: int) -> int:
    """The offset of the last line."""
    end = size
    while end > 0:
        start = max(0, end - _TAIL_BYTES)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _is_entry(line: bytes) -> bool:
    try:
        parse_line(line, trust_ids=True)
    except BadLine:
        return False
    return True
