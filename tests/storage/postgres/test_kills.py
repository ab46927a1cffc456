"""PostgreSQL dies, becomes read-only, is full or has no connection left: what was acknowledged is there, what was said not
to be written is not, and everybody goes on by themselves when it is back."""

import os
import random
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.conftest import THOROUGH
from tests.support import fleet_victim
from tests.worker.test_cluster_crash import OWNERS, SAID, Fleet, derived_of, load, wait_until_done

from memplane import Memplane
from memplane.errors import StorageBusy, StorageError, StorageFull, StorageUncertain, StorageUnreachable
from memplane.storage.postgres.connections import Connections
from postgres_proxy import Wire
from postgres_server import running
from stub_embedder_enrich import BagOfWords

KILLS = 40 if THOROUGH else 4
WRITERS = 4
ENDED = "pg_terminate_backend(pid, 60000)"
"""Of a session, and waits until it is gone: told to end, one may still answer."""


@pytest.fixture(scope="module")
def server():
    with running() as made:
        yield made


@pytest.fixture
def url(server):
    with server.database() as made:
        yield made


@pytest.fixture
def plane(url):
    with Memplane.open(url, embedder=None) as made:
        yield made


def hurried(plane, seconds):
    """As a plane whose people do not wait long."""
    plane._stores.engine._connections._wait_s = seconds
    return plane


class Writers:
    """They write on and on, and remember what they were told."""

    def __init__(self, plane):
        self._space = plane.space("alice")
        self.stop = threading.Event()
        self.kept, self.refused, self.uncertain, self.wrong = [], [], [], []
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(WRITERS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more):
        """Until so many more were kept than there are."""
        wanted = len(self.kept) + more
        while len(self.kept) < wanted and any(thread.is_alive() for thread in self._threads):
            time.sleep(0.002)

    def _run(self, number):
        step = 0
        while not self.stop.is_set():
            step += 1
            id_ = f"w{number}-{step}"
            try:
                if step % 3:
                    self._space.retain(f"I live in town {step}", id=id_, conversation=f"c{number}")
                else:
                    id_ = self._space.put(f"key/{number}", f"value {step}").id
                self.kept.append(id_)
            except StorageUncertain:
                self.uncertain.append(id_)
            except StorageUnreachable:
                self.refused.append(id_)
            except Exception as exc:  # noqa: BLE001 - whatever it is, the test tells it
                self.wrong.append(exc)
                return


def test_what_was_acknowledged_survives_the_server(server, url):
    """
    Its processes are killed at random under load: every acknowledged write is there once, none that was refused is, the
    chain holds, and whoever writes goes on without being restarted.
    """
    rng = random.Random(8)
    kinds = [server.crash, lambda: server.kill(signal.SIGQUIT), server.crash, server.kill]
    with Memplane.open(url, embedder=BagOfWords(dimension=8), background=True) as plane:
        plane.space("alice").retain("I live in Rome")
        with Writers(plane) as writers:
            for kill in range(KILLS):
                writers.wait_for(rng.randrange(5, 30))
                kinds[kill % len(kinds)]()
                server.start()
            writers.wait_for(WRITERS * 3)
        space = plane.space("alice")
        space.enrich()
        ids = [entry.id for entry in space.ledger.entries(limit=1_000_000)]
        said = [turn.entry_id for turn in space.turns(limit=1_000_000)]
        derived = derived_in(space)
        space.ledger.replay()
        space.enrich()
        again = derived_in(space)
        problems = (*space.ledger.verify().problems, *space.ledger.check())

    assert writers.wrong == []
    assert len(ids) == len(set(ids))
    assert set(writers.kept) <= set(ids)
    assert not set(writers.refused) & set(ids)
    assert len(said) == len(set(said))
    assert any(extractor for *_, extractor in derived)
    assert derived == again
    assert problems == ()


def derived_in(space):
    found = space.memories(limit=1_000_000)
    return sorted((it.id, it.entry_id, it.text, it.state, it.extractor) for it in found)


# ── a commit that nobody heard of ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def wire(server, url):
    with tempfile.TemporaryDirectory(prefix="wire-") as folder:
        made = Wire(Path(folder), server.folder)
        made.url = url.replace(str(server.folder), folder)
        assert made.url != url
        yield made
        made.close()


@pytest.mark.parametrize("lost", ["answered", "asked", "answered and cut"])
def test_a_lost_commit_is_asked_after(wire, url, lost):
    """
    What was written is acknowledged although the answer was lost; what was not is refused; and where nobody can say, that
    is said, and the same id keeps it once.
    """
    with Memplane.open(wire.url, embedder=None) as plane:
        space = plane.space("alice")
        space.retain("before", id="before")
        wire.lose = lost
        if lost == "answered and cut":  # nobody will answer, however long they wait
            hurried(plane, 1)
        said = outcome(lambda: space.retain("lantern", id="lost"))
        wire.cut = False
        hurried(plane, 30)
        again = space.retain("lantern", id="lost")
        turns = [turn.text for turn in space.turns()]
        ok = space.ledger.verify().ok

    assert said == {"answered": None, "asked": StorageUnreachable, "answered and cut": StorageUncertain}[lost]
    assert again.deduped is (lost != "asked")
    assert sorted(turns) == ["before", "lantern"]
    assert ok


def outcome(act):
    try:
        act()
    except StorageError as exc:
        return type(exc)
    return None


def test_a_lost_commit_of_many_is_everybodys(wire):
    """
    Writers who share a commit are all told the same, and all of them were kept.
    """
    with Memplane.open(wire.url, embedder=None) as plane:
        space = plane.space("alice")
        space.retain("before")
        wire.lose = "answered"
        with ThreadPoolExecutor(6) as pool:
            kept = [it.id for it in pool.map(lambda n: space.retain(f"lantern {n}"), range(18))]
        ids = {entry.id for entry in space.ledger.entries()}

    assert len(kept) == 18
    assert set(kept) <= ids


def test_a_read_does_not_care_how_it_ends(wire):
    """
    What was read was read.
    """
    with Memplane.open(wire.url, embedder=None) as plane:
        space = plane.space("alice")
        space.retain("lantern")
        wire.lose = "asked"

        assert [turn.text for turn in space.turns()] == ["lantern"]
        assert [turn.text for turn in space.turns()] == ["lantern"]


# ── away, read-only, full, busy ──────────────────────────────────────────────────────────────────────────────────


def test_while_it_is_away_that_is_said_and_afterwards_forgotten(server, plane):
    """
    Reads and writes fail with what it is, `/readyz` knows it at once, and nobody has to restart anything.
    """
    space = plane.space("alice")
    space.retain("lantern")
    before = plane.readiness()
    server.kill(signal.SIGQUIT)
    hurried(plane, 0.1)
    said = [
        outcome(lambda: space.retain("x")),
        outcome(space.turns),
        outcome(lambda: plane.space("new").turns()),
    ]
    away = plane.readiness()
    server.start()
    hurried(plane, 30)
    space.retain("back")

    assert said == [StorageUnreachable] * 3
    assert (before.ready, away.ready, away.problems) == (True, False, ("storage_unreachable",))
    assert {turn.text for turn in space.turns()} == {"lantern", "back"}
    assert plane.readiness().ready


def test_whoever_waits_is_served_when_it_is_back(server, plane):
    """
    A restart is a pause to those who come in the middle of it.
    """
    space = plane.space("alice")
    space.retain("lantern")
    server.kill(signal.SIGQUIT)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(space.retain, f"came {n}") for n in range(3)]
        server.start()
        ids = {it.result().id for it in waiting}

    assert ids <= {entry.id for entry in space.ledger.entries()}


@contextmanager
def altered(server, url, change, back):
    """For every session that begins meanwhile; those that are there end."""
    name = url.split("/")[3].split("?")[0]
    with server.connect() as owner:
        for statement in (change, back):
            owner.execute(f"ALTER DATABASE {name} {statement}".encode())
            owner.execute(f"SELECT {ENDED} FROM pg_stat_activity WHERE datname = %s".encode(), (name,))
            if statement is change:
                yield


def test_a_primary_that_becomes_a_standby_is_read_from(server, plane, url):
    """
    It still answers; a write is refused with what it is, and goes through when there is a primary again.
    """
    space = plane.space("alice")
    space.retain("lantern")
    read_only = "default_transaction_read_only"
    with altered(server, url, f"SET {read_only} = on", f"RESET {read_only}"):
        said = outcome(lambda: space.retain("x"))
        seen = [turn.text for turn in space.turns()]
        ready = plane.readiness()
    space.retain("back")

    assert said is StorageUnreachable
    assert seen == ["lantern"]
    assert (ready.ready, ready.problems) == (False, ("storage_unreachable",))
    assert {turn.text for turn in space.turns()} == {"lantern", "back"}


@contextmanager
def meeting(url, **met):
    """Whoever writes to these tables meets this first."""
    with psycopg.connect(url, autocommit=True) as owner:
        for table, statement in met.items():
            owner.execute(
                f"CREATE FUNCTION memplane.meet_{table}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {statement}; RETURN NULL; END $$; CREATE TRIGGER meet BEFORE INSERT "
                f"ON memplane.{table} EXECUTE FUNCTION memplane.meet_{table}()".encode()
            )
        yield
        for table in met:
            owner.execute(f"DROP FUNCTION memplane.meet_{table} CASCADE".encode())


def test_a_full_disk_loses_nothing(plane, url):
    """
    The server says so itself, in the middle of a write: nothing of it is there, and everything before.
    """
    space = plane.space("alice")
    space.retain("lantern")
    with meeting(url, payload="RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'"):
        said = outcome(lambda: space.retain("x"))
        seen = [turn.text for turn in space.turns()]
    space.retain("back")

    assert said is StorageFull
    assert seen == ["lantern"]
    assert {turn.text for turn in space.turns()} == {"lantern", "back"}
    assert space.ledger.verify().ok


def test_a_statement_that_takes_too_long_is_ended(plane, url):
    """
    Its work fails and says to try again; the connection is as good as before.
    """
    space = plane.space("alice")
    space.retain("lantern")
    hurry = "PERFORM set_config('statement_timeout', '20ms', true)"
    with meeting(url, ledger=hurry, payload="PERFORM pg_sleep(30)"):
        said = outcome(lambda: space.retain("x"))
    space.retain("back")

    assert said is StorageBusy
    assert {turn.text for turn in space.turns()} == {"lantern", "back"}
    assert space.ledger.verify().ok


def wait_until_gone(server, user):
    """A server notices that somebody left a moment after they did."""
    with server.connect() as owner:
        while owner.execute("SELECT 1 FROM pg_stat_activity WHERE usename = %s", (user,)).fetchone():
            pass


def test_a_server_without_a_free_connection_is_busy(server, url):
    """
    Whoever gets none is told that, not that the server is gone.
    """
    with server.connect() as owner:
        owner.execute("DROP ROLE IF EXISTS lonely")
        owner.execute("CREATE ROLE lonely LOGIN CONNECTION LIMIT 1 IN ROLE memplane_space")
    theirs = url.replace("postgres:@", "lonely:@").replace("postgres@", "lonely@")
    with psycopg.connect(theirs, autocommit=True) as taken:
        alone = Connections(theirs)
        with pytest.raises(StorageBusy, match="connection"):
            alone.open()
        taken.execute("SELECT 1")
    wait_until_gone(server, "lonely")
    alone.open()
    wait_until_gone(server, "lonely")
    with alone.transaction("BEGIN READ ONLY") as connection:
        held = outcome(lambda: alone.transaction("BEGIN READ ONLY", wait_s=0.1).__enter__())
        assert connection.execute("SELECT current_user").fetchone() == ("memplane_space",)
    alone.close()

    assert held is StorageBusy


# ── other ways to lose a connection ──────────────────────────────────────────────────────────────────────────────


def test_after_a_restore_a_space_is_looked_up_anew(server, url):
    """
    Whatever numbers an owner had, nobody writes under them into what is another's now.
    """
    with Memplane.open(url, embedder=None) as plane:
        alice, bob = plane.space("alice"), plane.space("bob")
        alice.retain("of Alice")
        bob.retain("of Bob")
        with server.connect(url.split("/")[3].split("?")[0]) as owner:
            owner.execute("UPDATE memplane.space SET owner = 'x' WHERE owner = 'alice'")
            owner.execute("UPDATE memplane.space SET owner = 'alice' WHERE owner = 'bob'")
            owner.execute("UPDATE memplane.space SET owner = 'bob' WHERE owner = 'x'")
            owner.execute(
                f"SELECT {ENDED} FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'".encode()
            )
        first = outcome(alice.turns)
        seen = [[turn.text for turn in space.turns()] for space in (alice, bob)]

    assert first in {None, StorageUnreachable}
    assert seen == [["of Bob"], ["of Alice"]]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_has_connections_of_its_own(plane):
    """
    Parent and child go on side by side, and neither hears an answer to the other.
    """
    space = plane.space("alice")
    space.retain("before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for number in range(20):
                space.retain(f"child {number}")
            code = 0
        finally:
            os._exit(code)
    for number in range(20):
        space.retain(f"parent {number}")
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert len(space.turns(limit=100)) == 41
    assert space.ledger.verify().ok


def test_whoever_reads_while_it_is_closed_reads_to_the_end(plane):
    """
    A snapshot that was taken is given back later.
    """
    plane.space("alice").retain("lantern")
    with plane._stores.open("default", "alice", create=False) as store, store.read() as reader:
        plane.close()
        seen = [entry.seq for entry in reader.ledger.entries()]

    assert seen == [1]


def test_workers_and_the_database_die_together(server, url):
    """
    Whoever derives is killed, and so is what it is written to, while entries come in: all of them are there once, and
    derived once, as one worker alone would have done.
    """
    rng = random.Random(9)
    with fleet_victim.opened(url) as alone:
        load(alone, [("alone", "alone")], SAID)
        alone.space("alone", tenant="alone").enrich()
    with fleet_victim.opened(url, background="elsewhere") as plane, Fleet(url) as fleet:
        with ThreadPoolExecutor(1) as pool:
            loading = pool.submit(until_kept, lambda: load(plane, OWNERS[:2], 20))
            for kill in range(KILLS):
                time.sleep(rng.random() * 0.3)
                server.crash() if kill % 2 else fleet.kill(rng.randrange(3))
            loading.result()
        until_kept(lambda: wait_until_done(plane))
        codes = fleet.end()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET search_path = memplane, public")
            undisturbed = derived_of(connection, "alone", "alone")
            found = [derived_of(connection, *place) for place in OWNERS[:2]]
        ok = [plane.space(owner, tenant=tenant).ledger.verify().ok for tenant, owner in OWNERS[:2]]

    assert codes == [0, 0, 0]
    assert found == [undisturbed, undisturbed]
    assert ok == [True, True]


def until_kept(work):
    """Again and again; the same ids make that safe."""
    while True:
        try:
            return work()
        except (StorageUnreachable, StorageUncertain):
            continue
