"""Damaged files, directories and disks: one clear error each, and nothing else is lost."""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import apsw
import pytest

from memplane import Memplane
from memplane.errors import (
    SettingsInvalid,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageTooNew,
    StorageUnavailable,
)
from memplane.storage.sqlite.names import space_path

PLACES = [0, 1, 15, 16, 100, 4_096, 5_000, 0.5, 0.9]


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    with Memplane.open(folder) as plane:
        for owner in ("alice", "bob"):
            for number in range(50):
                plane.space(owner).retain(f"turn {number} of {owner}")
    return folder


def file_of(data, owner="alice"):
    return space_path(data / "spaces" / "default", owner)


def read_all_of(space):
    """Whatever page is missing, one of these needs it."""
    space.ledger.verify()
    space.search("turn")
    if problems := space.ledger.check():
        raise StorageCorrupt(f"alice: {problems}")


@pytest.mark.parametrize("place", PLACES)
def test_a_cut_off_file_is_named_and_left_alone(data, place):
    """
    Wherever a database is cut off, opening it says that it is damaged, the file stays, and other spaces work.
    """
    path = file_of(data)
    size = place if isinstance(place, int) else int(path.stat().st_size * place)
    os.truncate(path, size)
    before = path.read_bytes()

    with Memplane.open(data) as plane:
        with pytest.raises(StorageError) as caught:
            read_all_of(plane.space("alice"))
        assert len(plane.space("bob").search("turn", limit=100)) == 50

    assert "alice" in str(caught.value)
    assert path.read_bytes() == before


def test_garbage_in_the_header_is_named(data):
    """
    A file that begins with something else is not a database, and is left alone.
    """
    path = file_of(data)
    path.write_bytes(b"garbage!" * 2 + path.read_bytes()[16:])

    with Memplane.open(data) as plane, pytest.raises(StorageError, match="alice"):
        plane.space("alice").search("turn")


def test_a_newer_file_is_refused(data):
    """
    A file of a later version is not touched, and the message says to upgrade.
    """
    connection = apsw.Connection(str(file_of(data)))
    connection.pragma("user_version", 999)
    connection.close()

    with Memplane.open(data) as plane, pytest.raises(StorageTooNew, match="upgrade"):
        plane.space("alice").search("turn")


def test_a_folder_in_the_place_of_a_file_is_named(data):
    """
    Where a folder stands for a space, that space cannot be opened and others can.
    """
    file_of(data, "carol").mkdir()

    with Memplane.open(data) as plane:
        with pytest.raises(StorageError):
            plane.space("carol").retain("hello")
        assert plane.space("bob").retain("hello").seq == 51


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path):
    """
    A data directory that is a file says so.
    """
    (tmp_path / "data").write_text("not a directory")

    with pytest.raises(SettingsInvalid, match="is a file; give a directory"):
        Memplane.open(tmp_path / "data")


def test_a_link_in_the_place_of_a_file_is_refused(data):
    """
    A space cannot be another space's file under a second name.
    """
    file_of(data, "mallory").symlink_to(file_of(data))

    with Memplane.open(data) as plane, pytest.raises(StorageUnavailable, match="link"):
        plane.space("mallory").search("turn")


def test_a_full_disk_loses_nothing(data):
    """
    When no page can be added, the write fails in words, what was there is intact, and the next write works once there is
    room.
    """
    with Memplane.open(data) as plane:
        space = plane.space("alice")
        with space._context.store() as store:
            pages = store.database._writer.pragma("page_count")
            store.database._writer.pragma("max_page_count", pages)
            with pytest.raises(StorageFull, match="room"):
                space.retain("x" * 100_000)
            store.database._writer.pragma("max_page_count", pages + 10_000)

        assert space.overview.stats().entries == 50
        assert space.retain("room again").seq == 51
        assert space.ledger.verify().ok


def test_a_read_only_directory_is_named(data):
    """
    Who may not write gets an error that names the place, and nothing changes.
    """
    program = textwrap.dedent(
        """
        import os, sys
        from memplane import Memplane
        from memplane.errors import StorageUnavailable
        if os.getuid() == 0:
            os.setgid(65534); os.setuid(65534)
        try:
            Memplane.open(sys.argv[1]).space("zoe").retain("hello")
        except StorageUnavailable as exc:
            print(exc)
        """
    )
    with tempfile.TemporaryDirectory() as open_to_all:  # pytest's own directories are closed to other users
        copy = shutil.copytree(data, Path(open_to_all) / "data")
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        Path(open_to_all).chmod(0o755)

        done = subprocess.run(
            [sys.executable, "-c", program, str(copy)], capture_output=True, text=True, check=False
        )

        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o755)
    assert "check that it is yours" in done.stdout, done.stderr


def test_a_restored_copy_is_the_same_space(data, tmp_path):
    """
    Files copied while nothing is open are a backup.
    """
    shutil.copytree(data, tmp_path / "copy")

    with Memplane.open(tmp_path / "copy") as plane:
        assert plane.space("alice").ledger.verify().ok
        assert sorted(plane.spaces()) == ["alice", "bob"]


def test_zero_bytes_are_damage_and_not_a_beginning(data):
    """
    An emptied file is never taken for a new space.
    """
    os.truncate(file_of(data), 0)

    with Memplane.open(data) as plane, pytest.raises(StorageCorrupt, match="backup"):
        plane.space("alice").retain("hello")
