"""Group commit: concurrent writers share a commit, and share nothing else: not their failures, not their answers."""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import costly

from memplane.errors import InvalidRequest, StorageBusy, StorageFull
from memplane.ledger.verify import verify
from memplane.storage.commit import GroupCommit, _Ticket
from memplane.storage.session import ReadSession, WriteSession
from memplane.storage.sqlite.connection import connect
from memplane.storage.sqlite.database import FATAL, writing
from memplane.storage.sqlite.migrate import migrate
from memplane.storage.sqlite.statements import SQL, SqliteConnection
from memplane.storage.store import Reader, Writer
from memplane.types import NewEntry, Op

PATIENCE_SECONDS = 240

Work = Callable[[Writer], object]


class Interrupted(BaseException):
    """Stands for Ctrl-C and for a thread that is told to exit."""


class Refused(InvalidRequest):
    """A work's own failure."""


def reading(connection: apsw.Connection) -> Reader:
    return Reader(ReadSession(SqliteConnection(connection), "owner"))


def group_commit(connection: apsw.Connection, path: Path, lock: Any = None) -> GroupCommit[Writer]:
    lock = lock or threading.Lock()

    @contextmanager
    def transaction() -> Iterator[tuple[WriteSession, Writer]]:
        with writing(lambda: connection, path, lock, SQL, durable=True, wait=True) as writer:
            session = WriteSession(writer, "owner")
            yield session, Writer(session)

    return GroupCommit(transaction, FATAL)


class Commits:
    """A group commit over a real file, with a count of the commits SQLite made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = connect(path, None, create=True)
        self.connection.pragma("journal_mode", "wal")
        migrate(self.connection, path.name)
        self.count = 0
        self.connection.set_commit_hook(self._committed)
        self.lock = threading.Lock()
        self.group = group_commit(self.connection, path, self.lock)

    def _committed(self) -> bool:
        self.count += 1
        return False

    def ids(self) -> list[str]:
        """As another program sees them."""
        other = connect(self.path, None)
        try:
            return [entry.id for entry in reading(other).ledger.entries(limit=1_000_000)]
        finally:
            other.close()

    def problems(self) -> tuple[str, ...]:
        return verify(reading(self.connection)).problems

    @contextmanager
    def held(self) -> Iterator[None]:
        """Someone leads and does not finish before the block has ended."""
        begun, go_on = threading.Event(), threading.Event()

        def work(writer: Writer) -> None:
            begun.set()
            assert go_on.wait(PATIENCE_SECONDS)

        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.group.run, work)
            try:
                assert begun.wait(PATIENCE_SECONDS)
                yield
            finally:
                go_on.set()

    def wait_for(self, callers: int) -> None:
        """Until so many wait in the line."""
        until(lambda: len(self.group._queue) == callers)

    def together(self, works: Sequence[Work]) -> list[Future]:
        """Every work from a thread of its own, all in one transaction, in this order."""
        with ThreadPoolExecutor(len(works)) as pool, self.held():
            futures = []
            for work in works:
                futures.append(pool.submit(self.group.run, work))
                self.wait_for(len(futures))
        return futures


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.0002)


def append(*ids: str) -> Callable[[Writer], list[int]]:
    def work(writer: Writer) -> list[int]:
        entries = writer.ledger.append([NewEntry(id_, Op.TURN, b"{}") for id_ in ids], recorded=1)
        return [entry.seq for entry in entries]

    return work


def append_and_name(id_: str) -> Callable[[Writer], str]:
    return lambda writer: writer.ledger.append([NewEntry(id_, Op.TURN, b"")], recorded=1)[0].id


@pytest.fixture
def commits(tmp_path):
    made = Commits(tmp_path / "group.db")
    yield made
    made.connection.close()


def test_a_lone_caller_commits_each_work_in_its_own_thread(commits):
    """Without company nobody waits: a work is a commit, and it runs where it was called."""
    threads = [commits.group.run(lambda _: threading.get_ident()) for _ in range(3)]
    for number in range(3):
        commits.group.run(append(f"e{number}"))

    assert threads == [threading.get_ident()] * 3
    assert commits.count == 6


def test_callers_that_wait_share_one_commit(commits):
    """However many queue up behind a commit, the next one takes them all."""
    futures = commits.together([append(f"e{number}") for number in range(16)])

    assert [future.result() for future in futures] == [[number + 1] for number in range(16)]
    assert commits.count == 2  # the one that was held, and the one for everybody else


def test_an_answer_means_it_is_committed(commits):
    """When a caller has its answer, another program sees the entry: nobody is told before the commit."""
    missing = []

    def write(thread: int) -> None:
        other = connect(commits.path, None)
        for number in range(40):
            id_ = f"t{thread}-{number}"
            commits.group.run(append(id_))
            if reading(other).ledger.get(id_) is None:
                missing.append(id_)
        other.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))

    assert missing == []
    assert len(commits.ids()) == 320


def test_every_caller_gets_its_own_answer(commits):
    """Answers are never swapped, whoever ran the work."""

    def write(thread: int) -> list[tuple[str, str]]:
        answers = []
        for number in range(100):
            id_ = f"t{thread}-{number}"
            answers.append((id_, commits.group.run(append_and_name(id_))))
        return answers

    with ThreadPoolExecutor(16) as pool:
        answers = [answer for answers in pool.map(write, range(16)) for answer in answers]

    assert [asked for asked, got in answers if asked != got] == []
    assert Counter(commits.ids()) == Counter(asked for asked, _ in answers)
    assert commits.count < len(answers)


def fail_at_once(writer: Writer) -> None:
    raise Refused("at once")


def fail_after_appending(writer: Writer) -> None:
    append("lost-1", "lost-2")(writer)
    raise Refused("after appending")


def fail_after_writing(writer: Writer) -> None:
    append("lost-3")(writer)
    writer.state.set_note("lost", "1")
    append("lost-4")(writer)
    raise Refused("after writing")


def fail_inside_sqlite(writer: Writer) -> None:
    append("lost-5")(writer)
    writer.state.set_note("lost", "1")
    writer._session.connection._connection.execute("INSERT INTO ledger (seq) VALUES (1)")


@pytest.mark.parametrize(
    "failing", [fail_at_once, fail_after_appending, fail_after_writing, fail_inside_sqlite]
)
def test_one_failure_harms_nobody_else(commits, failing):
    """A work that fails undoes itself alone, whatever it had done; those around it are written and chained."""

    def noting(writer: Writer) -> str | None:
        append("noting")(writer)
        writer.state.set_note("kept", "1")
        return writer.state.note("lost")

    futures = commits.together(
        [append("a"), failing, append("b", "c"), failing, noting, failing, append("d")]
    )

    assert [type(futures[place].exception()) for place in (1, 3, 5)] == [
        apsw.ConstraintError if failing is fail_inside_sqlite else Refused
    ] * 3
    assert futures[4].result() is None
    assert commits.ids() == ["a", "b", "c", "noting", "d"]
    assert reading(commits.connection).state.note("kept") == "1"
    assert commits.problems() == ()


def test_each_failure_reaches_its_own_caller(commits):
    """The exception a work raised is raised where the work came from, the very same one."""
    errors = [Refused(str(number)) for number in range(6)]

    def failing(error: Refused) -> Callable[[Writer], None]:
        def work(writer: Writer) -> None:
            raise error

        return work

    futures = commits.together([failing(error) for error in errors])

    assert [future.exception() for future in futures] == errors


STEPS = st.lists(st.sampled_from(["append", "note", "read", "known"]), max_size=4)


def planned(number: int, steps: list[str], *, fails: bool) -> Work:
    """A work that does these steps and checks what it sees of its own and of those before it."""

    def work(writer: Writer) -> None:
        before, mine = writer.ledger.head().seq, 0
        for step in steps:
            if step == "append":
                append(f"w{number}-{mine}")(writer)
                mine += 1
            elif step == "note":
                writer.state.set_note(f"w{number}", str(mine))
            elif step == "read":
                assert [entry.seq for entry in writer.ledger.entries(limit=1_000)] == list(
                    range(1, before + mine + 1)
                )
            else:
                found = writer.ledger.known([f"w{number}-{n}" for n in range(9)])
                assert found == {f"w{number}-{n}": before + n + 1 for n in range(mine)}
        if fails:
            raise Refused("as planned")

    return work


def last_note(steps: list[str]) -> str:
    last = max(place for place, step in enumerate(steps) if step == "note")
    return str(steps[:last].count("append"))


@costly(30)
@given(st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=8))
def test_a_shared_commit_is_the_same_as_one_after_the_other(works):
    """Whatever mix of works shares a commit, the ledger holds what the successful ones wrote, in their order."""
    connection = connect(Path(":memory:"), None, create=True)
    migrate(connection, "memory")
    tickets = [_Ticket(planned(number, steps, fails=fails)) for number, (steps, fails) in enumerate(works)]
    group = group_commit(connection, Path("memory"))
    group._queue = list(tickets)
    group._lead()
    good = [(number, steps) for number, (steps, fails) in enumerate(works) if not fails]
    reader = reading(connection)
    notes = {number: reader.state.note(f"w{number}") for number in range(len(works))}

    assert [type(ticket.error) for ticket in tickets] == [
        Refused if fails else type(None) for _, fails in works
    ]
    assert [entry.id for entry in reader.ledger.entries(limit=1_000)] == [
        f"w{number}-{mine}" for number, steps in good for mine in range(steps.count("append"))
    ]
    assert {number: note for number, note in notes.items() if note is not None} == {
        number: last_note(steps) for number, steps in good if "note" in steps
    }
    assert verify(reader).problems == ()
    connection.close()


def interrupt(writer: Writer) -> None:
    append("interrupted")(writer)
    raise Interrupted


def test_an_interrupted_leader_leaves_nobody_hanging(commits):
    """Ctrl-C inside a work ends it for its leader; those who shared its commit are told that nothing was written, and
    may try again at once."""
    futures = commits.together([append("a"), interrupt, append("b")])
    outcomes = [type(future.exception()) for future in futures]

    # The first in the line led and was interrupted; the work that raised it was another caller's.
    assert outcomes == [Interrupted, StorageBusy, StorageBusy]
    assert commits.ids() == []
    assert commits.group.run(append("after")) == [1]
    assert commits.problems() == ()


def test_an_interruption_passes_the_lead_on(commits):
    """Those who queued while the interrupted commit was running are served all the same."""
    begun, go_on = threading.Event(), threading.Event()

    def work(writer: Writer) -> None:
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)
        raise Interrupted

    with ThreadPoolExecutor(9) as pool:
        leader = pool.submit(commits.group.run, work)
        assert begun.wait(PATIENCE_SECONDS)
        others = [pool.submit(commits.group.run, append(f"e{number}")) for number in range(8)]
        commits.wait_for(8)
        go_on.set()
        answers = sorted(seq for other in others for seq in other.result(PATIENCE_SECONDS))

    assert isinstance(leader.exception(), Interrupted)
    assert answers == list(range(1, 9))


@pytest.fixture
def ctrl_c():
    """A signal that raises `Interrupted` in the main thread, wherever that is, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("a signal reaches the main thread only, and this is another")

    def raise_it(number: int, frame: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, raise_it)
    yield lambda: os.kill(os.getpid(), signal.SIGUSR1)
    signal.signal(signal.SIGUSR1, before)


def test_an_interrupted_waiter_does_not_take_the_lead_away(commits, ctrl_c):
    """Whoever is interrupted while waiting to lead leaves the line, and the next in it leads."""
    with ThreadPoolExecutor(3) as pool:
        with commits.held():

            def queue_behind() -> list[Future]:
                commits.wait_for(1)
                futures = [pool.submit(commits.group.run, append(f"e{number}")) for number in range(2)]
                commits.wait_for(3)
                ctrl_c()
                return futures

            behind = pool.submit(queue_behind)
            with pytest.raises(Interrupted):
                commits.group.run(append("first in the line"))
        answers = [future.result(PATIENCE_SECONDS) for future in behind.result(PATIENCE_SECONDS)]

    assert sorted(answers) == [[1], [2]]
    assert sorted(commits.ids()) == ["e0", "e1"]


def test_a_leader_interrupted_before_it_begins_passes_the_lead_on(commits, ctrl_c):
    """A leader may be interrupted while a wipe holds the connection; those who share its commit are told, those
    behind are served."""
    with ThreadPoolExecutor(2) as pool:
        with commits.lock:

            def queue_behind() -> Future:
                until(lambda: commits.group._leading and not commits.group._queue)
                future = pool.submit(commits.group.run, append("behind"))
                commits.wait_for(1)
                ctrl_c()
                return future

            behind = pool.submit(queue_behind)
            with pytest.raises(Interrupted):
                commits.group.run(append("interrupted"))
        answer = behind.result(PATIENCE_SECONDS).result(PATIENCE_SECONDS)

    assert answer == [1]
    assert commits.ids() == ["behind"]


def test_a_leader_interrupted_while_it_lingers_passes_the_lead_on(commits, ctrl_c, monkeypatch):
    """A leader may be interrupted while it waits for company; whoever came meanwhile leads."""
    monkeypatch.setattr("memplane.storage.commit._LINGER_SECONDS", PATIENCE_SECONDS)
    commits.group._expected = 3
    with ThreadPoolExecutor(2) as pool:

        def queue_behind() -> Future:
            until(lambda: commits.group._lingering)
            future = pool.submit(commits.group.run, append("behind"))
            commits.wait_for(2)
            ctrl_c()
            return future

        behind = pool.submit(queue_behind)
        with pytest.raises(Interrupted):
            commits.group.run(append("interrupted"))
        monkeypatch.undo()
        commits.group.run(append("company"))
        answers = [behind.result(PATIENCE_SECONDS).result(PATIENCE_SECONDS)]
        answers.append(commits.group.run(append("later")))

    assert sorted(commits.ids()) == ["behind", "company", "later"]
    assert answers[-1] == [3]


def test_a_failed_commit_fails_for_everyone_in_it(commits):
    """Where the disk is full nobody is told otherwise, nothing of the batch is written, and the next write works."""
    commits.group.run(append("before"))
    pages = commits.connection.pragma("page_count")
    commits.connection.pragma("max_page_count", pages)
    big = [NewEntry(f"big-{number}", Op.TURN, bytes(20_000)) for number in range(4)]
    futures = commits.together(
        [append("small"), *(lambda writer, one=one: writer.ledger.append([one], recorded=1) for one in big)]
    )
    outcomes = {type(future.exception()) for future in futures}
    commits.connection.pragma("max_page_count", pages + 1_000)

    assert outcomes == {StorageFull}
    assert commits.ids() == ["before"]
    assert commits.group.run(append("after")) == [2]
    assert commits.problems() == ()


MANNERS = ("append", "append", "note", "read", "refuse", "interrupt", "wipe")


def in_manner(manner: str, ids: list[str]) -> Callable[[Writer], list[str]]:
    def work(writer: Writer) -> list[str]:
        append(*ids)(writer)
        if manner == "note":
            writer.state.set_note(ids[0], "1")
        elif manner == "read":
            assert ids[0] in writer.ledger.known(ids)
        elif manner == "refuse":
            raise Refused(ids[0])
        elif manner == "interrupt":
            raise Interrupted
        return ids

    return work


@pytest.mark.parametrize("seed", range(3))
def test_any_mix_of_callers_comes_to_an_end(commits, seed):
    """Many threads, works that succeed, fail, write, only read, or are interrupted, and checkpoints between them:
    nobody hangs, and the ledger holds exactly what was acknowledged."""
    asked, answered, refused = [], [], []

    def write(rng: random.Random, ids: list[str]) -> None:
        manner = rng.choice(MANNERS)
        if manner == "wipe":
            with commits.lock:
                commits.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            return
        try:
            answered.append((ids, commits.group.run(in_manner(manner, ids))))
        except Refused as error:
            answered.append((ids[0], str(error)))
            refused.append(error)
        except (StorageBusy, Interrupted) as error:
            refused.append(error)

    def run(thread: int) -> None:
        rng = random.Random(f"{seed}/{thread}")
        for number in range(60):
            write(rng, [f"t{thread}-{number}-{n}" for n in range(rng.randrange(1, 4))])
        asked.append(thread)

    threads = [threading.Thread(target=run, args=(thread,), daemon=True) for thread in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)

    assert sorted(asked) == list(range(24))
    assert [pair for pair in answered if pair[0] != pair[1]] == []
    assert refused
    assert Counter(commits.ids()) == Counter(
        id_ for ids, _ in answered if isinstance(ids, list) for id_ in ids
    )
    assert commits.problems() == ()
