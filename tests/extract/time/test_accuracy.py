"""Accuracy on labelled data that is not part of the project; skipped where it is absent."""

import os
from pathlib import Path

import pytest

from memplane_eval.files import read_json
from memplane_eval.temporal import score_ctparse, score_duckling

CTPARSE_FLOOR = 0.86
PAST_OR_NEUTRAL_FLOOR = 0.90
FUTURE_FLOOR = 0.84


@pytest.fixture
def data():
    folder = Path(os.environ.get("MEMPLANE_EVAL_DATA") or Path(__file__).parents[4] / "shared" / "data")
    if not (folder / "temporal-ctparse-dev.json.gz").is_file():
        pytest.skip(f"no evaluation data in {folder}; set MEMPLANE_EVAL_DATA to measure accuracy")
    return folder


def test_ctparse_accuracy_does_not_fall(data):
    """
    Travel requests are read as well as when this was written.
    """
    score = score_ctparse(read_json(data / "temporal-ctparse-dev.json.gz"))

    assert score.cases == score.correct + len(score.misses)
    assert score.accuracy >= CTPARSE_FLOOR


def test_duckling_accuracy_does_not_fall(data):
    """
    So are Duckling's cases, and what holds no time yields none.
    """
    scores = score_duckling(read_json(data / "temporal-duckling-dev.json.gz"))

    assert scores["past_or_neutral"].accuracy >= PAST_OR_NEUTRAL_FLOOR
    assert scores["future"].accuracy >= FUTURE_FLOOR
    assert len(scores["negative"].misses) <= 1
