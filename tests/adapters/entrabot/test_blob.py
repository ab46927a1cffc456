"""EntraBot's client for blobs, over a real connection."""

import asyncio

import httpx
import pytest
from entrabot.errors import TokenExpiredError
from entrabot.storage.blob import BlobStore, ConcurrencyError

from blob_server import CONTAINER, TOKEN


@pytest.fixture
def server(blob_server):
    return blob_server


@pytest.fixture
def store(server):
    return BlobStore(endpoint=server.endpoint, container=CONTAINER, token_provider=lambda: TOKEN)


def call(work):
    return asyncio.run(work)


# Writing


def test_a_put_is_a_block_blob_with_a_token_and_gives_the_etag(server, store):
    """
    The request names the blob in its path, carries kind and token, and the answer's ETag comes back as it is.
    """
    etag = call(store.put("behavioral/MEMORY.md", b"hello world"))

    (asked,) = server.asked
    assert (asked.method, asked.path) == ("PUT", f"/{CONTAINER}/behavioral/MEMORY.md")
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["x-ms-blob-type"] == "BlockBlob"
    assert asked.headers["x-ms-version"] == "2021-08-06"
    assert asked.body == b"hello world"
    assert etag == server.blobs["behavioral/MEMORY.md"][1]
    assert etag.startswith('"0x8DC')


# Reading


def test_a_get_gives_the_bytes(server, store):
    """
    What the service holds is what is returned.
    """
    server.put("behavioral/MEMORY.md", b"\x00hello\xff")

    assert call(store.get("behavioral/MEMORY.md")) == b"\x00hello\xff"


def test_a_get_of_nothing_is_a_key_error(store):
    """
    404 says that there is no such blob, which is not a failure of the connection.
    """
    with pytest.raises(KeyError, match=r"missing\.md"):
        call(store.get("missing.md"))


def test_a_get_asks_for_a_token_each_time(server):
    """
    Tokens change while a program runs, so none is kept.
    """
    tokens = iter([TOKEN, "stale"])
    store = BlobStore(endpoint=server.endpoint, container=CONTAINER, token_provider=lambda: next(tokens))
    server.put("x", b"")

    call(store.get("x"))
    with pytest.raises(TokenExpiredError):
        call(store.get("x"))

    assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {TOKEN}", "Bearer stale"]


# Looking whether it is there


def test_a_blob_that_is_there_exists(server, store):
    """
    200 is yes.
    """
    server.put("present", b"x")

    assert call(store.exists("present")) is True


def test_a_blob_that_is_not_there_does_not_exist(store):
    """
    404 is no.
    """
    assert call(store.exists("missing")) is False


def test_existence_is_asked_for_without_the_content(server, store):
    """
    A HEAD, never a GET: blobs may be large.
    """
    server.put("big", b"x" * 100_000)

    call(store.exists("big"))

    assert server.methods() == ["HEAD"]


# Listing


def test_a_listing_gives_the_names_below_a_prefix(server, store):
    """
    Names come in the service's order, and only those asked for.
    """
    for name in ("behavioral/MEMORY.md", "behavioral/feedback_tone.md", "state/watched_chats"):
        server.put(name, b"x")

    assert call(store.list("behavioral/")) == ["behavioral/MEMORY.md", "behavioral/feedback_tone.md"]


def test_a_listing_says_that_it_is_one(server, store):
    """
    The service wants restype, comp and prefix.
    """
    call(store.list("behavioral/"))

    (asked,) = server.asked
    assert asked.path == f"/{CONTAINER}"
    assert asked.query == {"restype": "container", "comp": "list", "prefix": "behavioral/"}


def test_an_empty_listing_is_empty(store):
    """
    No blob, no name.
    """
    assert call(store.list("nothing/")) == []


# Deleting


def test_a_delete_removes_the_blob(server, store):
    """
    202 is the service's yes.
    """
    server.put("gone", b"x")

    call(store.delete("gone"))

    assert server.methods() == ["DELETE"]
    assert server.blobs == {}


def test_a_delete_of_nothing_is_no_error(store):
    """
    Whoever deletes twice need not look first.
    """
    call(store.delete("missing"))


def test_a_delete_carries_the_token(server, store):
    """
    As every request does.
    """
    call(store.delete("x"))

    assert server.asked[0].headers["authorization"] == f"Bearer {TOKEN}"


# Writing on a condition


def test_if_match_is_sent_as_given(server, store):
    """
    The quotes belong to the ETag; the write goes through while it holds.
    """
    old = server.put("manifest.json", b"old")

    new = call(store.put("manifest.json", b"new", if_match=old))

    assert server.asked[0].headers["if-match"] == old
    assert server.blobs["manifest.json"] == (b"new", new)


def test_a_stale_etag_is_a_concurrency_error(server, store):
    """
    412: somebody else was faster, and what they wrote stays.
    """
    server.put("manifest.json", b"theirs")

    with pytest.raises(ConcurrencyError):
        call(store.put("manifest.json", b"ours", if_match='"stale"'))

    assert server.blobs["manifest.json"][0] == b"theirs"


def test_without_a_condition_none_is_sent(server, store):
    """
    Then the last one to write wins.
    """
    call(store.put("x", b"y"))

    assert not {"if-match", "if-none-match"} & set(server.asked[0].headers)


# A token that is not taken


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda store: store.get("x"), id="get"),
        pytest.param(lambda store: store.put("x", b"y"), id="put"),
        pytest.param(lambda store: store.exists("x"), id="exists"),
        pytest.param(lambda store: store.list(""), id="list"),
        pytest.param(lambda store: store.delete("x"), id="delete"),
    ],
)
def test_401_is_an_expired_token(server, work):
    """
    Every call says so in the same way, and none says the token.
    """
    store = BlobStore(endpoint=server.endpoint, container=CONTAINER, token_provider=lambda: "hush")

    with pytest.raises(TokenExpiredError) as raised:
        call(work(store))

    assert "hush" not in str(raised.value)


# There and back


def test_what_is_put_is_what_is_got(store):
    """
    Byte for byte.
    """
    payload = '{"updated_at": "2026-04-17T20:00:00Z", "who": "Zoë"}'.encode()
    call(store.put("manifest.json", payload))

    assert call(store.get("manifest.json")) == payload


# Beyond what EntraBot's own client does


def test_a_listing_goes_on_past_the_first_page(store, server):
    """
    However many pages the service makes, no name is missing.
    """
    server.page = 3
    names = [f"interactions/{number:04}.jsonl" for number in range(10)]
    for name in names:
        server.put(name, b"")

    assert call(store.list("interactions/")) == names
    assert len(server.asked) == 4


@pytest.mark.parametrize(
    "name",
    [
        "a&b <c> \"d\" 'e'.md",
        "100% &amp; done?.md",
        "h#sh+plus.md",
        "Zoë/記憶.md",
        "bell\x07.md",
        "a;b=c,d@e.md",
    ],
)
def test_any_name_may_be_a_blobs(server, store, name):
    """
    It is written, found, listed and read under that very name.
    """
    call(store.put(name, b"x"))

    assert list(server.blobs) == [name]
    assert call(store.list()) == [name]
    assert call(store.exists(name)) is True
    assert call(store.get(name)) == b"x"


@pytest.mark.parametrize("name", ["../other/secret", "a/../../b", "a//b", "/a", "", ".", "a/./b"])
def test_a_name_that_leads_elsewhere_is_refused_before_anything_is_sent(server, store, name):
    """
    A server would tidy such a path up, and into another container if need be.
    """
    with pytest.raises(ValueError, match="is no key"):
        call(store.put(name, b"x"))

    assert server.asked == []


def test_a_write_can_be_told_to_create(server, store):
    """
    409 means that there is one already, which stays.
    """
    call(store.put("x", b"first", if_none_match="*"))

    with pytest.raises(ConcurrencyError):
        call(store.put("x", b"second", if_none_match="*"))

    assert server.blobs["x"][0] == b"first"


@pytest.mark.parametrize("status", [400, 403, 429, 500, 503, 302])
def test_any_other_refusal_is_an_http_error(server, store, status):
    """
    With the status in it for whoever decides what to do about it.
    """
    server.answers = [status]

    with pytest.raises(httpx.HTTPStatusError) as raised:
        call(store.get("x"))

    assert raised.value.response.status_code == status


def test_the_endpoint_may_end_in_a_slash(server):
    """
    People paste addresses either way.
    """
    store = BlobStore(endpoint=f"{server.endpoint}/", container=CONTAINER, token_provider=lambda: TOKEN)

    call(store.put("x", b""))

    assert server.asked[0].path == f"/{CONTAINER}/x"
