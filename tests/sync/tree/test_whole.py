"""The rest of a tree: facts, files, what others keep there, what was said; and all of it at once, with its ledger."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import fresh_plane
from memory_objects import MemoryObjects
from memplane.errors import InvalidRequest
from memplane.storage.filter import Filter
from memplane.sync.interactions import parse
from memplane.sync.local import LocalObjects
from memplane.sync.tree import files_of, import_tree, read_tree, write_tree

DAY = "interactions/2026-04-17.jsonl"
SECRET = "AKIA" + "ABCDEFGHIJKLMN27"


def line(id="l1", **changes):
    fields = {
        "id": id,
        "ts": "2026-04-17T20:00:00.123456+00:00",
        "channel": "teams_dm",
        "direction": "inbound",
        "sender": "ada@contoso.com",
        "summary": "Can you move the call?",
        "metadata": {"chat_id": "19:a_b@unq.gbl.spaces", "odd": [1, {"x": None}]},
    } | changes
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def day(*lines):
    return [(DAY, "".join(f"{each}\n" for each in lines).encode())]


def content(space):
    return dict(files_of(space))


def everything(space):
    """All that memory is: memories in every state with their evidence, facts, turns, documents, conflicts, tombstones."""
    space.enrich()
    with space._context.read() as reader:
        everywhere = Filter(now=space.now(), audience=None, include_superseded=True, include_reserved=True)
        memories = reader.memories.find(everywhere, limit=10_000)
        evidence = [
            (it.memory, it.own.id, it.own.quote) for it in reader.claims.evidence([m.id for m in memories])
        ]
        conflicts = reader.claims.conflicts(())
    return {
        "memories": sorted(
            (
                m.id,
                m.kind,
                m.text,
                m.state,
                m.tier,
                m.tags,
                m.key or "",
                m.quote or "",
                m.entry_id,
                m.start,
                m.end,
            )
            for m in memories
        ),
        "ratings": sorted((m.id, m.chosen, m.passed_over, round(m.leaning, 6)) for m in memories),
        "evidence": sorted(evidence),
        "conflicts": sorted(conflicts),
        "turns": sorted((t.entry_id, t.role, t.text, t.at) for t in space.turns(limit=10_000)),
        "documents": sorted((d.id, d.name, d.chars, d.collections) for d in space.documents.list()),
        "tombstones": sorted((t.id, t.reason) for t in space.ledger.tombstones()),
        "receipts": sorted(r.id for r in space.ledger.receipts()),
    }


def fill(space, clock):
    """Something of everything."""
    first = space.store("instruction", "Answer in French.", tags=["language"])
    clock.advance(minutes=1)
    space.store("instruction", "Answer in German.\n---\nalways: yes", supersedes=first.id)
    space.retain("I live in Lisbon.", conversation="c1", project="move", speaker="Ada")
    clock.advance(minutes=1)
    space.retain("I live in Porto.", conversation="c1")
    space.retain("Noted!", role="assistant", conversation="19:x@thread.v2")
    space.retain("only here", conversation="c2", scope="conversation")
    space.put("prefs/theme", "dark", tags=["ui"])
    clock.advance(minutes=1)
    space.put("prefs/theme", "light", tags=["ui"])
    space.files.create("/memories/notes/today.md", "# Today\n\n- <b>x</b>\n")
    space.documents.upload("# Boats\n\nBoats float.\n\n# Trains\n\nTrains roll.", id="d1", name="things.md")
    space.documents.create_collection("books", id="k1")
    space.documents.add_to_collection("k1", "d1")
    doomed = space.retain("My PIN is 4711, forget it", id="doomed")
    gone = space.store("fact", "Gone soon")
    space.enrich()
    clock.advance(minutes=1)
    space.forget(entries=[doomed.id, gone.id], reason="asked")
    space.feedback([space.memories(state="active")[0].id], rating=4)
    import_tree(
        space, [("state/watched_chats", b"19:a\n19:b\n"), ("state/email_cursor.txt", b"2026-04-17T20:00:00Z")]
    )


# ── all of it ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=["memory", "directory"])
def store(request, tmp_path):
    return MemoryObjects() if request.param == "memory" else LocalObjects(tmp_path / "tree")


def test_a_space_comes_back_from_its_tree(plane, clock, store):
    """
    Space, tree, empty space: the same memories, ids, evidence, documents, conflicts, ratings and tombstones; the files
    are the same, and a second look changes nothing.
    """
    space, other = plane.space("alice"), plane.space("bob")
    fill(space, clock)
    written = write_tree(space, store)
    report = read_tree(store, other)

    assert (report.rejected, report.conflicts, report.taken) == ((), (), ())
    assert everything(other) == everything(space)
    assert content(other) == content(space)
    assert other.ledger.verify().ok
    assert written.kept == ()
    assert b"4711" not in b"".join(store.get(it.key).data for it in store.list())
    assert read_tree(store, other).entries == 0
    assert write_tree(space, store).written == write_tree(space, store).removed == ()
    space.ledger.replay()
    assert content(other) == content(space)


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["store", "edit", "retain", "put", "forget", "advance"]),
            st.text(
                st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20
            ),
        ),
        max_size=10,
    )
)
def test_any_history_comes_back(steps):
    """
    Whatever was done to a space, its tree gives another one the same memory and the same files.
    """
    with fresh_plane() as plane:
        space, other, clock = plane.space("alice"), plane.space("bob"), plane._clock
        ids = []
        for step, text in steps:
            clock.advance(seconds=7)
            try:
                if step == "store":
                    ids.append(space.store("fact", text).id)
                elif step == "edit" and ids:
                    ids.append(space.store("instruction", text, supersedes=ids[-1]).id)
                elif step == "retain":
                    ids.append(space.retain(text, conversation="c").id)
                elif step == "put":
                    space.put("key", text)
                elif step == "forget" and ids:
                    space.forget(entries=[ids.pop()])
                elif step == "advance":
                    clock.advance(timedelta(hours=30))
            except InvalidRequest:
                continue
        store = MemoryObjects()
        write_tree(space, store)
        report = read_tree(store, other)

        assert report.rejected == report.conflicts == report.taken == ()
        assert everything(other) == everything(space)
        assert content(other) == content(space)


def test_a_tree_without_a_ledger_is_taken_from_its_files(plane, clock):
    """
    What people or other programs wrote is enough: memories, facts, files, what was said, and what is carried along.
    """
    space, other = plane.space("alice"), plane.space("bob")
    fill(space, clock)
    store = MemoryObjects()
    write_tree(space, store, ledger=False)
    read_tree(store, other)

    assert [it.key for it in store.list("ledger/")] == []
    ours, theirs = content(space), content(other)
    assert theirs.keys() == ours.keys()
    assert {path for path in ours if ours[path] != theirs[path]} <= {
        path for path in ours if path == "state/tree.json" or b"entry: " in ours[path]
    }
    assert read_tree(store, other).entries == 0


def test_forgetting_reaches_the_tree(plane, clock):
    """
    After a forget, nothing that is written again says it: no file, no segment, no index.
    """
    space, store = plane.space("alice"), MemoryObjects()
    fill(space, clock)
    zebra = space.store("fact", "Zebra one")
    space.retain("Zebra two", id="z2", at=datetime(2026, 3, 1, tzinfo=UTC))
    space.put("striped", "Zebra three")
    space.files.create("/memories/zebra.md", "Zebra four")
    write_tree(space, store)
    space.forget(entries=[zebra.id, "z2"])
    space.forget(key="striped")
    space.files.delete("/memories/zebra.md")
    report = write_tree(space, store)

    left = [it.key for it in store.list() if b"ebra" in store.get(it.key).data or "zebra" in it.key]
    assert left == []
    assert {"files/zebra.md", "interactions/2026-03-01.jsonl"} < set(report.removed)
    assert "z2" not in str(store.get("manifest.json").data)
    assert read_tree(store, space).taken == ()


def test_an_export_does_not_write_over_edits(plane):
    """
    What somebody changed there and nobody took in stays, and is said; after an import it is written.
    """
    space, store = plane.space("alice"), MemoryObjects()
    space.store("preference", "Drinks tea")
    space.files.create("/memories/a.md", "one")
    space.put("k", "v")
    write_tree(space, store)
    edited = {
        it.key: store.get(it.key)
        .data.replace(b"Drinks tea\n", b"Drinks mate\n")
        .replace(b'"v"', b'"w"')
        .replace(b"one", b"two")
        for it in store.list()
        if it.key.startswith(("behavioral/user", "files/", "state/facts"))
    }
    edited["behavioral/broken.md"] = b"\xff"
    for key, data in edited.items():
        store.put(key, data)
    space.store("context", "Something else")
    report = write_tree(space, store)

    assert {path for path, _ in report.kept} == edited.keys()
    assert {key: store.get(key).data for key in edited} == edited
    assert set(read_tree(store, space).taken) == edited.keys() - {"behavioral/broken.md"}
    assert [path for path, _ in write_tree(space, store).kept] == ["behavioral/broken.md"]
    assert (space.get("k").text, space.files.read("/memories/a.md").text) == ("w", "two")


def test_a_dry_run_changes_nothing(plane, clock):
    """
    It says what would be taken.
    """
    space, other, store = plane.space("alice"), plane.space("bob"), MemoryObjects()
    fill(space, clock)
    write_tree(space, store)
    store.put("behavioral/new.md", b"New")

    assert read_tree(store, other, dry_run=True).entries > 5
    assert read_tree(store, space, dry_run=True).taken == ("behavioral/new.md",)
    assert other.overview.stats().entries == 0
    assert "New" not in str(space.memories())


def test_damaged_segments_are_reported_and_the_rest_is_taken(plane):
    """
    A segment that is not what its name says is left out, line by line where it can be.
    """
    space, other, store = plane.space("alice"), plane.space("bob"), MemoryObjects()
    space.store("fact", "Boats float")
    write_tree(space, store)
    (segment,) = (it.key for it in store.list("ledger/"))
    store.put(segment, b"rubbish\n")
    report = read_tree(store, other)

    assert [path for path, _ in report.rejected] == [segment]
    assert [m.text for m in other.memories()] == ["Boats float"]


def test_nothing_is_followed_out_of_a_directory(plane, tmp_path):
    """
    A link in a tree leads nowhere.
    """
    outside = tmp_path / "outside.md"
    outside.write_text("Outside!")
    root = tmp_path / "tree"
    (root / "behavioral").mkdir(parents=True)
    (root / "behavioral" / "a.md").symlink_to(outside)
    (root / "files").symlink_to(tmp_path)
    space = plane.space("alice")
    read_tree(LocalObjects(root), space)
    space.store("fact", "Inside")
    write_tree(space, LocalObjects(root))

    assert [m.text for m in space.memories()] == ["Inside"]
    assert outside.read_text() == "Outside!"


def test_a_folder_that_is_none_is_refused(space):
    """
    Memories are written to one of two folders.
    """
    with pytest.raises(InvalidRequest):
        list(files_of(space, prefix="elsewhere"))


# ── what was said ────────────────────────────────────────────────────────────────────────────────────────────────


def test_lines_of_others_become_turns_and_lines_again(space):
    """
    Id, time, sender and everything else come back, and twice is once.
    """
    lines = [
        line("l1"),
        line("l2", direction="outbound", metadata=None, recipient="19:x", ts="2026-04-17T21:00:00+00:00"),
    ]
    report = import_tree(space, day(*lines))
    again = import_tree(space, day(*lines))

    assert (report.entries, again.entries, report.rejected) == (2, 0, ())
    assert [(t.entry_id, t.role, t.speaker) for t in reversed(space.turns())] == [
        ("l1", "user", "ada@contoso.com"),
        ("l2", "assistant", "ada@contoso.com"),
    ]
    assert space.turns()[1].conversation == "19:a_b@unq.gbl.spaces"
    assert [json.loads(each) for each in content(space)[DAY].decode().splitlines()] == [
        json.loads(each) for each in lines
    ]


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.sampled_from(["inbound", "outbound"]),
    st.dictionaries(
        st.text(max_size=5), st.one_of(st.text(max_size=5), st.integers(-9, 9), st.none()), max_size=3
    ),
)
@settings(max_examples=25)
def test_any_line_is_taken_once_or_refused(summary, sender, direction, metadata):
    """
    Nothing breaks a day, and what is taken is written as one line each.
    """
    with fresh_plane() as plane:
        space = plane.space("alice")
        files = day(
            line("a", summary=summary, sender=sender, direction=direction, metadata=metadata), line("b")
        )
        first, again = import_tree(space, files), import_tree(space, files)

        assert first.entries + len(first.rejected) == 2
        assert again.entries == 0
        written = content(space)[DAY].decode().splitlines()
        assert {parse(each).id for each in written} <= {"a", "b"}
        assert "b" in str(written)
        assert import_tree(space, content(space).items()).entries == 0


def test_corrupt_lines_are_reported_and_stay_in_their_file(space):
    """
    What is no line is passed over; a rewrite of the day keeps it, with lines that were not taken in.
    """
    broken = [
        '{"id": "x',
        "[]",
        line("l3", ts="yesterday"),
        line("l4", direction="sideways"),
        '{"a":1}',
        line("fact-1"),
    ]
    files = day(line("l1"), *broken, line("l2"))
    report = import_tree(space, files)

    assert [path for path, _ in report.rejected] == [f"{DAY}:{number}" for number in range(2, 8)]
    assert report.entries == 2
    rewritten = dict(files_of(space, there=dict(files).get))[DAY].decode()
    assert all(each in rewritten.splitlines() for each in broken)
    assert import_tree(space, [(DAY, rewritten.encode())]).entries == 0
    assert dict(files_of(space, there={DAY: rewritten.encode()}.get))[DAY].decode() == rewritten


def test_forgotten_lines_go_from_the_file_and_stay_away(space):
    """
    A forgotten id is neither written nor taken in again.
    """
    files = day(line("l1"), line("l2", summary="Secret plan"))
    import_tree(space, files)
    space.forget(entries=["l2"])

    assert import_tree(space, files).entries == 0
    assert b"Secret plan" not in dict(files_of(space, there=dict(files).get))[DAY]
    assert content(space)[DAY].count(b"\n") == 1


def test_days_are_those_of_utc_and_ordered(space):
    """
    A turn stands in the file of its day, by time; and only days that are asked for are written.
    """
    for hour in (23, 1):
        space.retain(f"at {hour}", at=datetime(2026, 5, 1, hour, tzinfo=UTC))
    space.retain("late", at="2026-05-01T23:30:00-05:00")
    files = content(space)

    assert [json.loads(each)["summary"] for each in files["interactions/2026-05-01.jsonl"].splitlines()] == [
        "at 1",
        "at 23",
    ]
    assert "interactions/2026-05-02.jsonl" in files
    only = [path for path, _ in files_of(space, days={"2026-05-02"}) if path.startswith("interactions/")]
    assert only == ["interactions/2026-05-02.jsonl"]


def test_no_secret_is_in_a_line(space):
    """
    What is told of a turn is without secrets, in the words of others too.
    """
    space.retain(f"my key is {SECRET}")
    import_tree(space, day(line("l1", summary=f"key {SECRET}", metadata={"note": f"aws {SECRET}"})))

    assert SECRET.encode() not in b"".join(content(space).values())


# ── facts, files, and what others keep there ─────────────────────────────────────────────────────────────────────


def test_facts_are_edited_by_hand(space, clock):
    """
    A changed value is put, a new key too, an older value changes nothing, and what is wrong is said by key.
    """
    space.put("a", "1", tags=["x"])
    space.put("b", "1")
    before = content(space)["state/facts.json"]
    told = json.loads(before)
    told["facts"]["a"]["value"] = "2"
    told["facts"]["c"] = "3"
    told["facts"]["d"] = {"value": 7}
    told["facts"][""] = {"value": "x"}
    clock.advance(minutes=1)
    report = import_tree(space, [("state/facts.json", json.dumps(told).encode())])

    assert {path for path, _ in report.rejected} == {"state/facts.json:d", "state/facts.json"}
    assert [space.get(key).text for key in "abc"] == ["2", "1", "3"]
    assert space.get("a").tags == ("x",)
    assert len(space.history("a")) == 2
    assert import_tree(space, [("state/facts.json", json.dumps(told).encode())]).entries == 0
    assert import_tree(space, [("state/facts.json", before)]).entries == 0
    assert space.get("a").text == "2"
    assert import_tree(space, [("state/facts.json", b"[")]).rejected[0][0] == "state/facts.json"


def test_a_fact_that_was_changed_on_both_sides_keeps_both_in_its_history(space, clock):
    """
    A key has one value: the edit is it, the other one is in the history, and the report says so.
    """
    space.put("a", "1")
    told = content(space)["state/facts.json"]
    clock.advance(minutes=1)
    space.put("a", "2")
    clock.advance(minutes=1)
    report = import_tree(space, [("state/facts.json", told.replace(b'"1"', b'"3"'))])

    assert [path for path, _ in report.conflicts] == ["state/facts.json:a"]
    assert [m.text for m in space.history("a")] == ["1", "2", "3"]


def test_a_forgotten_fact_does_not_come_back(space):
    """
    Neither does a file.
    """
    space.put("a", "1")
    space.files.create("/memories/a.md", "x")
    files = content(space)
    space.forget(key="a")
    space.files.delete("/memories/a.md")

    assert import_tree(space, files.items()).entries == 0
    assert "state/facts.json" not in content(space)
    assert "files/a.md" not in content(space)


def test_an_agents_files_are_edited_by_hand(plane, clock):
    """
    Each is a plain file; an edit is its next version, and one that was changed on both sides is kept twice.
    """
    space = plane.space("alice")
    space.files.create("/memories/what: a?.md", "one")
    files = content(space)
    (path,) = (path for path in files if path.startswith("files/"))
    assert path == "files/what%3a a%3f.md"
    clock.advance(minutes=1)

    assert import_tree(space, (files | {path: b"two"}).items()).entries == 1
    assert space.files.read("/memories/what: a?.md").text == "two"
    assert (
        import_tree(space, (files | {path: b"two"}).items()).entries
        == import_tree(space, files.items()).entries
        == 0
    )
    clock.advance(minutes=1)
    report = import_tree(space, (files | {path: b"three"}).items())
    assert [named for named, _ in report.conflicts] == [path]
    assert sorted(space.files.read(it.path).text for it in space.files.list()) == ["three", "two"]
    assert import_tree(space, (files | {path: b"three"}).items()).entries == 0
    assert import_tree(space, [("files/new/er.txt", b"hello")]).taken == ("files/new/er.txt",)
    assert space.files.read("/memories/new/er.txt").text == "hello"
    assert import_tree(space, [("files/x%2f..%2fy", b"x"), ("files/a.bin", b"\xff")]).entries == 0


def test_state_of_others_is_carried_along_unread(plane, clock):
    """
    It is passed on letter by letter, the newest of it, and no recall tells of it.
    """
    space, other = plane.space("alice"), plane.space("bob")
    files = {
        "state/watched_chats": b"19:a@thread.v2\n19:b@thread.v2\n",
        "state/email_cursor.txt": b"2026-04-17T20:00:00Z",
    }
    assert import_tree(space, files.items()).entries == 2
    clock.advance(minutes=1)
    files["state/email_cursor.txt"] = b"2026-04-18T20:00:00Z"
    assert import_tree(space, files.items()).entries == 1
    assert import_tree(space, files.items()).entries == 0

    assert {path: data for path, data in content(space).items() if path in files} == files
    import_tree(other, content(space).items())
    assert content(other) == content(space)
    assert space.search("thread") == []
    assert space.facts.list() == []
    assert space.brief().markdown == ""
    assert b"watched_chats" not in content(space).get("state/facts.json", b"")
    space.forget(everything=True)
    assert content(space) == {}


def test_files_of_nobody_are_left(space):
    """
    Summaries, digests and promises belong to who makes them.
    """
    files = [
        ("summaries/2026-04-17.html", b"<p>"),
        ("compacted/2026-16.md", b"#"),
        ("promises.jsonl", b"{}"),
        ("behavioral/x.png", b"\xff"),
    ]
    report = import_tree(space, files)

    assert set(report.left) == {path for path, _ in files}
    assert dict(files_of(space, others=files[:2])) == dict(files[:2])


# ── two who replace the same ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("forgotten", ["", "first", "here", "there"])
def test_two_machines_that_replace_one_memory_are_at_odds(plane, clock, forgotten):
    """
    In whatever order their ledgers meet, both answers are kept, in conflict, and a replay says the same; what one of
    them decides, the other follows.
    """
    alice, bob = plane.space("alice"), plane.space("bob")
    ids = {"first": alice.store("preference", "Drinks tea").id}
    one, two = MemoryObjects(), MemoryObjects()
    write_tree(alice, one)
    read_tree(one, bob)
    clock.advance(minutes=1)
    ids["here"] = alice.store("preference", "Drinks mate", supersedes=ids["first"]).id
    clock.advance(minutes=1)
    ids["there"] = bob.store("preference", "Drinks coffee", supersedes=ids["first"]).id
    write_tree(alice, one)
    write_tree(bob, two)
    read_tree(two, alice)
    read_tree(one, bob)

    assert content(alice) == content(bob)
    assert [len(space.review.conflicts()) for space in (alice, bob)] == [1, 1]
    if forgotten:
        alice.forget(entries=[ids[forgotten]])
    if forgotten in ("", "first"):
        clock.advance(minutes=1)
        alice.review.resolve(ids["there"])
        assert [m.text for m in alice.memories(state="active")] == ["Drinks coffee"]
    write_tree(alice, one)
    read_tree(one, bob)
    assert everything(bob) == everything(alice)
    for space in (alice, bob):
        before = everything(space)
        space.ledger.replay()
        assert everything(space) == before
