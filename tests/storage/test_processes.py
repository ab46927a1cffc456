"""Any number of programs and threads on one data directory: nothing is lost, nobody is told that a database is locked,
and everybody sees an unbroken chain."""

import multiprocessing
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support import process_workers as workers
from tests.support.process_workers import OWNER, PATIENCE_SECONDS

from engines import both_engines, fresh_folder
from memplane import Memplane, State
from memplane.memory.supersession import chain_of
from memplane.storage.sqlite.budget import OPEN_SPACES_MAX
from memplane.storage.sqlite.engine import SqliteEngine
from memplane.storage.stores import Stores
from memplane.types import NewEntry, Op

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.support.process_workers"])


@pytest.fixture
def folder():
    """In memory where there is such a place; who waits for whom does not depend on a disk."""
    with fresh_folder() as made:
        yield made


@pytest.fixture
def data(home):
    with home.fresh() as made:
        yield made


class Crowd:
    """Programs that begin at the same moment on one data directory."""

    def __init__(self, data: Path | str, *works: tuple[Callable[..., Any], tuple[Any, ...]]) -> None:
        self._answers = forked.Queue()
        self._begin = forked.Barrier(len(works))
        self._processes = [
            forked.Process(
                target=workers.run,
                args=(work, self._answers, self._begin, str(data), *arguments),
                daemon=True,
            )
            for work, arguments in works
        ]
        for process in self._processes:
            process.start()

    def answers(self, count: int | None = None) -> dict[str, list[Any]]:
        """What so many of them (or all) answered, by what they did; an error of any of them fails the test."""
        found: dict[str, list[Any]] = {}
        errors = []
        for _ in range(len(self._processes) if count is None else count):
            name, answer, error = self._answers.get(timeout=PATIENCE_SECONDS)
            found.setdefault(name, []).append(answer)
            errors += [error] if error else []
        assert errors == []
        return found

    def end(self) -> None:
        for process in self._processes:
            process.join(PATIENCE_SECONDS)
            assert process.exitcode == 0
            process.close()
        self._answers.close()


@both_engines
def test_eight_writers_and_four_readers_share_a_space(home, data):
    """Every write that was acknowledged to any of them is there, once, in one chain; every reader only ever saw
    whole, verified beginnings of it."""
    stop = forked.Event()
    rounds, half = max(6, home.fewer(36)), forked.Barrier(12)
    crowd = Crowd(
        data,
        *((workers.write, (number, rounds, half)) for number in range(8)),
        *((workers.read, (stop, half)) for _ in range(4)),
    )
    told = crowd.answers(8)["write"]
    stop.set()
    looks = crowd.answers(4)["read"]
    crowd.end()
    with Memplane.open(data, embedder=None) as plane:
        space = plane.space(OWNER)
        verification = space.ledger.verify()
        ids = [entry.id for entry in space.ledger.entries(limit=1_000_000)]
        problems = space.ledger.check()
        turns = {turn.entry_id for turn in space.turns(limit=1_000_000)}
        forgotten = {tombstone.id for tombstone in space.ledger.tombstones()}
        said = {entry.id for entry in space.ledger.entries(limit=1_000_000) if entry.op is Op.TURN}

    assert Counter(ids) == Counter(id_ for ids in told for id_ in ids)
    assert verification.problems == ()
    assert problems == []
    assert turns == said - forgotten
    assert len(forgotten) == 8
    assert [seen[0] < seen[-1] == len(ids) for seen in looks] == [True] * 4


@both_engines
def test_a_session_has_one_allowance_in_all_programs(home, data):
    """Twenty stores, five replacements and five deletions are what a session has, however many programs race for the
    last of them."""
    with Memplane.open(data, embedder=None) as plane:
        space = plane.space(OWNER)
        replaced = space.store("fact", "lantern")
        deleted = [[space.store("fact", f"lantern {n}{m}").id for m in range(5)] for n in range(4)]
    outcomes = {}
    for name, works in {
        "store": [(workers.store_in_session, ("s1", 15))] * 4,
        "supersede": [(workers.supersede_in_session, ("s2", replaced.id, 5))] * 4,
        "delete": [(workers.delete_in_session, ("s3", ids)) for ids in deleted],
    }.items():
        crowd = Crowd(data, *works)
        ((answers,),) = [list(crowd.answers().values())]
        crowd.end()
        outcomes[name] = (sum(done for done, _ in answers), sum(refused for _, refused in answers))
    with Memplane.open(data, embedder=None) as plane:
        space = plane.space(OWNER)
        stored = [entry for entry in space.ledger.entries() if entry.caller.session == "s1"]
        refusals = [record for record in space.ledger.audit() if record.outcome.startswith("refused")]

    assert outcomes == {"store": (20, 40), "supersede": (5, 15), "delete": (5, 15)}
    assert len(stored) == 20
    assert len(refusals) == 70


@both_engines
def test_replacing_the_same_memory_at_once_leaves_one_current(home, data):
    """Two programs that correct the same memory make a line of corrections, never a fork with two answers."""
    with Memplane.open(data, embedder=None) as plane:
        originals = [plane.space(OWNER).store("fact", f"lantern {n}").id for n in range(25)]
    begin_each = forked.Barrier(2)
    crowd = Crowd(data, *((workers.supersede, (begin_each, originals, name)) for name in ("one", "other")))
    one, other = crowd.answers()["supersede"]
    crowd.end()
    with Memplane.open(data, embedder=None) as plane, plane.space(OWNER)._context.read() as reader:
        chains = [chain_of(reader, original) for original in originals]
        brief = plane.space(OWNER).brief()

    assert [{memory.id for memory in chain} for chain in chains] == [
        set(ids) for ids in zip(originals, one, other, strict=True)
    ]
    assert [[memory.state for memory in chain] for chain in chains] == [
        [State.SUPERSEDED, State.SUPERSEDED, State.ACTIVE]
    ] * 25
    assert {entry.id for entry in brief.entries} == {chain[-1].id for chain in chains}


@both_engines
def test_the_same_entry_from_everybody_is_one_entry(home, data):
    """An id names one entry, whoever brings it and however often."""
    ids = [f"given-{number}" for number in range(40)]
    crowd = Crowd(data, *[(workers.retain_given, (ids,))] * 6)
    new = crowd.answers()["retain_given"]
    crowd.end()
    with Memplane.open(data, embedder=None) as plane:
        entries = [entry.id for entry in plane.space(OWNER).ledger.entries()]

    assert sorted(entries) == sorted(ids)
    assert [sum(answers) for answers in zip(*new, strict=True)] == [1] * 40


@both_engines
def test_making_the_same_space_at_once_makes_one(home, data):
    """Eight programs that need a space nobody has made yet all write into the same one."""
    owners = [f"new {number}" for number in range(12)] + ["Ü" * 300]
    begin_each = forked.Barrier(8)
    crowd = Crowd(data, *((workers.create, (begin_each, owners, f"p{n}")) for n in range(8)))
    seqs = crowd.answers()["create"]
    crowd.end()
    with Memplane.open(data, embedder=None) as plane:
        found = list(plane.spaces())
        texts = {owner: sorted(turn.text for turn in plane.space(owner).turns()) for owner in owners}
        problems = [problem for owner in owners for problem in plane.space(owner).ledger.verify().problems]
    left = [path.name for path in Path(data).rglob("*") if path.name.startswith(".")]

    assert sorted(found) == sorted(owners)
    assert [sorted(places) for places in zip(*seqs, strict=True)] == [list(range(1, 9))] * len(owners)
    assert list(texts.values()) == [[f"lantern of p{n}" for n in range(8)]] * len(owners)
    assert problems == []
    assert left == []


@both_engines
def test_a_reader_elsewhere_holds_nobody_up(home, data):
    """While another program reads, this one writes; the reader's snapshot stays what it was."""
    with Memplane.open(data, embedder=None) as plane:
        space = plane.space(OWNER)
        space.retain("lantern")
        holding, stop = forked.Event(), forked.Event()
        crowd = Crowd(data, (workers.hold_a_snapshot, (holding, stop)))
        assert holding.wait(PATIENCE_SECONDS)
        for number in range(home.fewer(200)):
            space.retain(f"lantern {number}")
        stop.set()
        snapshots = crowd.answers()["hold_a_snapshot"]
        crowd.end()
        entries = space.ledger.entries()

    assert snapshots == [(1, 1)]
    assert len(entries) == 1 + home.fewer(200)


def open_files(folder: Path) -> list[str]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except OSError:
            continue  # the one this listing used
    return [name for name in found if name.startswith(str(folder))]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no /proc that lists a program's open files")
def test_hundreds_of_spaces_need_few_files(folder):
    """However many spaces are used, at most 64 are open; all are there, and each holds its own."""
    owners = [f"space {number}" for number in range(300)]
    most_files = most_spaces = 0
    with Memplane.open(folder, embedder=None) as plane:
        for number, owner in enumerate(owners):
            plane.space(owner).retain(f"lantern {number}")
            if number % 50 == 0:
                names = open_files(folder)
                most_files = max(most_files, len(names))
                most_spaces = max(most_spaces, len({name for name in names if name.endswith(".db")}))
        rng = random.Random(1)
        for number in rng.sample(range(len(owners)), 100):
            (turn,) = plane.space(owners[number]).turns()
            assert turn.text == f"lantern {number}"
            most_files = max(most_files, len(open_files(folder)))
        found = list(plane.spaces())
    left_open = open_files(folder)

    assert sorted(found) == sorted(owners)
    assert most_spaces == OPEN_SPACES_MAX
    assert most_files <= OPEN_SPACES_MAX * 5  # a writer and a reader: two files each, and the shared index
    assert left_open == []


def test_a_store_in_use_is_not_closed(folder):
    """Whoever holds a space keeps it, whatever number of others are opened meanwhile; it is closed when it is idle."""
    stores = Stores(SqliteEngine(folder, open_max=2))
    with stores.open("default", "held", create=True) as held:
        held.write(lambda writer: writer.ledger.append([NewEntry("first", Op.TURN, b"{}")], recorded=1))
        with held.read() as reader:
            before = reader.ledger.head()
            for number in range(20):
                with stores.open("default", f"other {number}", create=True) as other:
                    other.write(
                        lambda writer: writer.ledger.append([NewEntry("x", Op.TURN, b"{}")], recorded=1)
                    )
            held.write(lambda writer: writer.ledger.append([NewEntry("second", Op.TURN, b"{}")], recorded=1))
            after = reader.ledger.head()
        with held.read() as reader:
            ids = [entry.id for entry in reader.ledger.entries()]
        open_now = len(stores.engine._slots)
    for number in range(3):
        with stores.open("default", f"other {number}", create=True):
            pass
    held_still = ("default", "held") in stores.engine._slots
    stores.close()

    assert before == after
    assert ids == ["first", "second"]
    assert open_now == 2
    assert not held_still


def test_spaces_are_opened_and_closed_under_everybodys_hands(folder):
    """Threads that use more spaces than may be open never meet a closed one, and lose nothing."""
    stores = Stores(SqliteEngine(folder, open_max=2))
    acknowledged: list[tuple[str, str]] = []

    def use(thread: int) -> None:
        rng = random.Random(thread)
        for number in range(80):
            owner = f"space {rng.randrange(8)}"
            with stores.open("default", owner, create=True) as store:
                id_ = f"t{thread}-{number}"
                store.write(
                    lambda writer, id_=id_: writer.ledger.append([NewEntry(id_, Op.TURN, b"{}")], recorded=1)
                )
                acknowledged.append((owner, id_))
                with store.read() as reader:
                    assert reader.ledger.get(id_) is not None

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(use, range(12)))
    open_at_last = len(stores.engine._slots)
    held = []
    for number in range(8):
        with stores.open("default", f"space {number}", create=False) as store, store.read() as reader:
            held += [(f"space {number}", entry.id) for entry in reader.ledger.entries()]
    stores.close()

    assert Counter(held) == Counter(acknowledged)
    assert open_at_last <= 2


def children() -> set[str]:
    found = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread that has just ended
            found.update(task.read_text().split())
    return found


def test_nothing_runs_besides_the_caller(folder):
    """Using memory starts no thread and no program, so there is none to leave behind. Others', from before, may end."""
    threads, programs = set(threading.enumerate()), children()
    with Memplane.open(folder, embedder=None) as plane:
        space = plane.space("alone")
        for number in range(100):
            space.retain(f"lantern {number}")
        space.search("lantern")
        space.forget(everything=True)
        begun = set(threading.enumerate()) - threads, children() - programs

    assert begun == (set(), set())
