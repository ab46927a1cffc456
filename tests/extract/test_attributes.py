"""Slots: an attribute and its value, in whatever form they are said."""

from datetime import timedelta

import pytest

from memplane.extract.attributes import read_attribute, value_type
from memplane.types import State


@pytest.mark.parametrize(
    ("said", "noun", "value"),
    [
        ("My rent went up to $1,800 a month", "rent", "$1,800 a month"),
        ("the rent is now $1,900", "rent", "$1,900"),
        ("I changed my email to ada@example.org", "email", "ada@example.org"),
        ("Jordan is my new boss", "boss", "Jordan"),
        ("We raised our pricing to $49 per seat", "pricing", "$49 per seat"),
        ("My landlord raised the rent to 1200 euros", "rent", "1200 euros"),
        ("I moved my bedtime from 11 pm to 10 pm", "bedtime", "10 pm"),
    ],
)
def test_a_value_is_read_in_any_form(said, noun, value):
    found = read_attribute(said)

    assert found is not None
    assert (found.noun, found.value) == (noun, value)


@pytest.mark.parametrize(
    "said",
    [
        "my sister moved to Rome",
        "the car moved to the left lane",
        "I updated my resume to reflect my job",
        "It is my favorite",
        "The weather is nice",
        "The capital of Elbonia is Mudville",
        "The meeting is 15 minutes long",
    ],
)
def test_other_statements_fill_no_slot(said):
    assert read_attribute(said) is None


def test_values_have_a_sort():
    """
    Only values of one sort compete: `my boss is Ana` says nothing against `my boss is strict`.
    """
    sorts = {
        "$1500": "money",
        "Priya": "name",
        "3 pm": "clock",
        "15 April": "date",
        "82 kg": "number",
        "very nice": "",
    }

    assert {value: value_type(value) for value in sorts} == sorts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("My rent is $1500", "My rent went up to $1800"),
        ("My email is ada@example.org", "My new email is ada@example.com"),
        ("My boss is Priya", "Jordan is my new boss"),
        ("My name is Kim", "I changed my name to Alex"),
        ("I prefer React", "I prefer Vue"),
        ("I have a dog named Rex", "My dog Rex died"),
        ("I have a cat", "I have no pets"),
        ("I live in Rome", "I moved to Berlin because Rome was too expensive"),
        ("I drive a red Toyota Corolla", "I sold my car"),
        ("The project deadline is 1 April 2027", "The project deadline moved to 15 April 2027"),
    ],
)
def test_a_later_value_replaces_the_earlier(space, clock, old, new):
    states = _states(space, clock, old, new)

    assert State.SUPERSEDED in states.values()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I speak English", "I now also speak Spanish"),
        ("My wife is a nurse", "My wife is now pregnant"),
        ("My boss is Priya", "My boss is strict"),
        ("My rent is $1500", "My car payment is $300"),
        ("My rent is $1500", "Her rent has gone up to $1800 because of me"),
        ("I have a dog named Rex", "My dog Rex almost died"),
        ("I have a dog named Rex", "My dog didn't die"),
        ("I have a car", "I sell cars for a living"),
        ("I have a dog", "I have no dog food left"),
        ("My school is Lincoln High", "My school went to London last week"),
        ("I have a cat named Tom and a dog named Bella", "We got rid of the dog"),
    ],
)
def test_what_is_added_or_about_something_else_replaces_nothing(space, clock, old, new):
    states = _states(space, clock, old, new)

    assert State.SUPERSEDED not in states.values()


def _states(space, clock, *said):
    for text in said:
        space.retain(text)
        space.enrich()
        clock.advance(timedelta(days=7))
    found = [*space.memories(), *space.memories(tier="cold")]
    return {memory.text: memory.state for memory in found if memory.derived}
