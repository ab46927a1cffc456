"""Acknowledged writes that are not in the object store yet: one write-ahead file per key, on the local disk.

    ahead/<digest of the key>            pending operations, one per line
    ahead/<digest of the key>.sending    the batch being sent; one at a time
    ahead/<digest of the key>.attempt    the offset of that batch in the object, in case its response is lost
    ahead/<digest of the key>.unlisted   an object that was sent and is not in the manifest yet

An operation is acknowledged when its line is on disk. A batch is done when it is known to be in the store. After a
crash or a lost response, the next process checks whether the batch is already in the object: at its offset, or by
lines with an `id`. So nothing is lost and nothing is sent twice.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from memplane.clock import Instant
from memplane.safety.safe_directory import SafeDirectory, translated
from memplane.sync.backend import has_lines_of
from memplane.sync.manifest import ManifestEntry

if sys.platform != "win32":
    import fcntl

_BYTES_MAX = 1 << 30
_FOLDER = "ahead"
_SENDING = ".sending"
_ATTEMPT = ".attempt"
_UNLISTED = ".unlisted"


class WriteOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One change to a text."""

    key: str
    do: Literal["append", "write"]
    text: str
    at: Instant
    nonce: str
    """Makes two of the same words two."""
    base: str = ""
    """Of a write: the version that was known when it was made."""


class WriteBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent as one: the operations on one key, in their order."""

    key: str
    token: str
    operations: tuple[WriteOperation, ...]
    attempt: int | None = None
    """How long the object was to which the batch was put at least once; None: it was never sent."""

    @property
    def replaces(self) -> bool:
        return any(operation.do == "write" for operation in self.operations)

    def applied(self, data: bytes) -> bytes:
        """The object as it is with these operations done to it."""
        for operation in self.operations:
            text = operation.text.encode()
            data = text if operation.do == "write" else data + text
        return data

    def is_in(self, data: bytes) -> bool:
        """Whether the store has it already, its answer lost."""
        more = self.applied(b"")
        if self.attempt is None or self.replaces:
            return self.attempt is not None and data == more
        return data[self.attempt : self.attempt + len(more)] == more or has_lines_of(more, data)


class PendingWrites(msgspec.Struct, frozen=True):
    """How much of a key waits, and since when."""

    key: str
    size: int
    since: Instant
    is_sending: bool


class UnlistedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that was sent and is not in the manifest yet."""

    key: str
    size: int
    since: Instant
    before: ManifestEntry | None
    """The manifest's entry when the object was sent. Another entry there now means that another machine wrote too."""


class WriteQueue:
    """The files of one cache directory, shared by all its processes."""

    def __init__(self, root: Path) -> None:
        with SafeDirectory.root(root, create=True, mode=0o700) as folder:
            folder.below(_FOLDER, create=True, mode=0o700).close()
        self._root = root

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclusive access to the cache's files; held briefly, never during a request."""
        with self._lock("lock", wait=True):
            yield

    @contextmanager
    def alone(self, *, wait: bool) -> Iterator[bool]:
        """Exclusive sending, which may take as long as the store does. Without `wait`, yields whether the lock was
        acquired."""
        with self._lock("send-lock", wait=wait) as is_ours:
            yield is_ours

    def add(self, operation: WriteOperation) -> None:
        """On disk when it returns. The caller holds the lock."""
        name = digest_of(operation.key)
        with self._folder() as folder:
            is_new = not folder.has(name)
            if not is_new:
                self._mend(folder, name)
            folder.append(name, msgspec.json.encode(operation) + b"\n", durable=True)
            if is_new:
                folder.sync()

    def take(self, key: str) -> WriteBatch | None:
        """The batch to be sent next: one that was begun, or all that waits. The caller is alone and holds the lock."""
        begun = self.begun(key)
        if begun is not None:
            return begun
        name = digest_of(key)
        with self._folder() as folder:
            if not folder.has(name):
                return None
            self._mend(folder, name)
            folder.rename(name, name + _SENDING)
            folder.sync()
        return self.begun(key)

    def begun(self, key: str) -> WriteBatch | None:
        """The batch that is being sent, or was when something broke. The caller holds the lock."""
        name = digest_of(key)
        with self._folder() as folder:
            raw = folder.read(name + _SENDING, bytes_max=_BYTES_MAX)
            noted = folder.read(name + _ATTEMPT, bytes_max=_BYTES_MAX) or b""
        operations = _operations(raw)
        if not operations:
            return None
        token = hashlib.sha256(raw or b"").hexdigest()[:16]
        attempted, _, length = noted.decode().partition(" ")
        attempt = int(length) if attempted == token else None
        return WriteBatch(key=key, token=token, operations=operations, attempt=attempt)

    def attempting(self, batch: WriteBatch, length: int) -> WriteBatch:
        """Record the offset of the batch before it is sent: the current length of the object."""
        with self._folder() as folder:
            folder.replace(digest_of(batch.key) + _ATTEMPT, f"{batch.token} {length}".encode())
        return msgspec.structs.replace(batch, attempt=length)

    def unlist(self, new: UnlistedObject) -> None:
        """Note that the manifest lacks an object. An older note keeps its time and its entry. The caller holds the lock."""
        name = digest_of(new.key) + _UNLISTED
        with self._folder() as folder:
            old = _unlisted(folder.read(name, bytes_max=_BYTES_MAX))
            note = new if old is None else msgspec.structs.replace(old, size=new.size)
            folder.replace(name, msgspec.json.encode(note))

    def unlisted(self) -> list[UnlistedObject]:
        """All objects that the manifest lacks. The caller holds the lock."""
        with self._folder() as folder:
            raw = [
                folder.read(name, bytes_max=_BYTES_MAX)
                for name in folder.names()
                if name.endswith(_UNLISTED) and not name.startswith(".")
            ]
        return [note for note in map(_unlisted, raw) if note is not None]

    def unlisted_since(self, key: str) -> Instant | None:
        """Since when the manifest lacks an object; None where it does not. The caller holds the lock."""
        with self._folder() as folder:
            note = _unlisted(folder.read(digest_of(key) + _UNLISTED, bytes_max=_BYTES_MAX))
        return None if note is None else note.since

    def listed(self, key: str) -> None:
        """The manifest has it. The caller holds the lock."""
        with self._folder() as folder:
            folder.remove(digest_of(key) + _UNLISTED)

    def done(self, batch: WriteBatch) -> None:
        """The store has it. The caller holds the lock."""
        with self._folder() as folder:
            folder.remove(digest_of(batch.key) + _SENDING)
            folder.remove(digest_of(batch.key) + _ATTEMPT)

    def operations(self, key: str, *, sent: str = "") -> list[WriteOperation]:
        """What is to be done to a text that is known to have the batch `sent`. The caller holds the lock."""
        begun = self.begun(key)
        first = () if begun is None or begun.token == sent else begun.operations
        with self._folder() as folder:
            return [*first, *_operations(folder.read(digest_of(key), bytes_max=_BYTES_MAX))]

    def waiting(self) -> list[PendingWrites]:
        """All keys that have something to be sent. The caller holds the lock."""
        found = []
        with self._folder() as folder:
            for name in folder.names():
                if name.startswith(".") or name.endswith((_ATTEMPT, _UNLISTED)):
                    continue
                operations = _operations(folder.read(name, bytes_max=_BYTES_MAX))
                if operations:
                    size = sum(len(operation.text.encode()) for operation in operations)
                    first = operations[0]
                    found.append(PendingWrites(first.key, size, first.at, name.endswith(_SENDING)))
        return found

    def _mend(self, folder: SafeDirectory, name: str) -> None:
        """A line that was being written when its process ended was never acknowledged; it must not spoil the next."""
        with translated(self._root / name):
            descriptor = folder.open(name, os.O_RDWR)
            with os.fdopen(descriptor, "rb+") as file:
                raw = file.read()
                if raw and not raw.endswith(b"\n"):
                    file.truncate(raw.rfind(b"\n") + 1)

    @contextmanager
    def _folder(self) -> Iterator[SafeDirectory]:
        with SafeDirectory.root(self._root) as root, root.below(_FOLDER) as folder:
            yield folder

    @contextmanager
    def _lock(self, name: str, *, wait: bool) -> Iterator[bool]:
        with SafeDirectory.root(self._root) as root:
            lock = root.open(name, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                yield self._is_locked(lock, self._root / name, wait=wait)
            finally:
                os.close(lock)

    def _is_locked(self, lock: int, path: Path, *, wait: bool) -> bool:
        if sys.platform != "win32":
            with translated(path):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
                except BlockingIOError:
                    return False
        return True


def digest_of(key: str) -> str:
    """The name of a key's files: any key has one, and none is too long or looks like another."""
    return hashlib.sha256(key.encode()).hexdigest()


def _operations(raw: bytes | None) -> tuple[WriteOperation, ...]:
    """Whole lines only: what has no end was never acknowledged."""
    lines = (raw or b"").split(b"\n")[:-1]
    return tuple(msgspec.json.decode(line, type=WriteOperation) for line in lines)


def _unlisted(raw: bytes | None) -> UnlistedObject | None:
    """A note is replaced as a whole, so one that cannot be read is damaged, and `rebuild` finds what it was about."""
    try:
        return None if raw is None else msgspec.json.decode(raw, type=UnlistedObject)
    except msgspec.MsgspecError:
        return None
