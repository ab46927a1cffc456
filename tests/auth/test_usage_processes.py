"""Several programs on one catalog: limits are exact, counts add up, and a kill costs no more than what was in memory."""

import multiprocessing
import os
import random

import apsw
import pytest
from tests.conftest import fresh_folder
from tests.support import metering_workers as workers
from tests.support.metering_workers import ENDPOINT, LIMIT, RATE, TENANT, plane_on

PATIENCE_SECONDS = 240
KILLS = 60 if os.environ.get("MEMPLANE_TESTS") == "thorough" else 8

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.support.metering_workers"])


@pytest.fixture
def data():
    """A kill takes nothing from the system's cache, so no disk is needed."""
    with fresh_folder() as folder:
        yield folder


def answers_of(target, data, count, times):
    """What so many processes answer that begin at the same moment."""
    begin = forked.Barrier(count)
    pipes, processes = [], []
    for _ in range(count):
        pipe, end = forked.Pipe(duplex=False)
        process = forked.Process(target=target, args=(str(data), begin, times, end), daemon=True)
        process.start()
        end.close()
        pipes.append(pipe)
        processes.append(process)
    answers = []
    for pipe, process in zip(pipes, processes, strict=True):
        assert pipe.poll(PATIENCE_SECONDS)
        answers.append(pipe.recv())
        process.join(PATIENCE_SECONDS)
        assert process.exitcode == 0
    return answers


def test_a_quota_is_shared_to_the_last(data):
    """
    Exactly as many are allowed as there are, and what the programs counted adds up.
    """
    allowed = answers_of(workers.ingest, data, 3, 60)
    with plane_on(data, quota_ingest_events=LIMIT) as plane:
        standing = plane.quota.status(TENANT)
        totals = plane.usage.summary(TENANT).totals

    assert sum(allowed) == standing.used == totals.ingest_events == LIMIT
    assert (totals.requests, totals.errors) == (180, 180 - LIMIT)


def test_a_rate_is_shared(data):
    """
    Of one minute, whoever asks.
    """
    assert sum(answers_of(workers.recall, data, 2, 60)) == RATE


def killed(data, name, rng):
    """What a process told until it was killed at some moment."""
    pipe, end = forked.Pipe(duplex=False)
    process = forked.Process(target=workers.work_until_killed, args=(str(data), name, end), daemon=True)
    process.start()
    end.close()
    told = b""
    for _ in range(rng.randrange(1, 12)):
        told += os.read(pipe.fileno(), 65_536)
    process.kill()
    process.join(PATIENCE_SECONDS)
    while more := os.read(pipe.fileno(), 65_536):
        told += more
    lines = [line.split() for line in told.decode().splitlines(keepends=True) if line.endswith("\n")]
    return [(int(number), written == "1", receipt) for number, written, receipt in lines]


def test_a_kill_loses_only_what_was_not_written_yet(data):
    """
    The catalog is whole; every receipt is found, every use of the quota is counted, and of the usage what was written.
    """
    rng = random.Random("kill")
    ingested = metered = 0
    receipts = []
    for round_ in range(KILLS):
        name = f"victim{round_}"
        told = killed(data, name, rng)
        ingested += len(told)
        metered += max((number for number, written, _ in told if written), default=0)
        receipts += [(name, receipt) for _, _, receipt in told]
    connection = apsw.Connection(str(data / "catalog.db"))
    sound = connection.execute("PRAGMA integrity_check").fetchall()
    connection.close()
    with plane_on(data, quota_ingest_events=1_000_000) as plane:
        found = plane.receipts(TENANT, limit=10_000)
        used = plane.quota.status(TENANT).used
        usage = plane.usage.breakdown(TENANT).endpoints
        listed = {(one.owner, one.receipt.id) for one in found.receipts}

    assert sound == [("ok",)]
    assert set(receipts) <= listed
    assert found.total == len(listed) <= ingested + KILLS
    assert ingested <= used <= ingested + KILLS
    assert [one.endpoint for one in usage] == ([ENDPOINT] if metered else [])
    assert metered <= sum(one.requests for one in usage) <= used


def test_a_directory_is_right_after_a_note_was_lost(data):
    """
    As a loss of power would leave it: the note is gone, the space has the thing, and the owner is not complete.
    """
    with plane_on(data) as plane:
        space = plane.space("alice")
        space.store("fact", "one")
        space.forget(everything=True)
        plane.receipts(TENANT)
        space.store("fact", "two")
        lost = space.forget(everything=True)
    connection = apsw.Connection(str(data / "catalog.db"))
    connection.execute("DELETE FROM place WHERE id = ?", (lost.id,))
    connection.close()

    with plane_on(data) as plane:
        assert plane.receipt(TENANT, lost.id).owner == "alice"
        assert plane.receipts(TENANT).total == 2
