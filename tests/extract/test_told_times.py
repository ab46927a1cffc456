"""The times a memory tells."""

from datetime import UTC, datetime

import pytest

from memplane.extract.proposition import Tense
from memplane.extract.told_times import claimed_times, stored_times

AT = datetime(2026, 11, 16, 12, tzinfo=UTC)  # a Monday


def days(times):
    return [(str(time.begin.date()), str(time.until.date())) for time in times]


@pytest.mark.parametrize(
    ("text", "claim", "tense", "expected"),
    [
        ("I moved in March.", "I moved in March", Tense.PAST, [("2026-03-01", "2026-04-01")]),
        ("I moved to Rome in March.", "I moved to Rome in March", Tense.PAST, [("2026-03-01", "2026-04-01")]),
        ("The exam was moved to March.", "exam was moved to March", Tense.PAST, [("2027-03-01", "2027-04-01")]),
        ("The exam is in March.", "The exam is in March", Tense.PRESENT, [("2027-03-01", "2027-04-01")]),
        ("In October, I went to Rome.", "I went to Rome", Tense.PAST, [("2026-10-01", "2026-11-01")]),
        (
            "Hello! Last week, I moved and Ana got a job.",
            "Ana got a job",
            Tense.PAST,
            [("2026-11-09", "2026-11-16")],
        ),
        (
            "In October, I went to Rome in May.",
            "I went to Rome in May",
            Tense.PAST,
            [("2026-05-01", "2026-06-01")],
        ),
        ("I slept in October. Then, I went to Rome.", "I went to Rome", Tense.PAST, []),
        ("After we met Ana in October, I went to Rome.", "I went to Rome", Tense.PAST, []),
        ("I lived there from 2015 to 2018.", "I lived there from 2015 to 2018", Tense.PAST, [("2015-01-01", "2019-01-01")]),
        ("I have worked here since 2020.", "I have worked here since 2020", Tense.PRESENT, [("2020-01-01", "2026-11-16")]),
        ("I stayed for two weeks.", "I stayed for two weeks", Tense.PAST, []),
        ("I applied on 4 May 2020 and heard back 3 weeks later.", "heard back 3 weeks later", Tense.PAST, [("2020-05-25", "2020-05-26")]),
        ("I heard back 3 weeks later.", "I heard back 3 weeks later", Tense.PAST, []),
    ],
)  # fmt: skip
def test_times_of_a_claim(text, claim, tense, expected):
    """
    Its own, or those that its sentence begins with; long ranges too, but no durations.
    """
    start = text.index(claim)

    assert days(claimed_times(text, start, start + len(claim), AT, tense)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Met Bob on 3 November", [("2026-11-03", "2026-11-04")]),
        ("Moved to Lisbon in March", [("2026-03-01", "2026-04-01")]),
        ("Exam in January", [("2027-01-01", "2027-02-01")]),
        ("Will move to Paris in October", [("2027-10-01", "2027-11-01")]),
        ("Lives next to the park since March", [("2026-03-01", "2026-11-16")]),
        ("The exam is on the 2nd", [("2026-12-02", "2026-12-03")]),
        ("We'll move at Easter", [("2027-03-28", "2027-03-29")]),
        ("The deadline is the last working day of March", [("2027-03-31", "2027-04-01")]),
        ("In March she's getting married", [("2027-03-01", "2027-04-01")]),
        ("The shop is closed on Monday", [("2026-11-23", "2026-11-24")]),
        ("Prefers tea", []),
        ("x" * 5_000 + " in March", []),
    ],
)
def test_times_of_a_stored_memory(text, expected):
    """
    The verb says whether `in March` is past or ahead; without one it is the nearest.
    """
    assert days(stored_times(text, AT)) == expected
