"""Feedback closes the loop: what agents use gains importance, what they pass over fades, and one can see why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import HandClock, costly, fresh_plane

from engines import both_if_thorough
from memplane.errors import InvalidRequest
from memplane.extract.feedback import CHOSEN_STEP, IGNORED_STEP, REACH, importance_after
from memplane.ledger.payloads import decode
from memplane.types import Op, Tier

pytestmark = both_if_thorough

NOBODY = "fact-" + "0" * 32


def derived(space, text="I play the cello on Sundays."):
    space.retain(text)
    space.enrich()
    return space.overview.newest_memories(1)[0]


def test_what_is_chosen_gains_and_what_is_passed_over_fades(space):
    """Both a little, both visibly, and to be passed over says less."""
    first, second = space.store("fact", "Has a cat"), space.store("fact", "Has a dog")

    assert space.feedback([first.id], [second.id], recall="r1") == 2
    chosen, passed = space.memory(first.id), space.memory(second.id)
    assert (chosen.chosen, chosen.passed_over, chosen.importance_base) == (1, 0, 0.5)
    assert (passed.chosen, passed.passed_over, passed.importance_base) == (0, 1, 0.5)
    assert chosen.importance == pytest.approx(0.5 + REACH * CHOSEN_STEP)
    assert passed.importance == pytest.approx(0.5 - REACH * IGNORED_STEP)


def test_the_ledger_keeps_ids_and_nothing_else(space):
    """Whatever a caller calls an id, only those of memories that are there are written down."""
    memory = space.store("fact", "Has a cat")
    space.feedback([memory.id, "my password is hunter2"], recall="r1", rating=4)
    rated = decode(space.ledger.entries()[-1])

    assert (rated.selected, rated.ignored, rated.recall, rated.rating) == ((memory.id,), (), "r1", 4)


def test_unknown_and_forgotten_ids_count_for_nothing(space):
    """Nor do turns; and where nothing counts, nothing is written."""
    turn = space.retain("hello")
    gone = space.store("fact", "Has a cat")
    space.delete(gone.id)
    before = space.overview.stats().entries

    assert space.feedback([NOBODY, gone.id, turn.id], ["nobody"]) == 0
    assert space.overview.stats().entries == before


def test_who_is_in_both_lists_was_of_use(space):
    memory = space.store("fact", "Has a cat")

    assert space.feedback([memory.id, memory.id], [memory.id]) == 1
    assert (space.memory(memory.id).chosen, space.memory(memory.id).passed_over) == (1, 0)


def test_a_better_recall_says_more(space):
    memories = [space.store("fact", f"Has cat number {number}") for number in range(3)]
    for memory, rating in zip(memories, (1, None, 5), strict=True):
        space.feedback([memory.id], rating=rating)
    low, usual, high = (space.memory(memory.id).importance for memory in memories)

    assert 0.5 < low < usual < high


@pytest.mark.parametrize("rating", [0, 6, True, 2.5, "5"])
def test_a_rating_is_one_to_five(space, rating):
    with pytest.raises(InvalidRequest, match="give 1 to 5"):
        space.feedback([], rating=rating)


def test_ids_are_a_list(space):
    with pytest.raises(InvalidRequest, match="selected: give a list"):
        space.feedback("fact-1")
    with pytest.raises(InvalidRequest, match="at most 1,000 ids"):
        space.feedback([str(number) for number in range(1_001)])


def test_often_chosen_is_always_told(space):
    """The tier follows, and with it what is told whatever the question is."""
    memory = derived(space)
    assert memory.tier is Tier.WARM
    for _ in range(30):
        space.feedback([memory.id])

    assert space.memory(memory.id).tier is Tier.HOT
    assert memory.id in {hit.id for hit in space.recall("What is the weather like?").facts}


def test_what_is_never_of_use_fades_out_of_sight_and_comes_back(space):
    """It is not told any more, but it is there for who looks for it, says why, and once chosen it returns."""
    memory = derived(space, "I own a cello.")
    for _ in range(80):
        space.recall("cello")  # to be told in vain is no use
        space.feedback([], [memory.id])
    faded = space.memory(memory.id)

    assert (faded.tier, faded.state, faded.passed_over) == (Tier.COLD, "active", 80)
    assert memory.id not in {hit.id for hit in space.recall("cello").facts}
    assert memory.id in {hit.id for hit in space.recall("cello", include_superseded=True).facts}
    assert memory.id in {hit.id for hit in space.search("cello")}
    assert "It faded: feedback marked it as not used 80 times" in space.why_not("cello", memory.id)
    for _ in range(5):
        space.feedback([memory.id])
    assert space.memory(memory.id).tier is Tier.WARM
    assert memory.id in {hit.id for hit in space.recall("cello").facts}


def test_what_matters_most_never_fades_out_of_sight(space):
    """Where somebody lives is worth knowing, however seldom it is of use."""
    memory = derived(space, "I live in Rome.")
    for _ in range(80):
        space.feedback([], [memory.id])

    assert space.memory(memory.id).importance < memory.importance
    assert space.memory(memory.id).tier is Tier.HOT
    assert memory.id in {hit.id for hit in space.recall("Where do I live?").facts}


def test_what_was_stored_on_purpose_is_never_out_of_sight(space):
    """An instruction that was never needed so far is still one."""
    memory = space.store("instruction", "Never touch the cello")
    for _ in range(80):
        space.feedback([], [memory.id])

    assert space.memory(memory.id).tier is Tier.WARM
    assert memory.id in {hit.id for hit in space.recall("cello").facts}


def test_of_two_that_fit_alike_the_chosen_is_told_first(space):
    first, second = (space.store("fact", f"The cello teacher is called {name}") for name in ("Ada", "Bea"))
    for memory in (first, second):
        for _ in range(4):
            space.feedback([memory.id], [(second if memory is first else first).id] * 1)
        told = [hit.id for hit in space.recall("cello teacher").facts]
        assert told[0] == memory.id


def test_a_memory_that_is_derived_late_is_rated_in_its_turn(open_plane):
    """The worker comes to the feedback after what it is about, however far behind it is."""
    space = open_plane(recall_work_ms=0).space("alice")
    memory = derived(space)
    space.retain("I have a cat.")
    space.feedback([memory.id])
    assert space.memory(memory.id).chosen == 0

    space.enrich()
    assert space.memory(memory.id).chosen == 1


def test_a_replay_gives_the_same(space, clock: HandClock):
    """Also for what was replaced, contested or forgotten since."""
    memories = [derived(space, text) for text in ("I live in Rome.", "I like tea.", "I own a cello.")]
    space.feedback([memory.id for memory in memories[:2]], [memories[2].id], rating=5)
    derived(space, "Actually, I live in Oslo.")
    clock.advance(days=1)
    space.feedback([memories[0].id, memories[1].id])
    space.delete(memories[2].id)
    before = sorted(map(_state, space.overview.newest_memories(99)))
    space.ledger.replay()

    assert sorted(map(_state, space.overview.newest_memories(99))) == before


def _state(memory):
    return memory.id, memory.tier, memory.importance, memory.leaning, memory.chosen, memory.passed_over


def test_feedback_goes_with_the_place_it_was_given_on(space):
    """A fact that was said twice and forgotten once stands as it was said, before and after a replay."""
    first = space.retain("I play the cello.")
    memory = derived(space, "I play the cello.")
    for _ in range(30):
        space.feedback([memory.id])
    space.forget(entries=[first.id])
    (left,) = space.overview.newest_memories(9)
    space.ledger.replay()

    assert (left.chosen, left.tier, left.importance_base) == (0, Tier.WARM, None)
    assert _state(space.overview.newest_memories(9)[0]) == _state(left)


def test_feedback_is_a_part_of_the_ledger(space):
    """In ids alone: nothing of what was told stands in it."""
    memory = derived(space)
    space.feedback([memory.id])
    entry = space.ledger.entries()[-1]

    assert entry.op is Op.FEEDBACK
    assert b"cello" not in entry.body


WORDS = st.lists(st.tuples(st.booleans(), st.sampled_from([None, 1, 2, 3, 4, 5])), max_size=60)


@costly(20)
@given(WORDS)
def test_feedback_is_bounded_and_one_word_changes_little(words):
    """However many say what: importance stays within reach of where it was, and no single word moves it far."""
    with fresh_plane(recall_work_ms=60_000) as plane:
        space = plane.space("alice")
        memory = space.store("fact", "Has a cat")
        before = memory.importance
        for useful, rating in words:
            space.feedback(*(([memory.id], []) if useful else ([], [memory.id])), rating=rating)
            now = space.memory(memory.id)
            assert abs(now.importance - before) <= 2 * REACH * CHOSEN_STEP * 5 / 3 + 1e-3
            assert now.importance >= before if useful else now.importance <= before
            assert abs(now.importance - 0.5) <= REACH
            before = now.importance


@given(st.floats(0, 1), st.floats(-1, 1))
def test_importance_stays_a_share(base, leaning):
    assert 0 <= importance_after(base, leaning) <= 1
