"""Reading an agent's session history: all of its files, from a moment on if asked, with the help of the index."""

import os
from contextlib import ExitStack
from typing import BinaryIO
from urllib.parse import quote

from memplane.clock import SECOND, Instant
from memplane.folder import Folder, checked, translated
from memplane.history.index import current_index, first_instant
from memplane.ledger.history import (
    HISTORY_NAME,
    LINE_BYTES_MAX,
    BadLine,
    HistoryReader,
    Opened,
    rotated_number,
)

OVERLAP = 900 * SECOND
"""Longer than a turn takes. Lines stand in the order turns ended and carry the time they began, so one that began later
may stand before one that began earlier."""

_BUFFER_BYTES = 256 * 1024


def agent_folder_name(agent: str) -> str:
    """The directory of an agent: its id, where that is a name of a service, and else escaped as in a URL."""
    name = quote(agent, safe="")
    return checked({".": "%2E", "..": "%2E%2E"}.get(name, name))


def history_names(folder: Folder) -> list[str]:
    """The files of a history, the oldest first."""
    names = folder.names()
    older = sorted(((number, name) for name in names if (number := rotated_number(name))), reverse=True)
    return [*(name for _, name in older), *([HISTORY_NAME] if HISTORY_NAME in names else [])]


def read_session(
    folder: Folder,
    *,
    after: Instant | None = None,
    near: Instant | None = None,
    line_bytes_max: int = LINE_BYTES_MAX,
) -> HistoryReader:
    """Entries later than `after`, oldest file first; with `near`, all of them from somewhat before it.

    Files are opened under the lock, so that a rotation hides none of them, and read after it. The ids are taken as they
    are: they were checked by whoever acts on them.
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


def _open(folder: Folder, name: str, stack: ExitStack) -> BinaryIO:
    with translated(folder.path / name):
        return stack.enter_context(os.fdopen(folder.open(name), "rb", buffering=_BUFFER_BYTES))


def _later(folder: Folder, opened: Opened, moment: Instant) -> Opened:
    """From the newest back, as far as there may be something later than the moment; the newest from where its index
    says."""
    wanted: Opened = []
    for name, file in reversed(opened):
        start = _start(folder, file, moment) if name == HISTORY_NAME else 0
        first = first_instant(file)
        file.seek(start)
        wanted.insert(0, (name, file))
        if first is not None and first <= moment:
            break
    return wanted


def _start(folder: Folder, file: BinaryIO, moment: Instant) -> int:
    try:
        return current_index(folder, file).start(moment)
    except BadLine:  # a line nobody can read spoils the index, and only that
        return 0
