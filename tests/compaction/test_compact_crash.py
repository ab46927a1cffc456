"""Compaction resumes: killed at any moment, however often, or with another one at the same work, it ends where one that
was never disturbed ends. `MEMPLANE_TESTS=thorough` kills ten times as often."""

import random
import shutil
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.storage.test_crash import OFTEN, PATIENCE_SECONDS, Victim, forked
from tests.support import compact_victim
from tests.support.compact_victim import OWNER

from engines import both_engines

SAID = 100


def kept_of(folder):
    """What there is, without receipts and places in the ledger; and that it is sound."""
    with compact_victim.opened(str(folder)) as plane:
        space = plane.space(OWNER)
        ids = Counter(entry.id for entry in space.ledger.entries(limit=100_000))
        assert ids.total() == len(ids)
        assert space.ledger.verify().problems == ()
        assert space.ledger.check() == []
        return {
            "learnings": space.review.drafts(),
            "digests": [(line.id, line.text) for line in space.overview.digest_lines()],
            "judged": space.review.judgements(limit=100_000),
            "memories": sorted((it.id, it.text, it.state) for it in space.memories(limit=10_000)),
            "turns": sorted(turn.entry_id for turn in space.turns(limit=10_000)),
            "gone": sorted(stone.id for stone in space.ledger.tombstones()),
            "kept": sorted(id_ for id_ in ids if id_.startswith(("learn-", "digest-", "decide-"))),
        }


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Made once and copied."""
    folder = tmp_path_factory.mktemp("said") / "data"
    compact_victim.tell(str(folder), SAID)
    return folder


@pytest.fixture
def place(home, said):
    """Makes places that hold it."""
    with ExitStack() as opened:

        def made():
            data = opened.enter_context(home.fresh())
            if home.server is None:
                shutil.copytree(said, data, dirs_exist_ok=True)
            else:
                compact_victim.tell(data, SAID)
            return data

        yield made


ALONE = {}


@pytest.fixture
def undisturbed(home, place):
    """What there is where nobody was killed, once for each engine."""
    if home.name not in ALONE:
        data = place()
        with compact_victim.opened(data) as plane:
            plane.space(OWNER).compact()
        ALONE[home.name] = kept_of(data)
    return ALONE[home.name]


def test_there_is_something_to_lose(undisturbed):
    """What these tests compare has every sort of thing in it."""
    assert all(undisturbed.values())
    assert {it.standing for it in undisturbed["learnings"]} == {"confirmed"}


@both_engines
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_compaction_goes_on_where_it_was(home, place, undisturbed, seed):
    """Killed at any change of its files, it loses nothing and repeats nothing."""
    rng = random.Random(seed)
    kills = 0
    for run in range(2 * OFTEN if home.server is None else OFTEN):
        data = place()
        for attempt in range(rng.randrange(1, 4)):
            change = rng.randrange(40) if attempt else 1 + run
            victim = Victim(compact_victim.compact, data)
            if home.server is None:
                lines = victim.kill_at(Path(data), change)
            else:  # it has no files that one could watch
                lines = victim.kill_after(1, rng.random() * 0.2)
            kills += ["done"] not in lines
            partly = kept_of(data)
            assert set(partly["gone"]) <= {it.entry for it in partly["judged"]}
        with compact_victim.opened(data) as plane:
            plane.space(OWNER).compact()
        assert kept_of(data) == undisturbed

    assert kills


@both_engines
def test_two_at_the_same_work_do_it_once(place, undisturbed):
    """Two processes on one machine."""
    data = place()
    pipes = [forked.Pipe(duplex=False) for _ in range(2)]
    processes = [
        forked.Process(target=compact_victim.compact, args=(data, end), daemon=True) for _, end in pipes
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_SECONDS)

    assert [process.exitcode for process in processes] == [0, 0]
    assert kept_of(data) == undisturbed
