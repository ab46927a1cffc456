"""Once a day the background of a server looks after every space."""

import threading

import pytest
from tests.conftest import HandClock, fresh_folder

from memplane import Memplane, Settings

PATIENCE_SECONDS = 240


def seen_days(settings, *, fail=False):
    """What the daily work of two spaces was told, once all of it was done."""
    told, done = [], threading.Event()

    def daily(space, day):
        told.append((space.owner, day))
        if fail and len(told) == 1:
            raise ValueError("for once")
        if len(told) >= 2 + fail:
            done.set()

    with fresh_folder() as folder:
        clock = HandClock()
        with Memplane.open(folder, embedder=None, clock=clock) as plane:
            for owner in ("alice", "bob"):
                plane.space(owner).retain("Hello!", at="2026-11-02T10:00:00Z")
        options = {"embedder": None, "clock": clock, "settings": settings}
        with Memplane.open(folder, background=True, daily=[daily], **options) as plane:
            assert done.wait(PATIENCE_SECONDS)
            background = plane._parts.background
        assert background is not None
        for owner in ("alice", "bob"):  # what is under way when a process ends is done by the next
            with Memplane.open(folder, **options) as plane:
                plane._daily_maintenance("default", owner)
        with Memplane.open(folder, daily=[daily], **options) as plane:
            before = len(told)
            plane._daily_maintenance("default", "alice")
            assert len(told) == before
            left = {owner: len(plane.space(owner).turns()) for owner in ("alice", "bob")}
    return told, left


@pytest.mark.parametrize("fail", [False, True])
def test_every_space_is_looked_after_once_a_day(fail):
    """What fails is tried again, and keeps no other space waiting."""
    told, left = seen_days(Settings(retention="adr"), fail=fail)

    assert set(told) == {("alice", "2026-11-14"), ("bob", "2026-11-14")}
    assert len(told) == 2 + fail
    assert left == {"alice": 0, "bob": 0}


def test_forever_removes_nothing_in_the_background():
    _, left = seen_days(Settings())

    assert left == {"alice": 1, "bob": 1}


def test_the_next_day_it_is_due_again():
    told = []
    clock = HandClock()
    with fresh_folder() as folder:
        options = {"embedder": None, "clock": clock, "daily": [lambda space, day: told.append(day)]}
        with Memplane.open(folder, **options) as plane:
            plane.space("alice").retain("Hello!")
            for _ in range(3):
                plane._daily_maintenance("default", "alice")
                plane._daily_maintenance("default", "alice")
                clock.advance(days=1)

    assert told == ["2026-11-14", "2026-11-15", "2026-11-16"]
