"""How often a process waits for the server, and that fewer round trips find the same."""

from collections.abc import Iterator

import pytest

from memplane import Memplane
from memplane.space.recall import write_accesses
from memplane.storage import status
from memplane.storage.filter import Filter
from recall_reads import candidates
from statement_watch import trips

NOW = 2_000_000_000_000_000
EVERYTHING = Filter(now=NOW, audience=None)


@pytest.fixture
def plane(postgres_url: str) -> Iterator[Memplane]:
    with Memplane.open(postgres_url, embedder=None) as opened:
        space = opened.space("alice")
        space.retain("I moved to Lisbon", conversation="c1")
        space.store("fact", "the office is in Milan", tags=["work"])
        space.store("fact", "the garden is in Turin")
        yield opened


@pytest.mark.parametrize("ruled", [False, True], ids=["nothing ruled", "something ruled"])
def test_a_pin_is_told_as_one_whether_the_space_was_looked_at_first_or_not(plane, ruled):
    """
    Statements for a space without rulings do not name their table.
    """
    space = plane.space("alice")
    memory = space.store("fact", "the lamp is green")
    if ruled:
        space.review.pin(memory.id)
    with plane._stores.open("default", "alice", create=False) as store:
        with store.read() as reader:
            plain = reader.memories.find(EVERYTHING, limit=5)
        with store.read() as reader:
            reader.state.marks()
            looked = reader.memories.find(EVERYTHING, limit=5)

    assert looked == plain
    assert [found.pinned for found in looked if found.id == memory.id] == [ruled]


@pytest.mark.parametrize("empty", [False, True], ids=["a space", "a space without an entry"])
def test_how_far_a_space_is_is_what_each_statement_alone_says(plane, empty):
    owner = "nobody" if empty else "alice"
    with plane._stores.open("default", owner, create=True) as store:
        with store.read() as reader:
            reader.state.marks()
            together = dict(reader._session._remembered)
        with store.read() as reader:
            alone = {
                key: reader._session.connection.execute(key[0], {"limit": key[1]} if key[1:] else {})
                for key in status.PART_KEYS
            }

    assert {key: together[key] for key in status.PART_KEYS} == alone


def test_to_note_what_was_told_takes_no_longer_for_many(plane):
    space = plane.space("alice")
    kept = [space.store("fact", f"the lamp number {number} is green").id for number in range(40)]

    def noted(ids):
        """The fewest of several: a connection that was idle is looked at before it is used."""
        counts = []
        for _ in range(3):
            with trips() as made:
                write_accesses(space._context, ids)
            counts.append(len(made))
        return min(counts)

    assert noted(kept) == noted(kept[:2])


def test_the_candidates_of_a_recall_take_one_round_trip(plane):
    wanted = {
        "conversation": "c1",
        "turns": 5,
        "predicates": ["lives_in", "likes"],
        "per_predicate": 3,
        "words": ["office", "lisbon"],
        "per_channel": 5,
        "hot": 3,
        "newest": True,
    }
    with plane._stores.open("default", "alice", create=False) as store, store.read() as reader:
        reader.state.marks()
        with trips() as made:
            found = candidates(reader, EVERYTHING, **wanted)

    assert len(made) == 1
    assert [turn.text for turn in found.recent] == ["I moved to Lisbon"]
    assert [memory.text for memory in found.matching] == ["the office is in Milan"]
    assert len(found.newest) == 2


def test_a_recall_takes_few_round_trips(plane):
    space = plane.space("alice")
    space.enrich()
    space.recall("where is the office?", conversation="c1")
    with trips() as made:
        space.recall("where is the office?", conversation="c1")

    assert len(made) <= 8
