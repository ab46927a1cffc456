"""A directory handle: names in it are opened relative to it and never follow links.

Directories of a pod are mounted into containers whose agents may write to them. A symbolic link there must not make
an operator's command, or the server, read or overwrite a file of the host; so no link is followed below the root.
"""

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from memplane.errors import InvalidRequest, StorageFull, StorageUnavailable

if sys.platform != "win32":
    import fcntl

_FULL = (errno.ENOSPC, errno.EDQUOT)
_ASTRAY = (errno.ELOOP, errno.ENOTDIR)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_NAME_BYTES_MAX = 255


class SafeDirectory:
    """Close it, best with `with`. System errors are raised as `StorageError`s."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self.path = path

    @classmethod
    def root(cls, path: Path, *, create: bool = False, mode: int = 0o777) -> Self:
        """Open the root. Links on the way to it are followed, because an operator named it."""
        with translated(path):
            if create:
                path.mkdir(mode=mode, parents=True, exist_ok=True)
            return cls(os.open(path, _DIRECTORY), path)

    def below(self, *names: str, create: bool = False, mode: int = 0o777) -> Self:
        """Open a subdirectory. Raises `StorageUnavailable` if there is none, or a link instead."""
        path, descriptor = self.path, os.dup(self._descriptor)
        for name in names:
            outer, path = descriptor, path / name
            try:
                with translated(path):
                    if create:
                        with suppress(FileExistsError):
                            os.mkdir(checked(name), mode, dir_fd=outer)
                    descriptor = os.open(checked(name), _DIRECTORY | _NO_FOLLOW, dir_fd=outer)
            finally:
                os.close(outer)
        return type(self)(descriptor, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold an exclusive lock across threads and processes. The directory itself is the lock, so no lock file
        remains."""
        with translated(self.path):
            lock = os.open(".", _DIRECTORY, dir_fd=self._descriptor)
        try:
            if sys.platform != "win32":
                with translated(self.path):
                    fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def names(self) -> list[str]:
        with translated(self.path):
            return sorted(os.listdir(self._descriptor))  # noqa: PTH208 - a path could be another one by now

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """A descriptor of a regular file. Raises the system's error, for callers that handle it."""
        found = os.open(checked(name), flags | _NO_FOLLOW, mode, dir_fd=self._descriptor)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise OSError(errno.ELOOP, "not a plain file")
        return found

    def has(self, name: str) -> bool:
        try:
            os.stat(checked(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def is_same(self, name: str, descriptor: int) -> bool:
        """Whether the name still refers to the opened file."""
        try:
            found = os.stat(checked(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(descriptor))

    def read(self, name: str, *, bytes_max: int) -> bytes | None:
        """The whole file; None if there is none."""
        with translated(self.path / name):
            try:
                descriptor = self.open(name)
            except FileNotFoundError:
                return None
            with os.fdopen(descriptor, "rb") as file:
                raw = file.read(bytes_max + 1)
        if len(raw) > bytes_max:
            raise InvalidRequest(f"{self.path / name} is longer than {bytes_max} bytes")
        return raw

    def replace(self, name: str, content: bytes, *, mode: int | None = None, durable: bool = True) -> None:
        """Replace the file atomically. With `mode`, exactly that mode; else as the umask says."""
        waiting = f".{checked(name)[:100]}.{secrets.token_hex(6)}"
        with translated(self.path / name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            descriptor = self.open(waiting, flags, 0o666 if mode is None else mode)
            try:
                try:
                    write_all(descriptor, content)
                    if mode is not None:
                        os.fchmod(descriptor, mode)
                    if durable:
                        os.fsync(descriptor)
                finally:
                    os.close(descriptor)
                self.rename(waiting, name)
            except BaseException:
                with suppress(OSError):
                    os.unlink(waiting, dir_fd=self._descriptor)
                raise
            if durable:
                os.fsync(self._descriptor)

    def append(self, name: str, content: bytes, *, durable: bool = False, mode: int = 0o666) -> int:
        """Append everything or nothing; the caller holds the lock. Returns where it begins. `mode` is that of a new file."""
        with translated(self.path / name):
            descriptor = self.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode)
            try:
                size = os.fstat(descriptor).st_size
                try:
                    write_all(descriptor, content)
                    if durable:
                        os.fsync(descriptor)
                except OSError:
                    os.ftruncate(descriptor, size)
                    raise
            finally:
                os.close(descriptor)
        return size

    def rename(self, old: str, new: str) -> None:
        with translated(self.path / old):
            os.rename(checked(old), checked(new), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def remove(self, name: str) -> None:
        """Remove the file if it exists."""
        with translated(self.path / name), suppress(FileNotFoundError):
            os.unlink(checked(name), dir_fd=self._descriptor)

    def remove_empty(self, name: str) -> bool:
        """Remove an empty directory; return whether it was removed."""
        try:
            os.rmdir(checked(name), dir_fd=self._descriptor)
        except OSError:
            return False
        return True

    def status(self, name: str) -> os.stat_result:
        """Stat of this name, which may be a link. Raises the system's error, for callers that handle it."""
        return os.stat(checked(name), dir_fd=self._descriptor, follow_symlinks=False)

    def sync(self) -> None:
        """Make renames and removals durable."""
        with translated(self.path):
            os.fsync(self._descriptor)

    def set_mode(self, mode: int) -> None:
        with translated(self.path):
            os.fchmod(self._descriptor, mode)


def checked(name: str) -> str:
    """A valid name of one directory entry, or `InvalidRequest`."""
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise InvalidRequest(f"{name!r} is no name of a file")
    if len(os.fsencode(name)) > _NAME_BYTES_MAX:
        raise InvalidRequest(f"{name[:40]!r}… is too long for the name of a file")
    return name


def write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Translate errors about files of a pod into ours."""
    try:
        yield
    except OSError as exc:
        if exc.errno in _FULL:
            raise StorageFull(f"no room left for {path}; nothing was written") from exc
        if exc.errno in _ASTRAY:
            raise StorageUnavailable(
                f"{path} is a link, or not what it should be; nothing is followed out of the directory"
            ) from exc
        raise StorageUnavailable(f"{path}: {exc.strerror or exc}") from exc
