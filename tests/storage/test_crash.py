"""What was acknowledged survives SIGKILL at any moment, and what was not leaves nothing half done.

A process is forked, writes from several threads, tells on a pipe what it was told, and is killed; the same space is
opened again. A hundred times and more, at moments that a seeded generator picks. `MEMPLANE_TESTS=thorough` kills
thirty times as often.
"""

import functools
import json
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.conftest import THOROUGH
from tests.support import crash_writer
from tests.support.crash_writer import KEYS, OWNER

from engines import HOME, both_engines
from memplane import Memplane, Space, State
from memplane.errors import KeyMismatch, NotFound
from memplane.storage.sqlite.names import space_path
from memplane.storage.words import stems_of

OFTEN = 30 if THOROUGH else 1
SEEDS = range(6) if THOROUGH else (0, 1, 4)
"""On a disk, in memory, and under a key: the others are more of the same."""
PATIENCE_SECONDS = 240

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.support.crash_writer"])


@pytest.fixture
def data(home):
    """In memory where there is such a place: a kill takes nothing from the system's cache, so no disk is needed."""
    with home.fresh() as where:
        yield Path(where) if home.server is None else where


class Victim:
    """A process that reports on a pipe until it is killed."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._pipe, end = forked.Pipe(duplex=False)
        self._process = forked.Process(target=target, args=(*arguments, end), daemon=True)
        self._process.start()
        end.close()
        self._rest = b""

    def kill(self, rng: random.Random, lines_max: int) -> list[list[Any]]:
        """Let it tell so many lines and live for another moment, then kill it; answers everything it told."""
        wanted = rng.choice((0, rng.randrange(1, 4), rng.randrange(1, lines_max)))
        moment = rng.choice((0, rng.random() * 0.002, rng.random() * 0.02))
        return self.kill_after(wanted, moment)

    def kill_after(self, wanted: int, moment: float) -> list[list[Any]]:
        lines: list[bytes] = []
        while len(lines) < wanted and (more := self._read()):
            lines += more
        time.sleep(moment)
        return self._killed(lines)

    def kill_at(self, folder: Path, change: int) -> list[list[Any]]:
        """Kill it when the files below the folder have changed so often, as far as one can see that from outside."""
        lines = self._read()  # it has begun
        seen = shape_of(folder)
        while change and self._process.is_alive():
            now = shape_of(folder)
            change -= now != seen
            seen = now
        return self._killed(lines)

    def _killed(self, lines: list[bytes]) -> list[list[Any]]:
        self._process.kill()
        while more := self._read():
            lines += more
        self._process.join(PATIENCE_SECONDS)
        killed = self._process.exitcode
        self._process.close()
        self._pipe.close()
        assert killed in {-signal.SIGKILL, 0}, f"it died of {killed} instead"
        return [json.loads(line) for line in lines]

    def _read(self) -> list[bytes]:
        """The next lines; none at the end."""
        lines: list[bytes] = []
        while not lines and (raw := os.read(self._pipe.fileno(), 1 << 16)):
            *lines, self._rest = (self._rest + raw).split(b"\n")
        return lines


def shape_of(folder: Path) -> list[tuple[str, int, int, bytes]]:
    """How the files look without reading them."""
    found = []
    for path in sorted(folder.rglob("*")):
        with suppress(OSError):
            if path.is_file():
                with path.open("rb") as file:
                    status = os.fstat(file.fileno())
                    found.append((path.name, status.st_size, status.st_mtime_ns, file.read(16)))
    return found


class Told:
    """What a space must hold, from what its writers were told."""

    def __init__(self) -> None:
        self.written: dict[str, str] = {}
        self.forgotten: dict[str, str] = {}
        self.off_disk: set[str] = set()
        self.digests: dict[int, str] = {}
        self.values: dict[str, set[str | None]] = {}
        """What a key may hold: one value, or more while a put was under way."""
        self.superseded: set[str] = set()
        self.leaving: set[str] = set()
        """A forget was under way."""
        self.ageing: set[str] = set()
        """A replacement was under way or done, after which a purge may have taken it from memory."""
        self._live: dict[str, str] = {}

    def hear(self, lines: list[list[Any]]) -> None:
        for what, *details in lines:
            getattr(self, f"_{what}")(*details)

    def _written(self, pairs: list[tuple[str, str]]) -> None:
        self.written.update(pairs)

    def _forgetting(self, ids: list[str]) -> None:
        self.leaving.update(ids)

    def _forgotten(self, ids: list[str], off_disk: bool, seq: int, digest: str) -> None:
        for id_ in ids:
            self.forgotten[id_] = self.written.pop(id_)
            if off_disk:
                self.off_disk.add(self.forgotten[id_])
        self.digests[seq] = digest

    def _superseding(self, old: str) -> None:
        self.ageing.add(old)

    def _superseded(self, old: str) -> None:
        self.superseded.add(old)

    def _putting(self, key: str, word: str) -> None:
        self.values.setdefault(key, {None}).add(word)
        self.ageing.add(self._live.get(key, ""))

    def _put(self, key: str, word: str, id_: str) -> None:
        self.values[key] = {word}
        self._live[key] = id_

    def sure(self) -> list[str]:
        """Ids of what must be there and current."""
        return [id_ for id_ in self.written if id_ not in self.leaving and id_ not in self.ageing]


def check_ledger(space: Space, told: Told) -> None:
    """Every acknowledged entry, exactly once, in a chain without gaps that passes through every receipt."""
    entries = space.ledger.entries(limit=1_000_000)
    bodies = {entry.id: entry.body for entry in entries}

    assert space.ledger.verify(expected=told.digests).problems == ()
    assert space.ledger.check() == []
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert len(bodies) == len(entries)
    assert [id_ for id_ in told.written if id_ not in bodies] == []
    for id_ in told.written.keys() - told.leaving:
        assert told.written[id_].encode() in (bodies[id_] or b"")
    assert [id_ for id_ in told.forgotten if bodies[id_] is not None] == []


def check_reads(space: Space, told: Told, rng: random.Random) -> None:
    """Everything acknowledged can be read and searched; nothing forgotten can."""
    space.ledger.catch_up()
    sure = told.sure()

    assert space.brief().brief_count >= min(10, sum(id_.startswith(("mem-", "put-")) for id_ in sure))
    assert len(space.search("lantern", limit=100)) >= min(100, len(sure))
    space.enrich()
    assert space.recall("lantern").degraded == ()
    for id_ in rng.sample(sure, min(10, len(sure))):
        assert [hit.id for hit in space.search(told.written[id_])] == [id_]
    for id_ in rng.sample(sorted(told.forgotten), min(10, len(told.forgotten))):
        assert space.search(told.forgotten[id_], include_superseded=True) == []
        assert space.retain("once more", id=id_).suppressed
    for key, words in told.values.items():
        assert value_of(space, key) in words
    for old in told.superseded:
        assert state_of(space, old) in {State.SUPERSEDED, None}  # forgotten or purged


def value_of(space: Space, key: str) -> str | None:
    try:
        return space.get(key).text.removeprefix("lantern ")
    except NotFound:
        return None


def state_of(space: Space, memory_id: str) -> State | None:
    try:
        return space.memory(memory_id).state
    except NotFound:
        return None


def projection_of(data: Path | str, key: str | None = None) -> dict[str, list[Any]]:
    """Every derived row, but for row numbers that mean nothing. The index of turns may lag behind by some; it must hold
    the words of those before, and no others."""
    with Memplane.open(data, key=key, embedder=None) as plane:
        plane.space(OWNER).ledger.catch_up()
    if HOME.server is not None:
        return projection_in_database(str(data))
    connection = apsw.Connection(str(space_path(data / "spaces" / "default", OWNER)))
    if key is not None:
        connection.pragma("cipher", "aegis")
        connection.pragma("key", f"raw:{key}")
    rows = connection.execute
    try:
        for index in ("turn_index", "memory_index"):
            rows(f"INSERT INTO {index} ({index}) VALUES ('integrity-check')")
        indexed = int(rows("SELECT value FROM meta WHERE name = 'indexed'").fetchone()[0])
        texts = rows("SELECT text FROM turn WHERE n <= ?", (indexed,)).fetchall()
        words = Counter(word for (text,) in texts for word in set(stems_of(text)))
        assert dict(rows("SELECT term, doc FROM turn_vocabulary").fetchall()) == words
        columns = ", ".join(
            f'm."{row[1]}"' for row in rows("PRAGMA table_info(memory)") if row[1] not in {"n", "embedded"}
        )
        return {
            "turns": rows("SELECT * FROM turn ORDER BY n").fetchall(),
            "memories": rows(f"SELECT {columns} FROM memory m ORDER BY id").fetchall(),
            "tags": rows(
                "SELECT m.id, g.tag FROM memory_tag g JOIN memory m USING (n) ORDER BY 1, 2"
            ).fetchall(),
            "words": rows("SELECT term, doc, cnt FROM memory_vocabulary ORDER BY term").fetchall(),
            "cursor": rows("SELECT value FROM meta WHERE name = 'cursor'").fetchall(),
        }
    finally:
        connection.close()


def projection_in_database(url: str) -> dict[str, list[Any]]:
    """The same of PostgreSQL."""
    rows = functools.partial(HOME.rows, url, OWNER)
    indexed = int(rows("SELECT value FROM meta WHERE name = 'indexed'")[0][0])
    texts = rows(f"SELECT text FROM turn WHERE n <= {indexed}")
    words = Counter(word for (text,) in texts for word in set(stems_of(text)))
    assert dict(rows("SELECT stem, count(*) FROM turn_word GROUP BY stem")) == words
    names = rows("SELECT attname FROM pg_attribute WHERE attrelid = 'memory'::regclass AND attnum > 0")
    columns = ", ".join(f'm."{name}"' for (name,) in names if name not in {"n", "embedded"})
    return {
        "turns": rows("SELECT * FROM turn ORDER BY n"),
        "memories": rows(f"SELECT {columns} FROM memory m ORDER BY id"),
        "tags": rows("SELECT m.id, g.tag FROM memory_tag g JOIN memory m USING (n) ORDER BY 1, 2"),
        "words": rows("SELECT stem, count(*), sum(times) FROM memory_word GROUP BY stem ORDER BY stem"),
        "cursor": rows("SELECT value FROM meta WHERE name = 'cursor'"),
    }


def bytes_below(data: Path | str) -> bytes:
    if isinstance(data, str):
        return b""
    return b"\0".join(path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file())


@both_engines
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_survives_a_kill(home, data, tmp_path, seed):
    """Every acknowledged entry is there after any kill, in an unbroken chain, readable and searchable; what was
    forgotten stays forgotten, on disk too; and a replay of all that was left behind changes nothing."""
    rng = random.Random(seed)
    if home.server is not None and seed != SEEDS[0]:
        pytest.skip("it has no files and no keys to be different in")
    data = tmp_path if seed % 5 == 0 and home.server is None else data  # kills that hit a sync are wanted too
    key = KEYS[0] if seed % 5 == 4 else None
    told = Told()
    kills = max(4, home.fewer(12 * OFTEN))
    for kill in range(kills):
        victim = Victim(crash_writer.scribble, str(data), key, kill)
        told.hear(victim.kill(rng, lines_max=120) if kill else victim.kill_after(200, 0))
        on_disk = bytes_below(data)
        assert [word for word in told.off_disk if word.encode() in on_disk] == []
        with Memplane.open(data, key=key, embedder=None) as plane:
            space = plane.space(OWNER)
            check_ledger(space, told)
            if kill % 3 == 0:
                check_reads(space, told, rng)
    before = projection_of(data, key)
    with Memplane.open(data, key=key, embedder=None) as plane:
        plane.space(OWNER).ledger.replay()
    after = projection_of(data, key)

    assert told.written
    assert told.forgotten
    assert after == before


@both_engines
def test_a_kill_during_replay_changes_nothing(home, data):
    """A replay is one transaction: a kill in the middle leaves the projection that was there."""
    rng = random.Random("replay")
    with Memplane.open(data, embedder=None) as plane:
        space = plane.space(OWNER)
        space.ledger.load([crash_writer.bulk_draft(number) for number in range(home.fewer(2_500))])
        space.ledger.catch_up()
        for number in range(home.fewer(100)):
            space.put(f"key/{number % 20}", f"lantern {number}")
        space.forget(conversation="c7")
    before = projection_of(data)
    for _ in range(home.fewer(8 * OFTEN)):
        Victim(crash_writer.replay, str(data)).kill(rng, lines_max=4)
        with Memplane.open(data, embedder=None) as plane:
            verification = plane.space(OWNER).ledger.verify()
        after = projection_of(data)

        assert verification.problems == ()
        assert after == before


@both_engines
def test_a_killed_import_goes_on_where_it_was(home, data):
    """A bulk import that is killed and begun again, however often, ends as if nothing had happened: every entry once,
    in order, every acknowledged chunk there at once and searchable, and turns retained in between keep their place."""
    rng = random.Random("bulk")
    total, chunk = home.fewer(3_000), home.fewer(100)
    loaded, between = 0, []
    for kill in range(home.fewer(13 * OFTEN)):
        lines = Victim(crash_writer.bulk, str(data), total, chunk).kill(rng, lines_max=45)
        loaded = max([loaded, *(line[2] + 1 for line in lines if line[0] == "loaded")])
        with Memplane.open(data, embedder=None) as plane:
            space = plane.space(OWNER)
            between.append(space.retain(f"lantern between{kill}").id)
            check_import(space, loaded, between, rng.randrange(loaded) if loaded else None)
    with Memplane.open(data, embedder=None) as plane:
        space = plane.space(OWNER)
        space.ledger.load([crash_writer.bulk_draft(number) for number in range(total)])
        space.ledger.catch_up()
        check_import(space, total, between, total - 1)
    before = projection_of(data)
    with Memplane.open(data, embedder=None) as plane:
        plane.space(OWNER).ledger.replay()
    after = projection_of(data)

    assert len(before["turns"]) == total + len(between)
    assert after == before


@both_engines
def test_a_killed_merge_loses_nothing(home, data):
    """A merge is one transaction: after a kill a piece is there or not, what was here is there, nothing that was forgotten
    elsewhere is ever shown, and merging again ends as if nothing had happened."""
    rng = random.Random("merge")
    total, chunk = 120, 30
    with Memplane.open(data, embedder=None) as plane:
        here = [plane.space(OWNER).retain(f"lantern here{number}").id for number in range(40)]
    for _ in range(home.fewer(8 * OFTEN)):
        lines = Victim(crash_writer.merge, str(data), total, chunk).kill(rng, lines_max=8)
        merged = {
            number for line in lines if line[0] == "merged" for number in range(line[1], line[1] + chunk)
        }
        with Memplane.open(data, embedder=None) as plane:
            space = plane.space(OWNER)
            ids = [entry.id for entry in space.ledger.entries(limit=1_000_000)]
            gone = {stone.id for stone in space.ledger.tombstones()}
            shown = {turn.entry_id for turn in space.turns(limit=1_000)}

            assert space.ledger.verify().problems == ()
            assert [id_ for id_ in ids if id_ in here] == here
            assert {f"far-{number}" for number in merged} <= set(ids)
            assert not shown & {f"far-{number}" for number in range(0, total, chunk)}
            assert shown == {id_ for id_ in ids if id_ in here or id_.startswith("far-")} - gone
    Victim(crash_writer.merge, str(data), total, chunk).kill_after(1 + 2 * total // chunk, 0)
    with Memplane.open(data, embedder=None) as plane:
        ids = [entry.id for entry in plane.space(OWNER).ledger.entries(limit=1_000_000)]

    assert [id_ for id_ in ids if id_.startswith("far-")] == [f"far-{number}" for number in range(total)]


def check_import(space: Space, loaded: int, between: list[str], some: int | None) -> None:
    ids = [entry.id for entry in space.ledger.entries(limit=1_000_000)]
    bulk = [id_ for id_ in ids if id_.startswith("bulk-")]

    assert space.ledger.verify().problems == ()
    assert bulk == [f"bulk-{number}" for number in range(len(bulk))]
    assert len(bulk) >= loaded
    assert [id_ for id_ in ids if not id_.startswith("bulk-")] == between
    space.ledger.catch_up()
    assert [hit.id for hit in space.search(f"between{len(between) - 1}")] == between[-1:]
    if some is not None:
        assert [hit.id for hit in space.search(f"number{some}")] == [f"bulk-{some}"]


@both_engines
@pytest.mark.parametrize("key", [None, KEYS[0]], ids=["plain", "encrypted"])
def test_a_kill_while_spaces_are_made_leaves_whole_spaces(home, data, key):
    """A space is there, whole, or not at all; whatever else a kill leaves behind is nobody's space."""
    if home.server is not None and key is not None:
        pytest.skip("its disks are encrypted, or they are not")
    rng = random.Random(f"create/{key}")
    created = []
    for kill in range(home.fewer(10 * OFTEN)):
        lines = Victim(crash_writer.create, str(data), key, kill).kill(rng, lines_max=12)
        created += [owner for _, owner in lines]
        with Memplane.open(data, key=key, embedder=None) as plane:
            owners = list(plane.spaces())
            new = [owner for owner in owners if owner.startswith(f"{kill}/")]
            problems = [problem for owner in new for problem in plane.space(owner).ledger.verify().problems]
            holding = {owner: [turn.text for turn in plane.space(owner).turns()] for owner in new}

        assert len(owners) == len(set(owners))
        assert set(created) <= set(owners)
        assert problems == []
        for owner, texts in holding.items():
            assert texts == [f"lantern {owner.split('/')[1]}"] or (texts == [] and owner not in created)


ROTATIONS = [(KEYS[0], KEYS[1]), (None, KEYS[0]), (KEYS[0], None)]


@pytest.mark.parametrize(("old", "new"), ROTATIONS, ids=["other", "encrypt", "decrypt"])
def test_a_killed_rotation_can_be_finished(data, tmp_path, old, new):
    """Wherever a rotation is killed, every space opens with the old key or with the new one, whichever is tried first,
    and running it again brings everything under the new one."""
    rng = random.Random(f"rotate/{old}/{new}")
    # The way out of encryption is where most can go wrong, and a disk's syncs give a kill more time to hit.
    data, kills = (tmp_path, 30) if new is None else (data, 15)
    names = [("default", "s0"), ("other", "s1")]
    with Memplane.open(data, key=old, embedder=None) as plane:
        for tenant, owner in names:
            space = plane.space(owner, tenant=tenant)
            space.ledger.load([crash_writer.draft(f"d{n}", f"lantern {n} " * 500) for n in range(200)])
            space.put("shelf", owner)
    whole = dict.fromkeys(names, 201)
    for change in range(0, kills * OFTEN, 1 if THOROUGH else 3):
        Victim(crash_writer.rotate, str(data), old, new).kill_at(data, change)
        keys = [old, new]
        rng.shuffle(keys)

        assert {name: held(data, name, keys) for name in names} == whole
        if rng.random() < 0.7:
            with Memplane.open(data, key=old, embedder=None) as plane:
                plane.rotate_key(new)
            assert {name: held(data, name, [new]) for name in names} == whole
            with Memplane.open(data, key=new, embedder=None) as plane:
                plane.rotate_key(old)


def held(data: Path, name: tuple[str, str], keys: list[str | None]) -> int | None:
    """How many entries a space shows to the one key that fits it."""
    counts = []
    for key in keys:
        with Memplane.open(data, key=key, embedder=None) as plane:
            space = plane.space(name[1], tenant=name[0])
            try:
                verification = space.ledger.verify()
            except KeyMismatch:
                continue
            assert verification.problems == ()
            assert space.ledger.check() == []
            assert space.get("shelf").text == name[1]
            counts.append(verification.entries)
    assert len(counts) == 1
    return counts[0]
