"""Random bytes from the system, fetched in blocks: one system call per id and salt releases the GIL each time, and with
many writers that costs more than the rest of a write."""

import os
import threading

_FETCHED = 8_192
_lock = threading.Lock()
_pool = b""
_used = 0


def random_bytes(count: int) -> bytes:
    global _pool, _used  # noqa: PLW0603 - one pool for the process
    with _lock:
        if _used + count > len(_pool):
            _pool, _used = os.urandom(max(count, _FETCHED)), 0
        _used += count
        return _pool[_used - count : _used]


def _forget_pool() -> None:
    """A forked child must not reuse its parent's random bytes."""
    global _pool, _used, _lock
    _pool, _used, _lock = b"", 0, threading.Lock()


os.register_at_fork(after_in_child=_forget_pool)
