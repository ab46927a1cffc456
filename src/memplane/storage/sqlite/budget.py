"""What the open connections of one engine share: file descriptors and page cache.

A connection needs two descriptors, for the file and its log, and each space one more for the index of the log. Operating systems
allow as few as 256 for a process, and its sockets need some of them. Half of the limit goes to spaces that stay open; when it is
reached nevertheless, those that nobody uses are closed and the open is tried again.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import apsw

from memplane.errors import StorageBusy, StorageUnavailable
from memplane.storage.sqlite.connection import CACHE_KIB, connect

if sys.platform != "win32":
    import resource

T = TypeVar("T")

OPEN_SPACES_MAX = 64
_OPEN_SPACES_MIN = 4
_DESCRIPTORS_PER_SPACE = 5
"""One connection that writes and one that reads."""
_LIMIT_UNKNOWN = 512
_PROBED = 4
"""As many descriptors as opening a file needs at once."""
_IDLE_READERS_MAX = 64
_WAIT_S = 5.0
"""How long an open waits for another thread to close something."""
_LOOK_S = 0.05
_UNEXPLAINED_MAX = 5
"""How often an open fails while there are descriptors before the reason must be another one."""
_CACHE_BUDGET_KIB = 128 * 1024
_CACHE_KIB_MIN = 256


class ConnectionBudget:
    """Opens and closes connections within the limits of the process."""

    def __init__(self, descriptors_max: int | None = None) -> None:
        limit = _descriptor_limit() if descriptors_max is None else descriptors_max
        self.spaces_max = min(OPEN_SPACES_MAX, max(_OPEN_SPACES_MIN, limit // 2 // _DESCRIPTORS_PER_SPACE))
        self._readers_max = min(_IDLE_READERS_MAX, max(1, limit // 8))
        self._readers_idle = 0
        self._open = 0
        self._lock = threading.Lock()
        self.reclaim: Callable[[], int] = lambda: 0
        """Closes what nobody uses; returns how much."""

    def open(self, path: Path, key: str | None) -> apsw.Connection:
        """A connection with its share of the page cache."""
        made = self.within_limits(lambda: connect(path, key, cache_kib=self._cache_kib()))
        with self._lock:
            self._open += 1
        return made

    def close(self, connection: apsw.Connection) -> None:
        """Close what `open` returned."""
        with self._lock:
            self._open -= 1
        connection.close()

    def within_limits(self, opening: Callable[[], T]) -> T:
        """What `opening` returns. Where the process is out of descriptors, unused ones are closed and it is called again."""
        end = time.monotonic() + _WAIT_S
        unexplained = 0
        while True:
            try:
                return opening()
            except StorageUnavailable as exc:
                if not _is_exhausted():
                    unexplained += 1  # or another thread has closed something since
                    if unexplained == _UNEXPLAINED_MAX:
                        raise
                    time.sleep(_LOOK_S / 10)
                    continue
                unexplained = 0
                late = time.monotonic() > end
                if late or not self.reclaim():
                    if late:
                        raise StorageBusy(
                            "too many files are open in this process; nothing was written, try again or raise the limit "
                            "(ulimit -n)"
                        ) from exc
                    time.sleep(_LOOK_S)

    def may_keep_reader(self) -> bool:
        """Whether one more idle reader may stay open; if so, it is counted."""
        with self._lock:
            if self._readers_idle >= self._readers_max:
                return False
            self._readers_idle += 1
            return True

    def reader_left(self, count: int = 1) -> None:
        """Idle readers are used again, or closed."""
        with self._lock:
            self._readers_idle -= count

    def _cache_kib(self) -> int:
        """The page cache of a new connection: smaller, the more there are."""
        with self._lock:
            share = _CACHE_BUDGET_KIB // (self._open + 1)
        return max(_CACHE_KIB_MIN, min(CACHE_KIB, share))


def _descriptor_limit() -> int:
    if sys.platform == "win32":
        return _LIMIT_UNKNOWN
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def _is_exhausted() -> bool:
    """Whether an open failed because there were no descriptors. SQLite does not say why, and has closed by now what it had
    opened, so this tries as many."""
    taken: list[int] = []
    try:
        while len(taken) < _PROBED:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return True
    finally:
        for descriptor in taken:
            os.close(descriptor)
    return False
