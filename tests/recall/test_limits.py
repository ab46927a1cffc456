"""How many facts of each sort a recall tells."""

import pytest

from memplane.recall.result import Limits


@pytest.fixture
def fond(space):
    for sort in ("red", "green", "ripe", "sour", "dried", "stewed"):
        space.retain(f"I like {sort} plums")
    space.retain("My name is Alice")
    space.enrich()
    return space


def counts(told):
    return len(told.answer_facts), len(told.supporting_facts), len(told.background_facts)


def test_each_sort_has_its_limit(fond):
    """
    No more of each list than asked for.
    """
    told = fond.recall("What do I like?", limits=Limits(answers=2, supporting=1, background=0))

    assert counts(told) == (2, 1, 0)
    assert counts(fond.recall("What do I like?", limits=Limits(answers=2))) == (2, 5, 0)


def test_a_list_may_be_longer_than_an_answer(fond):
    """
    `list_items` counts where the question asks for a list, and nowhere else.
    """
    listed = fond.recall("Which plums do I like?", limits=Limits(answers=1, list_items=4))
    single = fond.recall("What do I like?", limits=Limits(answers=1, list_items=4))

    assert (listed.routing.mode, len(listed.answer_facts)) == ("list", 4)
    assert (single.routing.mode, len(single.answer_facts)) == ("single", 1)
