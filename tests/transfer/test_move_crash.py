"""A move that is killed goes on where it was, and what it makes in the end is the same as if nobody had killed it."""

import random

import pytest
from tests.conftest import THOROUGH
from tests.storage.test_crash import Victim, data  # noqa: F401  # the fixture
from tests.support import move_victim

from memplane import Memplane
from memplane.transfer.move import Move

KILLS = 30 if THOROUGH else 2
STEPS_MAX = 40


def compared(source, target):
    with Memplane.open(source, embedder=None) as here, Memplane.open(target, embedder=None) as there:
        return Move(here._stores, there._stores).check()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_killed_move_goes_on(data, engine, request):  # noqa: F811
    """Killed again and again, at the first copy and when it takes over what came since; each run gets further."""
    rng = random.Random(7)
    source = str(data / "source")
    target = str(data / "target") if engine == "sqlite" else request.getfixturevalue("postgres_url")
    move_victim.fill(source)
    killed = 0
    for _ in range(2):
        for _ in range(KILLS):
            told = Victim(move_victim.move, source, target, rng.randrange(STEPS_MAX)).kill_after(9, 0)
            killed += not told
        assert Victim(move_victim.move, source, target, 1_000_000).kill_after(1, 0) == [["done"]]
        report = compared(source, target)
        assert (report.different, report.problems, report.verified) == ({}, [], len(move_victim.OWNERS))
        move_victim.change(source)

    assert killed
