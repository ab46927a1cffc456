"""Answers to writes, kept for a while: who sends the very same request again gets the same answer, and nothing is
written twice."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

KEPT_S = 30.0
"""As long as Carapace's host remembers a correlation."""

_REPLIES_MAX = 2_048


class Replies:
    """Safe to use from many threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = Lock()
        self._kept: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()

    def find(self, identity: bytes, payload: bytes) -> bytes | None:
        with self._lock:
            self._drop_old()
            found = self._kept.get(_key(identity, payload))
        return None if found is None else found[1]

    def keep(self, identity: bytes, payload: bytes, reply: bytes) -> None:
        with self._lock:
            self._kept[_key(identity, payload)] = self._now() + KEPT_S, reply
            while len(self._kept) > _REPLIES_MAX:
                self._kept.popitem(last=False)

    def _drop_old(self) -> None:
        now = self._now()
        while self._kept and next(iter(self._kept.values()))[0] <= now:
            self._kept.popitem(last=False)


def _key(identity: bytes, payload: bytes) -> bytes:
    return hashlib.sha256(bytes([len(identity)]) + identity + payload).digest()
