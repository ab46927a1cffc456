"""The small models that are shipped as a table of hashed features."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.models.linear import hash_of, load_linear, probability, read_linear, write_linear


def test_what_is_written_is_read():
    """
    Weights survive within half a step of the largest; what rounds to nothing is left out and weighs nothing.
    """
    weights = {hash_of("a"): 2.0, hash_of("b"): -1.0, hash_of("c"): 0.001}
    model = read_linear(write_linear(weights, 0.25))

    assert len(model) == 2
    assert model.bias == 0.25
    assert model.add(["a"], set()) == pytest.approx(2.0, abs=0.01)
    assert model.add(["b"], set()) == pytest.approx(-1.0, abs=0.01)
    assert model.add(["c", "never met"], set()) == 0.0


@given(st.dictionaries(st.integers(0, 2**32 - 1), st.floats(-9, 9), max_size=20))
def test_any_table_can_be_shipped(weights):
    """
    Whatever was learned can be written and read, and writing it again gives the same text.
    """
    text = write_linear(weights, 0.0)

    assert write_linear(weights, 0.0) == text
    assert len(read_linear(text)) <= len(weights)


@pytest.mark.parametrize("name", ["notes", "messages"])
def test_the_shipped_models_are_small(name):
    """
    They are there, hold something, and remember only features they were taught.
    """
    model = load_linear(name)
    before = model.add(["a feature that nobody ever taught"], set())

    assert before == 0.0
    assert 5_000 < len(model) < 60_000


def test_a_score_becomes_a_probability():
    """
    Half at nothing, never outside its bounds.
    """
    assert probability(0.0) == 0.5
    assert 0 < probability(-1e9) < probability(1e9) < 1
