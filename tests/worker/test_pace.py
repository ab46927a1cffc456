"""How much of the work fits: a deadline is kept although times are only estimated, and requests come first."""

import threading

from memplane.worker.batch import SpaceBatch
from memplane.worker.pace import _STORING_SHARE, Pace, Speed


class Timer:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def lasting(seconds, timer):
    """So many seconds, and some to store what was made."""
    return Pace(seconds=seconds / (1 - _STORING_SHARE), clock=timer)


def measured(seconds, computing=0.0):
    """A speed that was measured twice, which is when the assumed one no longer counts."""
    speed = Speed(9.0)
    for _ in range(2):
        speed.add(seconds, computing, 1.0)
    return speed


def test_half_of_the_remaining_time_is_planned():
    """An estimate may be wrong by half; the first piece fits if it ends in time although it takes a quarter longer."""
    timer = Timer()
    pace = lasting(10.0, timer)
    speed = measured(1.0)

    assert pace.fitting([1.0] * 20, speed) == 5
    timer.now = 8.7
    assert pace.fitting([1.0] * 20, speed) == 1
    timer.now = 8.8
    assert pace.fitting([1.0] * 20, speed) == 0
    assert not pace.is_over
    timer.now = 10.0
    assert pace.is_over
    assert pace.fitting([0.0], speed) == 0


def test_heavy_pieces_count_for_more():
    """A long text takes longer than a short one."""
    pace = lasting(10.0, Timer())

    assert pace.fitting([6.0, 1.0], measured(1.0)) == 1
    assert pace.fitting([11.0], measured(1.0)) == 0
    assert pace.fitting([8.1], measured(1.0)) == 0
    assert pace.fitting([7.9], measured(1.0)) == 1
    assert pace.fitting([], measured(1.0)) == 0


def test_without_a_deadline_all_of_it_fits():
    """Neither an estimate nor a slice ends a run that nobody waits for."""
    assert Pace().fitting([1.0] * 1_000, measured(100.0, 100.0)) == 1_000


def test_beside_requests_work_is_cut_by_the_time_it_computes():
    """A local model is asked a few texts at a time; a remote one, which only makes the worker wait, all of them."""
    calls = []
    pace = Pace(make_way=lambda: calls.append(1), clock=Timer())

    assert pace.fitting([1.0] * 32, measured(0.02, 0.02)) == 2
    assert pace.fitting([1.0] * 32, measured(1.0, 0.0)) == 32
    assert calls == [1, 1]


def test_one_slow_call_does_not_count():
    """The first call loads the model. The assumption counts until there is a second one."""
    speed = Speed(0.1)
    speed.add(8.0, 8.0, 2.0)
    assert speed.unit_s == 0.1
    speed.add(1.0, 0.5, 2.0)
    assert (speed.unit_s, speed.computing_s) == (0.5, 0.25)
    for _ in range(40):
        speed.add(1.0, 0.5, 1.0)
    assert speed.unit_s == 1.0


def test_what_never_fits_is_tried_again_after_a_while():
    """A slow phase of the machine does not end enrichment for good; a small budget that does something is no reason."""
    speed = measured(5.0)
    for _ in range(7):
        assert not Pace(seconds=1.0, clock=Timer()).has_time(speed)
    assert speed.is_measured
    used = Pace(seconds=60.0, clock=(timer := Timer()))
    with used.timed(speed, 1.0):
        timer.now += 5.0
    timer.now = 59.0
    for _ in range(20):
        assert not used.has_time(speed)
    assert speed.is_measured

    for _ in range(8):
        assert not Pace(seconds=1.0, clock=Timer()).has_time(speed)
    assert not speed.is_measured
    assert speed.unit_s == 9.0


def test_a_step_makes_way_between_two_texts():
    """A request that comes in the middle of a step is answered first; under a constant load the step gets on, because it
    waits no longer than it worked."""
    timer, resumed = Timer(), threading.Event()
    in_step, waited = threading.Event(), []

    class Worker:
        def step(self, store, *, reading, pace):
            in_step.set()
            resumed.wait(30)
            waited.append(pace.fitting([1.0], measured(0.0)))
            return False

    batch = SpaceBatch(Worker(), clock=timer)
    thread = threading.Thread(target=batch.work, args=(None,))
    thread.start()
    assert in_step.wait(30)
    with batch.yield_to_requests():
        resumed.set()  # it worked no time at all, so it does not wait either
        thread.join(30)

    assert waited == [1]
