"""Whole sentences: what is composed, what is counted from another time, what repeats, and what is none.

The reference is Wednesday, 15 May 2024, 10:00 UTC."""

from datetime import UTC, datetime

import pytest

from memplane.clock import to_datetime, to_instant
from memplane.extract.time import find_times

NOW = to_instant(datetime(2024, 5, 15, 10, tzinfo=UTC))


def told(mention):
    ends = (to_datetime(moment) for moment in (mention.begin, mention.until))
    return "..".join(end.isoformat(" ")[:16].replace(" 00:00", "") for end in ends)


def last(text, prefer="past"):
    return find_times(text, NOW, prefer=prefer)[-1]


COMPOSED = {
    "The receipt is dated 2020-Jan-15, I think.": "2020-01-15..2020-01-16",
    "It was signed on Dec/31/1999 by both.": "1999-12-31..2000-01-01",
    "Version from 2020.Jan.15 still works.": "2020-01-15..2020-01-16",
    "Photo 20190704_1200.jpg shows the lake": "2019-07-04 12:00..2019-07-04 12:01",
    "They married on 2 June of 88, in the rain.": "1988-06-02..1988-06-03",
    "He left on the nineteenth, without a word.": "2024-04-19..2024-04-20",
    "The bridge opened in nineteen hundred and ten.": "1910-01-01..1911-01-01",
    "born on the fourth of July nineteen seventy-six": "1976-07-04..1976-07-05",
    "We met in twenty-sixteen.": "2016-01-01..2017-01-01",
    "He retired in two thousand fifteen.": "2015-01-01..2016-01-01",
    "She joined in seventy-eight and stayed.": "1978-01-01..1979-01-01",
    "I bought it in '08.": "2008-01-01..2009-01-01",
    "The church was built in 1875.": "1875-01-01..1876-01-01",
    "She taught there 1998\N{EN DASH}2003.": "1998-01-01..2004-01-01",
    "The war of 1914-18 took him.": "1914-01-01..1919-01-01",
    "We lived there from '92 to '96.": "1992-01-01..1997-01-01",
    "The 2012-13 winter was mild.": "2012-12-01..2013-03-01",
    "The first six months of 2023 went well.": "2023-01-01..2023-07-01",
    "In the last two days of April it snowed.": "2024-04-29..2024-05-01",
    "We lost it in the final quarter of last year.": "2023-10-01..2024-01-01",
    "The third week of March was cold.": "2024-03-15..2024-03-22",
    "Sales fell in H1 2023.": "2023-01-01..2023-07-01",
    "He left 3 years and 2 months ago.": "2021-03-01..2021-04-01",
    "It came 1 week and 2 days ago, broken.": "2024-05-06..2024-05-07",
    "A month and a half ago I quit.": "2024-03-15..2024-03-16",
    "I was there two hundred days ago.": "2023-10-28..2023-10-29",
    "It broke a few weeks ago.": "2024-04-03..2024-05-02",
    "I saw him the other day.": "2024-05-01..2024-05-15",
    "I was ill around Christmas.": "2023-12-18..2024-01-02",
    "I saw her a week ago last Friday.": "2024-05-03..2024-05-04",
    "In early 2019 I moved to Rome.": "2019-01-01..2019-05-01",
    "He was away from Monday to Wednesday last week.": "2024-05-06..2024-05-09",
    "They played in the noughties.": "2000-01-01..2010-01-01",
    "From 2018 onwards we used chat.": "2018-01-01..2024-05-15 10:00",
    "Prior to 2005 this was a school.": "0001-01-01..2005-01-01",
    "I have worked here since the summer of 2019.": "2019-06-01..2024-05-15 10:00",
    "We flew home a hundred days ago.": "2024-02-05..2024-02-06",
    "It was the last week of 2019 when we met.": "2019-12-25..2020-01-01",
    "We paid on the last working day of March.": "2024-03-29..2024-03-30",
    "We landed at 6 in the morning.": "2024-05-15 06:00..2024-05-15 07:00",
    "He was out between 2 and 4 this afternoon.": "2024-05-15 14:00..2024-05-15 16:00",
    "Commit from 2023-04-05T06:07:08Z broke it": "2023-04-05 06:07..2023-04-05 06:07",
}


@pytest.mark.parametrize(("text", "expected"), COMPOSED.items())
def test_parts_compose_to_one_range(text, expected):
    """
    Numbers, units, names and edges are one expression in whatever way they are put together.
    """
    [mention] = find_times(text, NOW)

    assert told(mention) == expected


AHEAD = {
    "The appointment is a week from Monday.": "2024-05-27..2024-05-28",
    "Meet me Saturday week.": "2024-05-25..2024-05-26",
    "See you a week tomorrow": "2024-05-23..2024-05-24",
    "The results come in two weeks' time.": "2024-05-29..2024-05-30",
    "It closes this coming Thursday.": "2024-05-16..2024-05-17",
    "See you at half six": "2024-05-15 18:30..2024-05-15 18:31",
    "The dentist is at 9 on Thursday.": "2024-05-16 09:00..2024-05-16 10:00",
}


@pytest.mark.parametrize(("text", "expected"), AHEAD.items())
def test_what_lies_ahead(text, expected):
    """
    A week on Saturday is not this Saturday.
    """
    [mention] = find_times(text, NOW, prefer="future")

    assert told(mention) == expected


ANCHORED = {
    "I started on 3 March 2022; six months later I quit.": "2022-09-01..2022-10-01",
    "We met on 4 July 2020 and married exactly one year later.": "2021-07-04..2021-07-05",
    "Anna quit on 12 March 2021. Three days later Ben quit too.": "2021-03-15..2021-03-16",
    "I fell on 9 Jan 2023 and two days before that I had slipped.": "2023-01-07..2023-01-08",
    "They arrived on June 1 2021 and left the next morning.": "2021-06-02..2021-06-02 12:00",
    "The fire was on 5 May 2019. The following week we moved.": "2019-05-06..2019-05-13",
    "She was born in 1987 and the following year they moved.": "1988-01-01..1989-01-01",
    "He visited in August 2015 and that autumn he proposed.": "2015-09-01..2015-12-01",
    "The scan was on 3 May 2024 and the results came the Tuesday after.": "2024-05-07..2024-05-08",
    "On 1 April 2023 we closed; the previous month we were warned.": "2023-03-01..2023-04-01",
    "I flew to Oslo on 3 Feb 2022 and came back the same day.": "2022-02-03..2022-02-04",
    "He was hired on 1 Feb 2021 and fired within a month.": "2021-02-01..2021-03-01",
}


@pytest.mark.parametrize(("text", "expected"), ANCHORED.items())
def test_a_time_counted_from_the_one_before(text, expected):
    """
    `Two days later` counts from the time said before it, not from now.
    """
    assert told(last(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "We heard back three weeks later.",
        "It started in 2009 and three weeks later it was over.",
        "On 3 May 2022 he came, a week later than planned.",
        "On 3 May 2022 we met two days after the party.",
        "- Met on 3 May 2022\n- Left two days later",
    ],
)
def test_what_nobody_knows_is_not_guessed(text):
    """
    Without a time before it, with one that is too vague, or in another paragraph, nothing can be counted.
    """
    assert all("later" not in found.raw and found.begin <= NOW for found in find_times(text, NOW))
    assert len(find_times(text, NOW)) <= 1


REPEATED = {
    "Choir is every other Thursday.": "2 weeks",
    "I call him once a week.": "week",
    "Payday is twice a month here.": "month",
    "I see her three times a week": "week",
    "I go to the gym 3x a week": "week",
    "It happens once every two years": "2 years",
    "We take the pills every 8 hours.": "8 hours",
    "Team lunch every 3rd Friday.": "3 weeks",
    "The bins are collected fortnightly.": "2 weeks",
    "I get paid bi-weekly": "2 weeks",
    "Standup is daily at 9:15.": "day",
    "We review it quarterly.": "quarter",
    "We meet on the first Monday of every month.": "month",
    "Rent is due on the 1st of each month": "month",
    "On Sunday mornings I bake": "week",
    "I bake at weekends": "week",
    "Each spring the river floods": "year",
    "She visits every Christmas.": "year",
    "Every night I read.": "day",
    "Each Tuesday and Thursday I swim": "week",
}


@pytest.mark.parametrize(("text", "every"), REPEATED.items())
def test_what_repeats_says_how_often(text, every):
    """
    A repetition is one expression, with its interval.
    """
    [mention] = find_times(text, NOW)

    assert (mention.kind, mention.every) == ("recurring", every)


def test_a_repetition_within_a_period():
    """
    Where the period is named, the range is that period.
    """
    mention = last("Every Monday in May 2021 we had pancakes.")

    assert (mention.every, told(mention)) == ("week", "2021-05-01..2021-06-01")


def test_a_conjunction_is_no_pronoun():
    """
    `That Tuesday` after a verb of saying is no day of the week before.
    """
    assert last("On 3 May 2022 he said that Tuesday is best.").raw == "Tuesday"


@pytest.mark.parametrize(
    "text",
    [
        "April said she'd come.",
        "I had lunch with April and June",
        "He's an august scholar.",
        "We always eat at Friday's, round the corner.",
        "I read the Sunday Times",
        "Mix it 10:30 by weight.",
        "He ran it in 4:05",
        "John 3:16 is well known",
        "I'm in my early thirties",
        "They promise 24/7 support",
        "2000-2500 calories are enough",
        "My number is 020 1994 2010",
        "Serial no. 20231301",
        "She earns $20 an hour",
        "a speed of 60 miles per hour",
        "The Daily Mail wrote about it",
        "I am paid an hourly rate",
        "a DPI of 1600",
        "Give me twenty-two of them",
        "The last two weeks of the holiday were fun.",
        "the last hour of the day",
        "I have one day off, but the other day is long.",
    ],
)
def test_what_only_looks_like_a_time(text):
    """
    A wrong time is worse than none.
    """
    assert [found for found in find_times(text, NOW) if found.kind != "duration"] == []
