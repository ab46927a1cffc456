"""The session recorder: every turn of an agent is one line at the end of its `history.jsonl`."""

import os
from pathlib import Path

from memplane.config import SESSION_HISTORY_MAX_BYTES
from memplane.errors import InvalidRequest
from memplane.folder import Folder, translated
from memplane.history.files import agent_folder_name
from memplane.history.index import EMPTY, INDEX_NAME, spell_index
from memplane.ledger.history import HISTORY_NAME, ROTATED_NAME, BadLine, parse_line, rotated_number

MAX_BYTES_DEFAULT = SESSION_HISTORY_MAX_BYTES
TORN_NAME = "history.torn"
"""What a crash left of a line. It is no entry, and readers of the original would stumble over it in the history."""

_TAIL_BYTES = 64 * 1024


class Recorder:
    """Any number of them, in any number of processes, may write to one directory.

    A file that would grow beyond `max_bytes` becomes `history.jsonl.1`, as in the original. There the `.1` of before is
    deleted; here it becomes `.2`, and so on, so that nothing is lost. Programs of Clawdapus read `.1` and the current
    file, ours read all.
    """

    def __init__(self, directory: Path, max_bytes: int = MAX_BYTES_DEFAULT, *, durable: bool = False) -> None:
        self._directory = directory
        self._max_bytes = max_bytes if max_bytes > 0 else MAX_BYTES_DEFAULT
        self._durable = durable

    def append(self, agent: str, line: bytes) -> None:
        """One entry without its newline. In the file when this returns; raises a `StorageError` where it cannot be."""
        if b"\n" in line or not line.strip():
            raise InvalidRequest("an entry of a session history is one line")
        with (
            Folder.root(self._directory, create=True) as root,
            root.below(agent_folder_name(agent), create=True) as folder,
            folder.locked(),
        ):
            size = _mended_size(folder)
            if size and size + len(line) + 1 > self._max_bytes:
                rotate(folder)
            folder.append(HISTORY_NAME, line + b"\n", durable=self._durable)


def rotate(folder: Folder) -> None:
    """Make room under the name; the caller holds the lock.

    The index goes first: if this is cut short after it, the next who needs one builds it. A gap among the numbers, which
    a crash may leave, is filled before anything else is moved.
    """
    folder.replace(INDEX_NAME, spell_index(EMPTY), durable=False)
    taken = {number for name in folder.names() if (number := rotated_number(name))}
    free = next(number for number in range(1, len(taken) + 2) if number not in taken)
    for number in range(free, 1, -1):
        folder.rename(f"{HISTORY_NAME}.{number - 1}", f"{HISTORY_NAME}.{number}")
    folder.rename(HISTORY_NAME, ROTATED_NAME)


def _mended_size(folder: Folder) -> int:
    """How long the file is once what follows its last newline is dealt with: a whole entry gets its newline, half of one
    is put aside."""
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
            folder.append(TORN_NAME, torn + b"\n", durable=True)
            os.ftruncate(descriptor, begin)
            return begin
        finally:
            os.close(descriptor)


def _last_line(descriptor: int, size: int) -> int:
    """Where the last line begins."""
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
