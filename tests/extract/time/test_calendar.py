"""Month ends, leap years, year boundaries and holidays: where calendar arithmetic goes wrong."""

from datetime import UTC, datetime

import pytest

from memplane.clock import to_datetime, to_instant
from memplane.extract.time import find_times
from memplane.extract.time.holidays import chinese_new_year, easter, hebrew_new_year, orthodox_easter


def begin(text, *now, **options):
    [mention] = find_times(text, to_instant(datetime(*now, tzinfo=UTC)), **options)
    return to_datetime(mention.begin).date().isoformat()


@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        ((2023, 3, 31), "one month ago", "2023-02-01"),
        ((2024, 3, 31), "one month ago today", "2024-02-29"),
        ((2023, 5, 31), "in one month", "2023-06-01"),
        ((2024, 2, 29), "12 months ago today", "2023-02-28"),
        ((2023, 3, 1), "yesterday", "2023-02-28"),
        ((2024, 3, 1), "yesterday", "2024-02-29"),
        ((2023, 1, 1), "yesterday", "2022-12-31"),
        ((2023, 1, 1), "last month", "2022-12-01"),
        ((2023, 1, 2), "last quarter", "2022-10-01"),
        ((2022, 12, 31), "tomorrow", "2023-01-01"),
        ((2023, 1, 1), "last week", "2022-12-19"),
        ((2023, 1, 10), "in December", "2022-12-01"),
        ((2023, 12, 20), "in January", "2023-01-01"),
        ((2023, 1, 10), "last winter", "2021-12-01"),
        ((2023, 1, 10), "this winter", "2022-12-01"),
        ((2023, 6, 1), "February 29", "2020-02-29"),
        ((2023, 3, 15), "on the 31st", "2023-01-31"),
        ((2020, 1, 6), "week 53", "2015-12-28"),
    ],
)
def test_ends_of_months_and_years(now, text, expected):
    """
    Shifts clamp to the month, names cross the year, and 29 February waits for a leap year.
    """
    assert begin(text, *now) == expected


@pytest.mark.parametrize(
    "text", ["30 February 2023", "31/4/2023", "2023-02-29", "13/13/2023", "25:00", "32 May"]
)
def test_a_date_that_does_not_exist_is_not_invented(text):
    """
    No day is found in an impossible date.
    """
    days = [found for found in find_times(text, 0) if found.granularity == "day"]

    assert days == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Easter 2024", "2024-03-31"),
        ("Good Friday 2024", "2024-03-29"),
        ("orthodox Easter 2024", "2024-05-05"),
        ("Mother's Day 2024", "2024-05-12"),
        ("mothers day 2024", "2024-05-12"),
        ("Thanksgiving 2024", "2024-11-28"),
        ("Black Friday 2024", "2024-11-29"),
        ("MLK day 2024", "2024-01-15"),
        ("Memorial Day 2024", "2024-05-27"),
        ("Labor Day weekend 2024", "2024-08-31"),
        ("St. Patrick's Day 2024", "2024-03-17"),
        ("New Year's Eve 2024", "2024-12-31"),
        ("Chinese New Year 2024", "2024-02-10"),
        ("Yom Kippur 2024", "2024-10-11"),
        ("Hanukkah 2024", "2024-12-25"),
        ("Passover 2024", "2024-04-22"),
        ("Diwali 2023", "2023-11-12"),
        ("Holi 2024", "2024-03-25"),
        ("Eid al-Fitr 2024", "2024-04-10"),
        ("Ramadan 2024", "2024-03-11"),
    ],
)
def test_holidays_are_computed(text, expected):
    """
    Fixed, counted, movable and lunar holidays fall where the calendars say; Jewish ones begin the evening before.
    """
    assert begin(text, 2023, 7, 20) == expected


def test_movable_feasts_stay_in_their_season():
    """
    Over two centuries no computed feast leaves the window its rule allows.
    """
    for year in range(1900, 2100):
        assert (3, 22) <= (easter(year).month, easter(year).day) <= (4, 25)
        assert easter(year).weekday() == orthodox_easter(year).weekday() == 6
        assert (1, 21) <= (chinese_new_year(year).month, chinese_new_year(year).day) <= (2, 20)
        assert hebrew_new_year(year).weekday() not in {2, 4, 6}
        assert (hebrew_new_year(year + 1) - hebrew_new_year(year)).days in {353, 354, 355, 383, 384, 385}
