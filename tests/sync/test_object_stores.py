"""What every object store does, put to each of them: a dictionary, a directory, Azure Blob Storage (Azurite) and S3
(SeaweedFS)."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cache_workers import count_up

from memory_objects import MemoryObjects
from memplane.errors import Changed, InvalidRequest, Unchanged
from memplane.sync.local import LocalObjects
from memplane.sync.store import ABSENT, from_name, order, to_name

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.support.cache_workers"])

THOROUGH = os.environ.get("MEMPLANE_TESTS") == "thorough"

KEYS = [
    "plain.md",
    "two words.md",
    "a/deep/er/key",
    "100%",
    "100% sure",
    "a%20b",
    "%41",
    "why?.md",
    "a=1&b=2",
    "#1",
    "c++",
    "a+b c",
    "naïve/Grüße.md",
    "記憶/昨日.jsonl",
    "мир",
    "🦀/👩‍👩‍👧.md",
    "e\u0301 and \u00e9",
    "ends with dots...",
    "part. /end ",
    " begins with a space",
    "back\\slash",
    "quote'\"`",
    "<tag>&amp;",
    "semi;colon:at@,!$()*~|[]{}^",
    "tab\tline\nnul\x00bell\x07del\x7fnel\x85",
    "\ufffe\uffff",
    ".hidden/.git",
    "...",
    "%new-000",
    "x" * 600,
    "é" * 300,
    "/".join(["part"] * 60),
]


@pytest.fixture(params=["memory", "local", "azurite", "seaweedfs"])
def store(request, tmp_path):
    if request.param == "memory":
        return MemoryObjects()
    if request.param == "local":
        return LocalObjects(tmp_path / "objects")
    return request.getfixturevalue(request.param).place().open()


def listed(store, prefix=""):
    return [item.key for item in store.list(prefix)]


def test_what_was_put_is_got(store):
    """
    An object is its bytes, also none and many; what was never put is None.
    """
    for data in (b"", b"\x00\xff\r\n", bytes(range(256)) * 4_096):
        version = store.put("a/b.bin", data)

        got = store.get("a/b.bin")
        assert (got.data, got.version) == (data, version)
    assert store.get("a/b") is None
    assert store.get("nothing/here") is None


def test_every_write_has_its_own_version(store):
    """
    A version is no empty word, changes with what is written, and is the same in an answer, an object and a listing.
    """
    versions = [store.put("k", data) for data in (b"1", b"2", b"3")]

    assert len(set(versions)) == 3
    assert all(versions)
    assert store.get("k").version == versions[-1]
    assert [item.version for item in store.list()] == [versions[-1]]


def test_unless(store):
    """
    Where it is as it was, it is not sent again; where it is not, it is; where it is gone, it is gone.
    """
    old = store.put("k", b"old")
    with pytest.raises(Unchanged):
        store.get("k", unless=old)
    new = store.put("k", b"new")

    assert store.get("k", unless=old).version == new
    store.delete("k")
    assert store.get("k", unless=new) is None


def test_expect_a_version(store):
    """
    A write that expects what is there is done; one that expects what was there changes nothing.
    """
    first = store.put("k", b"first")
    second = store.put("k", b"second", expect=first)

    with pytest.raises(Changed):
        store.put("k", b"late", expect=first)
    assert store.get("k").data == b"second"
    assert store.get("k").version == second


def test_expect_nothing(store):
    """
    With `ABSENT` only the first of all writes is done, until the object is deleted; an empty object is there too.
    """
    store.put("k", b"", expect=ABSENT)

    with pytest.raises(Changed):
        store.put("k", b"again", expect=ABSENT)
    store.delete("k")
    store.put("k", b"anew", expect=ABSENT)
    assert store.get("k").data == b"anew"


def test_expect_what_is_gone(store):
    """
    Who expects a version of an object that was deleted does not bring it back.
    """
    version = store.put("k", b"1")
    store.delete("k")

    with pytest.raises(Changed):
        store.put("k", b"2", expect=version)
    assert store.get("k") is None


def test_deleting_is_quiet(store):
    """
    What is deleted is gone from everywhere, and deleting what is not there is no error.
    """
    store.put("a/b/c", b"1")
    store.put("a/d", b"2")
    for _ in range(2):
        store.delete("a/b/c")
    store.delete("never/was")

    assert store.get("a/b/c") is None
    assert listed(store) == ["a/d"]


def test_any_unicode_is_a_key(store):
    """
    Keys of any letters are kept apart, read back and listed as they are.
    """
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put(key, key.encode()), KEYS))

    assert listed(store) == sorted(KEYS, key=order)
    assert [store.get(key).data.decode() for key in KEYS] == KEYS


@pytest.mark.parametrize(
    "key", ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "\ud800", "x" * 2_000]
)
def test_what_is_no_key(store, key):
    """
    A key that could lead out of the store, or that cannot be written, is refused before anything is asked.
    """
    for call in (store.get, store.delete, lambda name: store.put(name, b"")):
        with pytest.raises(InvalidRequest):
            call(key)


def test_listing(store):
    """
    A listing has what begins with the prefix, letter by letter, in the order of UTF-8, with sizes and times.
    """
    keys = ["a", "a b", "a-b/x", "ab", "b/1", "b/10", "b/2", "b2", "Z", "z/é", "z/\uffee", "z/😀", "z/ä"]
    for key in keys:
        store.put(key, b"x" * len(key))

    assert listed(store) == sorted(keys, key=order)
    assert listed(store, "a") == ["a", "a b", "a-b/x", "ab"]
    assert listed(store, "b") == ["b/1", "b/10", "b/2", "b2"]
    assert listed(store, "b/") == ["b/1", "b/10", "b/2"]
    assert listed(store, "b/1") == ["b/1", "b/10"]
    assert listed(store, "z/") == ["z/ä", "z/é", "z/\uffee", "z/😀"]
    assert listed(store, "none/") == []
    item = next(iter(store.list("b/10")))
    assert item.size == 4
    assert item.modified.tzinfo is not None
    if not isinstance(store, MemoryObjects):
        assert abs(item.modified - datetime.now(UTC)) < timedelta(minutes=10)


def test_concurrent_increments(store):
    """
    Threads that read, add one and write under the version they read lose nothing.
    """
    store.put("count", b"0")

    def add(_):
        while True:
            got = store.get("count")
            try:
                return store.put("count", str(int(got.data) + 1).encode(), expect=got.version)
            except Changed:
                continue

    with ThreadPoolExecutor(6) as pool:
        versions = list(pool.map(add, range(40)))

    assert store.get("count").data == b"40"
    assert len(set(versions)) == 40


def test_only_one_creates(store):
    """
    Of many who create an object at once, one does.
    """

    def create(number):
        try:
            return store.put("only", str(number).encode(), expect=ABSENT)
        except Changed:
            return None

    with ThreadPoolExecutor(8) as pool:
        created = [version for version in pool.map(create, range(16)) if version is not None]

    assert created == [store.get("only").version]


def test_no_store_sees_another(store, tmp_path, request):
    """
    A prefix is part of a store: what lies beside it, even with a name that begins the same, is not in it.
    """
    if "memory" in request.node.name:
        pytest.skip("it has no prefix")
    places = [tmp_path / "agent", tmp_path / "agent2", tmp_path]
    names = ["agent", "agent2", ""]
    if "local" in request.node.name:
        one, two, around = map(LocalObjects, places)
    else:
        place = request.getfixturevalue("azurite" if "azurite" in request.node.name else "seaweedfs").place(
            ""
        )
        one, two, around = (place.below(name).open() for name in names)
    one.put("k", b"1")
    two.put("k", b"2")

    assert (listed(one), listed(two), listed(around)) == (["k"], ["k"], ["agent/k", "agent2/k"])
    one.delete("k")
    assert two.get("k").data == b"2"


@pytest.mark.parametrize(
    ("server", "count"),
    [
        ("seaweedfs", 1_020),
        pytest.param(
            "azurite",
            5_020,
            marks=pytest.mark.skipif(
                not THOROUGH, reason="Azurite takes long over so many; a thorough run does it"
            ),
        ),
    ],
)
def test_more_than_a_page(server, count, request):
    """
    A listing goes on past what the server tells at once: S3 1,000 objects, Azure 5,000.
    """
    store = request.getfixturevalue(server).place().open()
    keys = [f"ledger/{number:05}" for number in range(count)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda key: store.put(key, b""), keys))

    assert listed(store) == keys
    assert listed(store, "ledger/0101") == keys[1_010:1_020]


def test_two_processes_on_a_directory(tmp_path):
    """
    Processes that count in one object of a directory lose nothing either.
    """
    store = LocalObjects(tmp_path)
    store.put("count", b"0")
    processes = [forked.Process(target=count_up, args=(tmp_path, 100)) for _ in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert [process.exitcode for process in processes] == [0, 0]
    assert store.get("count").data == b"200"


@given(st.text(min_size=1, max_size=20) | st.text(alphabet="xé%. ", min_size=200, max_size=300))
def test_names_are_reversible(text):
    """
    Whatever a key is, its name leads back to it, and no part of a name is too long for a file or ends in a dot.
    """
    try:
        name = to_name(text)
    except InvalidRequest:
        return

    assert from_name(name) == text
    assert all(len(part.encode()) <= 255 and part[-1] not in ". " for part in name.split("/"))


@given(st.text(alphabet="a%/25Ee. \\", min_size=1, max_size=12))
def test_no_two_keys_have_one_name(name):
    """
    A name is that of one key or of none.
    """
    key = from_name(name)

    assert key is None or to_name(key) == name
