"""Whether a directory is a data directory, checked before data is copied into it."""

import os
from collections.abc import Iterator
from pathlib import Path

from memplane.errors import StorageUnavailable
from memplane.storage.sqlite.connection import PLAIN_HEADER
from memplane.storage.sqlite.migrate import APPLICATION_ID
from memplane.storage.sqlite.names import SUFFIX

_SPACES = "spaces"
_BESIDE = frozenset(
    {"ahead", "audit", "backfill.lock", "databases", "lost+found", "proxy-pending", "run", "sync"}
)
"""What may be in a data directory without spaces: files that this machine keeps next to a database, and those
of a file system."""
_UNFINISHED = (".new", ".probe", ".new-label", ".new-wal", ".new-shm", ".new-journal")
"""What `create_file` and `probe_folder` leave behind if they are killed."""
_APPLICATION_ID = slice(68, 72)


def stranger_in(root: Path, catalog: str) -> str | None:
    """The name of a foreign file in a directory that is not a data directory; None if it is one, an unfinished
    one, or empty. A directory with one of our databases is ours, whatever else it contains. A foreign database
    is never opened."""
    try:
        databases = [
            path for path in (root / catalog, *root.glob(f"{_SPACES}/*/*{SUFFIX}")) if path.is_file()
        ]
        for path in databases:
            if not _is_ours(path):
                return str(path.relative_to(root))
        if databases:
            return None
        return next((str(path.relative_to(root)) for path in _others(root)), None)
    except OSError as exc:
        raise StorageUnavailable(
            f"{root}: cannot be looked into ({exc.strerror}); check that it is yours"
        ) from exc


def _others(root: Path) -> Iterator[Path]:
    for entry in sorted(root.iterdir()) if root.exists() else ():
        if entry.name == _SPACES and entry.is_dir():
            yield from (
                Path(top, name) for top, _, names in os.walk(entry) for name in names if not _left(name)
            )
        elif entry.name not in _BESIDE and not _left(entry.name):
            yield entry


def _left(name: str) -> bool:
    return name.startswith(".") and name.endswith(_UNFINISHED)


def _is_ours(path: Path) -> bool:
    """An encrypted file is checked with its key when it is opened."""
    with path.open("rb") as file:
        header = file.read(_APPLICATION_ID.stop)
    return not header.startswith(PLAIN_HEADER) or header[_APPLICATION_ID] == APPLICATION_ID.to_bytes(4, "big")
