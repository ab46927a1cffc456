"""An object store that is a directory: on this machine, a stick, a share.

Every object is a plain file under its key. Its version is its time of change, which every write sets later than the one
before, with its inode and size: an edit by hand is a new version too. The directory itself is the lock between threads
and processes. Nothing is followed out of it, and what a crash leaves half written is never listed.
"""

import errno
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from memplane.clock import to_datetime
from memplane.entropy import random_bytes
from memplane.errors import Changed, InvalidRequest, RemoteDenied, RemoteUnavailable, StorageError, Unchanged
from memplane.safety.safe_directory import SafeDirectory, write_all
from memplane.sync.store import ObjectInfo, StoredObject, display_key, from_name, order, to_name

_WAITING = "%new-"
"""Begins the name of a file that is being written; no key's name does (`keys.py`)."""

_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


class LocalObjects:
    """`ObjectStore` in a directory, which is made with the first object."""

    def __init__(self, root: str | Path) -> None:
        self._root = Path(root).expanduser().absolute()

    def __repr__(self) -> str:
        return f"LocalObjects({self.url!r})"

    @property
    def url(self) -> str:
        return self._root.as_uri()

    def get(self, key: str, *, unless: str | None = None) -> StoredObject | None:
        *folders, name = to_name(key).split("/")
        with self._translated(key), _not_found(), self._folder(folders) as folder:
            descriptor = folder.open(name)
            with os.fdopen(descriptor, "rb") as file:
                while True:
                    version = _version(os.fstat(descriptor))
                    if version == unless:
                        raise Unchanged(key)
                    data = file.read()
                    if _version(os.fstat(descriptor)) == version:
                        return StoredObject(data, version)
                    file.seek(0)  # it was edited while it was read
        return None

    def put(self, key: str, data: bytes, *, expect: str | None = None) -> str:
        *folders, name = to_name(key).split("/")
        with self._translated(key), SafeDirectory.root(self._root, create=True) as root, root.locked():
            if expect is not None:
                self._expect(key, expect)
            self._make(root, folders)
            with root.below(*folders) as folder:
                return self._replace(folder, name, data)

    def delete(self, key: str) -> None:
        *folders, name = to_name(key).split("/")
        with self._translated(key), _not_found(), SafeDirectory.root(self._root) as root, root.locked():
            with root.below(*folders) as folder:
                status = _found(folder, name)
                if status is None or not stat.S_ISREG(status.st_mode):
                    return
                folder.remove(name)
                folder.sync()
            self._tidy(root, folders)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        with self._translated(prefix):
            found = [listed for listed in self._walk(prefix) if listed.key.startswith(prefix)]
        yield from sorted(found, key=lambda listed: order(listed.key))

    def _walk(self, prefix: str) -> Iterator[ObjectInfo]:
        """All there is in the directories that can hold the prefix, and perhaps a little more."""
        whole, _, _ = prefix.rpartition("/")
        todo: list[tuple[str, ...]] = [tuple(to_name(whole).split("/")) if whole else ()]
        while todo:
            path = todo.pop()
            with _not_found(), self._folder(path) as folder:
                for name in folder.names():
                    status = _found(folder, name)
                    if status is None or name.startswith(_WAITING):
                        continue
                    if stat.S_ISDIR(status.st_mode):
                        todo.append((*path, name))
                    elif (
                        stat.S_ISREG(status.st_mode)
                        and (key := from_name("/".join((*path, name)))) is not None
                    ):
                        yield ObjectInfo(
                            key, status.st_size, _version(status), to_datetime(status.st_mtime_ns // 1_000)
                        )

    @contextmanager
    def _folder(self, names: Sequence[str]) -> Iterator[SafeDirectory]:
        with SafeDirectory.root(self._root) as root, root.below(*names) as folder:
            yield folder

    def _expect(self, key: str, expect: str) -> None:
        *folders, name = to_name(key).split("/")
        status = None
        with _not_found(), self._folder(folders) as folder:
            status = _found(folder, name)
        if ("" if status is None else _version(status)) != expect:
            raise Changed(key)

    def _make(self, root: SafeDirectory, folders: Sequence[str]) -> None:
        """The directories on the way, each of them durable in the one above it."""
        for depth, name in enumerate(folders):
            with root.below(*folders[:depth]) as outer:
                if not outer.has(name):
                    outer.below(name, create=True).close()
                    outer.sync()

    def _replace(self, folder: SafeDirectory, name: str, data: bytes) -> str:
        """The file is the old one or the new one, never half of it, and later than the old one."""
        old = _found(folder, name)
        if old is not None and not stat.S_ISREG(old.st_mode):
            raise OSError(errno.EISDIR, "not a plain file")
        moment = time.time_ns()
        if old is not None:
            moment = max(moment, old.st_mtime_ns + 1)
        waiting = f"{_WAITING}{random_bytes(8).hex()}"
        descriptor = folder.open(waiting, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                write_all(descriptor, data)
                os.utime(descriptor, ns=(moment, moment))
                os.fsync(descriptor)
                version = _version(os.fstat(descriptor))
            finally:
                os.close(descriptor)
            folder.rename(waiting, name)
        except BaseException:
            folder.remove(waiting)
            raise
        folder.sync()
        return version

    def _tidy(self, root: SafeDirectory, folders: Sequence[str]) -> None:
        """Takes away directories that hold nothing now; a person would wonder about them."""
        for depth in range(len(folders) - 1, -1, -1):
            with root.below(*folders[:depth]) as outer:
                if not outer.remove_empty(folders[depth]):
                    return

    @contextmanager
    def _translated(self, key: str) -> Iterator[None]:
        """The one place where errors of a directory become those of an object store."""
        try:
            yield
        except StorageError as exc:
            cause = exc.__cause__
            raise self._error(cause if isinstance(cause, OSError) else OSError(str(exc)), key) from exc
        except OSError as exc:
            raise self._error(exc, key) from exc

    def _error(self, error: OSError, key: str) -> InvalidRequest | RemoteDenied | RemoteUnavailable:
        if error.errno in {errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EEXIST}:
            return InvalidRequest(
                f"{display_key(key)} cannot be kept in {self._root}: a part of it is a file, a folder or a link there already",
                field="key",
            )
        if error.errno in _DENIED:
            return RemoteDenied(
                f"{self._root} may not be read or written: {error.strerror}; look at its permissions"
            )
        return RemoteUnavailable(f"{self._root} cannot be used: {error.strerror or error}")


def _found(folder: SafeDirectory, name: str) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return folder.status(name)
    return None


def _version(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}-{status.st_size:x}"


@contextmanager
def _not_found() -> Iterator[None]:
    """Where a directory on the way is missing, or a file or a link instead, there is no such object."""
    absent = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
    try:
        yield
    except StorageError as exc:
        if not (isinstance(exc.__cause__, OSError) and exc.__cause__.errno in absent):
            raise
    except OSError as exc:
        if exc.errno not in absent:
            raise
