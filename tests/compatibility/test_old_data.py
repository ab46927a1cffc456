"""Data that an earlier version wrote: it opens, proves itself, replays to the same memories and syncs.

`data.tar.xz` holds what commit 9eb4c8f left behind on both engines, and what a reader saw there; `make.py` says how.
"""

import json
import shutil
import tarfile
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conftest import HandClock
from engines import ENGINES
from memplane import Memplane, Settings
from memplane.sync.local import LocalObjects
from memplane.sync.sync import Sync
from stub_embedder import StubEmbedder

ARCHIVE = Path(__file__).with_name("data.tar.xz")
THEN = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
FORGOTTEN = (
    "zephyr",
    "quicksilver",
    "xylophone",
    "flores",
    "quokka",
    "marmot",
    "narwhal",
    "axolotl",
    "platypus",
)
"""Words that only forgotten things had."""


HIDDEN_SINCE = {"I cook.": "cold"}
"""Extracted facts that a replay no longer shows, because nobody would keep them."""


class Place(LocalObjects):
    """A directory under the address that the old data knows it by."""

    url = "file:///place"


class Old:
    """Old data in a place of its own: what `Memplane.open` takes, a sync place, and what was seen there."""

    def __init__(self, data, folder, engine, expected):
        self.data = data
        self.folder = folder
        self.place = Place(folder / f"place-{engine}")
        self.expected = expected
        self.clock = HandClock(THEN)

    @contextmanager
    def plane(self, **changes):
        settings = Settings(recall_work_ms=60_000, **changes)
        with Memplane.open(
            self.data, embedder=StubEmbedder(), llm=None, clock=self.clock, settings=settings
        ) as plane:
            yield plane

    def spaces(self, plane):
        """Each with what is expected of it."""
        for name, seen in self.expected["spaces"].items():
            tenant, owner = name.split("/")
            yield plane.space(owner, tenant=tenant), seen


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compatibility")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def database(postgres_server, unpacked):
    """The name of one with the old data in it, to be cloned."""
    name = postgres_server.create(migrated=False)
    with postgres_server.connect(name) as connection:
        connection.execute((unpacked / "postgres.sql").read_bytes())
    yield name
    postgres_server.drop(name)


@pytest.fixture(params=ENGINES)
def old(request, tmp_path, unpacked):
    """Data that the test may change."""
    engine = request.param
    expected = json.loads((unpacked / "expected.json").read_text("utf-8"))[engine]
    for found in expected["spaces"].values():
        for row in found["memories"]:
            row[4] = HIDDEN_SINCE.get(row[2], row[4])
    shutil.copytree(unpacked, tmp_path, dirs_exist_ok=True)
    if engine == "sqlite":
        yield Old(str(tmp_path / "sqlite"), tmp_path, engine, expected)
        return
    server, template = request.getfixturevalue("postgres_server"), request.getfixturevalue("database")
    name = f"{template}_clone"
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    yield Old(server.url(name), tmp_path, engine, expected)
    server.drop(name)


def seen(space):
    """What a reader sees, in the shape of expected.json."""
    return {
        "entries": [[entry.id, str(entry.op)] for entry in space.ledger.entries()],
        "memories": _memories(space),
        "turns": sorted([it.entry_id, it.ordinal, it.role, it.text] for it in space.turns(limit=10_000)),
        "tombstones": sorted(it.id for it in space.ledger.tombstones()),
        "facts": [[it.key, it.text] for it in space.facts.list()],
        "conflicts": len(space.review.conflicts()),
        "documents": sorted([it.id, it.name] for it in space.documents.list()),
        "collections": sorted(
            [it.id, it.name, [member.document for member in space.documents.members(it.id)]]
            for it in space.documents.collections()
        ),
        "quarantine": sorted(it.id for it in space.review.quarantine()),
        "learnings": sorted([it.id, it.text, str(it.standing)] for it in space.review.drafts()),
        "digest": sorted([it.id, it.text] for it in space.overview.digest_lines()),
        "receipts": sorted(it.id for it in space.ledger.receipts()),
        "files": sorted(it.path for it in space.files.list()),
    }


def _memories(space):
    """Also those that are cold, which no list shows unless it is asked for them."""
    found = [*space.memories(limit=10_000), *space.memories(tier="cold", limit=10_000)]
    return sorted(
        {
            it.id: [
                it.id,
                it.kind,
                it.text,
                it.state,
                _tier(it),
                it.key,
                it.superseded_by,
                it.pinned,
                it.released,
            ]
            for it in found
        }.values()
    )


def _tier(memory):
    """Its tier; of those that a replay hides, the tier after one, whether it has happened or not."""
    return HIDDEN_SINCE.get(memory.text, memory.tier)


def forgotten_shown(space):
    """The words of forgotten things that a person or an agent can still get at."""
    shown = "\n".join(
        [
            *(it.text for it in space.memories(limit=10_000)),
            *(it.text for it in space.turns(limit=10_000)),
            *(entry.body.decode("utf-8", "replace") for entry in space.ledger.entries() if entry.body),
            *(space.documents.text(it.id) for it in space.documents.list()),
            *(hit.text for word in FORGOTTEN for hit in space.search(word)),
            space.recall(" ".join(FORGOTTEN)).text,
            space.brief().markdown,
        ]
    ).lower()
    return [word for word in FORGOTTEN if word in shown]


def test_old_data_reads_as_it_did(old):
    """
    Memories, turns, documents, decisions and receipts are what the earlier version showed.
    """
    with old.plane() as plane:
        for space, expected in old.spaces(plane):
            assert seen(space) == {name: expected[name] for name in seen(space)}


def test_old_ledgers_verify(old):
    """
    Each chain ends with the digest that the earlier version wrote down, and passes through it after a new write.
    """
    with old.plane() as plane:
        for space, expected in old.spaces(plane):
            before = expected["verified"]
            found = space.ledger.verify(expected={before["seq"]: before["digest"]})
            space.retain("Written by a later version")
            after = space.ledger.verify(expected={before["seq"]: before["digest"]})

            assert (found.ok, found.problems, found.entries) == (True, (), before["entries"])
            assert (after.ok, after.entries) == (True, before["entries"] + 1)


def test_a_replay_gives_the_same(old):
    """
    Dropping everything derived and deriving it again gives the same ids, texts and states.
    """
    with old.plane() as plane:
        for space, expected in old.spaces(plane):
            space.ledger.replay()
            space.enrich()

            assert seen(space) == {name: expected[name] for name in seen(space)}


def test_what_was_forgotten_stays_forgotten(old):
    """
    No reading shows it, before or after a replay.
    """
    with old.plane() as plane:
        for space, _ in old.spaces(plane):
            assert forgotten_shown(space) == []
            space.ledger.replay()
            space.enrich()
            assert forgotten_shown(space) == []


def test_old_memory_answers_and_goes_on(old):
    """
    Recall, search, brief, keyed facts and documents answer, and new writes join the old ones.
    """
    with old.plane() as plane:
        space = plane.space("alice")

        assert "Cascais" in space.recall("Where do I live?").text
        assert "1,450" in space.recall("How much is the rent?").text
        assert any("vegetarian" in hit.text for hit in space.search("vegetarian"))
        assert "vegetarian" in space.brief().markdown
        assert [it.text for it in space.history("preferences/theme")] == ["light", "dark", "sepia"]
        space.put("preferences/theme", "dusk")
        assert [it.text for it in space.history("preferences/theme")][-2:] == ["sepia", "dusk"]
        space.retain("Actually, I live in Sintra now.", conversation="settling-in")
        space.enrich()
        assert "Sintra" in space.recall("Where do I live?").text
        assert space.ledger.verify().ok


def test_old_keys_and_usage(old):
    """
    A key that was given out still opens its space; a revoked one is still listed; what was used is still counted.
    """
    with old.plane() as plane:
        identity = plane.identity()
        principal = identity.authenticate(old.expected["bearer"], peer="127.0.0.1")
        keys = sorted([key.name, key.id] for key in identity.list_keys())
        identity.close()

        assert (principal.tenant, principal.spaces) == ("default", frozenset({"alice"}))
        assert keys == old.expected["keys"]
        assert plane.usage.summary("default", "30d").totals.tokens == old.expected["usage"]["tokens"] == 47


def test_an_old_place_syncs_both_ways(old, tmp_path):
    """
    A new machine takes in what the earlier version pushed; what it writes reaches the old data, and both are even.
    """
    expected = old.expected["spaces"]["default/alice"]
    clock = HandClock(THEN + timedelta(hours=1))
    with (
        old.plane() as plane,
        Memplane.open(tmp_path / "new", embedder=StubEmbedder(), clock=clock) as new,
    ):
        here, there = plane.space("alice"), new.space("alice")
        old_sync = Sync(here, old.place, old.folder, clock=old.clock)
        new_sync = Sync(there, old.place, tmp_path / "new", clock=clock)

        new_sync.pull()
        there.enrich()
        assert sorted(it.id for it in there.ledger.tombstones()) == expected["tombstones"]
        assert {row[0] for row in _memories(there)} == {row[0] for row in expected["memories"]}
        assert forgotten_shown(there) == []

        there.put("preferences/theme", "from the new machine")
        there.forget(key="profile/time-zone")
        here.store("fact", "Written on the old machine")
        new_sync.push()
        old_sync.push()
        new_sync.pull()

        assert old_sync.status().even
        assert new_sync.status().even
        assert here.get("preferences/theme").text == "from the new machine"
        assert "profile/time-zone" not in {it.key for it in here.facts.list()}
        assert any("old machine" in it.text for it in there.memories())
        assert {entry.id for entry in here.ledger.entries()} == {entry.id for entry in there.ledger.entries()}
        assert here.ledger.verify().ok
        assert there.ledger.verify().ok
