"""No room on the disk: what was acknowledged is there, what was refused is not, and work goes on when there is room again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FILLER = Path(__file__).parents[1] / "support" / "disk_filler.py"


def on_a_small_disk(folder):
    """A command that runs the rest of its arguments with a file system of its own at the folder; nobody else sees it."""
    return ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=1m none "{folder}" && exec "$@"', "sh"]


@pytest.mark.parametrize("size", [0, 300_000])
def test_a_full_disk_refuses_and_loses_nothing(tmp_path, size, figures):
    """
    A file system is full, or files may not grow. Writes fail, reads succeed, and a forget is finished later.
    """
    before = [] if size else on_a_small_disk(tmp_path)
    if before and subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system")
    made = subprocess.run(
        [*before, sys.executable, FILLER, tmp_path, str(size)], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)

    assert found["kept"] > 0
    assert found["readable"]
    assert (found["lost"], found["problems"], found["traces"]) == (0, 0, 0)
    assert found["off_disk"] is True
    figures(limit="files of 300 kB" if size else "a disk of 1 MB", acknowledged=found["kept"], lost=0)
