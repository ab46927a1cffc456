"""The cached backend under SIGKILL and with several processes: what was acknowledged is there once, and only once."""

import json
import multiprocessing
import os
from collections import Counter

import pytest
from tests.support import cache_workers as workers
from tests.support.cache_workers import DAY, script

from memplane.clock import SECOND
from memplane.sync import manifest
from memplane.sync.cached import CachedBackend
from memplane.sync.local import LocalObjects

PATIENCE_SECONDS = 240
THOROUGH = os.environ.get("MEMPLANE_TESTS") == "thorough"

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.support.cache_workers"])


class Dead(BaseException):
    """What a process that was killed does from then on."""


def died_at(step, store, cache):
    """As a kill at that step, without a process: from then on nothing that is done to a file is done. Returns how many
    operations were acknowledged, and whether all of it was done before."""
    acknowledged, left = [], [step]

    def on_step():
        left[0] -= 1
        if left[0] <= 0:
            raise Dead

    try:
        with workers.stepping(on_step):
            workers.perform(store, cache, acknowledged.append)
    except Dead:
        return len(acknowledged), False
    return len(acknowledged), True


def killed_at(step, store, cache, told):
    process = forked.Process(target=workers.killed_at, args=(step, store, cache, told), daemon=True)
    process.start()
    process.join(PATIENCE_SECONDS)
    assert process.exitcode is not None
    process.close()
    said = told.read_bytes() if told.exists() else b""
    return said.count(b"."), said.endswith(b"!")


def check(backend, acknowledged):
    """Everything that was acknowledged is there once; what was being done when it ended, at most once."""
    operations = list(script())
    done, next_one = operations[:acknowledged], operations[acknowledged : acknowledged + 1]
    for key in (DAY, "log.txt"):
        there = Counter((backend.read_text(key) or "").splitlines(keepends=True))
        must = Counter(text for do, where, text in done if where == key)
        may = Counter(text for do, where, text in next_one if where == key)
        assert there in (must, must + may)
    written = [text for do, where, text in done if do == "write"]
    wanted = {written[-1] if written else None} | {text for do, _, text in next_one if do == "write"}
    assert backend.read_text("state.txt") in wanted


def recovered(store, cache, other, acknowledged):
    """What the next process on this machine, and then another machine, makes of what was left."""
    with CachedBackend(LocalObjects(store), cache, pause=lambda _: None) as again:
        check(again, acknowledged)
        again.flush()
        check(again, acknowledged)
        assert again.state().pending == 0
    with CachedBackend(LocalObjects(store), other) as elsewhere:
        check(elsewhere, acknowledged)
    found, _ = manifest.read(LocalObjects(store))
    listed = {
        item.key: item.size for item in LocalObjects(store).list() if not manifest.is_manifest(item.key)
    }
    assert {key: entry.size for key, entry in found.entries.items()} == listed


def test_dead_at_any_point(tmp_path):
    """
    At whichever step a process ends, the next one reads all that was acknowledged, sends it once, and the manifest agrees.
    A thorough run takes every step, others every third.
    """
    for step in range(1, 1_000, 1 if THOROUGH else 3):
        store, cache, other = (tmp_path / f"{name}-{step}" for name in ("store", "cache", "other"))
        acknowledged, is_done = died_at(step, store, cache)
        recovered(store, cache, other, acknowledged)
        if is_done:
            break

    assert is_done
    assert step > 50


@pytest.mark.parametrize("step", [3, 17, 40, 61, 88])
def test_killed(tmp_path, step):
    """
    The same with a process and SIGKILL.
    """
    store, cache, other = (tmp_path / name for name in ("store", "cache", "other"))
    acknowledged, is_done = killed_at(step, store, cache, tmp_path / "told")

    assert not is_done
    recovered(store, cache, other, acknowledged)


@pytest.mark.parametrize("shared", [True, False])
def test_processes(tmp_path, shared):
    """
    Processes that share a cache directory, or a store alone, lose and repeat nothing, and each reads what it wrote.
    """
    names = ["eager", "lazy", "other"]
    processes = [
        forked.Process(
            target=workers.write_lines,
            args=(tmp_path / "store", tmp_path / ("cache" if shared else name), name, 12),
        )
        for name in names
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert [process.exitcode for process in processes] == [0, 0, 0]
    with CachedBackend(LocalObjects(tmp_path / "store"), tmp_path / "last") as last:
        for key in (DAY, "log.txt"):
            lines = last.read_text(key).splitlines()
            assert sorted(lines) == sorted(f"{name} {number}" for name in names for number in range(12))
            for name in names:
                mine = [line for line in lines if line.startswith(name)]
                assert mine == [f"{name} {number}" for number in range(12)]


def test_two_machines_on_azure(azurite, tmp_path):
    """
    The same through a real server: each machine's interactions are there once, in its own order.
    """
    place = azurite.place()
    now = [0]
    machines = [
        CachedBackend(place.open(), tmp_path / name, clock=lambda: now[0], pause=lambda _: None)
        for name in "ab"
    ]
    for number in range(6):
        for name, machine in zip("ab", machines, strict=True):
            machine.append_text(DAY, json.dumps({"id": f"{name}{number}"}) + "\n")
        now[0] += 3 * SECOND
    for machine in machines:
        machine.close()
    now[0] += 10 * SECOND

    texts = [machine.read_text(DAY) for machine in machines]
    assert texts[0] == texts[1]
    ids = [json.loads(line)["id"] for line in texts[0].splitlines()]
    assert sorted(ids) == sorted(f"{name}{number}" for name in "ab" for number in range(6))
