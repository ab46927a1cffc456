"""The sync simulation over many seeds. A failure names the seed: `python tests/support/sync_simulation.py SEED` runs it again.

`MEMPLANE_ATTACK_SEEDS` says how many; `MEMPLANE_ATTACK_SEED_FIRST` where they begin.
"""

import os

from tests.attack.conftest import SEEDS

from conftest import fresh_folder
from sync_simulation import make_template, simulate

FIRST = int(os.environ.get("MEMPLANE_ATTACK_SEED_FIRST", "1000"))


def test_all_machines_end_with_the_same_over_many_seeds(figures):
    """
    Whatever fails and whichever machine crashes, every machine ends with the same memory.
    """
    failed = []
    with fresh_folder() as folder:
        template = make_template(folder / "template")
        for seed in range(FIRST, FIRST + SEEDS):
            try:
                simulate(seed, template)
            except Exception as exc:  # noqa: BLE001 - every seed is tried, and each failure is reported with its own
                failed.append((seed, repr(exc)[:300]))

    figures(seeds=SEEDS, first=FIRST, failed=[seed for seed, _ in failed] or 0)
    assert failed == [], f"run again with: python tests/support/sync_simulation.py {failed[0][0]}"
