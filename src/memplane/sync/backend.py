"""Text under keys, with the calls of EntraBot's tools: `read_text`, `write_text`, `append_text`, `exists`, `list`.

Implementations: a directory, an object store, and an object store behind a cache (`cached.py`). Concurrent appends
lose nothing; `write_text` replaces the whole text.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, runtime_checkable

import msgspec

from memplane.entropy import random_bytes
from memplane.errors import Changed, InvalidRequest, RemoteUnavailable
from memplane.sync.store import ABSENT, ObjectStore, StoredObject, display_key

Keys = list[str]
Pause = Callable[[float], None]
"""Waits so many seconds; a test waits none."""

_TRIES_MAX = 60
_PAUSE_FIRST_S = 0.02
_PAUSE_MAX_S = 2.0


@runtime_checkable
class TextBackend(Protocol):
    """Where texts are kept. Keys are those of `ObjectStore`; a text is any Unicode."""

    def read_text(self, key: str) -> str | None:
        """The whole text; None where there is none."""

    def write_text(self, key: str, text: str) -> None:
        """The text is this from now on, whatever it was."""

    def append_text(self, key: str, text: str) -> None:
        """Behind what is there, or as all there is; returns when it can no longer get lost."""

    def exists(self, key: str) -> bool: ...

    def list(self, prefix: str = "") -> Keys:
        """The keys that begin with `prefix`, letter by letter, in the order of their UTF-8."""


class RemoteBackend:
    """Texts in an object store, each read and written there. See `CachedBackend` for one that keeps a copy."""

    def __init__(self, store: ObjectStore, *, pause: Pause = time.sleep) -> None:
        self._store = store
        self._pause = pause

    def read_text(self, key: str) -> str | None:
        got = self._store.get(key)
        return None if got is None else text_of(got.data, key)

    def write_text(self, key: str, text: str) -> None:
        self._store.put(key, bytes_of(text, key))

    def append_text(self, key: str, text: str) -> None:
        """`Changed` may mean that our own write went through and its answer did not. Lines with an id show that; of
        others it is not assumed, since the same words may be someone else's."""
        more = bytes_of(text, key)
        for attempt in range(_TRIES_MAX):
            got = self._store.get(key) or StoredObject(b"", ABSENT)
            if attempt and has_lines_of(more, got.data):
                return
            try:
                self._store.put(key, got.data + more, expect=got.version)
            except Changed:
                self._pause(pause_s(attempt))
            else:
                return
        raise RemoteUnavailable(
            f"{display_key(key)} in {self._store.url} is changed by others all the time; try again later"
        )

    def exists(self, key: str) -> bool:
        return any(listed.key == key for listed in self._store.list(key))

    def list(self, prefix: str = "") -> Keys:
        return [listed.key for listed in self._store.list(prefix)]


def text_of(data: bytes, key: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        raise InvalidRequest(
            f"{display_key(key)} is not text in UTF-8; it is left as it is", field="key"
        ) from exc


def bytes_of(text: str, key: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidRequest(f"the text for {display_key(key)} holds half a character", field="text") from exc


def pause_s(attempt: int) -> float:
    """Seconds to wait before the next attempt: exponential, with jitter."""
    most = min(_PAUSE_MAX_S, _PAUSE_FIRST_S * 2.0 ** min(attempt, 16))
    return most * (1 + int.from_bytes(random_bytes(2))) / 65_536


def has_lines_of(more: bytes, data: bytes) -> bool:
    """Whether lines of `more` that carry an `id`, as interactions do, are in `data` already. An id is used once."""
    mine = {line for line in more.splitlines() if _has_id(line)}
    return bool(mine) and not mine.isdisjoint(data.splitlines())


def _has_id(line: bytes) -> bool:
    with suppress(msgspec.MsgspecError):
        members = msgspec.json.decode(line)
        return isinstance(members, dict) and bool(members.get("id"))
    return False
