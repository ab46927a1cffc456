"""The time a question asks about, and what belongs to it."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.clock import to_datetime, to_instant
from memplane.recall.periods import Period, date_match, find_periods, time_match
from memplane.types import Kind, Memory, MentionedTime

NOW = datetime(2023, 7, 19, 12, tzinfo=UTC)  # a Wednesday


def instant(*day: int) -> int:
    return to_instant(datetime(*day, tzinfo=UTC))


def days(question: str, reference: datetime = NOW) -> list[tuple[str, str, bool]]:
    """First and last day of each period, and whether any year may be meant."""
    periods, _ = find_periods(question, to_instant(reference))
    return [
        (
            str(to_datetime(period.begin).date()),
            str(to_datetime(period.until - 1).date()),
            period.any_year,
        )
        for period in periods
    ]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What happened in July?", [("2023-07-01", "2023-07-31", True)]),
        ("What happened in October?", [("2022-10-01", "2022-10-31", True)]),
        ("What happened in July 2022?", [("2022-07-01", "2022-07-31", False)]),
        ("What happened on July 3rd, 2022?", [("2022-07-03", "2022-07-03", False)]),
        ("What happened on 3 July?", [("2023-07-03", "2023-07-03", True)]),
        ("June or July 2022?", [("2022-06-01", "2022-06-30", False), ("2022-07-01", "2022-07-31", False)]),
        ("Where was I from 3 to 5 May 2023?", [("2023-05-03", "2023-05-05", False)]),
        ("Whom did I meet last week?", [("2023-07-10", "2023-07-16", False)]),
        ("How much did I spend last month?", [("2023-06-01", "2023-06-30", False)]),
        ("How much did I spend in the past month?", [("2023-06-19", "2023-07-19", False)]),
        ("What did I buy in the last two weeks?", [("2023-07-05", "2023-07-19", False)]),
        ("What race did I take part in a week ago?", [("2023-07-10", "2023-07-14", False)]),
        ("What did I buy two days ago?", [("2023-07-17", "2023-07-17", False)]),
        ("What did I buy three months ago?", [("2023-04-01", "2023-05-07", False)]),
        ("What did I buy a year ago?", [("2022-06-01", "2022-08-30", False)]),
        ("What did I buy a few months ago?", [("2023-01-01", "2023-05-31", False)]),
        ("What may happen?", []),
        ("How long did I stay, two weeks?", []),
    ],
)
def test_periods_of_a_question(question, expected):
    """
    A month without a year is the latest one; a period up to now ends now; a duration is no period.
    """
    assert days(question) == expected


@pytest.mark.parametrize(
    ("question", "as_of"),
    [
        ("As of March, where did I live?", "2023-03-31"),
        ("Where did I live as of 3 March?", "2023-03-03"),
        ("what is my salary as of last year", "2022-12-31"),
        ("As of March I work from home.", None),
        ("Where do I live as of today?", None),
        ("Where did I live in March?", None),
    ],
)
def test_as_of_a_time_is_not_in_that_time(question, as_of):
    """
    It asks for what was known at its end, if it is a question and that end has passed.
    """
    periods, found = find_periods(question, to_instant(NOW))

    assert (None if found is None else str(to_datetime(found).date())) == as_of
    assert bool(periods) == (" in March" in question)


def test_turns_of_a_period():
    """
    2 in the period and shortly after it, 1 in the same days of another year if no year was said.
    """
    said = [
        (2023, 6, 30),
        (2023, 7, 3),
        (2023, 7, 9),
        (2023, 7, 12),
        (2022, 7, 5),
        (2023, 8, 1),
        (2023, 8, 3),
    ]
    at = np.array([to_instant(datetime(*day, 12, tzinfo=UTC)) for day in said])
    july = Period(instant(2023, 7, 1), instant(2023, 8, 1))
    third = Period(instant(2023, 7, 3), instant(2023, 7, 4))

    assert date_match([july], at).tolist() == [0, 2, 2, 2, 0, 2, 0]
    assert date_match([Period(july.begin, july.until, any_year=True)], at).tolist() == [0, 2, 2, 2, 1, 2, 0]
    assert date_match([third], at).tolist() == [0, 2, 2, 0, 0, 0, 0]
    assert date_match([], at).tolist() == [0] * 7
    assert date_match([july], at[:0]).tolist() == []


def memory(id_: str, *times: tuple[str, str, str, str], said: str = "2023-07-19", kind=Kind.FACT) -> Memory:
    at = datetime.fromisoformat(said).replace(tzinfo=UTC)
    return Memory(
        id=id_,
        kind=kind,
        text=id_,
        entry_id=id_,
        seq=1,
        start=0,
        end=len(id_),
        created_at=at,
        updated_at=at,
        times=tuple(
            MentionedTime(
                begin=datetime.fromisoformat(begin).replace(tzinfo=UTC),
                until=datetime.fromisoformat(until).replace(tzinfo=UTC),
                raw=raw,
                granularity="day",
                kind=how,
            )
            for begin, until, raw, how in times
        ),
    )


OCTOBER = Period(instant(2022, 10, 1), instant(2022, 11, 1), any_year=True)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (memory("inside", ("2022-10-05", "2022-10-06", "5 October", "absolute")), 1.0),
        (memory("overlaps", ("2022-09-25", "2022-10-03", "25 September to 2 October", "range")), 1.0),
        (memory("long", ("2020-01-01", "2023-01-01", "from 2020 to 2022", "range")), 0.5),
        (memory("lasts", ("2022-09-01", "2022-09-10", "since September", "range")), 1.0),
        (memory("ends", ("2022-09-01", "2022-09-10", "from 1 to 9 September", "range")), -1.0),
        (memory("after", ("2022-11-03", "2022-11-04", "3 November", "absolute")), -1.0),
        (memory("edge", ("2022-11-01", "2022-11-02", "1 November", "absolute")), 0.0),
        (memory("second", ("2022-11-03", "2022-11-04", "", ""), ("2022-10-03", "2022-10-04", "", "")), 1.0),
        (memory("year before", ("2021-10-05", "2021-10-06", "5 October", "absolute")), 0.0),
        (memory("habit", ("2023-07-24", "2023-07-25", "every Monday", "recurring")), 0.0),
        (memory("said then", said="2022-10-20"), 1.0),
        (memory("told another time then", ("2022-12-24", "2022-12-25", "", ""), said="2022-10-20"), -1.0),
        (memory("said before", said="2022-03-01"), 0.0),
        (memory("said in the year before", said="2021-10-20"), 0.0),
        (memory("said long after", said="2023-07-01"), -0.5),
        (memory("wanted", said="2023-07-01", kind=Kind.INSTRUCTION), 0.0),
    ],
    ids=lambda value: getattr(value, "id", None),
)
def test_memories_of_a_period(found, expected):
    """
    A memory belongs to the times it tells, else to the time it was said; what is clearly about another time counts less.
    """
    known = memory("known", ("2022-10-01", "2022-10-02", "1 October", "absolute"))

    assert time_match([found, known], [OCTOBER])[found.id] == expected


def test_an_empty_period_says_nothing():
    """
    If no candidate belongs to the period, none is held against it.
    """
    november = memory("after", ("2022-11-03", "2022-11-04", "3 November", "absolute"))

    assert time_match([november], [OCTOBER]) == {}
    assert time_match([november], []) == {}


@given(st.datetimes(), st.sampled_from(["29 February", "May", "5/7"]))
def test_any_reference_and_any_turn(reference, when):
    """
    Periods are found, and turns compared with them, at the ends of the calendar too.
    """
    periods, _ = find_periods(f"What happened on {when}?", to_instant(reference.replace(tzinfo=UTC)))
    at = np.array([to_instant(datetime(year, 2, 28, tzinfo=UTC)) for year in (1, 1970, 2024, 9999)])

    assert set(date_match(periods, at).tolist()) <= {0.0, 1.0, 2.0}
    for period in periods:
        assert timedelta(0) < timedelta(microseconds=period.until - period.begin) <= timedelta(days=400)
        told = memory("told", ("0001-01-01", "0001-01-02", "", ""), ("9999-12-30", "9999-12-31", "", ""))
        assert set(time_match([told], [period]).values()) <= {1.0, 0.5, 0.0, -1.0}
