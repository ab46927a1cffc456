"""Workers are killed at any moment while entries come in: every entry is derived once, as one worker alone would have done,
and as a replay does. `MEMPLANE_TESTS=thorough` kills twenty times as often."""

import random
import signal
import threading
import time

import psycopg
from tests.conftest import THOROUGH
from tests.storage.test_crash import forked
from tests.support import fleet_victim
from tests.support.worker_victim import drafts

SAID = 80
KILLS = 120 if THOROUGH else 5
OWNERS = [("amber", "ann"), ("amber", "ben"), ("birch", "ann")]
PATIENCE_SECONDS = 240

DERIVED = {
    "memory": 'SELECT id, kind, text, state, tier, seq, start, "end", superseded_by FROM memory',
    "evidence": "SELECT memory, id, body FROM evidence",
    "turn_vector": "SELECT n, words, asks, digest FROM turn_vector",
    "memory_vector": "SELECT id, digest FROM memory_vector",
    "conflict": "SELECT a, b FROM conflict",
    "cited": "SELECT memory, seq FROM cited",
    "derived": "SELECT name, value FROM meta WHERE name IN ('derived', 'note:poisoned')",
}


def derived_of(connection, tenant, owner):
    """Every row that workers wrote there, but for stamps and numbers of rows."""
    number = connection.execute(
        "SELECT s.tenant, s.number FROM space s JOIN tenant t ON t.number = s.tenant WHERE t.name = %s AND s.owner = %s",
        (tenant, owner),
    ).fetchone()
    found = {}
    for table, sql in DERIVED.items():
        places = " WHERE" if " WHERE" not in sql else " AND"
        rows = connection.execute(f"{sql}{places} (tenant, space) = (%s, %s)", number).fetchall()
        found[table] = sorted(map(repr, rows))
    return found


class Fleet:
    """Three workers; whoever is killed is replaced."""

    def __init__(self, url):
        self._url = url
        self.members = [self._begin() for _ in range(3)]

    def _begin(self):
        listening = forked.Event()
        process = forked.Process(target=fleet_victim.work, args=(self._url, listening), daemon=True)
        process.start()
        process.listening = listening
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """None is left that would work at the next test's."""
        for process in self.members:
            process.kill()
            process.join()

    def kill(self, place):
        victim, self.members[place] = self.members[place], self._begin()
        victim.kill()
        victim.join(PATIENCE_SECONDS)
        assert victim.exitcode == -signal.SIGKILL

    def end(self):
        for process in self.members:  # one that was just begun does not know yet what to do when it is told
            assert process.listening.wait(PATIENCE_SECONDS)
            process.terminate()
        for process in self.members:
            process.join(PATIENCE_SECONDS)
        return [process.exitcode for process in self.members]


def load(plane, owners, pieces):
    """Entries come in piece by piece, here and there."""
    said = drafts(SAID)
    for first in range(0, SAID, pieces):
        for tenant, owner in owners:
            space = plane.space(owner, tenant=tenant)
            space.ledger.load(said[first : first + pieces])
            space.ledger.catch_up()


def wait_until_done(plane):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (backlog := plane.work.backlog()).waiting or backlog.held or backlog.failing:
        assert time.monotonic() < deadline, backlog
        time.sleep(0.05)
    return backlog


def test_however_many_workers_are_killed_each_entry_is_derived_once(postgres_url):
    rng = random.Random(8)
    with fleet_victim.opened(postgres_url) as alone:
        load(alone, [("alone", "alone")], SAID)
        alone.space("alone", tenant="alone").enrich()
    with fleet_victim.opened(postgres_url, background="elsewhere") as plane, Fleet(postgres_url) as fleet:
        loading = threading.Thread(target=load, args=(plane, OWNERS, 10))
        loading.start()
        for _ in range(KILLS):
            time.sleep(rng.random() * 0.4)
            fleet.kill(rng.randrange(3))
        loading.join()
        backlog = wait_until_done(plane)
        codes = fleet.end()
        done = plane.work.worked()
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("SET search_path = memplane, public")
            undisturbed = derived_of(connection, "alone", "alone")
            found = {place: derived_of(connection, *place) for place in OWNERS}
            space = plane.space("ann", tenant="amber")
            space.ledger.replay()
            space.enrich()
            replayed = derived_of(connection, "amber", "ann")

        assert codes == [0, 0, 0]
        assert (backlog.dead, backlog.behind) == (0, 0)
        assert len(undisturbed["turn_vector"]) == SAID
        assert len(undisturbed["memory"]) > 20
        assert done.steps
        for derived in (*found.values(), replayed):
            assert derived == undisturbed
