"""What an owner can list: conversations, and memories of whatever place and state."""

from datetime import timedelta

import pytest
from tests.conftest import MORNING, HandClock

from memplane.errors import InvalidRequest


@pytest.fixture
def full(space, clock: HandClock):
    space.retain("I live in Rome.", conversation="c", project="p")
    space.retain("I like tea.", conversation="d", project="p", scope="project")
    clock.advance(hours=1)
    space.retain("Actually, I live in Oslo.", conversation="c", project="q")
    space.retain("nowhere in particular")
    space.put("k", "v", ttl=timedelta(hours=1))
    space.enrich()
    return space


def ids(found):
    return [one.id for one in found]


def test_conversations_are_listed_by_when_they_went_on(full):
    """With how much was said, since when, and the project of the last word."""
    first, second = full.conversations()

    assert (first.id, first.project, first.turns) == ("c", "q", 2)
    assert (first.first_at, first.last_at) == (MORNING, MORNING + timedelta(hours=1))
    assert (second.id, second.project, second.turns) == ("d", "p", 1)


def test_conversations_of_a_project_count_its_turns(full):
    assert [(one.id, one.project, one.turns) for one in full.conversations(project="p")] == [
        ("c", "p", 1),
        ("d", "p", 1),
    ]
    assert full.conversations(project="x") == []


def test_a_listing_has_pages(full):
    pages = [full.conversations(limit=1, offset=offset) for offset in range(3)]
    assert [ids(page) for page in pages] == [["c"], ["d"], []]

    listed = ids(full.memories())
    assert [ids(full.memories(limit=1, offset=n))[0] for n in range(len(listed))] == listed


def test_a_forgotten_conversation_is_not_listed(full):
    full.forget(conversation="c")

    assert ids(full.conversations()) == ["d"]


def test_memories_are_listed_by_what_they_are(full, clock: HandClock):
    """Every condition narrows; what belongs to one place is listed too."""
    said = {memory.text: memory for memory in full.memories()}

    assert {memory.state for memory in said.values()} == {"active", "superseded"}
    assert [memory.text for memory in full.memories(state="superseded")] == ["I live in Rome."]
    assert {memory.text for memory in full.memories(predicate="lives_in")} == {
        "I live in Rome.",
        "I live in Oslo.",
    }
    assert [memory.text for memory in full.memories(kind="preference")] == ["I like tea."]
    assert [memory.text for memory in full.memories(conversation="d", project="p")] == ["I like tea."]
    assert {memory.tier.value for memory in full.memories(tier="cold")} == {"cold"}
    assert full.memories(state="expired") == []
    clock.advance(hours=2)
    (expired,) = full.memories(state="expired")
    assert (expired.key, expired.state) == ("k", "expired")
    assert "k" not in {memory.key for memory in full.memories()}
    assert "k" not in {memory.key for memory in full.memories(state="active")}


@pytest.mark.parametrize("asked", [{"state": "gone"}, {"tier": "icy"}, {"kind": "rumour"}])
def test_unknown_words_are_refused(full, asked):
    with pytest.raises(InvalidRequest, match="use one of"):
        full.memories(**asked)


@pytest.mark.parametrize("asked", [{"limit": 0}, {"offset": -1}])
def test_pages_begin_somewhere(full, asked):
    with pytest.raises(InvalidRequest):
        full.memories(**asked)
    with pytest.raises(InvalidRequest):
        full.conversations(**asked)
