"""The extractor on labelled data that is not ours to ship. Only figures are compared; nothing of the data is shown."""

import gzip
import json
import os
import time
from pathlib import Path

import pytest
from tests.conftest import THOROUGH

from memplane.extract.catalog import load_catalog
from memplane.extract.rules import extract
from memplane_eval.extraction import matches, score_dialogues, token_f1

FOLDER = Path(os.environ.get("MEMPLANE_EVAL_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
CATALOG = load_catalog()


def load(name):
    path = FOLDER / f"{name}-dev.json.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name}: set MEMPLANE_EVAL_DATA to the folder with the evaluation data")
    with gzip.open(path) as file:
        return json.load(file)


def test_dialogues():
    """
    The gate, the sentences and the quotes do as well as they did when this was written. The shipped models learned from
    these dialogues, so the figures are too good; docs/internals/extraction.md has those for dialogues held out. Every
    fifth of them has about the figures of all, which are for `MEMPLANE_TESTS=thorough`.
    """
    scores = score_dialogues(load("msc-facts")[:: 1 if THOROUGH else 5], CATALOG)

    assert scores.quotes_exact == 1.0
    assert scores.gate.f1 >= 0.90
    assert scores.stored.f1 >= 0.81
    assert scores.facts.f1 >= 0.42


def test_speed():
    """
    Far from a benchmark, but a tenfold loss would show.
    """
    texts = [turn["text"] for dialogue in load("msc-facts")[:100] for turn in dialogue]
    began = time.process_time()
    for text in texts:
        extract(text, role="user", catalog=CATALOG)

    assert len(texts) / (time.process_time() - began) > 800


def test_sentences_are_paired_once():
    """
    Each extracted and each wanted sentence is used once, the most alike first, and only if alike enough.
    """
    assert matches(["I have a dog.", "I have a dog."], ["I have a dog."]) == 1
    assert matches(["I have a dog."], ["She flew to Mars."]) == 0
    assert token_f1("I have two dogs", "i have TWO dogs.") == 1.0
