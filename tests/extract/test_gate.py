"""What is worth keeping."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.extract.catalog import load_catalog
from memplane.extract.gate import UTILITY_MIN, utility, utility_of_message
from memplane.extract.rules import extract

CATALOG = load_catalog()


def score(text):
    return utility_of_message(text, extract(text, role="user", catalog=CATALOG), CATALOG)


@pytest.mark.parametrize(
    "text",
    [
        "Hi there!",
        "Thank you so much!",
        "Ok, sounds good.",
        "How are you today?",
        "I see.",
        "I agree with you.",
        "I'm sorry to hear that.",
        "I'm doing well, thanks!",
        "That is great!",
        "I bet you are.",
        "I hope you feel better soon!",
        "You're welcome.",
        "lol",
        "Yes!",
    ],
)
def test_small_talk_falls_below(text):
    """
    Greetings, thanks, acknowledgements and passing remarks are kept in the ledger only.
    """
    assert score(text) < UTILITY_MIN


@pytest.mark.parametrize(
    "text",
    [
        "I have two dogs.",
        "I'm allergic to peanuts",
        "I moved to Lisbon last week",
        "Always use metric units.",
        "My sister is a lawyer",
        "I hate cilantro",
        "Hi! I'm Ada and I live in Rome. How are you?",
        "Actually, my deadline is May 15",
    ],
)
def test_what_matters_passes(text):
    """
    Facts, preferences and instructions pass, whatever small talk surrounds them.
    """
    assert score(text) >= UTILITY_MIN


@pytest.mark.parametrize(
    "text",
    [
        "I would like to know more about whales",
        "I want to understand monads",
        "I was wondering if that works",
    ],
)
def test_requests_are_no_facts(text):
    """
    What one asks an agent for is not kept as a fact about oneself.
    """
    found = extract(text, role="user", catalog=CATALOG)

    assert not [proposition for proposition in found if utility(proposition, CATALOG) >= UTILITY_MIN]


@given(st.text())
def test_utility_is_in_bounds(text):
    """
    A score is a number from 0 to 1.
    """
    found = extract(text, role="user", catalog=CATALOG)

    assert all(0 <= utility(proposition, CATALOG) <= 1 for proposition in found)
    assert 0 <= score(text) <= 1
