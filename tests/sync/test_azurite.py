"""Machines as real processes, and Azure Blob Storage as Azurite speaks it: both write at once, and are killed at any
point."""

import json
import multiprocessing
import os
import random
import re
import time
from pathlib import Path

import pytest
from tests.support import sync_worker
from tests.support.sync_worker import OWNER

from conftest import fresh_folder
from memplane import Memplane
from memplane.sync.sync import Sync

THOROUGH = 10 if os.environ.get("MEMPLANE_TESTS") == "thorough" else 1
WORD = re.compile(r"\w+x\d+x(?:tea)?")
PATIENCE_SECONDS = 240

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.support.sync_worker"])


@pytest.fixture
def folder():
    with fresh_folder() as made:
        yield made


@pytest.fixture
def place(azurite):
    return azurite.place()


class Process:
    """A machine that works until it is done or killed."""

    def __init__(self, folder, place, name, rounds=None):
        self._pipe, end = forked.Pipe(duplex=False)
        arguments = (str(folder), place.url, place.environment, name, rounds, end)
        self._process = forked.Process(target=sync_worker.work, args=arguments, daemon=True)
        self._process.start()
        end.close()

    def told(self, *, lines_max=None, moment=0.0):
        """All it tells; killed after so many lines and a moment where that is said."""
        rest, lines = b"", []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while lines_max is None or len(lines) < lines_max:
            assert time.monotonic() < deadline
            more = os.read(self._pipe.fileno(), 65_536)
            if not more:
                break
            *whole, rest = (rest + more).split(b"\n")
            lines += whole
        if lines_max is not None:
            time.sleep(moment)
            self._process.kill()
            while more := os.read(self._pipe.fileno(), 65_536):
                *whole, rest = (rest + more).split(b"\n")
                lines += whole
        self._process.join(PATIENCE_SECONDS)
        return [json.loads(line) for line in lines]


class Told:
    """What machines were told that holds."""

    def __init__(self):
        self.said, self.forgotten, self.unsure = set(), set(), set()

    def hear(self, lines):
        for what, *rest in lines:
            if what == "said":
                self.said.update(rest)
            elif what == "forgets":
                self.unsure.update(rest)
            elif what == "forgot":
                self.forgotten.update(rest)
                self.unsure.difference_update(rest)

    def kept(self):
        return self.said - self.forgotten - self.unsure


def words_of(space):
    found = [WORD.search(entry.body.decode()) for entry in all_entries(space) if entry.body]
    return [word.group() for word in found if word]


def all_entries(space):
    entries, after = [], 0
    while more := space.ledger.entries(after=after):
        entries += more
        after = more[-1].seq
    return entries


def settle(folders, place):
    """Everybody syncs until nobody has anything to say; answers what each remembers."""
    for _ in range(10):
        idle = []
        for folder in folders:
            with Memplane.open(folder, embedder=None) as plane:
                idle.append(Sync(plane.space(OWNER), place.open(), folder).push().idle)
        if all(idle):
            break
    assert all(idle)
    views = []
    for folder in folders:
        with Memplane.open(folder, embedder=None) as plane:
            space = plane.space(OWNER)
            assert space.ledger.verify().ok
            views.append(
                (
                    sorted(words_of(space)),
                    [entry.id for entry in all_entries(space)],
                    sorted((it.id, it.text, it.state) for it in space.memories(limit=10_000)),
                )
            )
    return views


def check(told, views, place):
    words, ids, _ = views[0]
    assert views[1:] == [views[0]] * (len(views) - 1)
    assert len(ids) == len(set(ids))
    assert len(words) == len(set(words))
    assert told.kept() - set(words) == set()
    assert set(words) & told.forgotten == set()
    store = place.open()
    there = {word for item in store.list() for word in WORD.findall(store.get(item.key).data.decode())}
    assert there & told.forgotten == set()
    assert told.kept() - there == set()


def test_two_processes_write_and_sync_at_once(folder, place):
    """
    Nothing is lost, nothing is there twice, what was forgotten is nowhere, and both remember the same.
    """
    folders = [folder / "desk", folder / "lap"]
    machines = [Process(one, place, one.name, rounds=12) for one in folders]
    told = Told()
    for machine in machines:
        lines = machine.told()
        assert lines[-1] == ["done"]
        told.hear(lines)

    views = settle(folders, place)

    check(told, views, place)
    assert len(told.said) >= 24
    assert told.forgotten


@pytest.mark.parametrize("seed", range(THOROUGH))
def test_a_machine_that_is_killed_goes_on_where_it_was(folder, place, seed):
    """
    Wherever the kill hits a push or a pull, the next one finishes it; another machine syncs all the while.
    """
    rng = random.Random(seed)
    desk, lap = folder / "desk", folder / "lap"
    told = Told()
    other = Process(lap, place, "lap", rounds=12)
    for kill in range(8):
        machine = Process(desk, place, f"desk{kill}k")
        told.hear(machine.told(lines_max=rng.randrange(2, 12), moment=rng.random() * 0.05))
    told.hear(other.told())

    views = settle([desk, lap], place)

    check(told, views, place)


def test_a_third_machine_gets_all_of_it(folder, place):
    """
    A machine that was never there remembers the same after one pull.
    """
    desk = folder / "desk"
    told = Told()
    told.hear(Process(desk, place, "desk", rounds=6).told())
    settle([desk], place)
    with Memplane.open(folder / "new", embedder=None) as plane:
        Sync(plane.space(OWNER), place.open(), Path(folder / "new")).pull()

    check(told, settle([desk, folder / "new"], place), place)
