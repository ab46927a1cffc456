"""What every engine must do for credentials."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from threading import Barrier, Thread

import pytest

from memplane.storage.catalog.credentials import CredentialStore, KeyRecord


@pytest.fixture
def open_credentials(engine) -> Iterator[Callable[[], CredentialStore]]:
    """Each is another program on the same data."""
    with ExitStack() as opened:

        def open_():
            made = engine.credentials()
            opened.callback(made.close)
            return made

        yield open_


@pytest.fixture
def credentials(open_credentials):
    return open_credentials()


def a_key(id="k1", **fields):
    given = {"salt": b"s" * 16, "digest": b"d" * 32, "name": "n", "tenant": "t", "subject": "s", "created": 1}
    return KeyRecord(id=id, **(given | fields))


def test_reading_finds_nothing_where_nothing_was_written(credentials, tmp_path):
    """
    Looking leaves no trace: no file, no folder.
    """
    assert credentials.key("k1") is None
    assert credentials.list_keys() == []
    assert credentials.keys_of_agent("a") == []
    assert credentials.locked_until(b"p") is None
    assert credentials.revoke("k1", 5) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "record",
    [
        a_key(),
        a_key(spaces=("a", "b\n\u2603"), doors=("mcp",), rights=("read",), expires=9, used=3, revoked=4),
        a_key(spaces=(), doors=(), agent="we:ston"),
    ],
    ids=["least", "everything", "empty"],
)
def test_a_key_comes_back_as_it_was(open_credentials, record):
    """
    Every field, in this program and in another.
    """
    assert open_credentials().add(record)

    assert open_credentials().key("k1") == record


def test_an_id_is_used_once(credentials):
    """
    A second key with the same id is refused, and the first stays as it is.
    """
    credentials.add(a_key(name="first"))

    with pytest.raises(Exception, match=r"(?i)unique"):
        credentials.add(a_key(name="second"))

    assert credentials.key("k1").name == "first"
    assert credentials.add(a_key("k2"))


def test_keys_of_an_agent_in_any_tenant(credentials):
    """
    The name alone decides, exactly as written.
    """
    for id, agent, tenant in [("1", "a", "t"), ("2", "a", "u"), ("3", "A", "t"), ("4", None, "t")]:
        credentials.add(a_key(id, agent=agent, tenant=tenant))

    assert [record.id for record in credentials.keys_of_agent("a")] == ["1", "2"]


def test_keys_are_listed_oldest_first(credentials):
    """
    Whatever their ids.
    """
    for id, created in [("a", 3), ("b", 1), ("c", 2)]:
        credentials.add(a_key(id, created=created))

    assert [record.id for record in credentials.list_keys()] == ["b", "c", "a"]


def test_revoking_is_seen_at_once_elsewhere_and_happens_once(open_credentials):
    """
    The moment of the first revocation stays.
    """
    here, there = open_credentials(), open_credentials()
    here.add(a_key())
    assert there.key("k1").revoked is None

    assert here.revoke("k1", 5).revoked == 5
    assert there.key("k1").revoked == 5
    assert there.revoke("k1", 6).revoked == 5


def test_once_is_once(open_credentials):
    """
    Of many that try at the same moment exactly one adds its key; another word is another matter.
    """
    count = 8
    begin, won = Barrier(count), []

    def work(number):
        credentials = open_credentials()
        begin.wait()
        if credentials.add(a_key(f"k{number}"), once="owner"):
            won.append(f"k{number}")

    threads = [Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    last = open_credentials()
    assert [record.id for record in last.list_keys()] == won
    assert len(won) == 1
    assert last.add(a_key("other"), once="something else")


def test_use_is_noted_and_never_goes_back(credentials):
    """
    A clock that is behind does not make a key look unused.
    """
    credentials.add(a_key())

    credentials.touch("k1", 7)
    credentials.touch("k1", 5)
    credentials.touch("nobody", 5)

    assert credentials.key("k1").used == 7


def test_locks_are_seen_elsewhere_and_forgotten_when_over(open_credentials):
    """
    A shorter lock does not end a longer one.
    """
    here, there = open_credentials(), open_credentials()
    here.lock(b"p", 100, now=0)
    there.lock(b"p", 50, now=0)
    here.lock(b"q", 10, now=0)
    assert (there.locked_until(b"p"), there.locked_until(b"q")) == (100, 10)

    there.lock(b"r", 200, now=60)

    assert [here.locked_until(place) for place in (b"p", b"q", b"r")] == [100, None, 200]


def test_a_closed_one_opens_again(credentials):
    """
    Closing twice harms nothing.
    """
    credentials.add(a_key())
    credentials.close()
    credentials.close()

    assert credentials.key("k1") == a_key()
