"""A new file is a copy of one made before; whoever opens it must not be able to tell."""

import stat
from pathlib import Path

import apsw
import pytest

from memplane import Memplane
from memplane.storage.sqlite.catalog.database import PACKAGE
from memplane.storage.sqlite.connection import PAGE_BYTES
from memplane.storage.sqlite.files import create_file
from memplane.storage.sqlite.migrate import APPLICATION_ID, SPACE, migrate, migrations

KEY = "5e" * 32


def built(path: Path, package: str) -> apsw.Connection:
    """A file as SQLite makes it, one migration after the other."""
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", PAGE_BYTES)
    migrate(connection, path.name, package=package)
    connection.pragma("journal_mode", "wal")
    return connection


def inside(connection: apsw.Connection) -> list[object]:
    tables = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
    ).fetchall()
    names = [name for kind, name, _, _ in tables if kind == "table"]
    rows = [(name, connection.execute(f'SELECT * FROM "{name}"').fetchall()) for name in names]
    kept = ("journal_mode", "user_version", "application_id", "page_size", "encoding", "auto_vacuum")
    return [tables, rows, [connection.pragma(name) for name in kept]]


@pytest.mark.parametrize("package", [SPACE, PACKAGE])
def test_a_new_file_holds_what_the_migrations_make(tmp_path, package):
    create_file(tmp_path / "copied.db", None, package=package)
    copied = apsw.Connection(str(tmp_path / "copied.db"))

    assert inside(copied) == inside(built(tmp_path / "built.db", package))
    assert copied.pragma("integrity_check") == "ok"
    assert copied.pragma("user_version") == len(migrations(package))
    assert copied.pragma("application_id") == APPLICATION_ID
    copied.close()


def test_two_files_under_one_key_are_not_alike(tmp_path):
    """Each has a salt of its own, so none of them says anything about the other."""
    for name in ("one.db", "two.db"):
        create_file(tmp_path / name, KEY)

    one, two = ((tmp_path / name).read_bytes() for name in ("one.db", "two.db"))
    assert len(one) == len(two)
    assert one[:16] != two[:16]
    assert sum(a == b for a, b in zip(one, two, strict=True)) < len(one) / 50


def test_a_file_is_nobody_elses(tmp_path):
    """The catalog stands in a folder that others may look into."""
    create_file(tmp_path / "catalog.db", None, package=PACKAGE)

    assert stat.S_IMODE((tmp_path / "catalog.db").stat().st_mode) == 0o600


def test_an_empty_space_is_small(tmp_path):
    """
    A server with many users has many spaces with little in them. Closing one leaves no log beside it.
    """
    for key in (None, KEY):
        with Memplane.open(tmp_path / str(key), key=key, embedder=None) as plane:
            plane.space("alice").retain("Good morning")
        files = [path for path in (tmp_path / str(key) / "spaces").rglob("*") if path.is_file()]

        assert [path.name for path in files] == ["alice.db"]
        assert files[0].stat().st_size < 150 * 1024
