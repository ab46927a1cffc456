"""Training from data to ONNX files, on made-up data with a small random model."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
_SECONDS_MAX = 280


@pytest.mark.timeout(_SECONDS_MAX + 120)
def test_every_step_of_the_training_runs():
    """
    `make train-tiny` fine-tunes, distils, trains the encoder for other languages, exports both and compares the files with
    what was trained. It installs PyTorch first; where that cannot be had in time, the test is skipped.
    """
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    environment = [f"PYTHON={sys.executable}"]
    try:
        installed = subprocess.run(
            ["make", "training-env", *environment],
            cwd=ROOT,
            check=False,
            capture_output=True,
            timeout=_SECONDS_MAX,
            text=True,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"PyTorch was not installed within {_SECONDS_MAX} s")
    if installed.returncode:
        pytest.skip(f"PyTorch cannot be installed: {installed.stderr.strip()[-200:]}")

    ran = subprocess.run(
        ["make", "train-tiny", *environment], cwd=ROOT, check=False, capture_output=True, text=True
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "english: cosine of the exported model to the trained one" in ran.stdout
    assert "multilingual: cosine of the exported model to the trained one" in ran.stdout
    assert "relation: " in ran.stdout
