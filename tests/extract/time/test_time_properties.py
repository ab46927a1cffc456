"""What holds for every text and every reference."""

import time
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from memplane.clock import DAY, to_instant
from memplane.extract.time import find_times

VOCABULARY = """
the a an last next this past coming first second third of in on at by for from to until since between and or before after
every day days week weeks weekend month year quarter season night morning evening noon ago now may march June Sat sun
Monday friday today yesterday tomorrow christmas easter spring fall 1 2 3 5 12 15 24 31 99 1990 2024 2100 0730 3.11 3/4
15/3/2024 2024-02-30 10:30 3pm 5:00am th st nd - / : , . ( ) ' 's half past early late mid end beginning earlier rest about
around one two twenty hundred couple few o'clock am pm UTC EST q3 9999 0000 week-end EOM Q4 $ %
"""
WORDS = st.sampled_from([*VOCABULARY.split(), "\N{EN DASH}"])
PHRASES = st.lists(WORDS, max_size=25).map(" ".join)
TEXTS = st.one_of(st.text(max_size=200), PHRASES, st.text("0123456789:/.-+ apmh", max_size=60))
REFERENCES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(  # noqa: DTZ001  to_instant takes UTC
    to_instant
)
ORDINARY = st.datetimes(datetime(1950, 1, 1), datetime(2090, 1, 1)).map(to_instant)  # noqa: DTZ001  as above
PREFERENCES = st.sampled_from(["past", "future", "none"])
ZONES = st.sampled_from(
    [UTC, timezone(timedelta(hours=-2)), ZoneInfo("Europe/Berlin"), ZoneInfo("Pacific/Apia")]
)


@given(TEXTS, REFERENCES, PREFERENCES, ZONES)
def test_whatever_is_found_is_well_formed(text, reference, prefer, zone):
    """
    No text raises; spans are exact, ordered and apart; every range runs forward.
    """
    end = 0
    for mention in find_times(text, reference, prefer=prefer, zone=zone):
        assert end <= mention.start < mention.end <= len(text)
        assert text[mention.start : mention.end] == mention.raw
        assert mention.begin < mention.until
        end = mention.end


@given(TEXTS, ORDINARY, PREFERENCES)
def test_the_same_question_has_the_same_answer(text, reference, prefer):
    """
    Nothing but the arguments decides.
    """
    assert find_times(text, reference, prefer=prefer) == find_times(text, reference, prefer=prefer)


SHIFTING = st.sampled_from(
    [
        "today",
        "yesterday",
        "tomorrow",
        "the day before yesterday",
        "three days ago",
        "in two weeks",
        "last night",
        "this morning",
        "two hours ago",
        "the past 3 days",
        "tomorrow at 5pm",
        "yesterday from 3 to 5 pm",
    ]
)


@given(SHIFTING, ORDINARY, st.integers(-2_000, 2_000))
def test_relative_days_move_with_the_reference(text, reference, days):
    """
    A reference so many days later gives a range so many days later.
    """
    [here] = find_times(text, reference)
    [there] = find_times(text, reference + days * DAY)

    assert (there.begin - here.begin, there.until - here.until) == (days * DAY, days * DAY)


WEEKLY = st.sampled_from(
    ["last week", "next Monday", "Friday", "last weekend", "the week before last", "two Sundays ago"]
)


@given(WEEKLY, ORDINARY, st.integers(-300, 300))
def test_weekdays_move_with_whole_weeks(text, reference, weeks):
    """
    What hangs on the week moves with the week.
    """
    [here] = find_times(text, reference)
    [there] = find_times(text, reference + 7 * weeks * DAY)

    assert there.begin - here.begin == 7 * weeks * DAY


ABSOLUTE = st.sampled_from(
    ["15 March 2024", "2024-03-15", "Q3 2022", "Christmas 2019", "the 1990s", "5-7 May 2020"]
)


@given(ABSOLUTE, ORDINARY, ORDINARY, PREFERENCES)
def test_full_dates_do_not_depend_on_the_reference(text, one, other, prefer):
    """
    A date with its year means the same whenever it is read.
    """
    assert find_times(text, one, prefer=prefer) == find_times(text, other, prefer="none")


@given(ORDINARY, st.sampled_from(["in March", "on Monday", "July 4", "last summer", "on the 3rd", "Easter"]))
def test_the_past_is_preferred_by_default(reference, text):
    """
    A statement without a year begins no later than it was made.
    """
    [mention] = find_times(text, reference)

    assert mention.begin <= reference


HOSTILE = (
    "20 past ",
    "half past ",
    "about ",
    "the last ",
    "3/4/",
    "1.2.",
    "12:",
    "from 3 to 5 and ",
    "the first Monday of ",
    "before ",
    "new - ",
    "sun, ",
    "9" * 5,
    "may ",
    "in the early mid late ",
)


def test_time_grows_with_the_length_of_the_text():
    """
    Ten times the text takes about ten times as long, whatever it repeats; no rule backtracks over the whole of it.
    """

    def spent(text):
        start = time.process_time()
        find_times(text, 0)
        return time.process_time() - start

    for piece in HOSTILE:
        find_times(piece, 0)
        short = min(spent(piece * 60) for _ in range(3))
        long = min(spent(piece * 600) for _ in range(2))
        assert long < 30 * short + 0.05, piece


def test_a_sentence_takes_well_under_a_millisecond():
    """
    Ordinary sentences are searched in a fraction of a millisecond each.
    """
    sentences = [
        "I moved to Lisbon three months ago and I really love the light in the morning.",
        "She said that the results of the second test were better than anyone had hoped for.",
        "Let's meet at 5pm on Friday the 3rd of March, or between 10 and 11 am the day after.",
    ]

    def spent():
        start = time.thread_time()
        for sentence in sentences * 10:
            find_times(sentence, 0)
        return time.thread_time() - start

    assert min(spent() for _ in range(10)) / 30 < 0.001
