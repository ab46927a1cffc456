"""SIGKILL at any moment: acknowledged writes are there once, and forgotten bytes are gone after the next open.

`MEMPLANE_ATTACK_KILLS` says how often.
"""

import json
import multiprocessing
import os
import random
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.attack.conftest import KILLS
from tests.support import attack_victim
from tests.support.attack_victim import OWNER

from engines import HOME, both_engines
from memplane import Memplane
from memplane.storage.state import ErasureStep
from memplane.types import Op

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.support.attack_victim", "tests.support.crash_writer"])
SECRET = "wxqzvkjphy"
KEY = "cd" * 32
WORD = re.compile(rb"q\d+x\d+z")
KILLS_PER_SPACE = 20
"""Then a new space: each check reads all of it."""
WRITES = {Op.TURN, Op.STORE, Op.PUT}


class Victim:
    """A process that reports on a pipe until it is killed."""

    def __init__(self, target, *arguments):
        self._pipe, end = forked.Pipe(duplex=False)
        self._process = forked.Process(target=target, args=(*arguments, end), daemon=True)
        self._process.start()
        end.close()

    def lines(self, *, lines_min, moment):
        """Kill it a moment after it reported so much; everything it reported."""
        raw = b""
        while raw.count(b"\n") < lines_min and (more := os.read(self._pipe.fileno(), 1 << 16)):
            raw += more
        time.sleep(moment)
        self._process.kill()
        return self._rest(raw)

    def rest(self):
        """Wait until it killed itself; everything it reported."""
        return self._rest(b"")

    def _rest(self, raw):
        while more := os.read(self._pipe.fileno(), 1 << 16):
            raw += more
        self._process.join(60)
        code = self._process.exitcode
        self._process.close()
        self._pipe.close()
        assert code == -signal.SIGKILL
        return [json.loads(line) for line in raw.split(b"\n")[:-1]]


def traces(folder, *words):
    """The words that any file below the folder contains, in any case."""
    content = b"\n".join(path.read_bytes().lower() for path in Path(folder).rglob("*") if path.is_file())
    return [word for word in words if word.lower().encode() in content]


@pytest.fixture(params=[None, KEY], ids=["plain", "encrypted"])
def key(request):
    return request.param


def test_a_killed_forget_is_finished_when_the_space_is_opened(tmp_path, key):
    """
    A process dies between the commit of a forget and the rewriting of the file: the next open rewrites it.
    """
    with Memplane.open(tmp_path, key=key, embedder=None) as plane:
        space = plane.space(OWNER)
        space.retain(f"The code of the gate is {SECRET}", id="gate")
        for number in range(50):
            space.retain(f"Something else, number {number}")

    assert Victim(attack_victim.forget_and_die, str(tmp_path), key, {"entries": ["gate"]}).rest() == [
        ["committed"]
    ]
    if key is None:
        assert traces(tmp_path, SECRET) == [SECRET]
    with Memplane.open(tmp_path, key=key, embedder=None) as plane:
        (receipt,) = plane.space(OWNER).ledger.receipts()
        assert receipt.off_disk
        with plane._stores.open("default", OWNER, create=False) as store, store.read() as reader:
            assert reader.state.erased(ErasureStep.DISK).erasures == reader.state.erasures()

    assert traces(tmp_path, SECRET) == []


def test_a_space_in_use_says_that_the_bytes_are_still_there(tmp_path):
    """
    Another process reads the old pages: the receipt says so, and the background worker finishes when the reader is gone.
    """
    with Memplane.open(tmp_path, embedder=None) as other, Memplane.open(tmp_path, embedder=None) as plane:
        space = plane.space(OWNER)
        space.retain(f"The code of the gate is {SECRET}", id="gate")
        with other._stores.open("default", OWNER, create=False) as store, store.read() as reader:
            assert reader.ledger.head().seq == 1
            made = space.forget(entries=["gate"])
            assert made.off_disk is False
            assert space.ledger.receipt(made.id).off_disk is False
        plane._daily_maintenance("default", OWNER)

        assert space.ledger.receipt(made.id).off_disk is True
    assert traces(tmp_path, SECRET) == []


def test_a_killed_forget_of_a_document_leaves_the_catalog_too(tmp_path):
    """
    The id of an erased document is dropped from the catalog by the next process.
    """
    name = "draft-" + SECRET
    with Memplane.open(tmp_path, embedder=None) as plane:
        plane.space(OWNER).documents.upload("The text of a short document.", name="a.txt", id=name)

    Victim(attack_victim.forget_and_die, str(tmp_path), None, {"document": name}).rest()
    with Memplane.open(tmp_path, embedder=None) as plane:
        assert plane.space(OWNER).ledger.receipts()[0].off_disk
        assert plane.owners_of("default", "document", name) == []


@both_engines
def test_a_killed_forget_stays_committed(home):
    """
    Whatever the engine, a forget that was committed is not undone by a kill, and nothing erased is readable.
    """
    with HOME.fresh() as data:
        with Memplane.open(data, embedder=None) as plane:
            plane.space(OWNER).retain(f"The code of the gate is {SECRET}", id="gate")
        Victim(attack_victim.forget_and_die, str(data), None, {"entries": ["gate"]}).rest()

        with Memplane.open(data, embedder=None) as plane:
            space = plane.space(OWNER)
            (receipt,) = space.ledger.receipts()
            assert receipt.off_disk is (home.server is None)
            assert space.search(SECRET) == []
            assert space.ledger.verify().problems == ()


class Claims:
    """What was acknowledged, over all runs: the word of every write by its entry."""

    def __init__(self):
        self.written, self.forgotten, self.unsure, self.begun = {}, {}, set(), set()

    def read(self, lines):
        for what, *rest in lines:
            if what == "writing":
                self.begun.add(rest[0])
            elif what == "written":
                self.written[rest[0]] = rest[1]
            elif what == "forgetting":
                self.unsure.add(rest[0])
            else:
                self.forgotten[rest[0]] = rest[1]

    def check(self, space):
        """Every acknowledged write is in the ledger once, every other at most once, and what is forgotten is not."""
        counted = Counter()
        seq = 0
        while entries := space.ledger.entries(after=seq):
            seq = entries[-1].seq
            bodies = b" ".join(
                entry.body for entry in entries if entry.op in WRITES and entry.body is not None
            )
            counted.update(found.decode() for found in WORD.findall(bodies.lower()))
        sure = {word for id_, word in self.written.items() if id_ not in self.unsure}
        gone = set(self.forgotten.values())

        assert [word for word in sure if counted[word] != 1] == []
        assert [word for word in self.begun if counted[word] > 1] == []
        assert [word for word in gone if counted[word]] == []
        assert space.ledger.verify().problems == ()
        return gone


@both_engines
def test_kills_lose_nothing_and_bring_nothing_back(home, figures):
    """
    A process that retains, stores, enriches and forgets is killed again and again.
    """
    rng = random.Random("kills")
    kills = KILLS if home.server is None else max(4, KILLS // 3)
    written = forgotten = 0
    for begin in range(0, kills, KILLS_PER_SPACE):
        claims = Claims()
        with HOME.fresh() as data:
            for kill in range(begin, min(begin + KILLS_PER_SPACE, kills)):
                victim = Victim(attack_victim.work, str(data), kill)
                claims.read(victim.lines(lines_min=rng.randrange(1, 60), moment=rng.random() * 0.01))
                with Memplane.open(data, embedder=None) as plane:
                    gone = claims.check(plane.space(OWNER))
                assert home.server is not None or gone.isdisjoint(words_below(data))
        written, forgotten = written + len(claims.written), forgotten + len(claims.forgotten)

    assert forgotten
    figures(engine=home.name, kills=kills, acknowledged=written, forgotten=forgotten, lost=0, twice=0)


def words_below(folder):
    """Every word of a victim that any file contains."""
    files = (path.read_bytes().lower() for path in Path(folder).rglob("*") if path.is_file())
    return {found.decode() for content in files for found in WORD.findall(content)}
