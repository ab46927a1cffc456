"""Digests and daily summaries as files of the place: written for days that are over, kept when the day decays, without
what somebody forgot."""

import json
from datetime import timedelta

import pytest

from memory_objects import MemoryObjects
from memplane import Settings
from memplane.errors import InvalidRequest, NotFound
from memplane.sync import manifest
from memplane.sync.digests import NOTE, is_generated
from memplane.sync.interactions import compose as line_of
from memplane.sync.interactions import interaction
from memplane.sync.local import LocalObjects
from memplane.sync.remote_state import save_target
from memplane.sync.tree import import_tree, read_tree, write_tree
from memplane.sync.tree.daily import generated_files, summary_of
from memplane.sync.watch import daily_push
from memplane.types import Op
from sync_machines import Machine, content, keys

DAY = "2026-11-14"
HTML, JSON = f"summaries/{DAY}.html", f"summaries/{DAY}.json"
ADR = Settings(retention="adr")


@pytest.fixture
def objects():
    return MemoryObjects()


@pytest.fixture
def machines(tmp_path, objects, clock):
    made = {}

    def machine(name, settings=ADR):
        if name not in made:
            made[name] = Machine(tmp_path / name, objects, clock, settings=settings)
        return made[name]

    yield machine
    for one in made.values():
        one.plane.close()


def talk(space):
    """A day with one thread that was answered, three that wait, and one that the agent began."""
    at = f"{DAY}T10:00:0{{}}Z"
    space.retain("Where is Anna?", conversation="c1", at=at.format(0))
    space.retain("Are you there?", conversation="c5", at=at.format(0))
    space.retain("Hello?", conversation="c6", at=at.format(6))
    space.retain("Still nobody?", conversation="c5", at=at.format(7))
    space.retain("My sister Anna lives in Lisbon.", conversation="c1", at=at.format(1))
    space.retain("Noted, Lisbon <b>it is</b>.", role="assistant", conversation="c1", at=at.format(2))
    space.retain("Can you call me?", conversation="c2", speaker="Bob", at=at.format(3))
    space.retain("Your invoice is due.", role="assistant", conversation="c3", at=at.format(4))
    space.retain("exit code 1", role="tool", conversation="c4", at=at.format(5))


def text(objects, key):
    got = objects.get(key)
    return None if got is None else got.data.decode()


def counts(objects, key=JSON):
    return json.loads(text(objects, key))["counts"]


def decay(machine, clock, days=8):
    clock.advance(days=days)
    machine.space.compact()
    return machine.sync.push()


def test_a_day_that_is_over_has_a_summary(machines, objects, clock):
    """
    The threads of the day by what they ask for; what was said is escaped; tools wait for nobody.
    """
    desk = machines("desk")
    talk(desk.space)
    desk.space.retain("said today", at="2026-11-15T08:00:00Z")
    desk.sync.push()
    html = text(objects, HTML)

    assert counts(objects) == {"needs_you": 3, "handled": 1, "heads_up": 1}
    assert "Bob" in html
    assert "Can you call me?" in html
    assert "Lisbon &lt;b&gt;it is&lt;/b&gt;." in html
    assert "exit code" not in html
    assert keys(objects, "summaries/") == [HTML, JSON]  # and none of today

    clock.advance(days=1)
    desk.sync.push()

    assert "summaries/2026-11-15.html" in keys(objects)
    assert desk.sync.push().idle


def test_secrets_and_long_texts_are_not_in_a_summary(machines, objects):
    secret = "sk-" + "a1B2" * 12
    desk = machines("desk")
    desk.space.retain(f"my key is {secret}", speaker="Eve", at=f"{DAY}T10:00:00Z")
    desk.space.retain("long " * 1_000, role="assistant", conversation="c", at=f"{DAY}T10:00:00Z")
    desk.sync.push()
    html = text(objects, HTML)

    assert secret not in html
    assert "my key is" in html
    assert len(html) < 2_000


def test_what_goes_on_in_a_mailbox_is_told_by_who_wrote(machines, objects, clock):
    """
    Lines of another program keep their threads, also once the day is gone.
    """
    said = [("inbound", "bob", None), ("outbound", "agent", "bob"), ("inbound", "carol", None)]
    lines = [
        interaction(
            channel="email",
            direction=way,
            sender=who,
            recipient=to,
            summary=f"mail {n}",
            at=clock.moment,
            id=f"m{n}",
        )
        for n, (way, who, to) in enumerate(said)
    ]
    objects.put("interactions/2026-11-15.jsonl", "".join(map(line_of, lines)).encode())
    desk = machines("desk")
    desk.sync.pull(look=True)
    clock.advance(days=1)
    desk.sync.push()
    path = "summaries/2026-11-15.html"
    before = text(objects, path)

    assert counts(objects, "summaries/2026-11-15.json") == {"needs_you": 1, "handled": 1, "heads_up": 0}

    decay(desk, clock)

    assert keys(objects, "interactions/") == []
    assert text(objects, path) == before


def test_a_summary_outlives_its_day(machines, objects, clock):
    """
    The raw day goes from here and from the place; its summary stays as it was, to the letter, on every machine.
    """
    desk, lap = machines("desk"), machines("lap")
    talk(desk.space)
    desk.sync.push()
    before = {key: text(objects, key) for key in (HTML, JSON)}
    decay(desk, clock)
    lap.sync.push()

    assert desk.space.turns() == []
    assert keys(objects, "interactions/") == []
    assert {key: text(objects, key) for key in (HTML, JSON)} == before
    assert [entry.op for entry in lap.space.ledger.entries() if entry.op is Op.SUMMARIZE and entry.body]
    assert dict(generated_files(lap.space)) == dict(generated_files(desk.space))
    assert summary_of(lap.space, DAY).html == before[HTML]
    assert b"exit code" not in content(objects)


def test_what_was_said_at_the_same_time(machines, objects, clock):
    """
    Which of it was the last does not change when the day is removed.
    """
    desk = machines("desk")
    for number in range(12):
        desk.space.retain(f"thing {number}", at=f"{DAY}T10:00:00Z", conversation=f"c{number % 2}")
    desk.sync.push()
    before = text(objects, HTML)
    decay(desk, clock)

    assert text(objects, HTML) == before


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("scope", [{"conversation": "c2"}, {"everything": True}])
def test_a_forget_reaches_summaries_and_digests(machines, objects, clock, gone, scope):
    """
    Whether the day is there or not; and of a day with nothing left there is no empty page.
    """
    desk, lap = machines("desk"), machines("lap")
    talk(desk.space)
    desk.sync.push()
    if gone:
        decay(desk, clock)
    lap.sync.push()
    lap.space.forget(**scope)
    lap.sync.push()
    desk.sync.push()

    assert b"call me" not in content(objects)
    assert not any("call me" in str(entry.body) for entry in desk.space.ledger.entries())
    if "everything" in scope:
        assert keys(objects, "summaries/") == keys(objects, "compacted/") == []
        with pytest.raises(NotFound):
            summary_of(desk.space, DAY)
    else:
        assert counts(objects) == {"needs_you": 2, "handled": 1, "heads_up": 1}


def test_a_digest_is_a_file_and_goes_with_its_lines(machines, objects, clock):
    desk = machines("desk")
    talk(desk.space)
    decay(desk, clock)
    (path,) = keys(objects, "compacted/")

    assert path == "compacted/2026-46.md"
    assert "Lisbon" in text(objects, path)
    assert manifest.read(objects)[0].entries[path].sha256

    desk.space.forget(conversation="c1")
    desk.sync.push()

    assert keys(objects, "compacted/") == []


def test_what_is_old_is_removed(machines, objects, clock):
    """
    Thirty days after its day a summary goes, and what it was made of goes from the ledger; a digest likewise.
    """
    desk = machines("desk")
    talk(desk.space)
    desk.sync.push()
    decay(desk, clock)

    assert keys(objects, "summaries/")

    report = None
    for _ in range(45):
        clock.advance(days=1)
        report = desk.space.compact()
        desk.sync.push()

    assert report.days == ()
    assert keys(objects, "summaries/") == keys(objects, "compacted/") == []
    assert not any(entry.body for entry in desk.space.ledger.entries() if entry.op is Op.SUMMARIZE)
    assert desk.space.ledger.verify().ok


def test_old_files_go_where_the_day_itself_stays(machines, objects, clock):
    desk = machines("desk", Settings(retention_summary_days=2))
    talk(desk.space)
    desk.sync.push()

    assert keys(objects, "summaries/") == [HTML, JSON]

    clock.advance(days=5)
    desk.sync.push()

    assert keys(objects, "summaries/") == []
    assert len(desk.space.turns()) == 9


def test_what_another_program_wrote_stays_as_it_is(machines, objects, clock):
    """
    A summary or digest of EntraBot's is neither taken in nor written over; without our note, nor is one of ours.
    """
    theirs = {HTML: b"<h1>Theirs</h1>", JSON: b'{"day": "x"}', "compacted/2026-46.md": b"# Theirs"}
    for key, data in theirs.items():
        objects.put(key, data)
    desk = machines("desk")
    talk(desk.space)
    desk.sync.push(look=True)
    decay(desk, clock)

    assert {key: objects.get(key).data for key in theirs} == theirs
    assert "Theirs" not in str([entry.body for entry in desk.space.ledger.entries()])

    assert import_tree(desk.space, theirs.items()).left == tuple(sorted(theirs))


def test_one_of_ours_that_nobody_named_is_still_ours(machines, objects):
    """
    A machine was cut off between writing a file and naming it: whoever finds it does not take it for somebody else's.
    """
    desk, lap = machines("desk"), machines("lap")
    talk(desk.space)
    desk.sync.push()
    objects.put(HTML, objects.get(HTML).data)  # a version that no manifest knows
    lap.sync.pull(look=True)
    lap.space.forget(conversation="c2")
    lap.sync.push()

    assert "call me" not in text(objects, HTML)


def test_an_export_has_them_too(machines, clock, tmp_path):
    """
    A tree has the files, an import of it takes in nothing of them, and a later export without the day removes them.
    """
    desk, lap = machines("desk"), machines("lap")
    place = LocalObjects(str(tmp_path / "tree"))
    talk(desk.space)
    clock.advance(days=8)
    desk.space.compact()
    write_tree(desk.space, place)
    (tmp_path / "tree" / "summaries" / "2026-11-01.html").write_text("theirs")
    read = read_tree(place, lap.space)

    assert {HTML, JSON, "compacted/2026-46.md"} <= set(read.unchanged)
    assert read.left == ("summaries/2026-11-01.html",)
    assert dict(generated_files(lap.space)) == dict(generated_files(desk.space))
    assert write_tree(desk.space, place).written == ()

    desk.space.forget(everything=True)
    report = write_tree(desk.space, place)

    assert {HTML, JSON, "compacted/2026-46.md"} <= set(report.removed)
    assert (tmp_path / "tree" / "summaries" / "2026-11-01.html").read_text() == "theirs"


def test_a_clock_that_is_behind_removes_nothing(machines, objects, clock):
    desk, lap = machines("desk"), machines("lap")
    talk(desk.space)
    desk.sync.push()
    clock.set(clock.moment - timedelta(days=1))
    lap.space.retain("late")
    lap.sync.push()

    assert keys(objects, "summaries/")
    with pytest.raises(InvalidRequest, match="not over yet"):
        summary_of(lap.space, DAY)


def test_a_server_pushes_once_a_day(machines, tmp_path, clock):
    """
    What decays here leaves the place with it; a place that is away is noted and keeps nothing from decaying.
    """
    desk = machines("desk")
    place = LocalObjects(str(tmp_path / "place"))
    save_target(desk.space, place.url)
    talk(desk.space)
    clock.advance(days=8)
    daily_push({})(desk.space, "2026-11-22")

    assert place.get(HTML) is not None
    assert list(place.list("interactions/")) == []
    assert desk.space.turns() == []

    save_target(desk.space, "az://nowhere")
    desk.space.retain("more", at="2026-11-15T10:00:00Z")
    daily_push({})(desk.space, "2026-11-23")

    assert desk.space.turns() == []
    assert [it.action for it in desk.space.ledger.audit() if it.outcome == "failed"] == ["sync"]


def test_ours_carry_the_note(machines, clock):
    desk = machines("desk")
    talk(desk.space)
    clock.advance(days=8)
    desk.space.compact()
    files = dict(generated_files(desk.space))

    assert set(files) == {HTML, JSON, "compacted/2026-46.md"}
    assert all(map(is_generated, files.values()))
    assert not is_generated(b" " * 500 + NOTE.encode())
