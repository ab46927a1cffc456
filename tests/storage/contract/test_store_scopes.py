"""The visibility half of the contract: what belongs to one place is found only by who asks from there."""

import pytest
from tests.storage.contract.test_store_index import ALL, claimed, episode, ids, number, turn_vector

from memplane.storage.filter import EVERYWHERE, Audience, Filter
from memplane.storage.vectors import MemoryVector
from memplane.types import Kind, Tier
from recall_reads import candidates, episodes

PLACES = [None, "project:p", "project:q", "conversation:c", "conversation:p"]
AUDIENCES = {
    EVERYWHERE: {None},
    Audience(project="p"): {None, "project:p"},
    Audience(conversation="c", project="q"): {None, "conversation:c", "project:q"},
    Audience(conversation="p"): {None, "conversation:p"},
    Audience(project="' OR 1"): {None},
    None: set(PLACES),
}


def asking(audience) -> Filter:
    return Filter(now=0, audience=audience)


@pytest.mark.parametrize("audience", AUDIENCES, ids=str)
def test_turns_are_found_by_their_audience(scribe, audience):
    """Listed, by words in the index and before it, and by number; a head says the place."""
    waiting = [scribe.turn("needle first", within=place) for place in PLACES]
    scribe.index()
    waiting += [scribe.turn("needle later", within=place) for place in PLACES]
    where = asking(audience)

    with scribe.store.read() as reader:
        heads = reader.turns.heads(after=0, until=1 << 40, limit=ALL)
        found = [
            reader.turns.find(where, limit=ALL),
            reader.turns.match(["needle"], where, limit=ALL),
            reader.turns.match(["needle"], where, limit=ALL, newest=True),
            reader.turns.at([number(turn) for turn in waiting], where),
        ]

    assert [head.within for head in heads] == PLACES * 2
    for turns in found:
        assert {turn.within for turn in turns} == AUDIENCES[audience]
        assert len(turns) == 2 * len(AUDIENCES[audience])


@pytest.mark.parametrize("audience", AUDIENCES, ids=str)
def test_memories_are_found_by_their_audience(scribe, audience):
    """Whatever way they are looked for."""
    made = [
        claimed(scribe, "needle", within=place, tier=Tier.HOT, role="user", kind=Kind.PREFERENCE)
        for place in PLACES
    ]
    where = asking(audience)

    with scribe.store.read() as reader:
        found = [
            reader.memories.find(where, limit=ALL),
            reader.memories.match(["needle"], where, limit=ALL),
            reader.memories.match(["needle"], where, limit=ALL, newest=True),
            reader.memories.get_many(ids(made), where),
            candidates(reader, where, predicates=["lives_in"], per_predicate=ALL).of_predicates,
            candidates(reader, where, hot=ALL).hot,
        ]
        if audience is not None:
            found.append(reader.memories.brief(now=0, limit=ALL, audience=audience))

    for memories in found:
        assert {memory.within for memory in memories} == AUDIENCES[audience]


def test_who_says_nothing_is_told_what_is_told_everywhere(scribe):
    """Leaving the audience out hides; it never shows."""
    scribe.turn("needle", within="project:p")
    claimed(scribe, "needle", within="project:p", tier=Tier.HOT)

    with scribe.store.read() as reader:
        assert len(reader.turns.find(Filter(now=0), limit=ALL)) == 1  # the turn that `claimed` says
        assert reader.memories.find(Filter(now=0), limit=ALL) == []
        assert reader.memories.brief(now=0, limit=ALL) == []


@pytest.mark.parametrize("audience", AUDIENCES, ids=str)
def test_episodes_are_found_by_their_audience(scribe, audience):
    turns = scribe.turns(["one", "two"], conversation="c")
    for place in PLACES:
        episode(scribe, turns, id=f"episode-{place}", quoting=turns[:1], within=place)

    with scribe.store.read() as reader:
        found = episodes(reader, ["c"], asking(audience), limit=ALL)

    assert {memory.within for memory in found} == AUDIENCES[audience]


def test_rivals_are_of_the_same_place(scribe):
    """Places are compared whole, and everywhere is one of them."""
    made = {place: claimed(scribe, "in Oslo", within=place, id=f"fact-{place}") for place in PLACES}

    with scribe.store.read() as reader:
        for place, memory in made.items():
            found = reader.claims.rivals("user", "lives_in", ["oslo"], limit=1, within=place, topic="x")
            assert ids(found) == [memory.id]


def test_vectors_say_the_place(scribe):
    """So that ranking leaves out what it may not tell, before it chooses."""
    made = [claimed(scribe, "in Oslo", within=place, id=f"fact-{place}") for place in PLACES]
    turn = scribe.turn("needle", within="project:p")

    def work(writer):
        model = writer.vectors.use_model("m", 2)
        writer.vectors.add_memories(model, [MemoryVector(memory.id, b"d", b"\x01\x00") for memory in made])
        writer.vectors.add_turns(model, [turn_vector(turn)], until=number(turn))
        return model

    model = scribe.store.write(work)
    with scribe.store.read() as reader:
        found = [vector.within for _, vector in reader.vectors.memories(model, after=0, limit=ALL)]
    assert found == PLACES
