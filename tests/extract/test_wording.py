"""How statements are worded, and what else a message lets one know."""

import pytest

from memplane.extract.catalog import load_catalog
from memplane.extract.claims import render
from memplane.extract.parse import parse
from memplane.extract.rules import extract
from memplane.extract.wording import phrasings

CATALOG = load_catalog()


def read(text):
    return extract(text, role="user", catalog=CATALOG)


def ways(clause):
    return [way.text for way in phrasings(parse(clause))]


def test_a_clause_may_end_where_a_phrase_ends():
    """
    Whole first, then shorter; never in the middle of a phrase.
    """
    assert ways("I sing in a choir with friends") == [
        "I sing in a choir with friends",
        "I sing in a choir",
    ]


def test_names_and_numbers_are_not_cut_off():
    """
    What one would look for later stays in every wording.
    """
    assert all("Boston" in way and "40" in way for way in ways("I drove 40 miles from Boston with a friend"))


def test_what_goes_on_may_be_told_as_a_habit():
    """
    `am working` is also worded as `work`, and `is working` as `works`; what only happens now is not.
    """
    assert "I work at a bakery" in ways("I am working at a bakery")
    assert "My sister works at a bakery" in ways("my sister is working at a bakery")
    assert ways("I am considering it") == ["I am considering it"]


def test_we_stays_we():
    """
    What a team decided is not one person's decision.
    """
    assert ways("we are moving") == ["We are moving"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I walk my dog at night", "I have a dog."),
        ("I walk my dog Biscuit at night", "I have a dog named Biscuit."),
        ("Can I bring my daughter?", "I have a daughter."),
    ],
)
def test_what_is_mine_is_had(text, expected):
    """
    Who speaks of their dog has a dog, whatever the sentence is about.
    """
    assert expected in [render(found) for found in read(text)]


@pytest.mark.parametrize(
    "text",
    [
        "I sold my car",
        "I quit my job",
        "My ex wife is nice",
        "I want my own boat",
        "My dog died",
        "My mother sings",
        "My head hurts",
    ],
)
def test_what_may_be_gone_or_says_nothing_is_not_had(text):
    """
    Ends, wishes and what everybody has give no belonging.
    """
    assert not [found for found in read(text) if render(found).startswith("I have a")]


def test_each_verb_makes_a_statement():
    """
    Two verbs of one form are two statements, each with its own quote; what hangs on `to` is one.
    """
    text = "I fed the hens and cleaned the barn"
    found = read(text)

    assert [text[one.start : one.end] for one in found] == ["I fed the hens", "cleaned the barn"]
    assert len(read("I want to travel and see the world")) == 1


def test_i_may_be_left_unsaid():
    """
    `Just got a kitten` is about the speaker; an order is not.
    """
    assert [found.predicate for found in read("Just got a kitten")] == ["has_pet"]
    assert read("Get a kitten") == []


def test_a_note_is_likely_or_not():
    """
    What people write down is told from what they let pass.
    """
    (kept,) = read("I work as a carpenter")
    (passing,) = read("I hope you sleep well")

    assert kept.noted > 0.5
    assert passing.noted < 0.1


def test_nothing_is_told_twice():
    """
    One message, one statement of a thing.
    """
    assert len(read("I have a dog. I love my dog.")) == 2
