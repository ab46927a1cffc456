"""Machines that share a space through a faulty object store: `tests/support/sync_simulation.py` says what happens in a seed.

`MEMPLANE_SYNC_SEEDS=100:2000` runs these seeds instead of the few that are always run; `python tests/support/sync_simulation.py 1179`
runs one of them again.
"""

import os

import pytest

from conftest import fresh_folder
from sync_simulation import make_template, simulate

FEW = "0:10"


def asked():
    first, _, last = os.environ.get("MEMPLANE_SYNC_SEEDS", FEW).partition(":")
    return range(int(first), int(last or int(first) + 1))


@pytest.fixture(scope="module")
def template():
    """A space that every machine begins with: making one takes longer than a seed."""
    with fresh_folder() as folder:
        yield make_template(folder / "template")


@pytest.mark.parametrize("seed", asked())
def test_all_machines_end_with_the_same(seed, template):
    """
    Whatever fails and whoever crashes: the same memory everywhere, nothing acknowledged lost, nothing forgotten back.
    """
    simulate(seed, template)
