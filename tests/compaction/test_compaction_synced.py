"""Compaction of a space that is synced: cut off between any two requests, nothing is lost, nothing is there twice, and a raw
day leaves the place only when what it came to is there."""

import shutil

import pytest

from conftest import HandClock
from faulty_objects import Crash
from memory_objects import MemoryObjects
from memplane import Settings
from memplane.sync import manifest, push, segments
from memplane.types import Op
from sync_machines import Machine, content, keys

ADR = Settings(retention="adr")
RAW, DIGEST = "interactions/2026-11-02.jsonl", "compacted/2026-45.md"


class CutOff:
    """An `ObjectStore` whose caller ends before a certain request; `seen` is called before each."""

    def __init__(self, inner, requests, seen):
        self.url = inner.url
        self.left = requests
        self._inner = inner
        self._seen = seen

    def __getattr__(self, name):
        def request(*given, **named):
            self._seen()
            if not self.left:
                raise Crash
            self.left -= 1
            return getattr(self._inner, name)(*given, **named)

        return request


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """A machine that has pushed two raw days, and the place."""
    folder, objects = tmp_path_factory.mktemp("said") / "data", MemoryObjects()
    machine = Machine(folder, objects, HandClock(), settings=ADR)
    for day in (2, 3):
        said = ("Hello there!", "My sister Anna lives in Lisbon.", "I prefer Teams over email.")
        for second, text in enumerate(said):
            machine.space.retain(text, at=f"2026-11-0{day}T10:00:0{second}Z", conversation=f"c{day}")
        machine.sync.push()
    machine.plane.close()
    return folder, objects


def copied(said, target):
    folder, objects = said
    shutil.copytree(folder, target)
    copy = MemoryObjects()
    copy.writes, copy._objects = objects.writes, dict(objects._objects)
    return copy


def named_segments(objects):
    found, _ = manifest.read(objects)
    return b"".join(objects.get(key).data for key in found.entries if segments.is_segment(key))


def ended(machine, objects, clock):
    """Everything done that is to be done; what there is then, here and there."""
    machine.space.compact()
    for _ in range(3):
        clock.advance(microseconds=2 * push.GRACE)
        machine.sync.push(look=True)
    entries = machine.space.ledger.entries()
    assert machine.sync.push().idle
    assert machine.space.ledger.verify().ok
    assert len({entry.id for entry in entries}) == len(entries)
    # Machines forget under receipts of their own; a second run has nothing to remove and gives none.
    return {
        "kept": sorted(
            (entry.id, entry.body) for entry in entries if entry.body and entry.op is not Op.FORGET
        ),
        "gone": sorted(entry.id for entry in entries if not entry.body),
        "files": {
            key: objects.get(key).data
            for key in keys(objects)
            if not segments.is_segment(key) and not manifest.is_manifest(key)
        },
    }


@pytest.fixture(scope="module")
def undisturbed(said, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "data"
    clock, objects = HandClock(), copied(said, folder)
    machine = Machine(folder, objects, clock, settings=ADR)
    try:
        return ended(machine, objects, clock)
    finally:
        machine.plane.close()


def test_there_is_something_to_lose(said, undisturbed):
    _, before = said

    assert {RAW, "summaries/2026-11-02.html"} <= set(keys(before))
    assert {DIGEST, "summaries/2026-11-02.html"} <= set(undisturbed["files"])
    assert RAW not in undisturbed["files"]
    assert len(undisturbed["gone"]) == 6
    assert {id_.partition("-")[0] for id_, _ in undisturbed["kept"]} >= {"learn", "digest", "summarize"}


def test_cut_off_before_any_request_it_ends_where_it_would_have(said, undisturbed, tmp_path):
    requests, cut_off = 0, True
    while cut_off:
        folder = tmp_path / str(requests)
        clock, objects = HandClock(), copied(said, folder)

        def seen(objects=objects):
            """At any time, the place has the raw day or what it came to; of both kinds, the ledger and the files."""
            assert RAW in keys(objects) or DIGEST in keys(objects)
            assert b"Lisbon" in named_segments(objects)
            assert b"Teams" in named_segments(objects)

        store = CutOff(objects, requests, seen)
        machine = Machine(folder, store, clock, settings=ADR)
        machine.space.compact()
        try:
            machine.sync.push()
            cut_off = False
        except Crash:
            pass
        machine.plane.close()
        machine = Machine(folder, objects, clock, settings=ADR)

        assert ended(machine, objects, clock) == undisturbed, requests

        assert b"Hello there" not in named_segments(objects)
        machine.plane.close()
        requests += 1

    assert requests > 8


def test_another_machine_that_only_pulls_has_the_same(said, undisturbed, tmp_path):
    clock, objects = HandClock(), copied(said, tmp_path / "desk")
    desk = Machine(tmp_path / "desk", objects, clock, settings=ADR)
    lap = Machine(tmp_path / "lap", objects, clock)
    lap.sync.pull()

    assert len(lap.space.turns()) == 6

    ended(desk, objects, clock)
    lap.sync.pull()

    assert lap.space.turns() == []
    assert [line.text for line in lap.space.overview.digest_lines()] == [
        line.text for line in desk.space.overview.digest_lines()
    ]
    assert ended(lap, objects, clock) == undisturbed
    assert b"Lisbon" in content(objects)
    for machine in (desk, lap):
        machine.plane.close()
