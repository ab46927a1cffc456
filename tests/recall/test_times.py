"""Questions about a time are answered with what happened then, or with what was known then."""

from datetime import UTC, datetime

import pytest

from engines import both_engines
from memplane.models.local import LocalEmbedder

pytestmark = both_engines


def facts(space, question: str, **asked) -> list[str]:
    return [hit.memory.text for hit in space.recall(question, **asked).facts if hit.memory is not None]


@pytest.fixture
def visits(space):
    for said in ("I visited Rome on 5 October.", "I visited Oslo on 3 November.", "I visited Bonn in May."):
        space.retain(said)
    space.enrich()
    return space


@pytest.mark.parametrize(
    ("question", "city"),
    [
        ("What did I visit in October?", "Rome"),
        ("Which city did I visit on November 3?", "Oslo"),
        ("What did I visit between April and June?", "Bonn"),
        ("Where was I in the past two months?", "Oslo"),
    ],
)
def test_the_fact_of_the_period_comes_first(visits, question, city):
    """
    All of them have the predicate asked for; the time told decides.
    """
    assert city in facts(visits, question)[0]


def test_a_fact_without_a_time_belongs_to_when_it_was_said(space, clock):
    """
    Many facts tell no time; the one said in the period is returned, even if nothing else leads to it.
    """
    space.retain("I have a sister in Bonn.", at=datetime(2026, 10, 6, tzinfo=UTC))
    for month in range(1, 10):
        space.retain(f"I have {month} cats.", at=datetime(2026, month, 6, tzinfo=UTC))
    space.enrich()

    assert "Bonn" in facts(space, "What happened in October?")[0]


def test_stored_memories_tell_their_times(space):
    """
    `store` and `put` resolve times like extraction does.
    """
    met = space.store("fact", "Met Bob on 3 November")
    exam = space.store("context", "Exam in January")
    flat = space.put("flat/since", "rented since March 2024")

    assert [str(time.begin.date()) for memory in (met, exam, flat) for time in memory.times] == [
        "2026-11-03",
        "2027-01-01",
        "2024-03-01",
    ]
    assert facts(space, "What happened in November?")[0] == "Met Bob on 3 November"


def test_as_of_a_time_what_was_known_then_is_returned(space):
    """
    What was said later is left out, and what was superseded later is current.
    """
    for month, city in ((1, "Berlin"), (6, "Lisbon")):
        space.retain(f"I live in {city} now.", at=datetime(2026, month, 6, tzinfo=UTC))
    space.enrich()

    assert "Lisbon" in facts(space, "Where do I live?")[0]
    then = space.recall("Where did I live as of March?")
    assert "Berlin" in then.text
    assert "Lisbon" not in then.text
    assert "Lisbon" in space.recall("Where did I live as of July?").text


def test_an_explicit_as_of_wins(space):
    """
    The argument is more precise than the words of the query.
    """
    for month, city in ((1, "Berlin"), (6, "Lisbon")):
        space.retain(f"I live in {city} now.", at=datetime(2026, month, 6, tzinfo=UTC))
    space.enrich()

    later = space.recall("Where did I live as of March?", as_of=datetime(2026, 8, 1, tzinfo=UTC))
    assert "Lisbon" in later.text


def test_a_memory_about_another_time_comes_last(open_plane):
    """
    A question about a period is answered by what was said then, not by a memory about another time that is as near.
    """
    space = open_plane(embedder=LocalEmbedder()).space("alice")
    space.store("fact", "The dentist appointment is on 3 December 2026")
    space.retain("I went to a concert in Ghent with Tom", at="2025-10-10T10:00:00Z", conversation="c")
    space.enrich()

    hits = space.recall("anything in October 2025?").hits

    assert hits[0].statement == "I went to a concert in Ghent with Tom"
