"""What is returned without being asked for: pinned memories, and instructions that apply."""

import pytest

from memplane.recall.result import Limits

PINNED = [
    f"The {thing} of the house is kept in the kitchen, on the left side of the second shelf"
    for thing in ("key", "map", "lamp", "rope", "flag", "drum")
]
RULES = [
    "Always answer in French",
    "Always be brief",
    "Never use emoji",
    "Always be polite",
    "Always use plain words",
]


@pytest.fixture
def pinned(space):
    for text in PINNED:
        space.review.pin(space.store("fact", text).id)
    return space


@pytest.mark.parametrize("query", ["good morning!", "where do I live?"])
def test_pinned_memories_are_always_returned(pinned, query):
    """
    Neither a turn that needs no memory, nor instructions that apply, displace a pinned memory from the text.
    """
    for text in RULES:
        pinned.store("instruction", text)

    text = pinned.recall(query).text

    assert [pin for pin in PINNED if pin not in text] == []


def test_pinned_memories_keep_within_the_budget(pinned):
    """
    The token budget of the caller applies to them too.
    """
    result = pinned.recall("good morning!", limits=Limits(tokens=100))

    assert 0 < result.tokens <= 100
    assert 0 < sum(pin in result.text for pin in PINNED) < len(PINNED)
