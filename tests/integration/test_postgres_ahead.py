"""What is fetched before it is asked for is what would have been found."""

from collections.abc import Iterator

import pytest

from memplane import Memplane
from memplane.space.recall import write_accesses
from memplane.storage.base import Reader
from memplane.storage.filter import Filter
from memplane.storage.postgres import around
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


def _looked_at(reader: Reader) -> list[object]:
    """Lists, single rows and words, and one question that nobody can ask without an answer to another."""
    memories = reader.memories(EVERYTHING, limit=5)
    return [
        memories,
        reader.memories_of([memory.id for memory in memories], EVERYTHING) if memories else [],
        reader.turns(EVERYTHING, limit=5),
        reader.match_memories(["office", "lisbon"], EVERYTHING, limit=5),
        reader.occurrences_of(["lisbon", "gardens"]),
        reader.index_lag(),
    ]


def test_what_is_asked_ahead_is_found_as_ever(plane):
    with plane._concrete.open("default", "alice", create=False) as store:
        with store.read() as reader:
            expected = _looked_at(reader)
        with store.read() as reader:
            reader.ahead(_looked_at)
            found = _looked_at(reader)
            again = _looked_at(reader)

    assert found == expected
    assert again == expected
    assert expected[0]


def test_only_what_waits_for_an_answer_is_asked_later(plane):
    with plane._concrete.open("default", "alice", create=False) as store, store.read() as reader:
        reader.marks()
        with trips() as ahead:
            reader.ahead(_looked_at)
        with trips() as later:
            _looked_at(reader)

    assert len(ahead) == 1
    assert len(later) == 1


def test_one_question_is_not_asked_ahead(plane):
    """
    It would be asked twice as well as once.
    """
    with (
        plane._concrete.open("default", "alice", create=False) as store,
        store.read() as reader,
        trips() as made,
    ):
        reader.ahead(lambda asked: asked.memories(EVERYTHING, limit=5))
        asked = list(made)

    assert asked == []


@pytest.mark.parametrize("ruled", [False, True], ids=["nothing ruled", "something ruled"])
def test_a_pin_is_told_as_one_whether_the_space_was_looked_at_first_or_not(plane, ruled):
    """
    Statements for a space without rulings do not name their table.
    """
    space = plane.space("alice")
    memory = space.store("fact", "the lamp is green")
    if ruled:
        space.review.pin(memory.id)
    with plane._concrete.open("default", "alice", create=False) as store:
        with store.read() as reader:
            plain = reader.memories(EVERYTHING, limit=5)
        with store.read() as reader:
            reader.marks()
            looked = reader.memories(EVERYTHING, limit=5)

    assert looked == plain
    assert [found.pinned for found in looked if found.id == memory.id] == [ruled]


@pytest.mark.parametrize("empty", [False, True], ids=["a space", "a space without an entry"])
def test_how_far_a_space_is_is_what_each_statement_alone_says(plane, empty):
    owner = "nobody" if empty else "alice"
    with plane._concrete.open("default", owner, create=True) as store:
        with store.read() as reader:
            reader.marks()
            together = dict(reader._seen)
        with store.read() as reader:
            reader._seen = None
            asked = [key for key in together if key in around.KEYS]
            alone = {key: reader._all(key[0], **({"limit": key[1]} if key[1:] else {})) for key in asked}

    assert set(asked) == around.KEYS
    for key, rows in alone.items():
        expected = rows if isinstance(together[key], list) else next(iter(rows), None)
        assert together[key] == expected


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
