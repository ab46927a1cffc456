"""Repetitions: the same said often counts once, and a question asked before is no answer to itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.recall import copies
from memplane.recall.copies import repeats, same_words

WIFI = "What is the wifi password?"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tea", "I like the tea!"),
        ("What is my job?", "what's my job again"),
        ("Please run the report", "run the report"),
        ("茶が好きです", "茶が好きです。"),
    ],
)
def test_the_same_in_the_same_words(one, other):
    """
    Case, punctuation and words without meaning may differ.
    """
    assert same_words(one) == same_words(other)
    assert repeats(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I like tea", "I do not like tea"),
        ("I like tea", "Do I like tea?"),
        ("I like tea", "She likes tea"),
        ("What is my job?", "What is her job?"),
        ("What did I eat before the race?", "What did I eat after the race?"),
        ("Report 7: all is well", "Report 8: all is well"),
        ("tea", "coffee"),
    ],
)
def test_what_is_not_the_same(one, other):
    """
    A negation, a person, a number or a question makes another text.
    """
    assert same_words(one) != same_words(other)
    assert not repeats(one, other)


@given(st.text(max_size=80))
def test_every_text_repeats_itself(text):
    assert repeats(text, text)
    assert same_words(text) == same_words(text.upper().lower()) or text.lower() != text.upper().lower()


LOG = "The build took 12 minutes. " * 40_000


@pytest.mark.parametrize("other", [LOG + "!", LOG[:-3] + "x. ", LOG[:-27], LOG[:100], ""])
def test_long_texts_are_the_same_only_if_they_are_equal(other):
    """
    A difference after a long common beginning is a difference, whatever the length.
    """
    copy = f"\n{LOG.strip()}"

    assert same_words(copy) == same_words(LOG)
    assert repeats(copy, LOG)
    assert same_words(other) != same_words(LOG)
    assert not repeats(other, LOG)
    assert not repeats(LOG, other)


def test_a_long_text_is_not_split_into_words(monkeypatch):
    """
    A recall compares every candidate several times.
    """
    split: list[int] = []
    words = copies._words
    monkeypatch.setattr(copies, "_words", lambda text: split.append(len(text)) or words(text))

    same_words(LOG)
    repeats(LOG, WIFI)
    repeats(WIFI, LOG)
    repeats(WIFI, WIFI)

    assert max(split) == len(WIFI)


def test_a_question_leads_to_the_reply_it_had(space):
    """
    Asked again, a question returns what was answered before, and not itself.
    """
    space.retain(WIFI, conversation="first")
    space.retain("It is heron-42, see the label on the router.", role="assistant", conversation="first")
    for number in range(8):
        space.retain(WIFI, conversation=f"c{number}")

    told = space.recall("What is the wifi password again?")

    assert "heron-42" in told.text
    assert "wifi" not in told.text.lower()
    assert all(hit.turn.text != WIFI for hit in told.hits if hit.selected)


def test_what_the_same_person_said_next_is_no_reply(space):
    """
    And a system prompt is none either.
    """
    space.retain(WIFI, conversation="c")
    space.retain("Also, buy some milk", conversation="c")
    space.retain(WIFI, conversation="d")
    space.retain("Never reveal the milk", role="system", conversation="d")

    assert "milk" not in space.recall(WIFI).text


def test_copies_do_not_starve_an_answer(space):
    """
    Two hundred runs of one prompt take one place, with their number.
    """
    prompt = "Write the report about the tomatoes in the garden"
    for number in range(200):
        space.retain(prompt, conversation=f"run{number}")
    space.retain("The tomatoes in the garden grew 7 cm", role="assistant", conversation="run7")

    told = space.recall("How much did the tomatoes in the garden grow?")

    assert "7 cm" in told.text
    assert told.text.count(prompt) <= 1


def test_each_of_many_reports_is_found(space):
    """
    The same prompt every day, another report every day: each report is returned when it is asked for.
    """
    things = [
        "tomatoes",
        "beans",
        "carrots",
        "leeks",
        "onions",
        "garlic",
        "spinach",
        "radish",
        "pumpkin",
        "celery",
    ]
    for thing in things:
        space.retain("Write the report of today", conversation=thing)
        space.retain(f"Report: the {thing} grew well", role="assistant", conversation=thing)

    for thing in things:
        told = space.recall(f"what did the report say about the {thing}?").text
        assert f"the {thing} grew well" in told
        assert told.count("Write the report of today") <= 1


def test_a_repeated_statement_is_returned_once_with_its_count(space, clock):
    """
    The newest of them, with how often it was said.
    """
    for _ in range(3):
        space.retain("My bicycle has a green bell")
        clock.advance(days=1)

    told = space.recall("what does my bicycle have?")

    (block,) = told.blocks
    assert block.ts.startswith("2026-11-17")
    assert "- user: My bicycle has a green bell (said 3 times)" in told.text.splitlines()
