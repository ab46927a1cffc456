"""What each kind of expression means. The reference is Thursday, 20 July 2023, 14:30 UTC unless a test says otherwise."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from memplane.clock import to_datetime, to_instant
from memplane.extract.time import TimeMention, find_times

NOW = datetime(2023, 7, 20, 14, 30, tzinfo=UTC)


def find(text, now=NOW, **options):
    return find_times(text, to_instant(now), **options)


def told(mention, zone=UTC):
    """`2023-07-20..2023-07-21 day`: midnights without their zeros."""
    ends = (to_datetime(moment).astimezone(zone) for moment in (mention.begin, mention.until))
    return (
        "..".join(end.isoformat(" ")[:16].replace(" 00:00", "") for end in ends) + f" {mention.granularity}"
    )


def only(text, now=NOW, zone=UTC, **options):
    mentions = find(text, now, zone=zone, **options)
    assert len(mentions) == 1, mentions
    return told(mentions[0], zone)


DATES = {
    "2024-03-15": "2024-03-15..2024-03-16 day",
    "2024/3/15": "2024-03-15..2024-03-16 day",
    "15/3/2024": "2024-03-15..2024-03-16 day",
    "3/15/2024": "2024-03-15..2024-03-16 day",
    "15.3.2024": "2024-03-15..2024-03-16 day",
    "on 3/15": "2023-03-15..2023-03-16 day",
    "the 15th of March": "2023-03-15..2023-03-16 day",
    "15 March 2024": "2024-03-15..2024-03-16 day",
    "March 15, 2024": "2024-03-15..2024-03-16 day",
    "March the 15th": "2023-03-15..2023-03-16 day",
    "fifteenth of March": "2023-03-15..2023-03-16 day",
    "Sept. 5": "2022-09-05..2022-09-06 day",
    "31-Oct-74": "1974-10-31..1974-11-01 day",
    "Mar '24": "2024-03-01..2024-04-01 month",
    "March 2024": "2024-03-01..2024-04-01 month",
    "2024-03": "2024-03-01..2024-04-01 month",
    "3/2024": "2024-03-01..2024-04-01 month",
    "in 2014": "2014-01-01..2015-01-01 year",
    "the year 2014": "2014-01-01..2015-01-01 year",
    "the 1990s": "1990-01-01..2000-01-01 year",
    "the nineties": "1990-01-01..2000-01-01 year",
    "in the mid-90s": "1994-01-01..1997-01-01 year",
    "Q3 2022": "2022-07-01..2022-10-01 quarter",
    "third quarter of 2022": "2022-07-01..2022-10-01 quarter",
    "second half of 2019": "2019-07-01..2020-01-01 month",
    "summer of 2021": "2021-06-01..2021-09-01 season",
    "week 36": "2022-09-05..2022-09-12 week",
    "in March": "2023-03-01..2023-04-01 month",
    "on the 5th": "2023-07-05..2023-07-06 day",
    "first Monday of March": "2023-03-06..2023-03-07 day",
    "last day of February 2024": "2024-02-29..2024-03-01 day",
    "last Sunday of March 2014": "2014-03-30..2014-03-31 day",
    "2024-03-15T10:30:00+02:00": "2024-03-15 08:30..2024-03-15 08:30 second",
}

RELATIVE = {
    "today": "2023-07-20..2023-07-21 day",
    "yesterday": "2023-07-19..2023-07-20 day",
    "tomorrow": "2023-07-21..2023-07-22 day",
    "the day before yesterday": "2023-07-18..2023-07-19 day",
    "the day after tomorrow": "2023-07-22..2023-07-23 day",
    "two days ago": "2023-07-18..2023-07-19 day",
    "a week ago": "2023-07-13..2023-07-14 day",
    "three months ago": "2023-04-01..2023-05-01 month",
    "two years ago": "2021-01-01..2022-01-01 year",
    "a couple of years ago": "2020-01-01..2023-01-01 year",
    "an hour ago": "2023-07-20 13:30..2023-07-20 13:31 minute",
    "two and a half hours ago": "2023-07-20 12:00..2023-07-20 12:01 minute",
    "an hour and a half ago": "2023-07-20 13:00..2023-07-20 13:01 minute",
    "5 years ago today": "2018-07-20..2018-07-21 day",
    "over the weekend": "2023-07-15..2023-07-17 weekend",
    "summer of '69": "1969-06-01..1969-09-01 season",
    "in ten days": "2023-07-30..2023-07-31 day",
    "two weeks from now": "2023-08-03..2023-08-04 day",
    "last week": "2023-07-10..2023-07-17 week",
    "last week's": "2023-07-10..2023-07-17 week",
    "this month": "2023-07-01..2023-08-01 month",
    "next year": "2024-01-01..2025-01-01 year",
    "last quarter": "2023-04-01..2023-07-01 quarter",
    "this past weekend": "2023-07-15..2023-07-17 weekend",
    "the past three days": "2023-07-17..2023-07-20 day",
    "last Monday": "2023-07-17..2023-07-18 day",
    "last Thursday": "2023-07-13..2023-07-14 day",
    "next Tuesday": "2023-07-25..2023-07-26 day",
    "Monday": "2023-07-17..2023-07-18 day",
    "Wednesday of last week": "2023-07-12..2023-07-13 day",
    "last March": "2023-03-01..2023-04-01 month",
    "last summer": "2022-06-01..2022-09-01 season",
    "the summer before last": "2021-06-01..2021-09-01 season",
    "two weekends ago": "2023-07-08..2023-07-10 weekend",
    "the weekend before last": "2023-07-08..2023-07-10 weekend",
    "2 Thursdays ago": "2023-07-06..2023-07-07 day",
    "the Friday before 15 July": "2023-07-14..2023-07-15 day",
    "the weekend before 15 July": "2023-07-08..2023-07-10 weekend",
    "the week before June 9": "2023-06-02..2023-06-09 week",
    "three days after Easter": "2023-04-12..2023-04-13 day",
    "the day before Christmas": "2022-12-24..2022-12-25 day",
    "the week of May 3": "2023-05-01..2023-05-08 week",
    "earlier this month": "2023-07-01..2023-07-20 14:30 month",
    "later this week": "2023-07-20 14:30..2023-07-24 week",
    "end of last year": "2022-09-01..2023-01-01 month",
    "beginning of March": "2023-03-01..2023-03-11 day",
    "mid-June": "2023-06-11..2023-06-21 day",
    "late 2019": "2019-09-01..2020-01-01 month",
    "20th of the previous month": "2023-06-20..2023-06-21 day",
    "last night": "2023-07-19 18:00..2023-07-20 part_of_day",
    "this morning": "2023-07-20..2023-07-20 12:00 part_of_day",
    "yesterday afternoon": "2023-07-19 12:00..2023-07-19 19:00 part_of_day",
    "late last night": "2023-07-19 21:00..2023-07-20 part_of_day",
    "last Christmas": "2022-12-25..2022-12-26 day",
    "Thanksgiving 2019": "2019-11-28..2019-11-29 day",
}

RANGES = {
    "since March": "2023-03-01..2023-07-20 14:30 month",
    "by the end of the week": "2023-07-20 14:30..2023-07-24 day",
    "until next Friday": "2023-07-20 14:30..2023-07-29 day",
    "until Friday": "0001-01-01..2023-07-15 day",
    "before 2010": "0001-01-01..2010-01-01 year",
    "from 3 to 5 pm": "2023-07-20 15:00..2023-07-20 17:00 hour",
    "between March and May": "2023-03-01..2023-06-01 month",
    "May 5-7": "2023-05-05..2023-05-08 day",
    "30 June - 2 July": "2023-06-30..2023-07-03 day",
    "14-15.11.2017": "2017-11-14..2017-11-16 day",
    "from Jan 5 to Feb 10, 2023": "2023-01-05..2023-02-11 day",
    "December to March": "2022-12-01..2023-04-01 month",
    "Monday through Friday": "2023-07-17..2023-07-22 day",
    "3pm - 5pm tomorrow": "2023-07-21 15:00..2023-07-21 17:00 hour",
    "11-1 pm": "2023-07-20 11:00..2023-07-20 13:00 hour",
    "27 July 2305-0715": "2022-07-27 23:05..2022-07-28 07:15 minute",
    "18th Dec for 10 days": "2022-12-18..2022-12-28 day",
    "1960 - 1961": "1960-01-01..1962-01-01 year",
    "last Saturday from 7 to 9": "2023-07-15 07:00..2023-07-15 09:00 hour",
    "8 October after 6pm": "2022-10-08 18:00..2022-10-09 hour",
}

TIMES = {
    "at 3pm": "2023-07-20 15:00..2023-07-20 16:00 hour",
    "15:30": "2023-07-20 15:30..2023-07-20 15:31 minute",
    "9h15": "2023-07-20 09:15..2023-07-20 09:16 minute",
    "half past three pm": "2023-07-20 15:30..2023-07-20 15:31 minute",
    "a quarter to noon": "2023-07-20 11:45..2023-07-20 11:46 minute",
    "seven thirty p.m.": "2023-07-20 19:30..2023-07-20 19:31 minute",
    "at noon yesterday": "2023-07-19 12:00..2023-07-19 13:00 hour",
    "Tuesday at 5": "2023-07-18 17:00..2023-07-18 18:00 hour",
    "last Tuesday evening around 7:30": "2023-07-18 19:30..2023-07-18 19:31 minute",
    "12 Nov 1115": "2022-11-12 11:15..2022-11-12 11:16 minute",
    "5:30pm EST on Friday": "2023-07-14 22:30..2023-07-14 22:31 minute",
    "at 8 in the evening": "2023-07-20 20:00..2023-07-20 21:00 hour",
}


@pytest.mark.parametrize(("text", "expected"), (DATES | RELATIVE | RANGES | TIMES).items())
def test_an_expression_becomes_its_range(text, expected):
    """
    Each expression resolves to one range at the precision it was said with.
    """
    assert only(text) == expected


SENTENCES = {
    "I moved to Lisbon three months ago and love it.": "three months ago",
    "We camped the weekend before last, near the lake.": "the weekend before last",
    "She's been here since March.": "since March",
    "It was on the 5th, I think.": "the 5th",
    "We met in may near the old bridge in Porto": "may",
    "My flight is at 7:45 pm on Sunday the 3rd of March 2024!": "7:45 pm on Sunday the 3rd of March 2024",
    "Yesterday\N{RIGHT SINGLE QUOTATION MARK}s talk was great": "Yesterday\N{RIGHT SINGLE QUOTATION MARK}s",
}


@pytest.mark.parametrize(("text", "raw"), SENTENCES.items())
def test_an_expression_is_cut_out_of_its_sentence(text, raw):
    """
    The span holds the expression and nothing else.
    """
    [mention] = find(text)

    assert mention.raw == raw
    assert text[mention.start : mention.end] == raw


NO_TIME = (
    "I may go, this may help, and he might.",
    "We march on; a second later; give him a second chance.",
    "Prices fall, the sun sat low, and we wed.",
    "Python 3.11 runs on 12.04 and costs $19.99, about 25% less.",
    "call 650-650-6500 or 555 1234, room A4, version v2.5.1, 10.0.0.1",
    "Pay ABC 2000. It has 2000 pages and 1500 words.",
    "use 1/2 cup, support is 24/7, odds are 50/50",
    "a 24-70mm lens, 300-400ms delay, around 0.25% retinol",
    "The APR is high; an SEC filing; the 5th floor; the early 20th century",
    "I haven't slept in two days.",
    "week after week, day by day, once upon a time",
    "a pace of 14:30 minutes per mile",
    "five of them took one each, and the first was mine",
    "",
)


@pytest.mark.parametrize("text", NO_TIME)
def test_words_that_only_look_like_times_are_left_alone(text):
    """
    Ambiguous words and numbers are not taken without context.
    """
    assert find(text) == []


@pytest.mark.parametrize(
    ("text", "past", "none", "future"),
    [
        ("in March", "2023-03-01", "2023-03-01", "2024-03-01"),
        ("in September", "2022-09-01", "2023-09-01", "2023-09-01"),
        ("on Monday", "2023-07-17", "2023-07-17", "2023-07-24"),
        ("on Saturday", "2023-07-15", "2023-07-22", "2023-07-22"),
        ("on Thursday", "2023-07-13", "2023-07-20", "2023-07-27"),
        ("July 25", "2022-07-25", "2023-07-25", "2023-07-25"),
        ("on the 25th", "2023-06-25", "2023-07-25", "2023-07-25"),
        ("yesterday", "2023-07-19", "2023-07-19", "2023-07-19"),
        ("next month", "2023-08-01", "2023-08-01", "2023-08-01"),
    ],
)
def test_the_preference_decides_what_is_left_open(text, past, none, future):
    """
    Words without a year or direction go to the preferred side; words with one do not move.
    """
    begins = [only(text, prefer=prefer)[:10] for prefer in ("past", "none", "future")]

    assert begins == [past, none, future]


@pytest.mark.parametrize(
    ("text", "options", "begin"),
    [
        ("3/4/2020", {}, "2020-03-04"),
        ("3/4/2020", {"day_first": True}, "2020-04-03"),
        ("6/9/2023", {}, "2023-06-09"),
        ("9/6/2023", {}, "2023-06-09"),
        ("Friday 6/9", {"day_first": True}, "2023-06-09"),
    ],
)
def test_an_ambiguous_date_goes_by_weekday_then_option_then_side(text, options, begin):
    """
    3/4 is March unless told otherwise, or unless only the other reading fits the weekday or the preferred side.
    """
    assert only(text, **options)[:10] == begin


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("on 5 May 2020", "absolute"),
        ("yesterday", "relative"),
        ("5-7 May 2020", "range"),
        ("for three weeks", "duration"),
        ("every Monday at 9am", "recurring"),
        ("on weekends", "recurring"),
        ("Tuesdays", "recurring"),
        ("since 2019", "range"),
    ],
)
def test_the_kind_tells_how_it_was_said(text, kind):
    """
    A caller can tell a date from a duration and a habit from an event.
    """
    assert [mention.kind for mention in find(text)] == [kind]


def test_a_duration_shows_its_length_only():
    """
    `for three weeks` names no place in time; its range is as long as it says.
    """
    [mention] = find("I stayed there for three weeks")

    assert to_datetime(mention.until) - to_datetime(mention.begin) == timedelta(weeks=3)


def test_last_week_is_that_of_the_entry_not_of_the_import():
    """
    Promise 12: the same words resolve against the time they were written, whenever that was.
    """
    assert only("last week", datetime(2019, 1, 2, tzinfo=UTC)) == "2018-12-24..2018-12-31 week"
    assert only("last week", datetime(2024, 3, 4, tzinfo=UTC)) == "2024-02-26..2024-03-04 week"


def test_several_expressions_come_in_order():
    """
    Every expression of a text is found once, in the order of the text.
    """
    mentions = find("Yesterday I planned the trip for May 5-7, 2024; last year we went in June.")

    assert [mention.raw for mention in mentions] == ["Yesterday", "May 5-7, 2024", "last year", "June"]


def test_days_begin_where_the_speaker_is():
    """
    The zone decides which day it is and when it begins; summer time included.
    """
    berlin = ZoneInfo("Europe/Berlin")
    late = datetime(2023, 3, 25, 23, 30, tzinfo=UTC)

    assert only("today", late) == "2023-03-25..2023-03-26 day"
    assert only("today", late, zone=berlin) == "2023-03-26..2023-03-27 day"
    [mention] = find("today", late, zone=berlin)
    assert to_datetime(mention.until) - to_datetime(mention.begin) == timedelta(hours=23)


def test_a_day_in_utc_has_24_hours_all_year():
    """
    Clock changes elsewhere do not touch UTC, nor a zone with a fixed offset.
    """
    for zone in (UTC, timezone(timedelta(hours=-2))):
        for month in range(1, 13):
            [mention] = find("yesterday", datetime(2023, month, 27, 1, tzinfo=UTC), zone=zone)
            assert to_datetime(mention.until) - to_datetime(mention.begin) == timedelta(days=1)


def test_a_mention_is_plain_data():
    """
    Mentions compare, hash and unpack like the tuples they are.
    """
    [mention] = find("yesterday")

    assert mention == TimeMention(*mention)
    assert hash(mention) == hash(TimeMention(*mention))
