"""A clock that jumps erases nothing for good, and what is expired is erased in the end."""

from datetime import timedelta

import pytest

from memplane.errors import NotFound

TTL = timedelta(days=30)


def maintain(plane, clock, days):
    """So many days of daily maintenance."""
    for _ in range(days):
        clock.advance(days=1)
        plane._daily_maintenance("default", "alice")


@pytest.mark.parametrize("ahead", [31, 400, 36_000])
def test_a_jump_forward_erases_nothing(plane, clock, ahead, figures):
    """
    The clock is a year ahead for two days and is set right again: every fact is back.
    """
    space = plane.space("alice")
    space.put("preferences/theme", "dark", ttl=TTL)
    maintain(plane, clock, 3)
    right = clock.moment
    clock.advance(days=ahead)
    for _ in range(2):
        with pytest.raises(NotFound):
            space.get("preferences/theme")
        maintain(plane, clock, 1)
    clock.set(right)
    maintain(plane, clock, 5)

    assert space.get("preferences/theme").text == "dark"
    figures(days_ahead=ahead, erased=0)


def test_what_is_expired_is_erased_after_the_grace_period(plane, clock, tmp_path):
    """
    Not before `expired_grace_days`, and a day later at most.
    """
    space = plane.space("alice")
    space.put("preferences/theme", "dark", ttl=TTL)
    maintain(plane, clock, 32)
    assert len(space.history("preferences/theme")) == 1
    maintain(plane, clock, 3)

    assert space.history("preferences/theme") == []


def test_a_clock_set_back_keeps_order_and_credentials(plane, clock):
    """
    Entries written with an earlier clock follow the others, and the chain verifies.
    """
    space = plane.space("alice")
    space.retain("The lamp is green", id="first")
    clock.advance(days=-400)
    space.retain("The lamp is blue", id="second")
    clock.advance(days=800)
    space.retain("The lamp is red", id="third")

    assert [entry.id for entry in space.ledger.entries()] == ["first", "second", "third"]
    assert space.ledger.verify().problems == ()
