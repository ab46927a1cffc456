"""A process with few file descriptors serves any number of spaces."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.attack.conftest import SPACES

HOG = Path(__file__).parents[1] / "support" / "descriptor_hog.py"


@pytest.mark.parametrize("limit", [64, 256])
def test_few_descriptors_are_enough_for_many_spaces(tmp_path, limit, figures):
    """
    Writes and reads through all spaces succeed under a low limit, also when something else takes every descriptor: unused spaces
    are closed, and the process recovers by itself.
    """
    count = SPACES if limit == 256 else SPACES // 4
    made = subprocess.run(
        [sys.executable, HOG, tmp_path, str(limit), str(count)], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)

    assert found["right"] == count
    assert found["most"] <= limit
    assert found["recovered"] == count
    figures(limit=limit, spaces=count, descriptors_used=found["most"])
