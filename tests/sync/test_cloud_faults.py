"""Object stores that refuse, break off and lose answers: what is tried again, for how long, and what is told."""

import pytest

from faulty_server import FaultyServer
from memplane.errors import Changed, RemoteDenied, RemoteUnavailable, Unchanged
from memplane.sync.opening import open_store
from memplane.sync.store import ABSENT
from object_servers import HURRIED, free_ports

KEY = "notes/today.md"
TRIES = 1 + HURRIED.tries


@pytest.fixture(scope="module")
def faulty():
    server = FaultyServer()
    yield server
    server.close()


@pytest.fixture(params=["az", "s3", "gs"])
def store(request, faulty):
    faulty.faults, faulty.asked, faulty.headers = [], [], {}
    faulty.objects.clear()
    opened = open_store(*faulty.place(request.param), patience=HURRIED)
    opened.put(KEY, b"0123456789" * 100)
    faulty.asked.clear()
    return opened


@pytest.mark.parametrize("faults", [[429], [503], [500, 502, 504], [408], ["drop"], ["drop", 503, "drop"]])
def test_what_passes_is_waited_for(store, faulty, faults):
    """
    A store that is busy, or a connection that drops, is asked again, with pauses that grow.
    """
    for call in (lambda: store.get(KEY).data, lambda: store.put("new", b"x")):
        faulty.faults = list(faults)
        faulty.asked.clear()

        assert call()
        assert len(faulty.asked) == len(faults) + 1


@pytest.mark.parametrize("status", [429, 503])
def test_what_does_not_pass_is_given_up(store, faulty, status):
    """
    A store that keeps refusing is asked so many times and then said to be unavailable, which may be tried later.
    """
    for call in (lambda: store.get(KEY), lambda: store.put(KEY, b"x"), lambda: list(store.list())):
        faulty.faults = [status] * 50
        faulty.asked.clear()

        with pytest.raises(RemoteUnavailable, match=str(status)) as told:
            call()
        assert len(faulty.asked) == TRIES
        assert told.value.retryable


def test_answers_that_always_break_off(store, faulty):
    """
    Requests that are never answered whole come to an end too.
    """
    for fault, call in (("drop", lambda: store.put(KEY, b"x")), ("half", lambda: store.get(KEY))):
        faulty.faults = [fault] * 100

        with pytest.raises(RemoteUnavailable):
            call()


def test_half_a_body_is_never_taken_for_the_whole(store, faulty):
    """
    An answer that breaks off in the middle is made whole.
    """
    faulty.faults = ["half"]

    assert store.get(KEY).data == b"0123456789" * 100


def test_a_lost_answer_to_a_plain_write(store, faulty):
    """
    A write whose answer is lost is written again, to the same effect.
    """
    faulty.faults = ["lost"]
    version = store.put("k", b"once")

    assert store.get("k").data == b"once"
    assert store.get("k").version == version


@pytest.mark.parametrize("expect", ["absent", "version"])
def test_a_lost_answer_to_a_conditional_write(store, faulty, expect):
    """
    It is done once; the second try finds it changed, by ourselves.
    """
    key = KEY if expect == "version" else "new"
    version = store.get(KEY).version if expect == "version" else ABSENT
    asks_first = store.url.startswith("gs:") and expect == "version"  # Google is asked for a generation
    faulty.faults = [None, "lost"] if asks_first else ["lost"]
    with pytest.raises(Changed):
        store.put(key, b"mine", expect=version)

    assert store.get(key).data == b"mine"


def test_conditions(store):
    """
    Versions hold for all three, though Google compares something else.
    """
    old = store.get(KEY).version
    new = store.put(KEY, b"new", expect=old)

    with pytest.raises(Changed):
        store.put(KEY, b"late", expect=old)
    with pytest.raises(Unchanged):
        store.get(KEY, unless=new)
    with pytest.raises(Changed):
        store.put(KEY, b"late", expect=ABSENT)
    with pytest.raises(Changed):
        store.put("none", b"late", expect=old)
    assert store.get(KEY).data == b"new"


@pytest.mark.parametrize("status", [401, 403])
def test_a_credential_that_is_not_taken(store, faulty, status):
    """
    It is not tried again, the message says what to renew, and holds no secret; nor does its cause.
    """
    for call in (lambda: store.get(KEY), lambda: store.put(KEY, b"x"), lambda: list(store.list())):
        faulty.faults = [status] * 5
        faulty.asked.clear()

        with pytest.raises(RemoteDenied, match=r"AZURE_|AWS_|GOOGLE_") as told:
            call()
        assert len(faulty.asked) == 1
        assert "TOP" not in str(told.getrepr(style="long", showlocals=False))
        assert told.value.__cause__ is None
    assert "TOP" not in repr(store) + store.url


def test_nobody_there(faulty):
    """
    Where nothing listens, the store is unavailable, and soon.
    """
    (port,) = free_ports(1)
    for provider in ("az", "s3", "gs"):
        url, environment = faulty.place(provider)
        moved = {
            name: text.replace(faulty.url, f"http://127.0.0.1:{port}") for name, text in environment.items()
        }
        store = open_store(url, moved, patience=HURRIED)

        with pytest.raises(RemoteUnavailable, match="no connection") as told:
            store.get(KEY)
        assert "TOP" not in str(told.value)


def test_pages_of_azure(faulty):
    """
    A listing goes on past the 5,000 objects that Azure tells at once, and a page that is refused is asked for again.
    """
    store = open_store(*faulty.place("az"), patience=HURRIED)
    keys = [f"ledger/{number:05}" for number in range(12_345)]
    faulty.names = [f"agent/{key}" for key in keys]
    faulty.asked.clear()
    faulty.faults = [None, 503, "drop", None]

    assert [item.key for item in store.list()] == keys
    assert len(faulty.asked) == 5


def test_an_expired_session_of_s3(faulty):
    """
    S3 says with 400 that a session token has expired.
    """
    store = open_store(*faulty.place("s3"), patience=HURRIED)
    faulty.codes = {400: "ExpiredToken"}
    faulty.faults = [400]

    with pytest.raises(RemoteDenied, match="ExpiredToken"):
        store.get(KEY)


def test_wrong_credentials_and_places_of_azure(azurite):
    """
    Azure's own refusals: a wrong key, a token that expired, one that may only read, a container that is not there.
    """
    container = azurite.container()
    environment = azurite.environment()
    del environment["AZURE_STORAGE_ACCOUNT_KEY"]

    def opened(name=container, **more):
        return open_store(f"az://{name}", environment | more, patience=HURRIED)

    good = opened(AZURE_STORAGE_SAS_TOKEN=azurite.sas(container=container))
    good.put("k", b"1")
    reading = opened(AZURE_STORAGE_SAS_TOKEN="?" + azurite.sas(container=container, permissions="r"))
    expired = azurite.sas(container=container, expires="2020-01-01T00:00:00Z")

    assert reading.get("k").data == b"1"
    for store in (
        reading,
        opened(AZURE_STORAGE_SAS_TOKEN=expired),
        opened(AZURE_STORAGE_ACCOUNT_KEY="bm90IHRoZSBrZXk="),
    ):
        with pytest.raises(RemoteDenied):
            store.put("k", b"2")
    assert good.get("k").data == b"1"
    for call in (
        lambda store: store.get("k"),
        lambda store: store.put("k", b""),
        lambda store: list(store.list()),
    ):
        with pytest.raises(RemoteUnavailable, match="no such container"):
            call(opened("not-there", AZURE_STORAGE_ACCOUNT_KEY=azurite.key))


def test_wrong_credentials_and_places_of_s3(seaweedfs):
    """
    S3's own: a wrong secret, a bucket that is not there.
    """
    environment = seaweedfs.environment()
    wrong = open_store("s3://tests/x", environment | {"AWS_SECRET_ACCESS_KEY": "wrong"}, patience=HURRIED)
    nowhere = open_store("s3://not-there/x", environment, patience=HURRIED)

    with pytest.raises(RemoteDenied, match="SignatureDoesNotMatch"):
        wrong.get("k")
    with pytest.raises(RemoteUnavailable, match="no such bucket"):
        nowhere.get("k")
