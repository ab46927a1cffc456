"""Encryption at rest: nothing readable without the key, and a wrong key harms nothing."""

import hashlib
from contextlib import closing

import pytest

from memplane import Memplane
from memplane.auth.keys import Grant
from memplane.errors import KeyMismatch, SettingsInvalid, StorageCorrupt

KEY, OTHER = "ab" * 32, "cd" * 32


def open_with(folder, key):
    return Memplane.open(folder / "data", key=key)


def files(folder):
    return [path for path in sorted((folder / "data").rglob("*")) if path.is_file()]


def digests(folder):
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files(folder)
        if path.suffix == ".db"
    }


def fill(folder, key, count=300):
    with open_with(folder, key) as plane:
        space = plane.space("alice")
        for number in range(count):
            space.retain(f"PLAINTEXT number {number}")
        space.store("fact", "PLAINTEXT fact", tags=["PLAINTAG"])


def test_no_plaintext_in_any_file(tmp_path):
    """
    Not in the database, its log or its shared memory, while it is open and after.
    """
    with open_with(tmp_path, KEY) as plane:
        space = plane.space("alice")
        for number in range(300):
            space.retain(f"PLAINTEXT number {number}")
        space.search("plaintext")
        during = [path.name for path in files(tmp_path) if b"PLAIN" in path.read_bytes().upper()]
    after = [path.name for path in files(tmp_path) if b"PLAIN" in path.read_bytes().upper()]

    assert (during, after) == ([], [])
    assert not any(path.read_bytes().startswith(b"SQLite format") for path in files(tmp_path))


@pytest.mark.parametrize(
    ("written", "opened", "words"),
    [(KEY, OTHER, "does not fit"), (KEY, None, "set MEMPLANE_KEY"), (None, KEY, "not encrypted")],
    ids=["wrong", "missing", "needless"],
)
def test_the_wrong_key_says_so_and_changes_nothing(tmp_path, written, opened, words):
    """
    A clear error for each way a key can be wrong; the file stays as it was and opens with the right one.
    """
    fill(tmp_path, written, 5)
    before = digests(tmp_path)

    with open_with(tmp_path, opened) as plane, pytest.raises(KeyMismatch, match=words):
        plane.space("alice").search("plaintext")

    assert digests(tmp_path) == before
    with open_with(tmp_path, written) as plane:
        assert plane.space("alice").overview.stats().entries == 6


@pytest.mark.parametrize("key", ["", "ab" * 31, "xy" * 32, "correct horse battery staple"])
def test_a_malformed_key_is_refused(tmp_path, key):
    """
    Only 32 bytes in hexadecimal are a key, and the message says how to make one.
    """
    with pytest.raises(SettingsInvalid, match="memplane encryption generate"):
        open_with(tmp_path, key)


def test_rotation_there_and_back(tmp_path):
    """
    From no key to one, to another, and to none: everything is there each time, and the old key no longer opens it.
    """
    fill(tmp_path, None, 20)
    for old, new in [(None, KEY), (KEY, OTHER), (OTHER, None)]:
        with open_with(tmp_path, old) as plane:
            assert plane.rotate_key(new) == 1
            assert plane.rotate_key(new) == 0
            assert plane.space("alice").ledger.verify().ok
        with open_with(tmp_path, old) as plane, pytest.raises(KeyMismatch):
            plane.space("alice").overview.stats()

    with open_with(tmp_path, None) as plane:
        assert plane.space("alice").overview.stats().entries == 21


def test_rotation_takes_the_catalog_along(tmp_path):
    """
    Keys still open afterwards what they opened, and the catalog is under the same key as the spaces.
    """
    fill(tmp_path, None, 3)
    with open_with(tmp_path, None) as plane, closing(plane.identity()) as identity:
        bearer = identity.create_key(Grant(name="NAMEDPLAIN")).bearer.reveal()
    for old, new in [(None, KEY), (KEY, OTHER), (OTHER, None)]:
        with open_with(tmp_path, old) as plane:
            plane.rotate_key(new)
            plane.rotate_key(new)
            with closing(plane.identity()) as identity:
                assert identity.authenticate(bearer, peer="here").subject == "NAMEDPLAIN"
        with (
            open_with(tmp_path, old) as plane,
            closing(plane.identity()) as identity,
            pytest.raises(KeyMismatch),
        ):
            identity.authenticate(bearer, peer="here")
        holding = [path.name for path in files(tmp_path) if b"NAMEDPLAIN" in path.read_bytes()]
        assert holding == ([] if new else ["catalog.db"])


def test_a_changed_byte_is_noticed(tmp_path):
    """
    The cipher is authenticated: whatever byte of a page is changed, reading it fails.
    """
    fill(tmp_path, KEY)
    (path,) = [path for path in files(tmp_path) if path.suffix == ".db"]
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)

    with open_with(tmp_path, KEY) as plane:
        try:
            problems = plane.space("alice").ledger.check()
        except StorageCorrupt as exc:
            problems = [str(exc)]

    assert problems


def test_search_and_forget_work_encrypted(tmp_path):
    """
    The index is inside, and so is its erasure.
    """
    fill(tmp_path, KEY)
    with open_with(tmp_path, KEY) as plane:
        space = plane.space("alice")
        found = len(space.search("number 250", limit=5))
        space.forget(everything=True)

        assert found == 5
        assert space.search("number") == []
        assert space.ledger.verify().ok
