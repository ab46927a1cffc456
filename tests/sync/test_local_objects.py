"""A directory as an object store: what people and crashes leave in it, and what must not lead out of it."""

import os
import stat

import pytest

from memplane.errors import Changed, InvalidRequest, RemoteDenied, RemoteUnavailable
from memplane.sync.local import LocalObjects


@pytest.fixture
def root(tmp_path):
    return tmp_path / "objects"


@pytest.fixture
def store(root):
    return LocalObjects(root)


def listed(store):
    return [item.key for item in store.list()]


def test_objects_are_plain_files(store, root):
    """
    A person finds each object under its key, and nothing else.
    """
    store.put("behavioral/MEMORY.md", b"# Memory\n")
    store.put("état/naïve file.txt", b"x")
    store.delete("état/naïve file.txt")

    assert (root / "behavioral/MEMORY.md").read_bytes() == b"# Memory\n"
    assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*")) == [
        "behavioral",
        "behavioral/MEMORY.md",
    ]


def test_what_a_person_writes_is_an_object(store, root):
    """
    A file made or edited by hand is an object with a version of its own, and a stale write does not undo it.
    """
    version = store.put("notes/a.md", b"one")
    (root / "notes/a.md").write_bytes(b"two")
    (root / "notes/b.md").write_bytes(b"new")

    assert store.get("notes/a.md").data == b"two"
    with pytest.raises(Changed):
        store.put("notes/a.md", b"three", expect=version)
    assert listed(store) == ["notes/a.md", "notes/b.md"]


def test_versions_differ_however_fast(store):
    """
    Many writes within one tick of the file system's clock have versions of their own, deletes between them or not.
    """
    versions = set()
    for number in range(200):
        versions.add(store.put("k", b"same size"))
        if number % 3 == 0:
            store.delete("k")

    assert len(versions) == 200


def test_a_clock_that_was_put_back(store, root):
    """
    A write is later than the one before it even where the clock says otherwise.
    """
    version = store.put("k", b"1")
    ahead = (root / "k").stat().st_mtime_ns + 10**15
    os.utime(root / "k", ns=(ahead, ahead))
    newer = store.get("k").version
    newest = store.put("k", b"2", expect=newer)

    assert len({version, newer, newest}) == 3
    assert (root / "k").stat().st_mtime_ns > ahead


def test_what_a_crash_leaves_is_not_listed(store, root):
    """
    A file that was being written when a process ended is no object.
    """
    store.put("a/k", b"1")
    (root / "a/%new-0123456789abcdef").write_bytes(b"half")
    (root / "a/b%20c").write_bytes(b"a name that no key has")

    assert listed(store) == ["a/k"]


def test_links_lead_nowhere(store, root, tmp_path):
    """
    A link in the directory is neither read, listed, written through nor followed, whether to a file or a folder.
    """
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "file").write_bytes(b"of somebody else")
    store.put("k", b"1")
    (root / "link").symlink_to(secret)
    (root / "file").symlink_to(secret / "file")
    (root / "nowhere").symlink_to(secret / "absent")

    assert listed(store) == ["k"]
    for key in ("link/file", "file", "nowhere"):
        assert store.get(key) is None
    for key in ("link/file", "link/new"):
        with pytest.raises(InvalidRequest):
            store.put(key, b"mine")
        store.delete(key)
    with pytest.raises(InvalidRequest):
        store.put("file", b"mine")
    assert [path.name for path in secret.iterdir()] == ["file"]
    assert (secret / "file").read_bytes() == b"of somebody else"


def test_no_folder_is_an_object(store):
    """
    A directory cannot hold both a file and a folder of one name, and says so.
    """
    store.put("a", b"1")
    store.put("b/c", b"2")
    for key in ("a/b", "b"):
        with pytest.raises(InvalidRequest, match="already"):
            store.put(key, b"3")
        assert store.get(key) is None
        store.delete(key)

    assert listed(store) == ["a", "b/c"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written(store, root):
    """
    Where the system says no, the store says so in its own words.
    """
    store.put("k", b"1")
    root.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(RemoteDenied, match="permissions"):
            store.put("l", b"2")
    finally:
        root.chmod(stat.S_IRWXU)


def test_a_root_that_is_a_file(tmp_path):
    """
    A path that is no directory is an error that names it.
    """
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises((InvalidRequest, RemoteUnavailable), match="file"):
        LocalObjects(tmp_path / "file").put("k", b"1")


def test_nothing_is_there_before_the_first_write(store, root):
    """
    Reading, listing and deleting make no directory.
    """
    assert store.get("k") is None
    assert listed(store) == []
    store.delete("k")

    assert not root.exists()
