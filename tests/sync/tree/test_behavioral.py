"""Memories as files: written, read, edited by hand, and kept whatever anybody does to them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import HandClock, fresh_plane
from memplane.safety.sanitize import SanitizedText
from memplane.sync.tree import files_of, import_tree
from memplane.sync.tree.behavioral import FILE_BYTES_MAX
from memplane.sync.tree.frontmatter import part
from memplane.types import STORABLE_KINDS, State

SECRET = "AKIA" + "ABCDEFGHIJKLMN27"
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=80)
TEXTS = WORDS.filter(lambda text: SanitizedText(text).text.strip() and text.strip())
TAGS = st.lists(TEXTS.filter(lambda tag: len(tag) <= 50), max_size=3, unique=True)
MEMORIES = st.lists(st.tuples(st.sampled_from(STORABLE_KINDS), TEXTS, TAGS), min_size=1, max_size=5)


def memories(space):
    """What holds, apart from what a place says of it."""
    return sorted((m.id, m.kind, m.text, m.tags) for m in space.memories() if m.state is not State.SUPERSEDED)


def behavioral(space, prefix="behavioral"):
    return {path: data for path, data in files_of(space, prefix=prefix) if path.startswith(f"{prefix}/")}


def content(space):
    return dict(files_of(space))


def the_file(space):
    """The only memory's path and text."""
    ((path, data),) = (
        (path, data) for path, data in behavioral(space).items() if not path.endswith("MEMORY.md")
    )
    return path, data.decode()


def texts(space):
    return sorted(m.text for m in space.memories(state="active") + space.memories(state="contested"))


# ── any memory ───────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=20)
@given(MEMORIES)
@example([("preference", "0\r", []), ("fact", "\n\nx\n\n", []), ("context", "---\nid: x\n---\n", ["a: b"])])
def test_any_memories_come_back_from_their_files(stored):
    """
    Files alone, without a ledger, give another space the same memories with the same ids, and the same files.
    """
    with fresh_plane() as plane:
        space, other = plane.space("alice"), plane.space("bob")
        for kind, text, tags in stored:
            space.store(kind, text, tags=tags)
        files = behavioral(space)
        report = import_tree(other, files.items())

        assert report.rejected == report.conflicts == ()
        assert memories(other) == memories(space)
        assert behavioral(other) == files


@settings(max_examples=20)
@given(MEMORIES)
def test_taking_in_what_was_written_changes_nothing(stored):
    """
    Files of a space mean nothing new to it, and are the same every time.
    """
    with fresh_plane() as plane:
        space = plane.space("alice")
        for kind, text, tags in stored:
            space.store(kind, text, tags=tags)
        files = list(files_of(space))
        report = import_tree(space, files)

        assert (report.taken, report.rejected, report.entries) == ((), (), 0)
        assert list(files_of(space)) == files


@settings(max_examples=40)
@given(st.text(max_size=60), st.text(max_size=60), st.booleans())
def test_any_file_is_taken_or_refused_and_twice_is_once(head, body, fenced):
    """
    Whatever somebody puts there: it is in the report, taking it again adds nothing, and its file stays as it is.
    """
    text = f"---\n{head}\n---\n{body}" if fenced else head + body
    data = text.encode("utf-8", "replace")
    with fresh_plane() as plane:
        space = plane.space("alice")
        first = import_tree(space, [("behavioral/feedback_x.md", data)])
        again = import_tree(space, [("behavioral/feedback_x.md", data)])

        assert len(first.taken) + len(first.rejected) == 1
        assert (again.entries, again.taken) == (0, ())
        if first.taken and SanitizedText(text).text == text and "id" not in part(text).members:
            assert behavioral(space)["behavioral/feedback_x.md"] == data


# ── files of others ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("prefix", ["behavioral", "claude_memory"])
def test_a_foreign_file_becomes_a_memory_and_is_left_as_it_is(plane, prefix):
    """
    Its id follows from its path, in either folder; its text, order and comments are not touched.
    """
    data = b"---\nname: No: mocks\n# why not\ntype: feedback\nchats: [a, b]\n---\n\nUse real databases.\n\n"
    alice, bob = plane.space("alice"), plane.space("bob")
    for space, folder in ((alice, prefix), (bob, "behavioral")):
        assert import_tree(space, [(f"{folder}/feedback_mocks.md", data)]).taken == (
            f"{folder}/feedback_mocks.md",
        )

    assert memories(alice) == memories(bob)
    (memory,) = alice.memories()
    assert (memory.kind, memory.text) == ("instruction", "Use real databases.")
    assert behavioral(alice, prefix)[f"{prefix}/feedback_mocks.md"] == data


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("user_role.md", "---\ntype: user\n---\nx", "preference"),
        ("a.md", "---\ntype: project\n---\nx", "context"),
        ("a.md", "---\ntype: reference\n---\nx", "fact"),
        ("a.md", "---\ntype: session_digest\n---\nx", "context"),
        ("a.md", "---\ntype: user\nkind: correction\n---\nx", "correction"),
        ("feedback_a.md", "no front matter", "instruction"),
        ("deep/er/user_a.md", "\ufeffx\r\n", "preference"),
        ("Straße 1 (neu).md", "---\nname: x\n---\n---\n\n---\nname: y\n---", "context"),
    ],
)
def test_what_a_file_is_follows_from_its_type(space, name, text, kind):
    """
    Types, kinds and names of files say what a memory is; odd ones tell how things stand.
    """
    report = import_tree(space, [(f"behavioral/{name}", text.encode())])

    assert report.rejected == ()
    assert [m.kind for m in space.memories()] == [kind]
    assert behavioral(space)[f"behavioral/{name}"] == text.encode()


def test_the_folder_that_is_written_counts(space):
    """
    The same file in both folders is one memory; where they differ, the other one is refused, again and again.
    """
    files = [("claude_memory/a.md", b"old"), ("behavioral/a.md", b"new")]
    first, again = import_tree(space, files), import_tree(space, files)

    assert texts(space) == ["new"]
    assert [path for path, _ in first.rejected] == ["claude_memory/a.md"]
    assert (again.entries, again.rejected) == (0, first.rejected)
    assert import_tree(space, [("claude_memory/a.md", b"new"), ("behavioral/a.md", b"new")]).rejected == ()


def test_a_long_file_is_one_memory(space):
    """
    A person's file may say more than `store` takes; all of it is kept and found, up to what is a document.
    """
    long = "Rule one.\n" + "x" * 10_000 + "\nThe last word is zephyr."
    report = import_tree(
        space, [("behavioral/a.md", long.encode()), ("behavioral/b.md", b"y" * (FILE_BYTES_MAX + 1))]
    )

    assert [path for path, _ in report.rejected] == ["behavioral/b.md"]
    assert [hit.memory.text for hit in space.search("zephyr") if hit.memory] == [long]
    assert len(space.brief().markdown) < len(long) * 2


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("behavioral/../../etc/passwd.md", b"x"),
        ("/behavioral/a.md", b"x"),
        ("behavioral//a.md", b"x"),
        ("behavioral/a\\b.md", b"x"),
        ("behavioral/a\n.md", b"x"),
        ("behavioral/a.md", b"\xff\xfe"),
        ("behavioral/a.md", b"a\x00b"),
        ("behavioral/a.md", b""),
        ("behavioral/a.md", b"---\nname: x\n---\n \n"),
        ("behavioral/a.md", b"---\nid: fact-1\n---\nx"),
        ("behavioral/a.md", b"---\ntags: [a, b, c, d, e, f, g, h, i, j, k]\n---\nx"),
        ("behavioral/a.md", b"---\ntags: {a: b}\n---\nx"),
        ("behavioral/" + "a" * 1_000 + ".md", b"x"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_a_reason(space, path, data):
    """
    Nothing is changed, and the report says why.
    """
    report = import_tree(space, [(path, data)])

    assert [named for named, why in report.rejected if why] == [path]
    assert (report.entries, space.memories()) == (0, [])


def test_an_id_of_something_else_is_refused(space):
    """
    A file cannot take the place of a turn.
    """
    space.retain("hello", id="t1")

    assert (
        import_tree(space, [("behavioral/a.md", b"---\nid: t1\n---\nx")]).rejected[0][0] == "behavioral/a.md"
    )


# ── edits by hand ────────────────────────────────────────────────────────────────────────────────────────────────


EDITS = {
    "text": (lambda text: text.replace("tea", "coffee"), {"text": "Drinks coffee"}),
    "kind": (lambda text: text.replace("kind: preference", "kind: fact"), {"kind": "fact"}),
    "type": (lambda text: text.replace("type: user", "type: project"), {"kind": "context"}),
    "tags": (lambda text: text.replace("[drinks]", '[hot, "b: c"]'), {"tags": ("hot", "b: c")}),
    "no tags": (lambda text: text.replace("tags: [drinks]\n", ""), {"tags": ()}),
    "project": (lambda text: text.replace("---\nDrinks", "project: bar\n---\nDrinks"), {"project": "bar"}),
    "crlf": (lambda text: text.replace("tea", "coffee").replace("\n", "\r\n"), {"text": "Drinks coffee"}),
    "rule": (lambda text: text + "\n---\n\n# More\n", {"text": "Drinks tea\n\n---\n\n# More"}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_replaces_what_the_file_showed(space, clock, edit):
    """
    The memory is superseded by what the file says now, and the file keeps its name and id.
    """
    change, expected = EDITS[edit]
    before = space.store("preference", "Drinks tea", tags=["drinks"])
    path, text = the_file(space)
    clock.advance(minutes=5)
    report = import_tree(space, [(path, change(text).encode())])

    assert (report.taken, report.conflicts, report.rejected) == ((path,), (), ())
    (memory,) = space.memories(state="active")
    assert {name: getattr(memory, name) for name in expected} == expected
    assert memory.supersedes == before.id
    new_path, new_text = the_file(space)
    assert (new_path, part(new_text).members["id"], part(new_text).members["entry"]) == (
        path,
        before.id,
        memory.id,
    )
    assert import_tree(space, [(path, change(text).encode())]).entries == 0
    assert import_tree(space, [(new_path, new_text.encode())]).entries == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n",
        lambda text: text.replace("name: Drinks tea\ndescription: Drinks tea\n", ""),
        lambda text: text.replace("updated: ", "updated: 1"),
    ],
)
def test_what_says_the_same_is_no_edit(space, change):
    """
    Line ends, the last line end and our own marks carry no meaning.
    """
    space.store("preference", "Drinks tea", tags=["drinks"])
    path, text = the_file(space)

    assert import_tree(space, [(path, change(text).encode())]).entries == 0


def test_members_and_comments_that_a_person_adds_stay(space, clock):
    """
    An edit of the front matter is kept, through later changes from here too.
    """
    space.store("preference", "Drinks tea")
    path, text = the_file(space)
    edited = text.replace("type: user", "# seen in June\nmood: good\ntype: user").replace(
        "name: Drinks tea", "name: Tea!"
    )
    import_tree(space, [(path, edited.encode())])
    clock.advance(minutes=1)
    (memory,) = space.memories(state="active")
    space.store("preference", "Drinks mate", supersedes=memory.id)

    _, now = the_file(space)
    assert "name: Tea!\n" in now
    assert "# seen in June\nmood: good\n" in now
    assert now.endswith("---\nDrinks mate\n")


def test_a_foreign_file_that_is_edited_goes_on(space, clock):
    """
    Without an id in it, its path says which memory it is, also back and forth; and it is written as it stands.
    """
    for text in ("one", "two", "one", "three"):
        clock.advance(minutes=1)

        assert import_tree(space, [("behavioral/a.md", text.encode())]).entries == 1
        assert import_tree(space, [("behavioral/a.md", text.encode())]).entries == 0
        assert texts(space) == [text]
        assert behavioral(space)["behavioral/a.md"] == text.encode()
    assert len(space.overview.chain(space.memories(state="superseded")[-1].id)) == 4


def test_an_older_version_is_no_edit(space, clock):
    """
    A file that was not fetched since the memory changed here says nothing new.
    """
    first = space.store("preference", "Drinks tea")
    path, text = the_file(space)
    clock.advance(minutes=1)
    space.store("preference", "Drinks mate", supersedes=first.id)

    assert import_tree(space, [(path, text.encode())]).entries == 0
    assert texts(space) == ["Drinks mate"]


def test_a_true_conflict_keeps_both(space, clock):
    """
    Edited there and changed here: both hold, are at odds, survive a replay, and a person settles it.
    """
    first = space.store("preference", "Drinks tea")
    path, text = the_file(space)
    clock.advance(minutes=1)
    here = space.store("preference", "Drinks mate", supersedes=first.id)
    clock.advance(minutes=1)
    edited = text.replace("Drinks tea\n", "Drinks coffee\n").encode()
    report = import_tree(space, [(path, edited)])

    assert (report.taken, [named for named, _ in report.conflicts]) == ((path,), [path])
    assert texts(space) == ["Drinks coffee", "Drinks mate"]
    (conflict,) = space.review.conflicts()
    assert {conflict.left.text, conflict.right.text} == {"Drinks coffee", "Drinks mate"}
    files = behavioral(space)
    assert sum(b"state: contested" in data for data in files.values()) == 2
    assert import_tree(space, [(path, edited)]).entries == import_tree(space, files.items()).entries == 0
    space.ledger.replay()
    assert space.review.conflicts() == [conflict]
    assert behavioral(space) == files
    space.review.resolve(here.id)
    assert texts(space) == ["Drinks mate"]
    assert space.review.conflicts() == []


def test_a_foreign_file_and_a_change_here_conflict(space, clock):
    """
    The same where the file does not say which version it shows.
    """
    import_tree(space, [("behavioral/a.md", b"one")])
    clock.advance(minutes=1)
    space.store("context", "two", supersedes=space.memories()[0].id)
    clock.advance(minutes=1)

    assert import_tree(space, [("behavioral/a.md", b"one")]).entries == 0
    assert import_tree(space, [("behavioral/a.md", b"three")]).conflicts
    assert texts(space) == ["three", "two"]
    assert len(space.review.conflicts()) == 1


def test_the_same_change_on_both_sides_is_no_conflict(space, clock):
    """
    Who writes there what was changed here too says nothing new.
    """
    first = space.store("preference", "Drinks tea")
    path, text = the_file(space)
    clock.advance(minutes=1)
    space.store("preference", "Drinks mate", supersedes=first.id)

    assert import_tree(space, [(path, text.replace("Drinks tea\n", "Drinks mate\n").encode())]).entries in (
        0,
        1,
    )
    assert texts(space) == ["Drinks mate"]
    assert space.review.conflicts() == []


def test_two_who_take_in_the_same_edit_record_the_same(plane, clock):
    """
    The entry follows from the file and when it was changed, not from who reads it when.
    """
    alice, bob = plane.space("alice"), plane.space("bob")
    alice.store("preference", "Drinks tea")
    path, text = the_file(alice)
    import_tree(bob, behavioral(alice).items())
    changed = {path: datetime(2026, 11, 16, tzinfo=UTC)}
    edited = text.replace("tea", "coffee").encode()
    import_tree(alice, [(path, edited)], modified=changed)
    clock.advance(days=3)
    import_tree(bob, [(path, edited)], modified=changed)

    ids = [{(m.id, m.text, m.updated_at) for m in space.memories(state="active")} for space in (alice, bob)]
    assert ids[0] == ids[1]


def test_a_copy_of_a_file_is_another_memory(space):
    """
    Whoever takes a file as a pattern for a new one does not edit the old one.
    """
    space.store("preference", "Drinks tea")
    path, text = the_file(space)
    copy = text.replace("Drinks tea\n", "Eats cake\n").encode()
    files = [(path, text.encode()), ("behavioral/cake.md", copy)]

    assert import_tree(space, files).taken == ("behavioral/cake.md",)
    assert import_tree(space, files).entries == 0
    assert texts(space) == ["Drinks tea", "Eats cake"]
    assert {"behavioral/cake.md", path} < behavioral(space).keys()


def test_a_file_that_was_renamed_keeps_its_memory(space):
    """
    Its memory goes by the new name from then on.
    """
    first = space.store("preference", "Drinks tea")
    files = content(space)
    path, text = the_file(space)
    files["behavioral/tea.md"] = files.pop(path)
    report = import_tree(space, files.items())

    assert (report.taken, report.missing) == (("behavioral/tea.md",), ())
    assert texts(space) == ["Drinks tea"]
    assert the_file(space)[0] == "behavioral/tea.md"
    assert part(the_file(space)[1]).members["id"] == first.id
    assert import_tree(space, files.items()).entries == 0
    assert part(text).members["id"] == first.id


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_forgotten_does_not_come_back_from_a_file(space):
    """
    Neither from one of ours nor from a foreign one, edited or not.
    """
    space.store("preference", "Drinks tea")
    import_tree(space, [("behavioral/a.md", b"Eats cake")])
    files = behavioral(space)
    space.forget(everything=True)
    files["behavioral/a.md"] = b"Eats more cake"
    report = import_tree(space, files.items())

    assert (report.entries, len(report.forgotten), space.memories()) == (0, 2, [])
    assert behavioral(space) == {}


def test_a_missing_file_is_reported_and_forgotten_only_when_asked(space):
    """
    Removing a file loses nothing; with the flag it forgets the memory and what it replaced.
    """
    old = space.store("preference", "Drinks water")
    space.store("preference", "Drinks tea", supersedes=old.id)
    space.store("preference", "Eats cake")
    files = dict(files_of(space))
    gone = next(path for path, data in files.items() if b"\nDrinks tea" in data)
    del files[gone]

    assert import_tree(space, files.items()).missing == (gone,)
    assert import_tree(space, files.items(), forget_missing=True, dry_run=True).dropped == (gone,)
    assert texts(space) == ["Drinks tea", "Eats cake"]
    assert import_tree(space, files.items(), forget_missing=True).dropped == (gone,)
    assert [m.text for m in space.memories()] == ["Eats cake"]


def test_the_name_of_what_is_forgotten_goes_too(space, clock):
    """
    A file is named by its first version; where that is forgotten, nothing says its words.
    """
    first = space.store("preference", "Adores zeppelins")
    space.store("preference", "Likes boats", supersedes=first.id)
    space.forget(entries=[first.id])

    assert all("zeppelin" not in path and b"zeppelin" not in data for path, data in files_of(space))


# ── content is data ──────────────────────────────────────────────────────────────────────────────────────────────


def test_secrets_are_not_in_the_files_and_survive_an_edit(space):
    """
    A file shows a placeholder; who edits around it keeps what it stands for in the ledger.
    """
    space.store("fact", f"The key is {SECRET}\nUse it on Mondays", tags=["keys"])
    path, text = the_file(space)

    assert SECRET not in text
    assert import_tree(space, [(path, text.replace("Mondays", "Tuesdays").encode())]).entries == 1
    stored = space.ledger.entries()[-1].body.decode()
    assert SECRET in stored
    assert "Tuesdays" in stored
    assert SECRET not in the_file(space)[1]
    assert "Tuesdays" in the_file(space)[1]


def test_script_and_markup_stay_data(space):
    """
    Nothing in a memory becomes a link, a tag or a heading of the index.
    """
    space.store("context", "](javascript:alert(1)) <script>alert(1)</script>\n# [x](y) `z`")
    index = behavioral(space)["behavioral/MEMORY.md"].decode()
    (line,) = (line for line in index.splitlines() if line.startswith("- "))

    assert "<script" not in line
    assert "](javascript" not in line
    assert the_file(space)[1].endswith(
        "---\n](javascript:alert(1)) <script>alert(1)</script>\n# [x](y) `z`\n"
    )


def test_an_index_that_a_person_wrote_stays_theirs(space):
    """
    Ours is written anew with every change; theirs is carried along as it is, to other spaces too.
    """
    space.store("preference", "Drinks tea")
    assert b"Drinks tea" in behavioral(space)["behavioral/MEMORY.md"]
    own = b"# What matters\n\n- tea\n"

    assert import_tree(space, [("claude_memory/MEMORY.md", own)]).taken == ("claude_memory/MEMORY.md",)
    assert import_tree(space, [("claude_memory/MEMORY.md", own)]).entries == 0
    assert behavioral(space)["behavioral/MEMORY.md"] == own
    assert behavioral(space, "claude_memory")["claude_memory/MEMORY.md"] == own
    assert "What matters" not in str(space.search("matters")) + space.brief().markdown


def test_names_are_plain_and_nobody_elses(space):
    """
    Letters, digits, - and _; no two alike, in whatever case.
    """
    for text in (
        "Straße nach Łódź",
        "日本語",
        "CON",
        "a/b\\c:d",
        "..",
        "Straße nach Łódź",
        "-" * 300 + "x",
        "ＡＢＣ",
    ):
        space.store("fact", text)
    names = [path.split("/")[1] for path in behavioral(space)]

    assert len({name.lower() for name in names}) == 9
    assert all(
        name == "MEMORY.md" or set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.") for name in names
    )


def test_foreign_names_that_differ_in_case_only_do_not_meet(space):
    """
    Two files of an object store that one disk would take for one are written as two.
    """
    import_tree(space, [("behavioral/A.md", b"one"), ("behavioral/a.md", b"two")])
    files = behavioral(space)

    assert len({path.lower() for path in files}) == len(files) == 3


def test_scale_of_looking_is_bounded():
    """
    A chain of many versions is walked once for its file, and its file is one.
    """
    with fresh_plane(clock := HandClock()) as plane:
        space = plane.space("alice")
        memory = space.store("fact", "v0")
        for number in range(1, 60):
            clock.advance(timedelta(seconds=1))
            memory = space.store("fact", f"v{number}", supersedes=memory.id)

        assert the_file(space)[1].endswith("---\nv59\n")
