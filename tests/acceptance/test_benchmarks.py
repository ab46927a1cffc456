"""Every benchmark also runs tiny, so that none rots."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks import engine

ROOT = Path(__file__).parents[2]


def test_the_engine_benchmark_runs_tiny(tmp_path):
    """
    Each part gives its figures; what they are is not a test's business.
    """
    figures = engine.run(engine.TINY, tmp_path)

    asked = {figure.name for figure in figures if figure.asked}
    assert len(figures) >= 15
    assert all(figure.value > 0 for figure in figures)
    assert {"one writer / bare", "16 writers / bare", "batch import, durable"} <= asked


def test_the_engine_benchmark_prints_json():
    """
    `python -m benchmarks.engine --quick --only briefs --json` prints one JSON document.
    """
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.engine", "--quick", "--only", "briefs", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert [figure["asked"] for figure in json.loads(done.stdout)] == ["<= 5"]
