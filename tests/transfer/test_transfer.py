"""Memory in and out of other forms."""

import json
import sqlite3
from datetime import timedelta

import msgspec
import pytest

from engines import both_if_thorough, only_files
from memplane import Caller
from memplane.adapters.importers import count_excluded, export_lines, import_file
from memplane.errors import InvalidRequest
from memplane.ledger.history import Payload, compose_line, entry_id
from memplane.space.doctor import examine
from memplane.storage.filter import Filter
from memplane.types import NewEntry, Op

pytestmark = both_if_thorough

CODE_SCHEMA = """
CREATE TABLE entries (id TEXT UNIQUE NOT NULL, type TEXT NOT NULL, content TEXT NOT NULL, behavioral INTEGER DEFAULT 0,
  tags TEXT DEFAULT '[]', supersedes TEXT, superseded_by TEXT, session_id TEXT, group_name TEXT, created_at TEXT);
"""
DOCUMENT_SCHEMA = """
CREATE TABLE memory_entries (id TEXT PRIMARY KEY, type TEXT NOT NULL, content TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '[]',
  behavioral INTEGER NOT NULL DEFAULT 0, superseded_by TEXT REFERENCES memory_entries(id), session_id TEXT NOT NULL,
  group_name TEXT NOT NULL, created_at TEXT NOT NULL);
"""


def history_line(number, text="hello"):
    return compose_line(
        at=1_790_000_000_000_000 + number * 1_000_000,
        claw_id="analyst",
        path="/v1/chat/completions",
        requested_model="m",
        effective_provider="p",
        effective_model="m",
        request_original={"messages": [{"role": "user", "content": f"{text} question{number}"}]},
        response=Payload(
            json={"choices": [{"message": {"role": "assistant", "content": f"answer{number}"}}]}
        ),
    )


def write_lines(path, lines):
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def carapace_file(path, schema, rows):
    connection = sqlite3.connect(path)
    connection.executescript(schema)
    for row in rows:
        table = "entries" if "entries (" in schema and "memory_entries" not in schema else "memory_entries"
        names = ", ".join(row)
        connection.execute(
            f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", tuple(row.values())
        )
    connection.commit()
    connection.close()
    return path


def carapace_row(id, content, **more):
    return {
        "id": id,
        "type": "preference",
        "content": content,
        "session_id": "sess-1",
        "group_name": "main",
        "created_at": "2026-02-18T14:30:00.000Z",
        **more,
    }


def snapshot(space):
    """Everything a reader could see of a space."""
    hits = space.search(include_superseded=True, limit=100)
    told = msgspec.json.encode(
        (hits, [tombstone.id for tombstone in space.ledger.tombstones()], space.brief().markdown)
    )
    return told.decode().replace("import:python", "python")


def fill(space, clock):
    space.retain("I moved to Lisbon", conversation="c1", at="2026-01-02T03:04:05.678Z", metadata={"x": [1]})
    space.retain("noted", role="assistant", conversation="c1")
    first = space.store("fact", "Lives in Porto", tags=["home"])
    clock.advance(hours=1)
    second = space.store("fact", "Lives in Lisbon", supersedes=first.id)
    space.put("theme", "dark", ttl=timedelta(days=30))
    clock.advance(hours=1)
    space.put("theme", "light")
    space.delete(second.id)
    space.forget(entries=["hist1_never_seen"], reason="asked")


def test_history_goes_in_and_comes_out_byte_for_byte(space, tmp_path):
    """
    Exporting an imported session history gives the very lines that went in.
    """
    lines = [history_line(number, "naïve <tag> & 你好").line for number in range(20)]

    report = import_file(space, write_lines(tmp_path / "history.jsonl", lines))

    assert (report.added, report.rejected_count) == (20, 0)
    assert list(export_lines(space)) == lines


def test_importing_again_changes_nothing(space, tmp_path):
    """
    A second import of the same file finds every entry known.
    """
    path = write_lines(tmp_path / "history.jsonl", [history_line(number).line for number in range(5)])
    import_file(space, path)

    report = import_file(space, path)

    assert (report.added, report.known) == (0, 5)
    assert len(space.ledger.entries()) == 5


def test_forgotten_entries_do_not_come_back_with_an_import(space, tmp_path):
    """
    A tombstone beats a later import of the same entry.
    """
    lines = [history_line(number) for number in range(3)]
    space.forget(entries=[lines[1].id])

    report = import_file(space, write_lines(tmp_path / "history.jsonl", [line.line for line in lines]))

    assert (report.added, report.forgotten) == (2, 1)
    assert space.search("question1") == []


def test_bad_lines_are_reported_and_the_rest_is_taken(space, tmp_path):
    """
    A corrupt line, a changed line and a cut-off last line are named with their number; the good ones are in.
    """
    good = [history_line(number).line for number in range(3)]
    changed = good[0].replace(b"hello", b"HELLO")
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"\n".join([good[0], b"{nonsense", changed, good[1], good[2][:40]]))

    report = import_file(space, path)

    assert [(line.number, bool(line.reason)) for line in report.rejected] == [(2, True), (3, True), (5, True)]
    assert report.added == 2


def test_the_rotated_file_is_read_first(space, tmp_path):
    """
    Given an agent's folder, `history.jsonl.1` comes before `history.jsonl`.
    """
    old, new = history_line(1).line, history_line(2).line
    write_lines(tmp_path / "history.jsonl.1", [old])
    write_lines(tmp_path / "history.jsonl", [new])

    import_file(space, tmp_path)

    assert list(export_lines(space)) == [old, new]


def test_a_legacy_line_gets_the_id_the_rule_gives_it(space, tmp_path):
    """
    A line without an id is kept under its hash, and its export proves that id.
    """
    line = history_line(1).line
    legacy = line[:13] + line[13 + len('"id":"hist1_",') + 64 :]

    report = import_file(space, write_lines(tmp_path / "history.jsonl", [legacy]))
    (exported,) = export_lines(space)

    assert report.legacy == 1
    assert json.loads(exported)["id"] == entry_id(exported) == entry_id(legacy)


def test_our_own_turns_export_as_valid_history(space, plane, tmp_path):
    """
    A retained turn becomes a line whose id the rule confirms, and two equal turns stay two.
    """
    space.retain("the same words")
    space.retain("the same words")
    space.retain("an answer", role="assistant")

    report = import_file(plane.space("other"), write_lines(tmp_path / "history.jsonl", export_lines(space)))

    assert (report.added, report.rejected_count) == (3, 0)
    assert [turn.role for turn in reversed(plane.space("other").turns())] == ["user", "user", "assistant"]


def test_history_says_how_much_it_leaves_out(space, clock):
    """
    Stored memories and facts are not turns, and the number of them is told.
    """
    fill(space, clock)

    assert count_excluded(space) == 3


def test_a_full_export_restores_the_same_space(space, plane, clock, tmp_path):
    """
    Space, full export, empty space: the same memories, ids, chains and tombstones; and the same export again.
    """
    fill(space, clock)
    lines = list(export_lines(space, "full"))
    copy = plane.space("copy")

    report = import_file(copy, write_lines(tmp_path / "space.jsonl", lines))

    assert report.rejected_count == 0
    assert snapshot(copy) == snapshot(space)
    assert list(export_lines(copy, "full")) == lines
    space.enrich()
    copy.ledger.replay()
    copy.enrich()
    assert snapshot(copy) == snapshot(space)
    assert copy.ledger.verify().ok


def test_a_full_import_replaces_live_keys(space, plane, clock, tmp_path):
    """
    A key that is live in both places has one live value after the import: the one that was put last.
    """
    other = plane.space("other")
    other.put("theme", "light")
    clock.advance(seconds=1)
    space.put("theme", "dark")
    path = write_lines(tmp_path / "space.jsonl", export_lines(space, "full"))

    import_file(other, path)

    assert other.get("theme").text == "dark"
    assert [memory.text for memory in other.history("theme")] == ["light", "dark"]


def test_a_full_import_reports_what_is_no_entry(space, plane, clock, tmp_path):
    """
    Unknown ops and broken bodies are rejected one by one.
    """
    fill(space, clock)
    lines = list(export_lines(space, "full"))
    lines.insert(2, b'{"memplane":1,"id":"x","op":"dance","body":{}}')
    lines.insert(4, b'{"memplane":1,"id":"y","op":"store","body":{"kind":"fact"}}')

    report = import_file(plane.space("copy"), write_lines(tmp_path / "space.jsonl", lines))

    assert [line.number for line in report.rejected] == [3, 5]
    assert snapshot(plane.space("copy")) == snapshot(space)


@pytest.mark.parametrize("schema", [CODE_SCHEMA, DOCUMENT_SCHEMA], ids=["code", "document"])
def test_carapace_files_come_in_with_ids_times_and_chains(space, tmp_path, schema):
    """
    Both of Carapace's schemas import: same ids, same times, replaced entries replaced.
    """
    path = carapace_file(
        tmp_path / "main.sqlite",
        schema,
        [
            carapace_row("mem-a", "Prefers JavaScript", superseded_by="mem-b", tags='["coding"]'),
            carapace_row("mem-b", "Prefers TypeScript", created_at="2026-02-19T08:00:00.000Z"),
            carapace_row("mem-c", "Dog is Luna", type="fact"),
        ],
    )

    report = import_file(space, path)

    assert (report.format, report.added, report.rejected_count) == ("carapace", 3, 0)
    assert space.memory("mem-a").superseded_by == "mem-b"
    assert space.memory("mem-a").tags == ("coding",)
    assert space.memory("mem-b").created_at.isoformat() == "2026-02-19T08:00:00+00:00"
    assert space.memory("mem-b").caller == Caller("", "import:carapace", "sess-1")
    assert {entry.id for entry in space.brief().entries} == {"mem-b", "mem-c"}


def test_carapace_circles_and_strays_are_reported(space, tmp_path):
    """
    Links that close a circle or lead nowhere, and rows of unknown type, are named; the rest is taken.
    """
    path = carapace_file(
        tmp_path / "main.sqlite",
        CODE_SCHEMA,
        [
            carapace_row("mem-a", "one", superseded_by="mem-b"),
            carapace_row("mem-b", "two", superseded_by="mem-a"),
            carapace_row("mem-c", "three", superseded_by="mem-gone"),
            carapace_row("mem-d", "four", type="rumour"),
        ],
    )

    report = import_file(space, path)

    assert (report.added, report.rejected_count) == (3, 3)
    assert {entry.content for entry in space.brief().entries} == {"two", "three"}


def test_a_foreign_database_is_refused(space, tmp_path):
    """
    A SQLite file that is not Carapace's says so.
    """
    path = carapace_file(tmp_path / "x.sqlite", "CREATE TABLE t (x);", [])

    with pytest.raises(InvalidRequest, match="memory_entries"):
        import_file(space, path)


def test_turns_retained_during_an_import_are_found_before_and_after_it_ends(space):
    """
    While appended entries wait for projection, a new turn is searchable, and the catching up doubles nothing.
    """
    lines = [history_line(number) for number in range(300)]
    space.ledger.load([NewEntry(line.id, Op.HISTORY, line.line) for line in lines])
    space.retain("a zebra crossed the road")

    with space._context.read() as reader:
        behind = reader.ledger.head().seq - reader.state.cursor()
        found_meanwhile = reader.turns.match(["zebra"], _anything(), limit=5)
    space.ledger.catch_up()

    assert behind == 301
    assert len(found_meanwhile) == 1
    assert len(space.search("zebra")) == 1
    assert len(space.search("question17")) == 1
    assert space.overview.stats().turns == 601
    assert space.overview.lag() == 0


def _anything():
    return Filter(now=0)


@only_files  # thousands of entries take a while elsewhere
def test_recall_says_when_it_is_incomplete(open_plane):
    """
    As long as an import is not searchable as a whole, recall is `degraded` and says why; afterwards it is not.
    """
    space = open_plane(recall_work_ms=0).space("alice")
    lines = [history_line(number) for number in range(2_500)]
    space.ledger.load([NewEntry(line.id, Op.HISTORY, line.line) for line in lines])

    during = space.recall("question1").degraded
    space.enrich()

    assert "indexing" in "".join(during)
    assert space.recall("question1").degraded == ()


def test_the_doctor_finds_nothing_in_a_healthy_space(space, clock):
    """
    A space in ordinary use is well.
    """
    fill(space, clock)

    assert [check.name for check in examine(space).checks if not check.ok] == []


def test_the_doctor_reports_duplicates_and_expired_facts(space, clock):
    """
    Copies of one memory and facts past their time are found and counted.
    """
    for _ in range(5):
        space.store("fact", "The sky is green")
    space.put("k", "v", ttl=timedelta(hours=1))
    clock.advance(hours=2)

    checks = {check.name: check for check in examine(space).checks}

    assert not checks["duplicates"].ok
    assert checks["duplicates"].figures["rate"] == pytest.approx(0.8)
    assert not checks["stale"].ok
