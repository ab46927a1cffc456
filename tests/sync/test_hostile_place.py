"""A place that lies: whoever may write there can say anything. Nothing breaks, nothing outside is touched, and what a machine
has stays."""

import json
from hashlib import sha256

import pytest

from memory_objects import MemoryObjects
from memplane import Memplane
from memplane.clock import DAY, INSTANT_MAX
from memplane.errors import ManifestUnreadable
from memplane.sync import manifest
from memplane.sync.sync import Sync

END_OF_TIME = "9999-12-31T23:59:59.999999Z"


@pytest.fixture
def objects():
    return MemoryObjects()


@pytest.fixture
def machines(tmp_path, objects, clock):
    """(space, sync) by name, made as they are asked for."""
    made = {}

    def machine(name, **options):
        if name not in made:
            plane = Memplane.open(tmp_path / name, embedder=None, clock=clock)
            space = plane.space("alice")
            sync = Sync(space, objects, tmp_path / name, clock=clock, pause=lambda _: None, **options)
            made[name] = plane, space, sync
        return made[name][1:]

    yield machine
    for plane, _, _ in made.values():
        plane.close()


def add_segment(objects, lines, replica="mallory"):
    data = b"".join(json.dumps({"memplane": 1, **line}).encode() + b"\n" for line in lines)
    key = f"ledger/{replica}/{1:012d}-{sha256(data).hexdigest()[:32]}.jsonl"
    objects.put(key, data)
    manifest.update(objects, lambda found: found.with_entry(key, manifest.ManifestEntry(size=len(data))))
    return key


def test_what_comes_after_the_end_of_time_is_kept(machines, objects, clock):
    """
    An entry of the last moment there is leaves none for what is said later; that is kept, told and synced all the same.
    """
    space, sync = machines("desk")
    space.put("city", "Lisbon")
    said = {"role": "user", "content": "I live in Rome", "at": INSTANT_MAX}
    add_segment(objects, [{"id": "turn-end", "op": "turn", "recorded": INSTANT_MAX, "body": said}])
    sync.push()
    clock.advance(seconds=1)
    space.put("city", "Porto")
    mine = space.store("preference", "Prefers green tea")
    space.store("preference", "Prefers black tea", supersedes=mine.id)
    sync.push()
    other, others_sync = machines("lap")
    others_sync.pull()
    clock.advance(seconds=1)
    other.put("city", "Faro")
    others_sync.push()
    sync.pull()

    assert {space.get("city").text, other.get("city").text} == {"Faro"}
    assert "black tea" in space.recall("tea").text
    assert {it.id for it in space.memories()} == {it.id for it in other.memories()}
    assert space.ledger.verify().ok
    assert other.ledger.verify().ok


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("behavioral/tea.md", f"---\nname: tea\nupdated: '{END_OF_TIME}'\n---\nPrefers tea\n"),
        ("state/facts.json", json.dumps({"facts": {"city": {"value": "Rome", "updated": END_OF_TIME}}})),
        (
            "interactions/9999-12-31.jsonl",
            json.dumps(
                {
                    "id": "end",
                    "ts": END_OF_TIME,
                    "channel": "email",
                    "direction": "inbound",
                    "sender": "bob",
                    "summary": "hello",
                }
            ),
        ),
    ],
)
def test_a_file_that_says_never_does_not_take_the_time_of_others(machines, objects, path, text):
    """
    Some write the end of time for "never". What is recorded after such a file has its own time.
    """
    space, sync = machines("desk")
    objects.put(path, text.encode())
    sync.push(look=True)
    space.retain("I live in Lisbon")

    assert max(entry.recorded for entry in space.ledger.entries()) < INSTANT_MAX - 1_000 * DAY
    assert "Lisbon" in space.recall("where does she live?").text


@pytest.mark.parametrize(
    "key",
    ["ledger/../../../outside", "ledger/a/../../b", "ledger/a\x00b", f"ledger/{'a' * 3_000}", "ledger/"],
)
def test_a_manifest_that_names_what_is_no_segment_stops_nobody(machines, objects, key):
    """
    It is told as damaged and never asked for; everything else is synced.
    """
    space, sync = machines("desk")
    space.retain("I live in Lisbon")
    sync.push()
    manifest.update(objects, lambda found: found.with_entry(key, manifest.ManifestEntry(size=1)))
    space.put("city", "Lisbon")
    pushed = sync.push()
    other, others_sync = machines("lap")

    assert pushed.taken.damaged == [key]
    assert pushed.given.entries == 1
    assert others_sync.pull().taken.added == 2
    assert other.get("city").text == "Lisbon"


@pytest.mark.parametrize(
    "data",
    [
        b'{"entries":' + b"[" * 100_000,
        b'{"entries":{"\xed\xa0\x80":{"size":1}}}',
        b'{"entries":{},"split":["../../outside"]}',
        b"",
    ],
)
def test_a_manifest_that_is_none_is_told_as_such(machines, objects, data):
    """
    Nothing is changed, and the message says what to do.
    """
    space, sync = machines("desk")
    space.retain("I live in Lisbon")
    sync.push()
    objects.put(manifest.KEY, data)

    with pytest.raises(ManifestUnreadable, match="Remove it"):
        sync.push()
    assert objects.get(manifest.KEY).data == data


@pytest.mark.parametrize("files", [True, False])
def test_a_lost_manifest_loses_nothing(machines, objects, clock, files):
    """
    What a machine pushed that never comes back is there after the manifest was moved away, and also where somebody made
    another one that does not name it.
    """
    space, sync = machines("lost", files=files)
    space.put("city", "Lisbon")
    sync.push()
    objects.delete(manifest.KEY)
    clock.advance(days=2)
    other, others_sync = machines("desk", files=files)
    others_sync.push()

    assert other.get("city").text == "Lisbon"


def test_segments_that_nobody_names_are_taken_in_before_they_go(machines, objects, clock):
    """
    A manifest that was cut short forgets what it named; those who find its segments keep what they hold.
    """
    space, sync = machines("lost")
    document = space.documents.upload(b"Lisbon has seven hills. " * 20, name="hills.txt")
    sync.push()
    objects.put(
        manifest.KEY, b'{"schema_version": 1, "updated_at": "2026-01-01T00:00:00.000Z", "entries": {}}'
    )
    clock.advance(days=30_000)
    other, others_sync = machines("desk")
    others_sync.push(look=True)
    third, thirds_sync = machines("lap")
    thirds_sync.pull()

    assert (
        [it.id for it in other.documents.list()] == [it.id for it in third.documents.list()] == [document.id]
    )
