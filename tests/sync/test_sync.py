"""Two machines and a place: what a push and a pull do, and what they leave alone."""

import shutil

import pytest
from benchmarks.counting import Counting

from conftest import HandClock
from memory_objects import MemoryObjects
from memplane.errors import RemoteDenied, RemoteUnavailable, StorageBusy
from memplane.sync import manifest, push, segments
from memplane.sync.link import only_one
from memplane.sync.status import sync_overview, without_secrets
from memplane.sync.sync import Sync
from memplane.sync.watch import SyncWatcher, WatchStopped
from memplane.types import Op
from sync_machines import Machine, content, keys


@pytest.fixture
def objects():
    return MemoryObjects()


@pytest.fixture
def store(objects):
    return Counting(objects)


@pytest.fixture
def machines(tmp_path, store, clock):
    """Machines by name, made as they are asked for."""
    made = {}

    def machine(name, **options):
        if name not in made:
            made[name] = Machine(tmp_path / name, store, clock, **options)
        return made[name]

    yield machine
    for one in made.values():
        one.plane.close()


def test_a_memory_follows_to_another_machine(machines):
    """
    What was said on one is recalled on the other, with the same ids, and the other way round.
    """
    desk, lap = machines("desk"), machines("lap")
    turn = desk.space.retain("I moved to Lisbon", conversation="c1")
    desk.space.store("preference", "Prefers TypeScript")
    desk.space.put("theme", "dark")

    pushed = desk.sync.push()
    pulled = lap.sync.pull()

    assert (pushed.given.entries, pulled.taken.added) == (3, 3)
    assert [entry.id for entry in lap.space.ledger.entries()] == [
        entry.id for entry in desk.space.ledger.entries()
    ]
    assert lap.space.ledger.entries()[0].id == turn.id
    assert lap.space.get("theme").text == "dark"
    lap.space.put("theme", "light")
    lap.sync.push()
    desk.sync.pull()
    assert desk.space.get("theme").text == "light"


def test_who_pushes_while_we_do_is_taken_in_before_their_files_are(machines, objects, monkeypatch):
    """
    What others named comes in with our own update of the manifest, which has not changed after that.
    """
    desk, lap = machines("desk"), machines("lap")
    kept = desk.space.store("preference", "Likes tea")
    lap.space.store("preference", "Likes coffee")
    put, waiting = objects.put, [desk]

    def meanwhile(key, data, **options):
        if key == manifest.KEY and waiting:
            waiting.pop().sync.push()
        return put(key, data, **options)

    monkeypatch.setattr(objects, "put", meanwhile)
    lap.sync.push()

    assert waiting == []
    assert [entry.id for entry in lap.space.ledger.entries() if b"tea" in entry.body] == [kept.entry_id]


def test_an_unchanged_space_costs_one_request(machines, store):
    """
    Neither push nor pull asks more than whether the manifest is as it was.
    """
    desk, lap = machines("desk"), machines("lap")
    desk.space.retain("hello")
    desk.space.store("preference", "Likes tea")
    desk.sync.push()
    lap.sync.push()
    desk.sync.push()
    for sync in (desk.sync.push, desk.sync.pull, lap.sync.push, lap.sync.pull):
        store.reset()
        assert sync().idle

        assert dict(store.requests) == {"unchanged": 1}


def test_both_wrote_at_once_and_nothing_is_lost(machines):
    """
    Pushes that know nothing of each other are both there afterwards.
    """
    desk, lap = machines("desk"), machines("lap")
    desk.space.retain("from the desk")
    lap.space.retain("from the lap")

    desk.sync.push()
    lap.sync.push()
    desk.sync.push()

    assert desk.texts() == lap.texts() == {"from the desk", "from the lap"}


def test_what_is_forgotten_leaves_the_place(machines, objects):
    """
    A forget on one machine takes the payload out of the segments of every machine, and off the other machine.
    """
    desk, lap = machines("desk"), machines("lap")
    desk.space.retain("my secret is plum", id="t1")
    desk.space.store("preference", "Loves plum jam")
    desk.space.retain("nothing special", id="t2")
    desk.sync.push()
    lap.sync.pull()

    lap.space.forget(entries=["t1"])
    for memory in lap.space.memories():
        lap.space.delete(memory.id)
    pushed = lap.sync.push()
    desk.sync.push()

    assert pushed.given.rewritten == 1
    assert b"plum" not in content(objects)
    assert desk.texts() == lap.texts() == {"nothing special"}
    assert {stone.id for stone in desk.space.ledger.tombstones()} == {
        stone.id for stone in lap.space.ledger.tombstones()
    }


def test_what_was_forgotten_before_it_came_does_not_appear(machines, objects):
    """
    A machine that missed the forget brings nothing back, neither here nor there.
    """
    desk, lap = machines("desk"), machines("lap")
    lap.space.forget(entries=["t1"])
    desk.space.retain("my secret is plum", id="t1")
    desk.sync.push()
    assert b"plum" in content(objects)

    lap.sync.push()
    desk.sync.push()

    assert b"plum" not in content(objects)
    assert desk.texts() == lap.texts() == set()


def test_a_new_machine_gets_what_is_left(machines):
    """
    What was forgotten before a machine joined never reaches it; what it replaced stays replaced.
    """
    desk = machines("desk")
    old = desk.space.store("preference", "Likes coffee")
    new = desk.space.store("preference", "Likes tea", supersedes=old.id)
    desk.sync.push()
    desk.space.delete(new.id)
    desk.sync.push()

    lap = machines("lap")
    lap.sync.pull()

    assert lap.texts() == desk.texts() == set()
    assert lap.space.ledger.verify().ok


def test_many_small_segments_become_a_larger_one(machines, objects, clock):
    """
    Old ones are left to readers for a while and then deleted; nothing in them is lost.
    """
    desk, lap = machines("desk", files=False), machines("lap", files=False)
    for number in range(push.GATHERED):
        desk.space.retain(f"number {number}")
        desk.sync.push()

    assert len(manifest.read(objects)[0].entries) == 1
    assert len(keys(objects, "ledger/")) == 1 + push.GATHERED
    clock.set(clock.now + push.GRACE)
    desk.sync.push()
    assert len(keys(objects, "ledger/")) == 1
    assert lap.sync.pull().taken.added == push.GATHERED


def test_large_pushes_are_cut(machines, objects, monkeypatch):
    """
    A segment holds so many bytes and no more; a single large entry has one to itself.
    """
    monkeypatch.setattr(segments, "BYTES_MAX", 2_000)
    monkeypatch.setattr(push, "ROUND_BYTES_MAX", 4_000)
    desk, lap = machines("desk", files=False), machines("lap", files=False)
    for number in range(20):
        desk.space.retain(f"number {number} " + "x" * 400)
    desk.space.retain("y" * 5_000)

    pushed = desk.sync.push()

    sizes = [listed.size for listed in objects.list("ledger/")]
    assert pushed.given.segments == len(sizes) > 5
    assert sorted(sizes)[-2] <= 2_000
    assert lap.sync.pull().taken.added == 21


def test_a_damaged_segment_is_told_and_passed_over(machines, objects):
    """
    The others are taken in; nothing of the damaged one is.
    """
    desk, shelf, lap = machines("desk"), machines("shelf"), machines("lap")
    desk.space.retain("from the desk")
    desk.sync.push()
    (damaged,) = keys(objects, "ledger/")
    objects.put(damaged, objects.get(damaged).data.replace(b"desk", b"disk"))
    shelf.space.retain("from the shelf")

    shelf.sync.push()
    pulled = lap.sync.pull()

    assert pulled.taken.damaged == [damaged]
    assert lap.texts() == {"from the shelf"}


def test_a_foreign_object_below_ledger_is_left_alone(machines, objects):
    """
    What somebody else put there and named is told, and is neither taken in nor touched.
    """
    objects.put("ledger/notes.txt", b"mine")
    manifest.update(objects, lambda it: it.with_entry("ledger/notes.txt", manifest.ManifestEntry(size=4)))
    desk = machines("desk")
    desk.space.retain("hello")

    pushed = desk.sync.push()

    assert pushed.taken.damaged == ["ledger/notes.txt"]
    assert objects.get("ledger/notes.txt").data == b"mine"


def test_a_segment_that_is_gone_is_pushed_again_by_who_has_its_entries(machines, objects):
    """
    Whoever misses it takes its name out; whoever has what it held notices that it is not there any more.
    """
    desk, lap = machines("desk"), machines("lap")
    desk.space.retain("hello")
    desk.sync.push()
    (gone,) = keys(objects, "ledger/")
    objects.delete(gone)

    assert lap.sync.pull().taken.missing == [gone]
    assert desk.sync.push().given.entries == 1
    assert lap.sync.pull().taken.added == 1


def test_an_entry_of_a_newer_version_is_kept_as_it_is(machines, objects):
    """
    A line that cannot be read stays in the segment, also when that is written anew.
    """
    desk, lap = machines("desk", files=False), machines("lap", files=False)
    desk.space.retain("plum", id="t1")
    desk.sync.push()
    (key,) = keys(objects, "ledger/")
    strange = segments.SegmentLine(b'{"memplane":1,"id":"d1","op":"dream"}', None)
    made = segments.make("newer", 1, [*segments.read(key, objects.get(key).data), strange])
    objects.put(made.key, made.data)
    manifest.update(
        objects, lambda it: it.without(key).with_entry(made.key, manifest.ManifestEntry(size=len(made.data)))
    )
    objects.delete(key)

    assert lap.sync.pull().taken.unreadable == 1
    lap.space.forget(entries=["t1"])
    lap.sync.push()

    assert b"dream" in content(objects)
    assert b"plum" not in content(objects)


def test_what_a_lost_machine_left_behind_is_cleaned_up(machines, objects, clock):
    """
    A segment that nobody has named for a day goes; one that was written just now may be about to be named.
    """
    left = segments.make("lost", 1, [segments.SegmentLine(b'{"memplane":1,"id":"t1","op":"turn"}', None)])
    desk = machines("desk")
    desk.space.retain("hello")
    desk.sync.push()
    objects.put(left.key, left.data)

    assert desk.sync.push(look=True).given.deleted == 0
    clock.advance(days=2)
    assert desk.sync.push(look=True).given.deleted == 1
    assert left.key not in keys(objects)


def test_a_copy_of_a_data_directory_is_another_replica(machines, tmp_path, objects):
    """
    Both write on, under names of their own, and get each other's entries.
    """
    desk = machines("desk")
    desk.space.retain("before")
    desk.sync.push()
    desk.plane.close()
    shutil.copytree(tmp_path / "desk", tmp_path / "copy")
    copy = machines("copy")
    again = Machine(tmp_path / "desk", objects, HandClock())
    copy.space.retain("on the copy")
    again.space.retain("on the desk")

    copy.sync.push()
    again.sync.push()
    copy.sync.push()

    assert copy.texts() == again.texts() == {"before", "on the copy", "on the desk"}
    assert copy.sync.status().replicas == 2
    again.plane.close()


def test_a_space_that_knows_nothing_any_more_pushes_nothing_twice(machines, objects):
    """
    An older data directory, put back from a backup, takes in what it had pushed since.
    """
    desk = machines("desk")
    desk.space.retain("before the backup")
    desk.plane.close()
    shutil.copytree(desk.folder, desk.folder.with_name("backup"))
    later = Machine(desk.folder, objects, HandClock())
    later.space.retain("after the backup")
    later.sync.push()
    later.plane.close()

    restored = machines("backup")
    pushed = restored.sync.push()

    assert (pushed.taken.added, pushed.taken.known) == (1, 1)
    assert pushed.given.entries == 0
    assert restored.texts() == {"before the backup", "after the backup"}


def test_two_places_have_the_same(machines, objects):
    """
    What came from one place is pushed to another, and a place knows nothing of the other.
    """
    desk, lap = machines("desk"), machines("lap")
    other = MemoryObjects("other")
    desk.space.retain("hello")
    desk.sync.push()
    lap.sync.pull()

    assert Sync(lap.space, other, lap.folder).push().given.entries == 1
    assert lap.sync.push().given.entries == 0


def test_status_says_how_far_both_are(machines):
    """
    What is here and not there, there and not here, and forgotten here and still there.
    """
    desk, lap = machines("desk"), machines("lap")
    assert desk.sync.status().empty
    desk.space.retain("one", id="t1")
    desk.space.retain("two")
    assert desk.sync.status().unpushed == 2
    desk.sync.push()
    assert desk.sync.status().even
    assert (lap.sync.status().unpulled, lap.sync.status().unpushed) == (1, 0)
    desk.space.forget(entries=["t1"])

    standing = desk.sync.status()

    assert (standing.foul, standing.unpushed, standing.even) == (1, 1, False)


def test_one_sync_at_a_time(machines, objects):
    """
    A second one says so and does nothing.
    """
    desk = machines("desk")
    desk.space.retain("hello")
    with only_one(desk.folder, desk.space, objects.url), pytest.raises(StorageBusy, match="going on"):
        desk.sync.push()

    assert keys(objects) == []


def test_a_file_edited_by_hand_becomes_memory_everywhere(machines, objects):
    """
    An edit is taken in when files are looked at, and reaches the other machine through the ledger.
    """
    desk, lap = machines("desk"), machines("lap")
    desk.space.store("preference", "Likes tea")
    desk.sync.push()
    lap.sync.pull()
    (path,) = (key for key in keys(objects, "behavioral/") if "MEMORY" not in key)
    objects.put(path, objects.get(path).data.replace(b"\nLikes tea", b"\nLikes green tea"))

    assert desk.sync.push().idle
    assert desk.sync.push(look=True).files_taken.taken == [path]
    desk.sync.push()
    lap.sync.pull()

    assert lap.texts() == desk.texts() == {"Likes green tea"}


def test_a_line_that_another_program_appends_is_taken_in_before_its_day_is_written(machines, objects):
    """
    Whoever writes the day anew takes in first what stands in it.
    """
    desk = machines("desk")
    desk.space.retain("hello")
    desk.sync.push()
    (day,) = keys(objects, "interactions/")
    line = b'{"id":"l1","ts":"2026-11-15T09:00:00+00:00","channel":"email","direction":"inbound","sender":"b","summary":"hi"}'
    objects.put(day, objects.get(day).data + line + b"\n")
    desk.space.retain("more")

    desk.sync.push()

    assert desk.texts() == {"hello", "more", "hi"}


def test_a_file_that_cannot_be_taken_in_is_left_as_it_is(machines, objects):
    """
    It is told, and nothing is written over it.
    """
    desk = machines("desk")
    desk.space.put("theme", "dark")
    desk.sync.push()
    objects.put("state/facts.json", b"{ half")

    pushed = desk.sync.push(look=True)
    desk.space.put("theme", "light")
    again = desk.sync.push()

    assert [path for path, _ in pushed.files_taken.rejected] == ["state/facts.json"]
    assert again.files_given.kept == ["state/facts.json"]
    assert objects.get("state/facts.json").data == b"{ half"


def test_without_files_there_is_the_ledger_alone(machines, objects):
    """
    Machines have all they need; there is nothing else to read.
    """
    desk = machines("desk", files=False)
    desk.space.store("preference", "Likes tea")
    desk.sync.push()

    assert {key.split("/")[0] for key in keys(objects)} == {"ledger", "manifest.json"}


# ── watching ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Outages:
    """A sync that fails as it is told to."""

    def __init__(self, *outcomes):
        self._outcomes = list(outcomes)
        self.looks = []

    def push(self, *, look):
        self.looks.append(look)
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def watched(*outcomes):
    """How long each pause was and what was told, until there is nothing left to do."""
    pauses, rounds, left = [], [], len(outcomes)

    def wait(seconds):
        pauses.append(seconds)
        return len(pauses) == left

    class Even:
        def uniform(self, low, high):
            return (low + high) / 2

    SyncWatcher(Outages(*outcomes), wait=wait, report=rounds.append, interval_s=60, rng=Even()).run()
    return pauses, rounds


def test_an_outage_is_waited_out():
    """
    Pauses grow while the place cannot be reached, and are as they were afterwards.
    """
    down, denied = RemoteUnavailable("down"), RemoteDenied("no")

    pauses, rounds = watched("first", down, down, denied, StorageBusy("busy"), down, "again")

    assert pauses == [60, 120, 240, 480, 900, 900, 60]
    assert [done.pushed for done in rounds] == ["first", None, None, None, None, None, "again"]
    assert [done.trouble for done in rounds][1:4] == [down, down, denied]


def test_a_bug_is_not_waited_out():
    """
    What is no trouble of the place ends the watch.
    """
    with pytest.raises(ZeroDivisionError):
        watched(ZeroDivisionError())


def test_stop_in_the_middle_of_a_push_ends_the_watch(machines):
    """
    The push is cut off between two requests, and the next one goes on where it was.
    """
    desk = machines("desk")
    desk.space.retain("hello")

    def stop(*_):
        raise WatchStopped("stopped")

    cut = Sync(desk.space, desk.sync._store, desk.folder, progress=stop)
    SyncWatcher(cut, wait=lambda _: pytest.fail("it went on"), report=pytest.fail).run()

    assert desk.sync.push().given.entries == 1
    assert [entry.op for entry in desk.space.ledger.entries()] == [Op.TURN]


def test_files_of_an_agent_are_kept_in_step(machines, objects):
    """
    What an agent keeps under /memories is written, edited, taken in and deleted at the place like everything else.
    """
    desk, lap = machines("desk"), machines("lap")
    desk.space.files.create("/memories/notes.md", "likes plum\n")
    desk.sync.push()
    lap.sync.push(look=True)
    objects.put("files/notes.md", b"likes pear\n")
    objects.put("files/more.md", b"by hand\n")
    lap.sync.push(look=True)
    desk.sync.push(look=True)
    assert {file.path for file in desk.space.files.list()} >= {"/memories/notes.md", "/memories/more.md"}
    assert desk.space.files.read("/memories/notes.md").text == "likes pear\n"

    desk.space.files.delete("/memories/notes.md")
    desk.sync.push(look=True)
    lap.sync.push(look=True)
    desk.space.files.create("/memories/notes.md", "likes figs\n")
    desk.sync.push(look=True)
    lap.sync.push(look=True)

    assert lap.space.files.read("/memories/notes.md").text == "likes figs\n"
    assert b"plum" not in content(objects)
    assert b"pear" not in content(objects)


def test_a_forgotten_memory_leaves_no_name_of_its_file(machines):
    """
    Names of files are made of what memories say; after a push they are in no file of either machine.
    """
    desk, lap = machines("desk"), machines("lap")
    stored = desk.space.store("preference", "Prefers zqplumxy")
    desk.sync.push()
    lap.sync.push(look=True)
    desk.space.forget(entries=[stored.id])
    desk.sync.push(look=True)
    lap.sync.push(look=True)

    for machine in (desk, lap):
        files = [path for path in machine.folder.rglob("*") if path.is_file()]
        assert not [path.name for path in files if b"zqplumxy" in path.read_bytes()]


def test_what_is_known_here_says_how_far_a_place_is(machines, clock):
    """Without a request: when it was synced last, what waits, and that something is to be taken out there."""
    desk = machines("desk")
    assert sync_overview(desk.space).places == ()
    told = desk.space.retain("One")
    desk.sync.push()
    (even,) = sync_overview(desk.space).places
    clock.advance(days=1)
    desk.space.retain("Two")
    desk.sync.pull()
    desk.space.forget(entries=[told.id])
    (waiting,) = sync_overview(desk.space).places

    assert (even.unpushed, even.to_clean, even.pushed) == (0, False, even.pulled)
    assert waiting.unpushed == 2
    assert waiting.to_clean
    assert (waiting.pushed, waiting.pulled) == (even.pushed, clock.moment)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("https://ann:pw@place.example:81/a?sig=pw#pw", "https://place.example:81/a"),
        ("s3://bucket/a", "s3://bucket/a"),
        ("az://a@b@account/container", "az://account/container"),
        ("https://[half", "https://…"),
        ("/var/lib/a b", "file:///var/lib/a%20b"),
    ],
)
def test_a_place_is_shown_without_secrets(given, shown):
    """Neither before the host nor behind the path."""
    assert without_secrets(given) == shown
