"""Enrichment beside everything else gives way to whoever waits for an answer."""

import threading

import pytest

from memplane.worker.background import BackgroundRunner


class Steps:
    """A worker that counts, and says when it has begun."""

    def __init__(self):
        self.begun = threading.Event()

    def step(self, store, *, reading, pace):
        self.begun.set()
        return False


@pytest.fixture
def working(plane):
    """A background over one space that is there."""
    plane.space("ann").retain("tea")
    steps = Steps()
    with BackgroundRunner(plane._parts.stores, steps, list) as background:
        yield background, steps


def test_a_step_waits_until_nobody_waits_for_an_answer(working, monkeypatch):
    """
    Several may; the last to be answered lets it go on.
    """
    monkeypatch.setattr("memplane.worker.batch._YIELD_S", 30.0)
    background, steps = working

    with background.yield_to_requests():
        with background.yield_to_requests():
            background.notify("default", "ann")
        assert not steps.begun.wait(0.1)
    assert steps.begun.wait(30)


def test_however_many_wait_it_gets_on(working, monkeypatch):
    """
    A server that is always asked something enriches all the same.
    """
    monkeypatch.setattr("memplane.worker.batch._YIELD_S", 0.01)
    background, steps = working

    with background.yield_to_requests():
        background.notify("default", "ann")
        assert steps.begun.wait(30)


def test_it_outlives_what_nobody_foresaw(plane):
    """
    Whatever keeps it from looking at all spaces keeps nobody from telling it of one.
    """
    plane.space("ann").retain("tea")
    steps, looked = Steps(), threading.Event()

    def spaces():
        looked.set()
        raise OSError("a disk that is gone")

    with BackgroundRunner(plane._parts.stores, steps, spaces) as background:
        assert looked.wait(30)
        background.notify("default", "ann")
        assert steps.begun.wait(30)


def test_without_a_background_there_is_nothing_to_give_way(plane):
    """
    A program that has no worker asks all the same.
    """
    with plane.answering():
        assert plane.space("ann").retain("tea").id
