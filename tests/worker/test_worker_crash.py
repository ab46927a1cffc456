"""The worker resumes: killed at any moment, however often, or with another one at the same work, it ends where one that
was never disturbed ends, and nothing is there twice. `MEMPLANE_TESTS=thorough` kills twenty times as often."""

import functools
import random
import shutil
from contextlib import ExitStack

import pytest
from tests.storage.test_crash import OFTEN, PATIENCE_SECONDS, Victim, forked
from tests.support import worker_victim
from tests.support.worker_victim import OWNER

from engines import HOME, both_engines

SAID = 260

TABLES = {
    "turn_vector": "SELECT n, words, asks, digest, vector FROM turn_vector ORDER BY n",
    "memory_vector": "SELECT id, digest, vector FROM memory_vector ORDER BY id",
    "evidence": "SELECT memory, id, body FROM evidence ORDER BY 1, 2",
    "conflict": "SELECT a, b FROM conflict ORDER BY 1, 2",
    "cited": "SELECT seq, memory FROM cited ORDER BY 1, 2",
    "untold": "SELECT conversation, first, last_at FROM untold ORDER BY 1",
    "notes": "SELECT name, value FROM meta WHERE name LIKE 'embedded:%' OR name IN ('derived', 'note:poisoned') ORDER BY 1",
}


def derived_of(data):
    """Every row that the worker writes, but for stamps and row numbers."""
    rows = functools.partial(HOME.rows, data, OWNER)
    columns = ", ".join(f'"{name}"' for name in HOME.columns(data, OWNER, "memory") if name != "n")
    found = {table: rows(sql) for table, sql in TABLES.items()}
    found["memory"] = rows(f"SELECT {columns} FROM memory ORDER BY id")
    return found


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """A space in which everything waits for the worker; made once and copied."""
    folder = tmp_path_factory.mktemp("said")
    tell(str(folder), SAID)
    return folder


def tell(data, count):
    with worker_victim.opened(data) as plane:
        space = plane.space(OWNER)
        space.ledger.load(worker_victim.drafts(count))
        space.ledger.catch_up()


@pytest.fixture
def place(home, said):
    """Makes places where everything waits."""
    with ExitStack() as opened:

        def made():
            data = opened.enter_context(home.fresh())
            if home.server is None:
                shutil.copytree(said, data, dirs_exist_ok=True)
            else:
                tell(data, home.fewer(SAID))
            return data

        yield made


ALONE = {}


@pytest.fixture
def undisturbed(home, place):
    """What there is where nobody was killed, once for each engine."""
    if home.name not in ALONE:
        data = place()
        with worker_victim.opened(data) as plane:
            plane.space(OWNER).enrich()
        ALONE[home.name] = derived_of(data)
    return ALONE[home.name]


def test_there_is_something_to_lose(undisturbed):
    """What these tests compare has every sort of row in it."""
    counts = {table: len(rows) for table, rows in undisturbed.items()}
    states = {row[7] for row in undisturbed["memory"]}

    assert all(counts[table] for table in counts if table != "untold"), counts
    assert {"active", "superseded", "contested"} <= states
    assert counts["turn_vector"] == SAID


@both_engines
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_worker_goes_on_where_it_was(home, place, undisturbed, seed):
    """Killed at every stage, it repeats nothing visible and loses nothing."""
    rng = random.Random(seed)
    kills = 0
    for _ in range(home.fewer(4 * OFTEN) if home.server is None else 1):
        data = place()
        for _ in range(rng.randrange(1, 5)):
            lines = Victim(worker_victim.enrich, data).kill(rng, lines_max=20)
            kills += ["done"] not in lines
        with worker_victim.opened(data) as plane:
            space = plane.space(OWNER)
            space.enrich()
            assert space.overview.enrichment().waiting.nothing
            assert space.ledger.verify().problems == ()
            assert space.ledger.check() == []
        assert derived_of(data) == undisturbed

    assert kills


@both_engines
@pytest.mark.parametrize("workers", [3])
def test_workers_do_not_get_into_each_others_way(place, undisturbed, workers):
    """Who comes second does nothing: several processes at one space end as one alone does."""
    data = place()
    pipes = [forked.Pipe(duplex=False) for _ in range(workers)]
    processes = [
        forked.Process(target=worker_victim.enrich, args=(data, end), daemon=True) for _, end in pipes
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_SECONDS)
    codes = [process.exitcode for process in processes]

    assert codes == [0] * workers
    assert derived_of(data) == undisturbed


@both_engines
def test_a_replay_ends_where_the_first_reading_did(place, undisturbed):
    """And uses the vectors that are there."""
    data = place()
    with worker_victim.opened(data) as plane:
        space = plane.space(OWNER)
        space.enrich()
        space.ledger.replay()
        space.enrich()

    assert derived_of(data) == undisturbed
