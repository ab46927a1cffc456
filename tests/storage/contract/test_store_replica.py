"""Places and positions: the order that replicas agree on moves entries, and the chain does not."""

import pytest
from tests.conftest import MORNING, Scribe
from tests.storage.contract.test_store_ledger import rebuild_chain

from memplane.clock import to_instant
from memplane.storage.numbers import turn_number
from memplane.storage.vectors import TurnVector
from memplane.types import NewEntry, Op, Variant

NOW = to_instant(MORNING)


def draft(id_: str, recorded: int, **rest) -> NewEntry:
    return NewEntry(id_, Op.TURN, id_.encode(), recorded=NOW + recorded, **rest)


def places(store) -> list[str]:
    with store.read() as reader:
        entries = reader.ledger.entries()
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    return [entry.id for entry in entries]


def test_an_entry_never_sorts_before_an_earlier_one(scribe, clock):
    """Whatever the clock says, each entry is recorded after the last: at its time, or a microsecond later."""
    scribe.entry()
    scribe.entry()
    clock.advance(seconds=-60)
    scribe.entry()
    clock.advance(seconds=120)
    last = scribe.entry()

    with scribe.store.read() as reader:
        recorded = [entry.recorded for entry in reader.ledger.entries()]
        assert reader.replica.ordered()
        assert reader.replica.misplaced() is None
    assert recorded == [NOW, NOW + 1, NOW + 2, clock()]
    assert last.recorded == clock()


def test_entries_are_placed_by_time_and_id(scribe):
    """Before, between and behind what is there; of one moment, by id. The chain has them in the order they came."""
    scribe.store.write(lambda writer: writer.ledger.append([draft("b", 10), draft("e", 20)], recorded=0))

    moves = scribe.store.write(
        lambda writer: writer.replica.place([draft("f", 20), draft("c", 10), draft("a", 5), draft("d", 20)])
    )

    assert places(scribe.store) == ["a", "b", "c", "d", "e", "f"]
    assert moves == [(1, 2), (2, 5)]
    with scribe.store.read() as reader:
        rows = reader.ledger.rows()
        assert reader.ledger.head().seq == reader.ledger.head().position == 6
        assert reader.ledger.head().digest == rows[-1].digest
        assert [entry.body for entry in reader.ledger.entries()] == [b"a", b"b", b"c", b"d", b"e", b"f"]
        assert reader.replica.misplaced() is None
    assert [row.entry.id for row in rows] == ["b", "e", "a", "c", "d", "f"]
    assert [row.digest for row in rows] == rebuild_chain(rows)


def test_what_comes_after_a_placing_sorts_last(scribe, clock):
    """Here too in the works that share its commit."""
    scribe.store.write(lambda writer: writer.replica.place([draft("far", 10**9)]))
    scribe.entry("here")

    assert places(scribe.store) == ["far", "here"]
    with scribe.store.read() as reader:
        assert reader.ledger.get("here").recorded == NOW + 10**9 + 1


def test_a_failed_placing_leaves_nothing(scribe):
    """Neither rows nor moves nor the end of the chain."""
    scribe.entry("b")

    def work(writer):
        writer.replica.place([draft("a", -1)])
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        scribe.store.write(work)
    scribe.entry("c")

    assert places(scribe.store) == ["b", "c"]


def test_vectors_move_along(scribe):
    """They are found under the numbers that their turns get."""
    turns = scribe.turns(["one", "two"])
    vectors = [TurnVector(turn_number(turn.seq, 0), 1, False, b"d", bytes([turn.seq, 0])) for turn in turns]
    scribe.store.write(
        lambda writer: writer.vectors.add_turns(
            writer.vectors.use_model("m", 1), vectors, until=vectors[-1].n
        )
    )
    scribe.store.write(lambda writer: writer.replica.place([draft("a", -1), draft("between", 0)]))

    numbers = [turn_number(seq, 0) for seq in range(1, 5)]
    with scribe.store.read() as reader:
        found = reader.vectors.turns_at(reader.vectors.model("m", 1), numbers)
    assert sorted(found.values()) == [b"\x01\x00", b"\x02\x00"]
    assert turn_number(1, 0) not in found


def test_only_the_header_of_what_is_forgotten_is_kept(scribe):
    """An entry that comes in forgotten has a place and no payload."""
    scribe.store.write(
        lambda writer: writer.replica.place([draft("gone", 1, erased=True), draft("there", 2)])
    )
    scribe.store.write(lambda writer: writer.ledger.erase([(0, "gone")], position=2, at=1, reason=""))

    with scribe.store.read() as reader:
        assert [entry.body for entry in reader.ledger.entries()] == [None, b"there"]
        assert [row.tombstoned for row in reader.ledger.rows()] == [True, False]


def test_a_variant_keeps_what_the_chain_covers(scribe):
    """Another body may take the id; the row that had it is renamed, and the chain still holds."""
    scribe.entry("x", body=b"later")

    def work(writer):
        writer.replica.rename("x", "x~0123456789ab")
        writer.replica.add_variant(Variant(id="x~0123456789ab", base="x"))
        writer.replica.place([draft("x", -1, origin="elsewhere")])

    scribe.store.write(work)

    with scribe.store.read() as reader:
        rows = reader.ledger.rows()
        assert reader.ledger.get("x").body == b"x"
        assert reader.ledger.get("x~0123456789ab").body == b"later"
        assert (
            reader.replica.variants()
            == reader.replica.variants(["x"])
            == [Variant(id="x~0123456789ab", base="x")]
        )
        assert reader.replica.variants(["y"]) == []
    assert [(row.chained_id, row.origin) for row in rows] == [("x", ""), ("x", "elsewhere")]
    assert places(scribe.store) == ["x", "x~0123456789ab"]


def test_tombstones_say_what_took_them_along(scribe):
    """What a forget named, and what went with it."""
    scribe.entry("forget", op=Op.FORGET)
    scribe.store.write(
        lambda writer: writer.ledger.erase(
            [(0, "a"), (0, "b")], position=1, at=7, reason="asked", causes={"b": "a"}
        )
    )

    with scribe.store.read() as reader:
        assert [(stone.id, stone.cause) for stone in reader.ledger.tombstones()] == [("a", None), ("b", "a")]
        assert reader.replica.buried("forget") == {"a"}
        assert reader.replica.tombstones(["a", "b", "c"]) == {"a": (1, 7, "asked"), "b": (1, 7, "asked")}
        assert reader.replica.positions(["forget", "a"]) == {"forget": 1}


def test_a_ledger_from_before_is_put_in_order(scribe: Scribe, engine):
    """One that took in others' entries late says so, and the next placing puts all of it in order."""
    scribe.store.write(
        lambda writer: writer.ledger.append([draft("b", 9), draft("a", 3), draft("c", 6)], recorded=0)
    )
    engine.execute("alice", "UPDATE meta SET value = '0' WHERE name = 'ordered'")

    scribe.store.write(lambda writer: writer.replica.place([]))

    assert places(scribe.store) == ["a", "c", "b"]
    with scribe.store.read() as reader:
        assert reader.replica.ordered()
        assert [row.entry.id for row in reader.ledger.rows()] == ["b", "a", "c"]
