"""`memplane worker`: processes that enrich a database, and how their work stands."""

import json
import signal
import time
from contextlib import contextmanager

import pytest

from command_line import Done
from memplane import Memplane
from memplane.clock import SECOND
from memplane.server.metrics import Metrics
from memplane.storage.work import Backlog
from memplane.storage.work import WorkerCounts as WorkDone

PATIENCE_SECONDS = 240


@pytest.fixture
def database(shell, postgres_url):
    """The same commands, on a database."""
    shell.environment |= {
        "MEMPLANE_DATA": postgres_url,
        "MEMPLANE_EMBEDDING": "none",
        "MEMPLANE_LOG_LEVEL": "info",
    }
    return shell


@contextmanager
def worker(shell):
    """A process of its own, which said that it works."""
    with shell.fork("worker", "--json") as process:
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def wait_until_done(plane):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (now := plane.work.backlog()).waiting or now.held:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    "command", [["worker"], ["worker", "status"], ["worker", "dead"], ["worker", "retry", "--all"]]
)
def test_a_data_directory_says_who_enriches_it(shell, command):
    done = shell(*command)

    assert (done.code, done.out) == (1, "")
    assert "memplane serve" in done.err
    assert "postgresql://" in done.err


def test_what_waiting_does_not_mend_is_said_at_once(shell, postgres_url):
    """
    A database that is away is waited for; one that is not there is a mistake.
    """
    shell.environment |= {
        "MEMPLANE_DATA": postgres_url.replace("/memplane_", "/nowhere_"),
        "MEMPLANE_EMBEDDING": "none",
    }

    done = shell("worker")

    assert (done.code, done.out) == (4, "")
    assert "there is no such database" in done.err


def test_a_server_on_a_directory_enriches_it(shell):
    done = shell("serve", "--no-worker", "--port", "0")

    assert (done.code, done.out) == (1, "")
    assert "needs PostgreSQL" in done.err


def test_a_worker_works_and_ends_in_order(database, postgres_url):
    """What was retained is derived by it; told to end, it gives back what it has, and says what it did."""
    assert database("retain", "I live in Lisbon", "--space", "ann").code == 0
    before = database("worker", "status", "--json").json
    with worker(database) as (process, greeting):
        with Memplane.open(postgres_url, embedder=None) as plane:
            wait_until_done(plane)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE_SECONDS)
    after = database("worker", "status", "--json").json
    lines = [json.loads(line) for line in log.splitlines()]

    assert (before["waiting"], before["entries_behind"], before["workers"]) == (1, 1, [])
    assert (after["waiting"], after["held"], after["entries_behind"]) == (0, 0, 0)
    assert process.returncode == 0
    assert [(it["holder"], it["ended"]) for it in after["workers"]] == [(greeting["worker"], True)]
    assert after["steps"] >= 1
    assert lines[-1]["event"] == "worker ended"
    assert lines[-1]["taken"] == after["taken"]
    assert "password" not in greeting["data"]


def test_the_dead_are_listed_and_tried_again(database, postgres_url):
    database("retain", "I live in Lisbon", "--space", "ann")
    with Memplane.open(postgres_url, embedder=None) as plane:
        plane.work.bury(plane.work.take("w", after=0, length=SECOND), error="internal")
    listed = database("worker", "dead", "--json")
    unnamed = database("worker", "retry")
    database("put", "k", "v", "--space", "ben")
    nobody = database("worker", "retry", "--space", "ben", "--json")
    missing = [database("worker", "retry", "--space", *it) for it in (["carl"], ["ann", "--tenant", "other"])]
    both = database("worker", "retry", "--space", "ann", "--all")
    tried = database("worker", "retry", "--space", "ann", "--json")

    assert [(it["space"], it["error"]) for it in listed.json["dead"]] == [("ann", "internal")]
    assert "ann" in database("worker", "dead").out + listed.out
    assert (unnamed.code, both.code, nobody.json, tried.json) == (1, 1, {"retried": 0}, {"retried": 1})
    assert [(it.code, it.out, "no space" in it.err) for it in missing] == [(1, "", True)] * 2
    assert database("worker", "dead", "--json").json == {"dead": []}
    assert database("worker", "dead").out == "No dead spaces.\n"
    assert isinstance(tried, Done)


def test_figures_of_all_workers_are_in_the_metrics():
    backlog = Backlog(waiting=3, held=1, resting=2, dead=1, failing=0, oldest=5 * SECOND, behind=7)
    told = Metrics().exposition((backlog, WorkDone(taken=9, steps=8, failures=1, lost=2))).decode()

    for line in (
        'memplane_work_spaces{state="waiting"} 3.0',
        'memplane_work_spaces{state="dead"} 1.0',
        "memplane_work_oldest_seconds 5.0",
        "memplane_work_entries_behind 7.0",
        "memplane_work_taken_total 9.0",
        "memplane_work_failures_total 1.0",
        "memplane_work_lost_total 2.0",
    ):
        assert line in told.splitlines()
