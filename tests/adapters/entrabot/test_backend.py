"""EntraBot's places for text, and which of them its settings choose."""

import asyncio
import threading

import pytest
from entrabot.storage import backend as backends
from entrabot.storage.backend import BlobBackend, LocalBackend, MemoryBackend, get_backend
from entrabot.storage.blob import BlobStore, ConcurrencyError

from blob_server import CONTAINER, TOKEN


@pytest.fixture
def server(blob_server):
    return blob_server


@pytest.fixture
def blobs(server):
    return BlobBackend(BlobStore(endpoint=server.endpoint, container=CONTAINER, token_provider=lambda: TOKEN))


@pytest.fixture
def local(tmp_path):
    return LocalBackend(tmp_path / "memory")


@pytest.fixture
def settings(entrabot_settings):
    return entrabot_settings


# On disk


def test_a_directory_is_a_backend(local):
    """
    It has every call the protocol asks for.
    """
    assert isinstance(local, MemoryBackend)


def test_local_reading_nothing_gives_none(local):
    """
    Neither a missing file nor a missing directory is an error.
    """
    assert local.read_text("does/not/exist.txt") is None


def test_local_text_comes_back_as_it_went(local):
    """
    With every line end.
    """
    local.write_text("a/b/c.txt", "hello\nworld")

    assert local.read_text("a/b/c.txt") == "hello\nworld"


def test_local_writing_makes_the_directories(local):
    """
    However deep.
    """
    local.write_text("deep/nested/dir/file.txt", "x")

    assert (local.root / "deep" / "nested" / "dir" / "file.txt").read_bytes() == b"x"


def test_local_appending_creates_the_file(local):
    """
    The first line needs no preparation.
    """
    local.append_text("log.txt", "line1\n")

    assert local.read_text("log.txt") == "line1\n"


def test_local_appending_adds_to_the_end(local):
    """
    What was there stays in front.
    """
    local.append_text("log.txt", "line1\n")
    local.append_text("log.txt", "line2\n")

    assert local.read_text("log.txt") == "line1\nline2\n"


def test_local_appending_makes_the_directories(local):
    """
    The first line of the first day too.
    """
    local.append_text("interactions/2026-04-17.jsonl", "{}\n")

    assert (local.root / "interactions" / "2026-04-17.jsonl").is_file()


def test_local_existence(local):
    """
    A key exists once it was written.
    """
    assert local.exists("x.txt") is False

    local.write_text("x.txt", "y")

    assert local.exists("x.txt") is True


def test_local_listing_gives_keys_below_a_prefix(local):
    """
    As keys, not as paths of this machine.
    """
    for key in ("interactions/a.jsonl", "interactions/b.jsonl", "summaries/c.html"):
        local.write_text(key, "1")

    assert sorted(local.list("interactions/")) == ["interactions/a.jsonl", "interactions/b.jsonl"]


def test_local_listing_without_a_prefix_gives_all(local):
    """
    From every directory; from one that is not there, nothing.
    """
    assert local.list() == []

    local.write_text("a.txt", "1")
    local.write_text("d/b.txt", "2")

    assert sorted(local.list()) == ["a.txt", "d/b.txt"]


# In a container


def test_a_container_is_a_backend(blobs):
    """
    It has every call the protocol asks for.
    """
    assert isinstance(blobs, MemoryBackend)


def test_blob_reading_nothing_gives_none(blobs):
    """
    As on disk.
    """
    assert blobs.read_text("missing.txt") is None


def test_blob_text_comes_back_as_it_went(blobs, server):
    """
    In UTF-8 on the wire.
    """
    blobs.write_text("a/b.txt", "hellö")

    assert blobs.read_text("a/b.txt") == "hellö"
    assert server.blobs["a/b.txt"][0] == "hellö".encode()


def test_blob_appending_creates_the_blob(blobs):
    """
    The first line needs no preparation.
    """
    blobs.append_text("log.jsonl", "line1\n")

    assert blobs.read_text("log.jsonl") == "line1\n"


def test_blob_appending_adds_to_the_end(blobs):
    """
    What was there stays in front.
    """
    blobs.append_text("log.jsonl", "line1\n")
    blobs.append_text("log.jsonl", "line2\n")

    assert blobs.read_text("log.jsonl") == "line1\nline2\n"


def test_blob_existence(blobs):
    """
    A key exists once it was written.
    """
    assert blobs.exists("x") is False

    blobs.write_text("x", "y")

    assert blobs.exists("x") is True


def test_blob_listing_gives_keys_below_a_prefix(blobs):
    """
    And no others.
    """
    for key in ("interactions/a.jsonl", "interactions/b.jsonl", "summaries/c.html"):
        blobs.write_text(key, "1")

    assert sorted(blobs.list("interactions/")) == ["interactions/a.jsonl", "interactions/b.jsonl"]


# Which of them


def test_by_default_memory_is_in_the_data_directory(settings, tmp_path):
    """
    Without a place in the cloud there is only this one.
    """
    backend = get_backend()
    backend.write_text("probe.txt", "ok")

    assert isinstance(backend, LocalBackend)
    assert (tmp_path / "data" / "probe.txt").read_text() == "ok"


def test_keeping_memory_local_keeps_it_local(settings):
    """
    The flag alone is enough.
    """
    settings(keep_memory_local="true")

    assert isinstance(get_backend(), LocalBackend)


def test_an_endpoint_and_a_container_are_a_place_in_the_cloud(settings, server, monkeypatch):
    """
    The token for it comes from the function that stands in the module when the request is made.
    """
    settings(blob_endpoint=server.endpoint, blob_container=CONTAINER)
    monkeypatch.setattr("entrabot.storage.backend.acquire_agent_user_storage_token", lambda cfg: TOKEN)

    backend = get_backend()
    backend.write_text("x", "y")

    assert isinstance(backend, BlobBackend)
    assert server.texts() == {"x": "y"}


@pytest.mark.parametrize("given", ["blob_endpoint"])
def test_half_a_place_in_the_cloud_is_none(settings, caplog, given):
    """
    Memory stays local, and somebody is told why.
    """
    settings(**{given: "https://account.blob.example"})

    assert isinstance(get_backend(), LocalBackend)
    assert "ENTRABOT_BLOB_CONTAINER" in caplog.text


def test_keeping_memory_local_outweighs_the_cloud(settings):
    """
    It is the way back, so it needs nothing else to be undone.
    """
    settings(blob_endpoint="https://account.blob.example", blob_container=CONTAINER, keep_memory_local="true")

    assert isinstance(get_backend(), LocalBackend)


# Beyond what EntraBot's own backends do


@pytest.mark.parametrize("value", ["true", "TRUE", "1", "yes", "Yes"])
def test_every_spelling_of_yes_keeps_memory_local(settings, value):
    """
    As EntraBot's settings have it.
    """
    settings(blob_endpoint="https://account.blob.example", blob_container=CONTAINER, keep_memory_local=value)

    assert isinstance(get_backend(), LocalBackend)


def test_settings_are_read_with_every_call(settings, tmp_path):
    """
    A program that changes them need not be started anew.
    """
    settings(data_dir=str(tmp_path / "a"))
    first = get_backend()
    settings(data_dir=str(tmp_path / "b"))

    assert (first.root, get_backend().root) == (tmp_path / "a", tmp_path / "b")


def test_a_token_comes_from_the_settings_or_from_azures_command_line(settings, server, monkeypatch, tmp_path):
    """
    What is handed in is used; otherwise `az` is asked, once for many requests.
    """
    settings(blob_endpoint=server.endpoint, blob_container=CONTAINER, tenant_id="tenant-of-this-test")
    calls = tmp_path / "calls"
    fake = tmp_path / "bin" / "az"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\necho \'{{"accessToken": "{TOKEN}", "expires_on": 4102444800}}\'\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/bin:/usr/bin")

    get_backend().write_text("x", "y")
    get_backend().write_text("x", "z")

    assert server.texts() == {"x": "z"}
    asked = "account get-access-token --scope https://storage.azure.com/.default --output json"
    assert calls.read_text().splitlines() == [f"{asked} --tenant tenant-of-this-test"]


@pytest.mark.parametrize("key", ["../outside", "a/../../outside", "/etc/passwd", "a//b", ""])
def test_no_key_leads_out_of_the_directory(local, key):
    """
    Not for reading, writing, appending or looking.
    """
    for work in (
        lambda: local.read_text(key),
        lambda: local.write_text(key, "x"),
        lambda: local.append_text(key, "x"),
        lambda: local.exists(key),
    ):
        with pytest.raises(ValueError):
            work()


def test_no_link_leads_out_of_the_directory(local, tmp_path):
    """
    Whoever can make a link in it cannot have other files read or written by that.
    """
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    local.write_text("x", "y")
    (local.root / "link").symlink_to(tmp_path / "outside")

    with pytest.raises(ValueError, match="outside"):
        local.read_text("link/secret.txt")
    with pytest.raises(ValueError, match="outside"):
        local.write_text("link/new.txt", "x")


def test_local_text_is_utf8_and_keeps_its_line_ends(local):
    """
    On every platform, so that two machines agree about a file.
    """
    local.write_text("x", "Zoë\r\n記憶\r")

    assert (local.root / "x").read_bytes() == "Zoë\r\n記憶\r".encode()
    assert local.read_text("x") == "Zoë\r\n記憶\r"


def test_half_a_file_is_never_seen(local):
    """
    What a crash leaves of a write is in no listing.
    """
    local.write_text("x", "y")
    (local.root / ".memplane-waiting-0123").write_text("hal")

    assert local.list() == ["x"]


def test_appends_of_many_at_once_lose_nothing(server):
    """
    Each is written only onto what was read, so every line of every writer is there once.
    """

    def write(writer):
        blobs = BlobBackend(
            BlobStore(endpoint=server.endpoint, container=CONTAINER, token_provider=lambda: TOKEN)
        )
        for number in range(5):
            blobs.append_text("log", f"{writer}-{number}\n")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = server.texts()["log"].splitlines()
    assert sorted(lines) == [f"{writer}-{number}" for writer in range(3) for number in range(5)]


def test_an_append_that_is_always_too_late_says_so(server, blobs, monkeypatch):
    """
    It does not try for ever, and writes nothing.
    """
    monkeypatch.setattr(backends, "_ATTEMPTS", 3)
    server.put("log", b"theirs\n")

    def interfere(asked):
        if asked.method == "PUT":
            server.put("log", b"theirs again\n")

    server.before = interfere
    with pytest.raises(ConcurrencyError):
        blobs.append_text("log", "ours\n")

    assert server.methods().count("PUT") == 3
    assert server.texts() == {"log": "theirs again\n"}


def test_a_store_that_tells_no_etag_will_do(server):
    """
    EntraBot's programs bring their own in their tests.
    """

    class Store:
        def __init__(self):
            self.data = {}

        async def get(self, path):
            return self.data[path]

        async def put(self, path, data, *, if_match=None):
            self.data[path] = data
            return '"e"'

    backend = BlobBackend(Store())
    backend.append_text("log", "1\n")
    backend.append_text("log", "2\n")

    assert backend.read_text("log") == "1\n2\n"


def test_a_container_can_be_used_inside_a_running_loop(blobs):
    """
    EntraBot calls it from async code, where no second loop may run.
    """

    async def work():
        blobs.write_text("x", "y")
        return blobs.read_text("x")

    assert asyncio.run(work()) == "y"
