"""Forward-only migrations under `user_version`. A newer file is rejected."""

from functools import cache
from importlib import resources

import apsw

from memplane.errors import StorageTooNew
from memplane.storage.sqlite.connection import PAGE_BYTES

APPLICATION_ID = 0x4D454D50  # "MEMP"
SPACE = "memplane.storage.sqlite"
"""The package that holds the migrations of a space; the catalog has its own."""

_FORMATS = slice(18, 20)
_WITH_A_LOG = b"\x02\x02"
"""The read and write version of a file with a write-ahead log, as `PRAGMA journal_mode = wal` sets them."""


@cache
def migrations(package: str = SPACE) -> tuple[str, ...]:
    folder = resources.files(package).joinpath("migrations")
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return tuple(file.read_text(encoding="utf-8") for file in files)


@cache
def empty(package: str = SPACE) -> bytes:
    """An empty file with a write-ahead log. Made once: the migrations take a hundred times as long as a copy,
    and a server with many users creates many files."""
    connection = apsw.Connection(":memory:")
    try:
        connection.pragma("page_size", PAGE_BYTES)
        migrate(connection, "a new file", package=package)
        made = bytearray(connection.serialize("main"))
    finally:
        connection.close()
    made[_FORMATS] = _WITH_A_LOG
    return bytes(made)


def migrate(connection: apsw.Connection, name: str, *, package: str = SPACE) -> None:
    steps = migrations(package)
    version = connection.pragma("user_version")
    if version > len(steps):
        raise StorageTooNew(
            f"{name} was written by a newer Memplane (its version is {version}, this program knows {len(steps)}); "
            "upgrade Memplane to open it"
        )
    if version == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated while this one waited for the lock.
        for number in range(connection.pragma("user_version"), len(steps)):
            connection.execute(steps[number])
            connection.pragma("user_version", number + 1)
        connection.pragma("application_id", APPLICATION_ID)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
