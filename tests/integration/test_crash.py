"""What was acknowledged survives SIGKILL at any moment, and what was not leaves nothing half done.

A process is forked, writes from several threads, tells on a pipe what it was told, and is killed; the same space is
opened again. Hundreds of times, at moments that a seeded generator picks. `MEMPLANE_TESTS=thorough` kills ten times as
often.
"""

import json
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.integration import crash_writer
from tests.integration.crash_writer import KEYS, OWNER

from memplane import Memplane, Space, State
from memplane.errors import NotFound
from memplane.storage.sqlite.names import space_path

THOROUGH = 10 if os.environ.get("MEMPLANE_TESTS") == "thorough" else 1
PATIENCE_SECONDS = 60

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.integration.crash_writer"])


class Victim:
    """A process that reports on a pipe until it is killed."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self._pipe, end = forked.Pipe(duplex=False)
        self._process = forked.Process(target=target, args=(*arguments, end), daemon=True)
        self._process.start()
        end.close()
        self._rest = b""

    def kill(self, rng: random.Random, lines_max: int) -> list[list[Any]]:
        """Let it tell so many lines, or live for a moment, then kill it; answers everything it told."""
        lines: list[bytes] = []
        wanted = rng.choice((0, rng.randrange(1, 4), rng.randrange(1, lines_max)))
        while len(lines) < wanted and (more := self._read()):
            lines += more
        time.sleep(rng.choice((0, rng.random() * 0.002, rng.random() * 0.02)))
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
    entries = space.entries(limit=1_000_000)
    bodies = {entry.id: entry.body for entry in entries}

    assert space.verify(expected=told.digests).problems == ()
    assert space.check() == []
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert len(bodies) == len(entries)
    assert [id_ for id_ in told.written if id_ not in bodies] == []
    for id_ in told.written.keys() - told.leaving:
        assert told.written[id_].encode() in (bodies[id_] or b"")
    assert [id_ for id_ in told.forgotten if bodies[id_] is not None] == []


def check_reads(space: Space, told: Told, rng: random.Random) -> None:
    """Everything acknowledged can be read and searched; nothing forgotten can."""
    space.catch_up()
    sure = told.sure()

    assert (space.brief().brief_count > 0) == any(id_.startswith(("mem-", "put-")) for id_ in sure)
    assert len(space.search("lantern", limit=100)) >= min(100, len(sure))
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


def projection_of(path: Path, key: str | None = None) -> dict[str, list[Any]]:
    """Every derived row and every word of the indexes, but for row numbers that mean nothing."""
    connection = apsw.Connection(str(path))
    if key is not None:
        connection.pragma("cipher", "aegis")
        connection.pragma("key", f"raw:{key}")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(memory)") if row[1] != "n"]
    quoted = ", ".join(f'"{column}"' for column in columns)
    try:
        for index in ("turn_index", "memory_index"):
            connection.execute(f"INSERT INTO {index} ({index}) VALUES ('integrity-check')")
        return {
            "turns": connection.execute("SELECT * FROM turn ORDER BY n").fetchall(),
            "memories": connection.execute(f"SELECT {quoted} FROM memory ORDER BY id").fetchall(),
            "tags": connection.execute(
                "SELECT m.id, g.tag FROM memory_tag g JOIN memory m USING (n) ORDER BY 1, 2"
            ).fetchall(),
            "turn words": connection.execute(
                "SELECT term, doc, cnt FROM turn_vocabulary ORDER BY term"
            ).fetchall(),
            "memory words": connection.execute(
                "SELECT term, doc, cnt FROM memory_vocabulary ORDER BY term"
            ).fetchall(),
            "meta": connection.execute("SELECT * FROM meta ORDER BY name").fetchall(),
        }
    finally:
        connection.close()


def file_of(data: Path, owner: str = OWNER) -> Path:
    return space_path(data / "spaces" / "default", owner)


def bytes_below(data: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file())


@pytest.mark.parametrize("seed", range(10))
def test_what_was_acknowledged_survives_a_kill(tmp_path, seed):
    """Every acknowledged entry is there after any kill, in an unbroken chain, readable and searchable; what was
    forgotten stays forgotten, on disk too; and a replay of all that was left behind changes nothing."""
    rng = random.Random(seed)
    key = KEYS[0] if seed % 5 == 4 else None
    told = Told()
    kills = 25 * THOROUGH
    for kill in range(kills):
        told.hear(Victim(crash_writer.scribble, str(tmp_path), key, kill).kill(rng, lines_max=40))
        with Memplane.open(tmp_path, key=key) as plane:
            space = plane.space(OWNER)
            check_ledger(space, told)
            if kill % 3 == 0:
                check_reads(space, told, rng)
        on_disk = bytes_below(tmp_path)
        assert [word for word in told.off_disk if word.encode() in on_disk] == []
    with Memplane.open(tmp_path, key=key) as plane:
        plane.space(OWNER).catch_up()
    before = projection_of(file_of(tmp_path), key)
    with Memplane.open(tmp_path, key=key) as plane:
        plane.space(OWNER).replay()
    after = projection_of(file_of(tmp_path), key)

    assert told.written
    assert told.forgotten
    assert after == before
