"""EntraBot's container behind a cache: reads by the manifest, batches of interactions, `manifest.json`, no connection."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from entrabot.errors import TokenExpiredError
from entrabot.storage.backend import BlobBackend, get_backend
from entrabot.storage.blob import BlobStore
from entrabot.tools import daily_summary
from entrabot.tools.interaction_log import log_interaction, read_day
from entrabot.tools.promises import PROMISES_KEY, add_promise
from entrabot.tools.state import read_watched_chats, write_watched_chats

import memplane
from blob_server import CONTAINER, TOKEN, BlobServer
from conftest import HandClock
from memplane.adapters.entrabot.storage.backend import CachedBlobBackend, close_backends

MANIFEST = "manifest.json"
SHIM = Path(memplane.__file__).parent / "adapters" / "entrabot" / "shim"


@pytest.fixture
def server(blob_server, entrabot_settings):
    entrabot_settings(blob_endpoint=blob_server.endpoint, blob_container=CONTAINER, storage_token=TOKEN)
    return blob_server


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def machine(blob_server, tmp_path, clock):
    """Opens the container from machines by their names, each with a cache of its own."""
    opened = []

    def open_one(name="here", token=TOKEN, **options):
        store = BlobStore(endpoint=blob_server.endpoint, container=CONTAINER, token_provider=lambda: token)
        opened.append(CachedBlobBackend(store, tmp_path / name, clock=clock, **options))
        return opened[-1]

    yield open_one
    for backend in opened:
        backend.close()


def entries(server):
    return json.loads(server.texts()[MANIFEST])["entries"]


def requests(server):
    """What was asked since the last call, as `METHOD name`."""
    asked = [f"{one.method} {one.path.rpartition(f'/{CONTAINER}')[2].lstrip('/')}" for one in server.asked]
    server.asked.clear()
    return asked


# The manifest


def test_the_backend_of_a_container_is_cached(server):
    """
    It is still a `BlobBackend`, and the same one with every call, so that batches and copies are shared.
    """
    assert isinstance(get_backend(), CachedBlobBackend)
    assert isinstance(get_backend(), BlobBackend)
    assert get_backend() is get_backend()


def test_the_manifest_lists_what_was_written(server):
    """
    In the document's form, once the write is flushed or five seconds old.
    """
    get_backend().write_text("behavioral/MEMORY.md", "Zoë")
    get_backend().flush()

    manifest = json.loads(server.texts()[MANIFEST])
    assert manifest["schema_version"] == 1
    assert manifest["updated_at"].endswith("Z")
    assert list(manifest["entries"]) == ["behavioral/MEMORY.md"]
    assert manifest["entries"]["behavioral/MEMORY.md"]["size"] == 4
    assert manifest["entries"]["behavioral/MEMORY.md"]["mtime"].endswith("Z")


def test_every_tool_is_listed(server):
    """
    Interactions, promises, summaries and state, whichever way each of them is written.
    """
    said = log_interaction(channel="email", direction="inbound", sender="d", summary="hello")
    asyncio.run(add_promise(chat_id="c", description="answer"))
    asyncio.run(daily_summary.run_daily_summary(day=said["ts"][:10]))
    assert get_backend().create_text("notes.txt", "a\n") is True
    assert get_backend().create_text("notes.txt", "b\n") is False
    write_watched_chats(get_backend(), [*read_watched_chats(get_backend()), "a"])
    close_backends()

    day = said["ts"][:10]
    assert set(entries(server)) == {
        f"interactions/{day}.jsonl",
        f"summaries/{day}.html",
        f"summaries/{day}.json",
        PROMISES_KEY,
        "notes.txt",
        "watched_chats",
    }
    assert set(server.blobs) == {*entries(server), MANIFEST}


def test_a_burst_of_writes_changes_the_manifest_once(machine, blob_server, clock):
    """
    Entries wait for up to five seconds, so that many writes do not compete for one blob.
    """
    here = machine()
    for number in range(10):
        here.write_text(f"behavioral/{number}.md", str(number))
    written = requests(blob_server)
    clock.advance(seconds=5)
    here.exists("behavioral/0.md")

    assert written == [f"PUT behavioral/{number}.md" for number in range(10)]
    assert requests(blob_server).count(f"PUT {MANIFEST}") == 1
    assert len(entries(blob_server)) == 10


def test_a_machine_that_starts_reads_the_manifest_and_lists_nothing(machine, blob_server):
    """
    What there is, it knows from the manifest; a blob is fetched when it is first read.
    """
    there = machine("there")
    for number in range(3):
        there.write_text(f"k{number}", str(number))
    there.flush()
    requests(blob_server)
    here = machine()

    assert here.list() == ["k0", "k1", "k2"]
    assert here.exists("k2")
    assert requests(blob_server) == [f"GET {MANIFEST}"]
    assert here.read_text("k1") == "1"
    assert requests(blob_server) == ["GET k1"]


def test_a_container_without_a_manifest_gets_one(machine, blob_server):
    """
    It was filled by EntraBot's own client, so it is listed once.
    """
    blob_server.put("claude_memory/MEMORY.md", b"# Memory")

    assert machine().list() == ["claude_memory/MEMORY.md"]
    assert entries(blob_server)["claude_memory/MEMORY.md"]["size"] == 8


def test_the_manifest_says_what_the_blob_is_when_two_machines_write_it(machine, blob_server, clock):
    """
    Whoever lists it last lists the blob as it is, not as that machine wrote it.
    """
    here, there = machine(), machine("there")
    here.write_text("k", "short")
    there.write_text("k", "the longer one")
    there.flush()
    here.flush()

    assert blob_server.texts()["k"] == "the longer one"
    assert entries(blob_server)["k"]["size"] == len("the longer one")
    clock.advance(seconds=6)
    assert here.read_text("k") == there.read_text("k") == "the longer one"


# Reading


def test_an_unchanged_blob_is_read_from_the_cache(machine, blob_server, clock):
    """
    Without any request for five seconds, and then for one that says that the manifest is unchanged.
    """
    here = machine()
    here.write_text("k", "v")
    here.flush()
    here.read_text("k")
    requests(blob_server)

    assert [here.read_text("k") for _ in range(5)] == ["v"] * 5
    assert requests(blob_server) == []
    clock.advance(seconds=6)
    assert here.read_text("k") == "v"
    assert requests(blob_server) == [f"GET {MANIFEST}"]


def test_a_changed_blob_is_fetched_when_it_is_read(machine, blob_server, clock):
    """
    The manifest tells which one it is.
    """
    here, there = machine(), machine("there")
    for key in ("a", "b"):
        there.write_text(key, "old")
    there.flush()
    assert [here.read_text(key) for key in ("a", "b")] == ["old", "old"]
    there.write_text("b", "new")
    there.flush()
    clock.advance(seconds=6)
    requests(blob_server)

    assert [here.read_text(key) for key in ("a", "b")] == ["old", "new"]
    assert requests(blob_server) == [f"GET {MANIFEST}", "GET b"]


def test_programs_that_keep_no_manifest_can_be_allowed_for(machine, blob_server, entrabot_settings):
    """
    With `ENTRABOT_CACHE_VALIDATE=each`, every read asks for the blob's version, and its content only where that is another.
    """
    entrabot_settings(
        blob_endpoint=blob_server.endpoint,
        blob_container=CONTAINER,
        storage_token=TOKEN,
        cache_validate="each",
    )
    get_backend().write_text("k", "ours")
    get_backend().flush()
    blob_server.put("k", b"by EntraBot's own client")

    assert get_backend().read_text("k") == "by EntraBot's own client"


# Interactions


def test_interactions_are_sent_in_batches(server):
    """
    They are read here at once, and are one request together.
    """
    said = [
        log_interaction(channel="terminal", direction="inbound", sender="u", summary=str(number))
        for number in range(5)
    ]
    day = said[0]["ts"][:10]

    assert read_day(day) == said
    assert [one for one in requests(server) if one.startswith("PUT interactions/")] == []
    get_backend().flush()
    sent = [one for one in requests(server) if one.startswith("PUT interactions/")]
    assert sent == [f"PUT interactions/{day}.jsonl"]
    assert [json.loads(line) for line in server.texts()[f"interactions/{day}.jsonl"].splitlines()] == said


def test_four_kilobytes_are_sent_at_once(machine, blob_server):
    """
    And so is what has waited for five seconds, by the next call.
    """
    here = machine()
    here.append_text("interactions/2026-04-17.jsonl", "x" * 4_095)
    assert blob_server.blobs == {}

    here.append_text("interactions/2026-04-17.jsonl", "y")

    assert len(blob_server.texts()["interactions/2026-04-17.jsonl"]) == 4_096


def test_a_process_that_ends_sends_what_waits(server, tmp_path):
    """
    The batch and the manifest, before it is gone.
    """
    program = (
        "from entrabot.tools.interaction_log import log_interaction\n"
        "log_interaction(channel='terminal', direction='inbound', sender='u', summary='the last words')\n"
    )
    paths = os.pathsep.join(map(str, (SHIM, Path(memplane.__file__).parents[1])))

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    (day,) = [key for key in server.blobs if key.startswith("interactions/")]
    assert "the last words" in server.texts()[day]
    assert list(entries(server)) == [day]


# Without a connection


def test_without_a_connection_reads_are_cached_and_writes_wait(machine, blob_server, clock, caplog):
    """
    A warning says so, and the next call that reaches the container catches up.
    """
    here = machine()
    here.write_text("k", "before")
    here.flush()
    blob_server.answers = [503] * 100
    clock.advance(seconds=6)

    assert here.read_text("k") == "before"
    here.write_text("k", "meanwhile")
    assert here.read_text("k") == "meanwhile"
    assert "writes wait" in caplog.text
    assert blob_server.texts()["k"] == "before"
    blob_server.answers = []
    clock.advance(seconds=120)
    here.read_text("k")
    assert blob_server.texts()["k"] == "meanwhile"


def test_what_waits_survives_the_process(machine, blob_server):
    """
    Another process that uses the same cache directory sends it.
    """
    blob_server.answers = [503] * 100
    machine().append_text("interactions/2026-04-17.jsonl", "not lost\n")
    blob_server.answers = []

    machine().flush()

    assert blob_server.texts()["interactions/2026-04-17.jsonl"] == "not lost\n"


def test_what_was_never_read_raises_the_clients_own_error(machine, blob_server):
    """
    As EntraBot's programs expect it: an expired token is a `TokenExpiredError`.
    """
    blob_server.put("k", b"v")

    with pytest.raises(TokenExpiredError):
        machine(token="expired").read_text("k")


def test_a_closed_server_is_no_connection(tmp_path, clock):
    """
    The write is on disk here, and a process that ends does not wait for the server.
    """
    server = BlobServer()
    store = BlobStore(endpoint=server.endpoint, container=CONTAINER, token_provider=lambda: TOKEN)
    here = CachedBlobBackend(store, tmp_path, clock=clock)
    server.close()

    here.write_text("k", "v")
    here.close()

    assert here.read_text("k") == "v"


@pytest.mark.parametrize("key", ["../outside", "a//b", ""])
def test_a_key_that_leads_elsewhere_is_a_value_error(machine, key):
    """
    As for the other backends.
    """
    for work in (lambda here: here.read_text(key), lambda here: here.write_text(key, "x")):
        with pytest.raises(ValueError):
            work(machine())


def test_a_cache_that_cannot_be_written_is_said(machine, tmp_path):
    """
    With the setting that names another directory.
    """
    (tmp_path / "file").write_text("no directory")

    with pytest.raises(OSError, match="ENTRABOT_CACHE_DIR"):
        machine("file/below")
