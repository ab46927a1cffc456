"""What every engine does with flags and with what a person ruled: kept apart, released, pinned."""

from memplane.storage.filter import Filter
from memplane.storage.review import ReviewDecision
from memplane.types import State, Tier
from recall_reads import candidates

RELEASED = ReviewDecision(released=True)
PINNED = ReviewDecision(pinned=True)


def rule(scribe, id_, ruling):
    scribe.store.write(lambda writer: writer.review.decide(id_, ruling))


def everything(scribe, **narrowed):
    return Filter(now=scribe.clock(), audience=None, **narrowed)


def test_flags_come_back(scribe):
    """
    Some, none, and that nobody has looked.
    """
    for id_, flags in (("a", ("x", "y")), ("b", ()), ("c", None)):
        scribe.memory("tea", id=id_, flags=flags)
        scribe.turn("tea", id=f"t{id_}", flags=flags)
    with scribe.store.read() as reader:
        assert [reader.memories.get(id_).flags for id_ in "abc"] == [("x", "y"), (), None]
        turns = {turn.entry_id: turn.flags for turn in reader.turns.find(everything(scribe), limit=9)}
        assert turns == {"ta": ("x", "y"), "tb": (), "tc": None}


def test_what_is_quarantined_is_apart(scribe):
    """
    Every filter can ask for it or for the rest; a release ends it, of a memory or of the entry it is from.
    """
    scribe.memory("tea", id="a", flags=("x",), tier=Tier.HOT)
    scribe.memory("tea", id="b", flags=(), tier=Tier.HOT)
    scribe.turn("tea", id="t", flags=("x",))
    with scribe.store.read() as reader:
        apart, rest = everything(scribe, quarantined=True), everything(scribe, quarantined=False)
        assert [memory.id for memory in reader.memories.find(apart, limit=9)] == ["a"]
        assert [memory.id for memory in reader.memories.find(rest, limit=9)] == ["b"]
        assert [memory.id for memory in candidates(reader, everything(scribe), hot=9).hot] == ["b"]
        assert [memory.id for memory in reader.memories.brief(now=scribe.clock(), limit=9)] == ["b"]
        assert [turn.entry_id for turn in reader.turns.find(apart, limit=9)] == ["t"]
        assert reader.turns.find(rest, limit=9) == []
        assert reader.memories.get("a").tier is Tier.WARM
        assert reader.review.quarantined(now=scribe.clock(), limit=9) == [3, 1]
        assert reader.review.quarantined(now=scribe.clock(), limit=1, offset=1) == [1]
        assert reader.review.quarantined_count(now=scribe.clock()) == 2
        assert len(reader.review.quarantined_turns(limit=9)) == 1
        assert reader.review.flagged_count(limit=9) == 1
        assert reader.review.quarantined_among(["a", "b", "c"]) == {"a"}
    rule(scribe, "a", RELEASED)
    rule(scribe, "t", RELEASED)
    with scribe.store.read() as reader:
        assert reader.review.quarantined_count(now=scribe.clock()) == 0
        assert reader.review.quarantined_turns(limit=9) == []
        assert reader.memories.get("a").tier is Tier.HOT
        assert [turn.released for turn in reader.turns.find(everything(scribe), limit=9)] == [True]


def test_a_pin_is_hot_as_long_as_it_holds(scribe):
    """
    In every list of what is always told, before the others.
    """
    scribe.memory("tea", id="a")
    scribe.memory("tea", id="b", tier=Tier.HOT)
    rule(scribe, "a", PINNED)
    with scribe.store.read() as reader:
        assert (reader.memories.get("a").tier, reader.memories.get("a").pinned) == (Tier.HOT, True)
        assert [memory.id for memory in candidates(reader, everything(scribe), hot=9).hot] == ["a", "b"]
        assert [memory.id for memory in candidates(reader, everything(scribe), hot=1).hot] == ["a"]
        hot = reader.memories.find(everything(scribe, tier=Tier.HOT), limit=9)
        assert {memory.id for memory in hot} == {"a", "b"}
        assert reader.memories.find(everything(scribe, tier=Tier.WARM), limit=9) == []
        assert [memory.id for memory in reader.memories.brief(now=scribe.clock(), limit=9)] == ["a", "b"]
    scribe.store.write(lambda writer: writer.memories.supersede("a", by="b", at=scribe.clock()))
    with scribe.store.read() as reader:
        old = reader.memories.get("a")
        assert (old.state, old.tier, old.pinned) == (State.SUPERSEDED, Tier.COLD, False)
        assert [memory.id for memory in candidates(reader, everything(scribe), hot=9).hot] == ["b"]


def test_the_last_ruling_holds(scribe):
    """
    Also before there is anything it is about; dropping what is derived drops it.
    """
    rule(scribe, "later", PINNED)
    rule(scribe, "later", ReviewDecision(released=True, pinned=True))
    scribe.memory("tea", id="later", flags=("x",))
    with scribe.store.read() as reader:
        assert reader.review.decision("later") == ReviewDecision(released=True, pinned=True)
        assert reader.review.decision("nobody") == ReviewDecision()
        assert reader.memories.get("later").tier is Tier.HOT
    scribe.store.write(lambda writer: writer.state.clear_projection())
    with scribe.store.read() as reader:
        assert reader.review.decision("later") == ReviewDecision()


def test_no_other_space_sees_it(scribe, open_store):
    """
    A ruling is a space's own.
    """
    rule(scribe, "a", PINNED)
    with open_store("bob").read() as reader:
        assert reader.review.decision("a") == ReviewDecision()
