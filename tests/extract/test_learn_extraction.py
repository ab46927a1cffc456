"""Learning what people write down, on a handful of dialogues."""

import pytest

pytest.importorskip("numpy", reason="learning needs numpy, which comes with memplane[recall]")

from benchmarks.learn_extraction import FOLDS, Learner

from memplane.models.linear import read_linear

SAID = [
    ("I have a parrot.", ["I have a parrot."]),
    ("I work as a welder.", ["I am a welder."]),
    ("I hope you sleep well.", []),
    ("Nice to meet you!", []),
]


def dialogues():
    return [[{"text": text, "facts": facts} for text, facts in SAID] for _ in range(2 * FOLDS)]


def test_learning_tells_facts_from_small_talk():
    """
    What was noted weighs more than what was not, and the same dialogues give the same models.
    """
    models = Learner(dialogues()).models()
    notes = read_linear(models["notes"])

    assert notes.add(["verb have", "verb work"], set()) > 0 > notes.add(["verb hope"], set())
    assert Learner(dialogues()).models() == models
