"""The threads of a worker outlive whatever strikes them, and say so: one that ended in silence would be missed by nobody."""

import threading

import pytest

from memplane.clock import system_clock
from memplane.worker import cluster as fleet
from memplane.worker.cluster import ClusterWorker, RemoteEnrichment

PATIENCE_SECONDS = 240


class Faulty:
    """`Work` of which there is none; the first ring and the first listening meet a bug."""

    def __init__(self):
        self.rung, self.listening = [], []
        self.done = threading.Event()

    def take(self, *_, **__):
        return None

    def report(self, *_, **__):
        pass

    def ring(self):
        self._meet(self.rung)

    def listen(self, _heard, stopped):
        self._meet(self.listening)
        stopped.wait()

    def _meet(self, before):
        before.append("again" if before else "first")
        if before == ["first"]:
            raise ValueError("a bug")
        self.done.set()


@pytest.fixture
def work(monkeypatch):
    monkeypatch.setattr(fleet, "_RELISTEN_DELAY_S", 0)
    return Faulty()


def said(caplog):
    found = [it for it in caplog.records if (it.name, it.levelname) == ("memplane.worker.cluster", "ERROR")]
    return [(it.message, it.fields["error"]) for it in found]


def test_a_bell_that_met_a_bug_rings_again(work, caplog):
    """
    Whoever writes next is heard.
    """
    elsewhere = RemoteEnrichment(work)
    while not work.done.is_set():
        elsewhere.notify("default", "ann")
    elsewhere.close()

    assert said(caplog) == [("cannot notify workers", "internal")]


def test_a_listener_that_met_a_bug_listens_again(work, caplog):
    """
    And ends when its worker does.
    """
    worker = ClusterWorker(None, work, None, system_clock)
    worker.begin()
    assert work.done.wait(PATIENCE_SECONDS)
    worker.close()

    assert work.listening == ["first", "again"]
    assert said(caplog) == [("cannot listen for notifications", "internal")]
