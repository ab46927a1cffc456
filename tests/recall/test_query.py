"""What a question says about who, whom and when, and what is left of it to look for."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.clock import to_datetime, to_instant
from memplane.recall.query import read_nameless, replace_speakers

NOW = to_instant(datetime(2023, 7, 19, 12, tzinfo=UTC))  # a Wednesday


def read(question, speakers=()):
    return read_nameless(question, replace_speakers(question, speakers), NOW)


@pytest.mark.parametrize(
    ("question", "text", "named"),
    [
        ("Where does Ann live?", "Where does I live?", {"Ann"}),
        ("where does ann live?", "where does I live?", {"Ann"}),
        ("What is Ann's dog called?", "What is I dog called?", {"Ann"}),
        ("What is Ann’s dog called?", "What is I dog called?", {"Ann"}),
        ("Did Ann meet Bob?", "Did I meet I?", {"Ann", "Bob Stone"}),
        ("Did Bob Stone call?", "Did I call?", {"Bob Stone"}),
        ("Is Annabel home?", "Is Annabel home?", set()),
        ("Where do I live?", "Where do I live?", set()),
    ],
)
def test_whom_it_names(question, text, named):
    """A speaker by full or first name, in any case, with or without an s; never a part of another word. The name is no
    word to look for."""
    asked = read(question, ("Ann", "Bob Stone"))

    assert (asked.text, asked.speakers) == (text, named)


@pytest.mark.parametrize(
    ("question", "of_assistant"),
    [
        ("What did you recommend?", True),
        ("Remind me of the recipe", True),
        ("What came up in our previous chat?", True),
        ("What was the plan we discussed?", True),
        ("What did I say about the recipe?", False),
        ("Who is the youth coach?", False),
    ],
)
def test_whether_it_is_about_the_assistant(question, of_assistant):
    """Only then are the assistant's own turns as good as the user's."""
    assert read(question).of_assistant is of_assistant


@pytest.mark.parametrize(
    ("question", "first", "beyond"),
    [
        ("What did I do yesterday?", (7, 18), (7, 19)),
        ("Whom did I meet last week?", (7, 10), (7, 17)),
        ("What did I do two days ago?", (7, 17), (7, 18)),
    ],
)
def test_times_against_the_reference(question, first, beyond):
    """Told as a range of days before the moment of asking."""
    ((begin, until),) = read(question).ranges

    assert (to_datetime(begin), to_datetime(until)) == (
        datetime(2023, *first, tzinfo=UTC),
        datetime(2023, *beyond, tzinfo=UTC),
    )


@pytest.mark.parametrize("question", ["How long did I stay, two weeks?", "What do I do every day?", "Why?"])
def test_what_names_no_time(question):
    """A duration or a habit says nothing about when; neither does a stretch of many years."""
    assert read(question).ranges == ()


@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=4))
def test_any_question_and_any_names_are_read(question, speakers):
    """Names and questions may be anything; ranges have a length and an end."""
    asked = read(question, speakers)

    assert asked.speakers <= set(speakers)
    assert all(
        timedelta(0) < to_datetime(until) - to_datetime(begin) <= timedelta(days=400)
        for begin, until in asked.ranges
    )
