"""An idempotency key makes a retry a no-op: for ever, or for as long as a window says."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import HandClock, costly, fresh_plane

from engines import both_if_thorough
from memplane.errors import InvalidRequest

pytestmark = both_if_thorough

DAY = timedelta(hours=24)


def keep(space, text="I live in Rome", key="k", window=DAY):
    return space.retain(text, idempotency_key=key, idempotency_window=window)


def test_within_the_window_a_key_names_one_event(space, clock: HandClock):
    """The first answer is given again, and what came with the retry is not kept."""
    first = keep(space)
    clock.advance(DAY - timedelta(microseconds=1))
    again = keep(space, "I live in Oslo")

    assert (again.id, again.seq, again.deduped) == (first.id, first.seq, True)
    assert [turn.text for turn in space.turns()] == ["I live in Rome"]


def test_after_the_window_it_names_a_new_one(space, clock: HandClock):
    """And that has a window of its own; the window of the last one counts, not of the first."""
    first = keep(space)
    clock.advance(DAY)
    second = keep(space)
    clock.advance(DAY - timedelta(seconds=1))
    third = keep(space)
    clock.advance(seconds=1)
    fourth = keep(space)

    assert [kept.deduped for kept in (first, second, third, fourth)] == [False, False, True, False]
    assert third.id == second.id
    assert len({first.id, second.id, fourth.id}) == 3
    assert space.overview.stats().turns == 3


def test_without_a_window_a_key_holds_for_ever(space, clock: HandClock):
    first = keep(space, window=None)
    clock.advance(days=4_000)

    assert keep(space, window=None).id == first.id
    assert keep(space, window=timedelta(days=4_001)).id == first.id


def test_a_forgotten_event_stays_forgotten_for_its_window(space, clock: HandClock):
    """A retry does not bring it back; afterwards the key is free for another event."""
    first = keep(space)
    space.forget(entries=[first.id])
    clock.advance(hours=23)
    retried = keep(space)
    clock.advance(hours=1)
    other = keep(space, "I live in Oslo")

    assert (retried.id, retried.suppressed, retried.seq) == (first.id, True, 0)
    assert (other.deduped, other.suppressed) == (False, False)
    assert [turn.text for turn in space.turns()] == ["I live in Oslo"]


def test_an_event_that_was_forgotten_before_it_came_never_comes(plane, space, clock: HandClock):
    """Nobody can say when its window would have been."""
    first = keep(space)
    clock.advance(days=2)
    second = keep(space)
    elsewhere = plane.space("bob")
    elsewhere.forget(entries=[first.id, second.id])

    assert keep(elsewhere).suppressed
    clock.advance(days=30)
    assert keep(elsewhere).suppressed


def test_the_ids_are_the_same_everywhere(plane, clock: HandClock):
    """They follow from the key and how often it was used, so that a copy of the ledger agrees."""
    names = ("alice", "bob")
    first = [keep(plane.space(name)).id for name in names]
    clock.advance(days=1)
    second = [keep(plane.space(name)).id for name in names]

    assert first[0] == first[1]
    assert second[0] == second[1]


@pytest.mark.parametrize("window", [timedelta(0), timedelta(days=-1), 3_600])
def test_a_window_is_a_length_of_time(space, window):
    with pytest.raises(InvalidRequest, match="give a positive duration"):
        keep(space, window=window)


@pytest.mark.parametrize("named", [{}, {"id": "x"}, {"id": "x", "idempotency_key": "k"}])
def test_a_window_needs_a_key(space, named):
    """Without one it would promise something that is not done."""
    with pytest.raises(InvalidRequest, match="idempotency_window needs an idempotency_key"):
        space.retain("hello", idempotency_window=DAY, **named)


@costly(30)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40)), min_size=1, max_size=40))
def test_any_run_of_retries_keeps_what_a_simple_model_keeps(steps):
    """However often a key comes back: one event a window, in order."""
    clock = HandClock()
    with fresh_plane(clock) as plane:
        space = plane.space("alice")
        kept: dict[str, tuple[str, int]] = {}
        for key, hours in steps:
            clock.advance(hours=hours)
            answer = keep(space, key=key)
            before = kept.get(key)
            fresh = before is None or clock() - before[1] >= DAY // timedelta(microseconds=1)
            assert answer.deduped is not fresh
            if fresh:
                assert all(answer.id != id_ for id_, _ in kept.values())
                kept[key] = (answer.id, clock())
            else:
                assert answer.id == before[0]
