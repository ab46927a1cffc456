"""EntraBot's memory as files under a directory."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

_WAITING = ".memplane-waiting-"
"""Prefix of temporary files. Listings skip them."""


class LocalBackend:
    """UTF-8 text with unchanged line ends. No key leads out of the directory."""

    def __init__(self, root: Path) -> None:
        self._root = Path(root)

    @property
    def root(self) -> Path:
        return self._root

    def read_text(self, key: str) -> str | None:
        try:
            return self._path(key).read_bytes().decode("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write_text(self, key: str, text: str) -> None:
        """Replace the file atomically."""
        with self._temporary(key, text) as (waiting, path):
            waiting.replace(path)

    def create_text(self, key: str, text: str) -> bool:
        """Like `write_text` if the key does not exist yet; returns False, without a change, if it does."""
        with self._temporary(key, text) as (waiting, path):
            try:
                os.link(waiting, path)
            except FileExistsError:
                return False
            except OSError:  # a file system without links, where looking first is the best there is
                if path.exists():
                    return False
                waiting.replace(path)
        return True

    def append_text(self, key: str, text: str) -> None:
        """Append in a single write, so that concurrent appends do not interleave."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = text.encode("utf-8")
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o666
        )
        try:
            while raw:
                raw = raw[os.write(descriptor, raw) :]
        finally:
            os.close(descriptor)

    def exists(self, key: str) -> bool:
        return self._path(key).is_file()

    def list(self, prefix: str = "") -> list[str]:
        return [
            key
            for path in files_in(self._root)
            if (key := path.relative_to(self._root).as_posix()).startswith(prefix)
        ]

    def _path(self, key: str) -> Path:
        """The path of a key. Raises `ValueError` for a link that leads out of the directory."""
        path = self._root.joinpath(*checked_key(key).split("/"))
        if not path.resolve().is_relative_to(self._root.resolve()):
            raise ValueError(f"{key!r} leads outside {self._root}")
        return path

    @contextlib.contextmanager
    def _temporary(self, key: str, text: str) -> Iterator[tuple[Path, Path]]:
        """A complete, synced temporary file next to the target; removed afterwards."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        waiting = path.with_name(f"{_WAITING}{secrets.token_hex(8)}")
        try:
            with waiting.open("xb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            yield waiting, path
        finally:
            waiting.unlink(missing_ok=True)


def files_in(root: Path) -> "list[Path]":
    """Every file below a directory, sorted by path; empty if there is no such directory."""
    return sorted(path for path in root.rglob("*") if not path.name.startswith(_WAITING) and path.is_file())


def checked_key(key: str) -> str:
    """Validate a key: a relative path with `/` between its parts. Raises `ValueError` for one that leads elsewhere."""
    if any(part in {"", ".", ".."} for part in key.split("/")) or "\0" in key:
        raise ValueError(
            f"{key!r} is no key: parts must not be empty, `.` or `..`, since they lead elsewhere"
        )
    return key
