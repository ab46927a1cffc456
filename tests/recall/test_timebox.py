"""An answer by a certain time where many ask at once: what would be late in any case is not waited for."""

import asyncio
import threading

import pytest

from memplane.recall.timebox import TimeBox


class Hours:
    """A clock that only work turns."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def hours():
    return Hours()


@pytest.fixture
def box(hours):
    made = TimeBox(threads=1, clock=hours)
    yield made
    made.close()


def taking(hours, seconds, answer="thorough"):
    def work():
        hours.now += seconds
        return answer

    return work


def awaited(box, thorough, quick, seconds=60.0):
    return asyncio.run(box.awaited(thorough, quick, seconds=seconds))


def test_the_thorough_answer_wins_if_it_is_in_time(box, hours):
    """
    The quick one is not even asked, however long the last ones took.
    """
    for _ in range(5):
        assert awaited(box, taking(hours, 500.0), lambda: pytest.fail("asked")) == "thorough"


def test_an_error_in_time_is_an_error(box):
    """
    An empty answer would hide an outage.
    """
    with pytest.raises(ZeroDivisionError):
        awaited(box, lambda: 1 // 0, lambda: "quick")


def test_what_has_not_begun_in_its_share_of_the_time_never_does(box):
    """
    It would begin too late to be in time, and would only keep others waiting.
    """
    let_go, began = threading.Event(), []
    box._thorough.submit(let_go.wait, 30)

    assert awaited(box, lambda: began.append(1), lambda: "quick", seconds=1.0) == "quick"
    let_go.set()
    assert awaited(box, lambda: "thorough", lambda: "quick") == "thorough"
    assert began == []


@pytest.mark.parametrize(("waits_s", "expected"), [(50.0, "thorough"), (5.0, "quick")])
def test_nobody_waits_in_a_queue_that_is_too_long(box, hours, waits_s, expected):
    """
    One takes ten seconds lately and two wait already: who has less time than they need is given the quick answer at once.
    """
    for _ in range(30):
        awaited(box, taking(hours, 10.0), lambda: "quick")
    let_go, begun = threading.Event(), threading.Event()
    box._thorough.submit(lambda: (begun.set(), let_go.wait(30)))
    begun.wait(30)
    queued = [box._thorough.submit(lambda: None) for _ in range(2)]

    async def ask():
        asking = asyncio.ensure_future(box.awaited(lambda: "thorough", lambda: "quick", seconds=waits_s))
        await asyncio.sleep(0)
        let_go.set()
        return await asking

    assert asyncio.run(ask()) == expected
    assert [future.result(30) for future in queued] == [None, None]


def test_where_even_the_quick_answer_would_be_late_there_is_none_at_once(box, hours):
    """
    A turn goes on without memory rather than later without memory. Once nobody waits, the next is asked again.
    """
    for lane in (box._thorough, box._quick):
        for _ in range(30):
            lane.submit(taking(hours, 10.0)).result(30)
    let_go = threading.Event()
    for lane in (box._thorough, box._quick):
        begun = threading.Event()
        lane.submit(lambda begun=begun: (begun.set(), let_go.wait(30)))
        begun.wait(30)
        lane.submit(lambda: None)

    assert awaited(box, lambda: pytest.fail("asked"), lambda: pytest.fail("asked"), seconds=5.0) is None

    let_go.set()
    assert awaited(box, lambda: "thorough", lambda: "quick") == "thorough"


def test_a_late_answer_is_better_than_none(box):
    """
    Where the caller allows it, the first result after the limit is taken; the full one is not waited for any longer.
    """
    let_go = threading.Event()
    try:
        hanging = lambda: let_go.wait(30)  # noqa: E731
        assert box.answer(hanging, lambda: "quick", seconds=-1.0, late_s=30.0) == "quick"
        assert box.answer(hanging, lambda: "quick", seconds=0.0, late_s=30.0) == "quick"
        assert box.answer(hanging, lambda: let_go.wait(30), seconds=0.0) is None
    finally:
        let_go.set()
