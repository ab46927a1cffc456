"""The worker resumes: killed at any moment, however often, or with another one at the same work, it ends where one that
was never disturbed ends, and nothing is there twice. `MEMPLANE_TESTS=thorough` kills twenty times as often."""

import random
import shutil

import apsw
import pytest
from tests.integration import worker_victim
from tests.integration.test_crash import OFTEN, Victim, data, forked  # noqa: F401  # the fixture
from tests.integration.worker_victim import OWNER

from memplane.storage.sqlite.names import space_path

SAID = 260

TABLES = {
    "turn_vector": "SELECT n, words, asks, digest, vector FROM turn_vector ORDER BY n",
    "memory_vector": "SELECT id, digest, vector FROM memory_vector ORDER BY id",
    "evidence": "SELECT memory, id, body FROM evidence ORDER BY 1, 2",
    "conflict": "SELECT * FROM conflict ORDER BY 1, 2",
    "cited": "SELECT * FROM cited ORDER BY 1, 2",
    "untold": "SELECT * FROM untold ORDER BY 1",
    "notes": "SELECT name, value FROM meta WHERE name LIKE 'embedded:%' OR name IN ('derived', 'note:poisoned') ORDER BY 1",
}


def derived_of(folder):
    """Every row that the worker writes, but for stamps and row numbers."""
    connection = apsw.Connection(str(space_path(folder / "spaces" / "default", OWNER)))
    try:
        rows = connection.execute
        columns = ", ".join(f'"{row[1]}"' for row in rows("PRAGMA table_info(memory)") if row[1] != "n")
        found = {table: rows(sql).fetchall() for table, sql in TABLES.items()}
        found["memory"] = rows(f"SELECT {columns} FROM memory ORDER BY id").fetchall()
        return found
    finally:
        connection.close()


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """A space in which everything waits for the worker; made once and copied."""
    folder = tmp_path_factory.mktemp("said")
    with worker_victim.opened(str(folder)) as plane:
        space = plane.space(OWNER)
        space.load(worker_victim.drafts(SAID))
        space.catch_up()
    return folder


@pytest.fixture(scope="module")
def undisturbed(said, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "data"
    shutil.copytree(said, folder)
    with worker_victim.opened(str(folder)) as plane:
        plane.space(OWNER).enrich()
    return derived_of(folder)


def test_there_is_something_to_lose(undisturbed):
    """What these tests compare has every sort of row in it."""
    counts = {table: len(rows) for table, rows in undisturbed.items()}
    states = {row[7] for row in undisturbed["memory"]}

    assert all(counts[table] for table in counts if table != "untold"), counts
    assert {"active", "superseded", "contested"} <= states
    assert counts["turn_vector"] == SAID


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_worker_goes_on_where_it_was(data, said, undisturbed, seed):  # noqa: F811
    """Killed at every stage, it repeats nothing visible and loses nothing."""
    rng = random.Random(seed)
    kills = 0
    for run in range(4 * OFTEN):
        folder = data / str(run)
        shutil.copytree(said, folder)
        for _ in range(rng.randrange(1, 5)):
            lines = Victim(worker_victim.enrich, str(folder)).kill(rng, lines_max=20)
            kills += ["done"] not in lines
        with worker_victim.opened(str(folder)) as plane:
            space = plane.space(OWNER)
            space.enrich()
            assert space.enrichment().waiting.nothing
            assert space.verify().problems == ()
            assert space.check() == []
        assert derived_of(folder) == undisturbed
        shutil.rmtree(folder)

    assert kills


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_do_not_get_into_each_others_way(data, said, undisturbed, workers):  # noqa: F811
    """Who comes second does nothing: several processes at one space end as one alone does."""
    folder = data / "many"
    shutil.copytree(said, folder)
    pipes = [forked.Pipe(duplex=False) for _ in range(workers)]
    processes = [
        forked.Process(target=worker_victim.enrich, args=(str(folder), end), daemon=True) for _, end in pipes
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    codes = [process.exitcode for process in processes]

    assert codes == [0] * workers
    assert derived_of(folder) == undisturbed


def test_a_replay_ends_where_the_first_reading_did(data, said, undisturbed):  # noqa: F811
    """And uses the vectors that are there."""
    folder = data / "replayed"
    shutil.copytree(said, folder)
    with worker_victim.opened(str(folder)) as plane:
        space = plane.space(OWNER)
        space.enrich()
        space.replay()
        space.enrich()

    assert derived_of(folder) == undisturbed
