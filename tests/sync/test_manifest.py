"""The manifest: its shape, what it keeps of others, and that no writer undoes another's entries."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from benchmarks.counting import Counting
from hypothesis import given
from hypothesis import strategies as st

from memory_objects import MemoryObjects
from memplane.errors import ManifestUnreadable, RemoteUnavailable, Unchanged
from memplane.sync import manifest
from memplane.sync.manifest import KEY, Manifest, ManifestEntry
from memplane.sync.store import ABSENT


def entered(store, key, size=1, **options):
    entry = ManifestEntry(size=size, mtime="2026-04-17T20:00:00.000Z")
    return manifest.update(store, lambda found: found.with_entry(key, entry), pause=lambda _: None, **options)


@pytest.fixture
def store():
    return Counting(MemoryObjects())


def test_its_shape(store, clock):
    """
    It is JSON that a person can read: a version, a time, and an entry a path.
    """
    assert manifest.read(store) == (Manifest(), ABSENT)
    entered(store, "behavioral/MEMORY.md", 1_234, clock=clock)

    assert json.loads(store.get(KEY).data) == {
        "schema_version": 1,
        "updated_at": "2026-11-15T08:30:00.000Z",
        "entries": {"behavioral/MEMORY.md": {"size": 1_234, "mtime": "2026-04-17T20:00:00.000Z"}},
    }


def test_what_others_wrote_is_kept(store):
    """
    Summaries of many files, members nobody here knows and their values survive a change of something else.
    """
    theirs = {
        "schema_version": 1,
        "updated_at": "2026-04-17T20:00:00Z",
        "host": {"name": "studio"},
        "entries": {
            "behavioral/feedback_*.md": {"count": 15, "total_size": 24_000},
            "interactions/2026-04-17.jsonl": {"size": 8_192, "mtime": "…", "etag": "0x1"},
        },
    }
    store.put(KEY, json.dumps(theirs).encode())
    found, _ = manifest.read(store)
    assert found.entries["behavioral/feedback_*.md"] == ManifestEntry(size=24_000, count=15)
    entered(store, "state/watched_chats", 3)
    told = json.loads(store.get(KEY).data)
    del told["updated_at"], theirs["updated_at"]
    del told["entries"]["state/watched_chats"]

    assert told == theirs


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"{",
        b"[]",
        b'{"entries": []}',
        b'{"entries": {"a": 1}}',
        b'{"entries": {"a": {"size": "big"}}}',
        b"\xff",
    ],
)
def test_a_damaged_one_is_an_error_and_stays(store, damaged):
    """
    It is not taken for an empty one, and not written over; `rebuild` makes it anew from what is there.
    """
    store.put("k", b"12")
    store.put(KEY, damaged)
    for call in (lambda: manifest.read(store), lambda: entered(store, "x")):
        with pytest.raises(ManifestUnreadable, match=r"damaged.*rebuilt"):
            call()
    assert store.get(KEY).data == damaged

    assert manifest.rebuild(store).entries["k"].size == 2


def test_a_newer_one_is_left_alone(store):
    """
    What a newer Memplane wrote is not read as if it were understood.
    """
    store.put(KEY, b'{"schema_version": 2, "entries": {}}')

    with pytest.raises(ManifestUnreadable, match="schema_version 2"):
        manifest.read(store)


def test_nothing_new_is_one_request(store):
    """
    Asking for what is known costs one request without a body; a change to what is known, one write.
    """
    _, version = entered(store, "a")
    store.reset()
    with pytest.raises(Unchanged):
        manifest.read(store, version)
    assert dict(store.requests) == {"unchanged": 1}

    known = manifest.read(store)
    store.reset()
    known = entered(store, "b", known=known)
    entered(store, "b", known=known)
    assert dict(store.requests) == {"put": 1}


def test_what_is_known_may_be_old(store):
    """
    A change to what somebody else has changed since begins again with what is there.
    """
    known = entered(store, "a")
    entered(store, "b")
    entered(store, "c", known=known)

    assert set(manifest.read(store)[0].entries) == {"a", "b", "c"}


def test_many_writers_lose_nothing(azurite):
    """
    Writers that all change the one manifest at once, on a real server, lose no entry.
    """
    store = azurite.place().open()

    def work(number):
        for count in range(4):
            entered(store, f"part{number % 2}/{number}-{count}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    found, version = manifest.read(store)

    assert len(found.entries) == 32
    with pytest.raises(Unchanged):
        manifest.read(store, version)


class Contended:
    """A store in which others change the root manifest before each of the next `times` writes to it."""

    def __init__(self, store, times):
        self._store = store
        self.times = times

    def __getattr__(self, name):
        return getattr(self._store, name)

    def put(self, key, data, **options):
        if key == KEY and self.times and "expect" in options:
            self.times -= 1
            entered(self._store, f"other/{self.times}")
        return self._store.put(key, data, **options)


def test_a_hot_part_gets_a_manifest_of_its_own(store):
    """
    Who has to begin again too often moves its part away; nothing is lost, and readers find it through the root.
    """
    entered(store, "interactions/1")
    entered(store, "state/x")
    entered(Contended(store, manifest.HOT_TRIES), "interactions/2")
    others = {f"other/{number}" for number in range(manifest.HOT_TRIES)}
    mine = {"interactions/1", "interactions/2", "state/x"}
    found, version = manifest.read(store)

    assert found.split == ("interactions",)
    assert set(found.entries) == mine | others
    assert set(json.loads(store.get("manifests/interactions.json").data)["entries"]) == {
        "interactions/1",
        "interactions/2",
    }
    assert json.loads(store.get(KEY).data)["split"] == ["interactions"]
    root = store.get(KEY).version
    store.reset()
    with pytest.raises(Unchanged):
        manifest.read(store, version)
    assert dict(store.requests) == {"unchanged": 2}

    entered(store, "interactions/3")
    assert store.get(KEY).version == root
    found, newer = manifest.read(store, version)
    assert newer != version
    assert set(found.entries) == mine | others | {"interactions/3"}
    manifest.update(store, lambda known: known.without("interactions/1", "state/x"))
    assert set(manifest.read(store)[0].entries) == {"interactions/2", "interactions/3"} | others


def test_a_large_part_gets_one_too(store, monkeypatch):
    """
    A part with too many entries is moved away as well.
    """
    monkeypatch.setattr(manifest, "HOT_ENTRIES", 10)
    for number in range(12):
        entered(store, f"ledger/{number}")

    assert manifest.read(store)[0].split == ("ledger",)
    assert len(manifest.read(store)[0].entries) == 12


def test_an_old_writer_beside_a_split(store):
    """
    What somebody puts into the root who does not know of parts is seen, where it is newer.
    """
    entered(Contended(store, manifest.HOT_TRIES), "interactions/1", 1)
    told = json.loads(store.get(KEY).data)
    told["entries"]["interactions/1"] = {"size": 9, "mtime": "2026-04-18T00:00:00.000Z"}
    told["entries"]["interactions/2"] = {"size": 2, "mtime": "2026-04-18T00:00:00.000Z"}
    store.put(KEY, json.dumps(told).encode())

    entries = manifest.read(store)[0].entries
    assert (entries["interactions/1"].size, entries["interactions/2"].size) == (9, 2)
    entered(store, "interactions/3")
    assert set(json.loads(store.get("manifests/interactions.json").data)["entries"]) == {
        f"interactions/{number}" for number in (1, 2, 3)
    }


def test_splitting_while_others_write(monkeypatch):
    """
    Writers who split the same parts and write into them at the same time lose no entry.
    """
    monkeypatch.setattr(manifest, "HOT_TRIES", 0)

    def work(store, number):
        for count in range(2):
            entered(store, f"p{number % 2}/{number}-{count}")

    for _ in range(20):
        store = Yielding(MemoryObjects())
        threads = [threading.Thread(target=work, args=(store, number)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(manifest.read(store)[0].entries) == 12


class Yielding:
    """Lets others run between any two requests."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        threading.Event().wait(0)
        return getattr(self._store, name)


def test_one_that_never_rests(store):
    """
    Who is never fast enough gives up and says so.
    """

    class Restless:
        url = "memory://restless"

        def get(self, key, *, unless=None):
            return store.get(key)

        def put(self, key, data, *, expect=None):
            store.put(KEY, b'{"entries": {}}')
            return store.put(key, data, expect=expect)

    with pytest.raises(RemoteUnavailable, match="all the time"):
        entered(Restless(), "a")


def test_rebuild(store):
    """
    It lists what is there, keeps what is known of what did not change, and does not list itself.
    """
    store.put("a", b"1")
    store.put("b/c", b"22")
    entered(store, "gone")
    known = ManifestEntry(size=1, mtime="2026-04-17T20:00:00.000Z", sha256="abc")
    manifest.update(store, lambda found: found.with_entry("a", known))
    found = manifest.rebuild(store)

    assert set(found.entries) == {"a", "b/c"}
    assert found.entries["a"] == known


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.builds(
            ManifestEntry, size=st.integers(0, 2**50), mtime=st.text(max_size=5), sha256=st.none() | st.text()
        ),
    )
)
def test_entries_survive(entries):
    """
    Whatever the entries are, they are read as they were written.
    """
    store = MemoryObjects()
    manifest.update(store, lambda found: found.with_entries(entries))

    assert manifest.read(store)[0].entries == entries
