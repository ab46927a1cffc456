"""The time in parentheses after a fact: what a reader cannot see from its words."""

from datetime import UTC, datetime

import pytest

from memplane.extract.told_times import stored_times
from memplane.recall.told_time import told_time

SAID = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
"""A Monday."""


def told(text):
    return [told_time(time) for time in stored_times(text, SAID)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("We met yesterday", "2026-11-15"),
        ("Moved to Rome in March", "2026-03"),
        ("Went to Rome last week", "2026-11-09 to 2026-11-15"),
        ("The exam is in three weeks", "2026-12-07"),
        ("Saving until the end of next year", "until 2027-12-31"),
        ("Meeting on Friday at 10", "2026-11-20"),
    ],
)
def test_a_relative_time_is_resolved(text, shown):
    """
    Weeks later, `yesterday` says nothing without the day it was said.
    """
    assert told(text) == [shown]


@pytest.mark.parametrize(
    "text",
    [
        "The mortgage runs until 2041",
        "The dentist appointment is on 3 December 2026",
        "Has worked there since 2015",
        "The project ran from 2014 to 2018",
        "Plays chess on Wednesdays",
        "Works every second week on Saturdays",
        "Wakes up at 7 am",
    ],
)
def test_a_time_that_says_it_all_is_not_repeated(text):
    """
    A year, a repeated time and a time of the day mean the same on any day.
    """
    times = told(text)

    assert times
    assert set(times) == {None}
