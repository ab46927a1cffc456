"""A recall by words alone returns nothing that a full recall may not return."""

from datetime import UTC, datetime

import msgspec
import pytest

QUESTION = "Where do I live?"
BEFORE = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def moved(space):
    for month, city in ((1, "Berlin"), (6, "Lisbon")):
        space.retain(f"I live in {city} now.", at=datetime(2026, month, 6, tzinfo=UTC))
    space.enrich()
    return space


def content(found) -> str:
    return msgspec.json.encode(msgspec.structs.replace(found, query="")).decode()


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (QUESTION, {"as_of": BEFORE}),
        ("Where did I live as of March?", {}),
        ("Where did I live as of July?", {"as_of": BEFORE}),
        ("Where did I live as of March?", {"reference_time": datetime(2026, 11, 1, tzinfo=UTC)}),
    ],
)
def test_as_of_an_earlier_time(moved, question, options):
    """
    What was said later is in no field, and what it replaced later is still current.
    """
    found = moved.recall_by_words(question, **options)

    assert "Berlin" in found.text
    assert "Lisbon" not in content(found)
    assert "replaced" not in found.text
    assert not any(hit.replaced or (hit.memory and hit.memory.superseded_by) for hit in found.hits)


def test_what_was_said_later_takes_no_place(space, clock):
    """
    The limit counts what was known then.
    """
    space.retain("green tea from a small shop")
    then = clock.moment
    clock.advance(days=1)
    for number in range(120):
        space.retain(f"green tea {number}")

    found = space.recall_by_words("green tea", as_of=then)
    assert [hit.turn.text for hit in found.hits] == ["green tea from a small shop"]


def test_superseded_memories_are_returned_where_they_are_asked_for(space):
    """
    With their mark, like in a full recall.
    """
    old = space.store("fact", "green tea at breakfast")
    new = space.store("fact", "oolong at breakfast", supersedes=old.id)

    found = space.recall_by_words("breakfast", include_superseded=True)

    assert [hit.id for hit in space.recall_by_words("breakfast").hits] == [new.id]
    assert {hit.id for hit in found.hits} == {old.id, new.id}
    assert "green tea at breakfast (since replaced; now: oolong at breakfast)" in found.text


def test_what_feedback_has_hidden_stays_hidden(space, clock):
    """
    Unless the memory of an earlier time, or what was superseded, is asked for.
    """
    space.retain("I own a cello.")
    space.enrich()
    (memory,) = space.memories()
    for _ in range(80):
        space.feedback([], [memory.id])

    def found(recall, **options) -> bool:
        return memory.id in {hit.id for hit in recall("cello", **options).hits}

    for recall in (space.recall, space.recall_by_words):
        assert not found(recall)
        assert found(recall, as_of=clock.moment)
        assert found(recall, include_superseded=True)
