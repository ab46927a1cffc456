"""The session recorder and its index: the files Clawdapus writes, by several processes, without loss."""

import json
import multiprocessing
import os
import resource
import signal
from datetime import timedelta

import pytest

from clawdapus import NOON, entry_line, later
from memplane.adapters.clawdapus.session_history import (
    MAX_BYTES_DEFAULT,
    OVERLAP,
    TORN_NAME,
    Checkpoint,
    HistoryRecorder,
    Index,
    agent_directory_name,
    build_index,
    read_session,
    rotate,
)
from memplane.clock import to_instant
from memplane.config import settings_from
from memplane.errors import InvalidRequest, StorageError, StorageUnavailable
from memplane.ledger.history import BadLine, HistoryLine, RejectedLine, parse_line, read_history
from memplane.safety.safe_directory import SafeDirectory


def lines_of(count, *, start=0, seconds=1):
    return [
        entry_line(f"question {number}", at=later(number * seconds)) for number in range(start, start + count)
    ]


def read_ids(folder, after=None):
    with SafeDirectory.root(folder) as opened:
        reader = read_session(opened, after=None if after is None else to_instant(after))
        return [item.id for item in reader if isinstance(item, HistoryLine)]


@pytest.fixture
def analyst(tmp_path):
    return tmp_path / "analyst"


@pytest.fixture
def record(tmp_path):
    def record(lines, agent="analyst", **options):
        recorder = HistoryRecorder(tmp_path, **options)
        for line in lines:
            recorder.append(agent, line.line)

    return record


class TestRecorder:
    def test_lines_are_written_as_they_are(self, record, analyst):
        """
        Each entry is a line of `<dir>/<agent>/history.jsonl`, byte for byte, and its id still proves it.
        """
        lines = lines_of(3)
        record(lines)

        written = (analyst / "history.jsonl").read_bytes()

        assert written == b"".join(line.line + b"\n" for line in lines)
        assert [parse_line(raw).id for raw in written.splitlines()] == [line.id for line in lines]

    def test_only_the_owner_reads_a_history(self, record, analyst):
        """
        A directory has the mode of the original, 0777 less the umask; a history is readable by its owner alone.
        """
        umask = os.umask(0o022)
        try:
            record(lines_of(1))
        finally:
            os.umask(umask)

        assert analyst.stat().st_mode & 0o777 == 0o755
        assert (analyst / "history.jsonl").stat().st_mode & 0o777 == 0o600

    def test_rotation_keeps_every_file(self, record, analyst):
        """
        A full file becomes `.1` and the one before it `.2`: the original would have deleted that one.
        """
        lines = lines_of(10)
        record(lines, max_bytes=2 * len(lines[0].line) + 10)

        names = sorted(path.name for path in analyst.iterdir())

        assert names == [
            "history.index.json",
            "history.jsonl",
            *(f"history.jsonl.{number}" for number in range(1, 5)),
        ]
        assert read_ids(analyst) == [line.id for line in lines]
        assert [item.id for item in read_history(analyst)] == [line.id for line in lines]

    def test_rotation_happens_when_the_next_line_would_not_fit(self, record, analyst):
        """
        A file may be exactly full; an empty one takes a line of any length.
        """
        first, second, third = lines_of(3)
        full = len(first.line) + len(second.line) + 2
        record([first, second], max_bytes=full)

        assert not (analyst / "history.jsonl.1").exists()

        record([third], max_bytes=full)

        assert (analyst / "history.jsonl.1").read_bytes() == first.line + b"\n" + second.line + b"\n"
        assert (analyst / "history.jsonl").read_bytes() == third.line + b"\n"

    def test_rotation_empties_the_index(self, record, analyst):
        """
        The index file is that of an empty history after a rotation.
        """
        record(lines_of(2), max_bytes=10)

        assert (analyst / "history.index.json").read_bytes() == (
            b'{"version":1,"history_size":0,"entry_count":0}\n'
        )

    @pytest.mark.parametrize("left", [["2"], ["1", "3"], ["2", "3"], []])
    def test_a_rotation_that_was_cut_short_is_finished_by_the_next(self, record, analyst, left):
        """
        Whatever names a crash left, the next rotation overwrites none of them and keeps their order.
        """
        record(lines_of(1))
        for number in left:
            (analyst / f"history.jsonl.{number}").write_bytes(b"")
        older = [lines_of(1, start=-int(number))[0] for number in left]
        for number, line in zip(left, older, strict=True):
            (analyst / f"history.jsonl.{number}").write_bytes(line.line + b"\n")
        before = read_ids(analyst)

        with SafeDirectory.root(analyst) as folder:
            rotate(folder)

        assert read_ids(analyst) == before
        assert not (analyst / "history.jsonl").exists()

    def test_half_a_line_is_put_aside(self, record, analyst):
        """
        What a crash left of a line does not spoil the next one, and is not thrown away.
        """
        first, second = lines_of(2)
        record([first])
        with (analyst / "history.jsonl").open("ab") as file:
            file.write(second.line[:50])
        record([second])

        assert read_ids(analyst) == [first.id, second.id]
        assert (analyst / TORN_NAME).read_bytes() == second.line[:50] + b"\n"

    def test_a_whole_line_without_its_newline_is_kept(self, record, analyst):
        """
        An entry that lacks nothing but its newline gets it.
        """
        first, second = lines_of(2)
        analyst.mkdir()
        (analyst / "history.jsonl").write_bytes(first.line)
        record([second])

        assert (analyst / "history.jsonl").read_bytes() == first.line + b"\n" + second.line + b"\n"

    @pytest.mark.parametrize("agent", ["../evil", "a/b", "..", ".", "a\0b", "ü", "a%2Fb"])
    def test_any_agent_has_a_directory_of_its_own(self, tmp_path, record, agent):
        """
        An id that is no name of a service is escaped, and stays below the directory.
        """
        record(lines_of(1), agent=agent)

        (made,) = tmp_path.iterdir()
        assert made.name == agent_directory_name(agent)
        assert read_ids(made) == [lines_of(1)[0].id]

    def test_names_of_services_stay(self):
        """
        What Clawdapus can name is written as it is.
        """
        assert agent_directory_name("trading_desk-0.a") == "trading_desk-0.a"

    @pytest.mark.parametrize("agent", ["", "x" * 300])
    def test_what_can_be_no_directory_is_refused(self, record, agent):
        """
        Without a name there is no file.
        """
        with pytest.raises(InvalidRequest):
            record(lines_of(1), agent=agent)

    @pytest.mark.parametrize("line", [b"", b"  ", b"{}\n{}"])
    def test_an_entry_is_one_line(self, tmp_path, line):
        """
        Nothing that would be none or several lines is written.
        """
        with pytest.raises(InvalidRequest, match="one line"):
            HistoryRecorder(tmp_path).append("analyst", line)

    @pytest.mark.parametrize("linked", ["analyst", "analyst/history.jsonl"])
    def test_links_are_not_followed(self, tmp_path, linked):
        """
        An agent that may write to its directory cannot make the recorder write elsewhere.
        """
        target = tmp_path / "outside"
        target.mkdir() if linked == "analyst" else target.write_bytes(b"mine")
        (tmp_path / "histories" / linked).parent.mkdir(parents=True)
        (tmp_path / "histories" / linked).symlink_to(target)

        with pytest.raises(StorageUnavailable, match="link"):
            HistoryRecorder(tmp_path / "histories").append("analyst", lines_of(1)[0].line)

        assert list(target.iterdir()) == [] if target.is_dir() else target.read_bytes() == b"mine"


def _append_many(directory, worker, count):
    recorder = HistoryRecorder(directory, 20_000)
    for number in range(count):
        recorder.append("analyst", entry_line(f"worker {worker} says {number}", at=later(number)).line)


def test_many_processes_lose_nothing(tmp_path):
    """
    Several processes append and rotate at once; every entry is there once, and every line is whole.
    """
    workers, count = 4, 60
    context = multiprocessing.get_context(
        "fork" if "fork" in multiprocessing.get_all_start_methods() else None
    )
    processes = [context.Process(target=_append_many, args=(tmp_path, it, count)) for it in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    expected = {
        entry_line(f"worker {worker} says {number}", at=later(number)).id
        for worker in range(workers)
        for number in range(count)
    }
    found = [item.id for item in read_history(tmp_path / "analyst")]

    assert [process.exitcode for process in processes] == [0] * workers
    assert (len(found), set(found)) == (len(expected), expected)
    assert (tmp_path / "analyst" / "history.jsonl.2").exists()


def _write_on(directory, told):
    recorder = HistoryRecorder(directory, 30_000)
    for number in range(100_000):
        line = entry_line(f"turn {number}", at=later(number))
        recorder.append("analyst", line.line)
        os.write(told, f"{line.id}\n".encode())


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path):
    """
    Killed again and again while it writes and rotates; whatever it said was written is there, and what follows is whole.
    """
    acknowledged = []
    for _ in range(3):
        hearing, telling = os.pipe()
        writer = multiprocessing.get_context("fork").Process(target=_write_on, args=(tmp_path, telling))
        writer.start()
        os.close(telling)
        with os.fdopen(hearing, "rb") as heard:
            acknowledged += [heard.readline().decode().strip() for _ in range(120)]
            writer.kill()
            acknowledged += [line.decode().strip() for line in heard if line.endswith(b"\n")]
        writer.join()
    last = entry_line("the last", at=later(10**6))
    HistoryRecorder(tmp_path).append("analyst", last.line)

    items = list(read_history(tmp_path / "analyst"))

    assert [item for item in items if isinstance(item, RejectedLine)] == []
    assert {*acknowledged, last.id} <= {item.id for item in items}


def _fill_up(directory, size, outcome):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        HistoryRecorder(directory).append("analyst", entry_line("too much", at=later(9)).line)
    except StorageError as exc:
        outcome.put(type(exc).__name__)


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_trace(record, tmp_path, analyst):
    """
    All of it or nothing: half a line would spoil the file for others.
    """
    record(lines_of(2))
    before = (analyst / "history.jsonl").read_bytes()
    context = multiprocessing.get_context("fork")
    outcome = context.Queue()
    process = context.Process(target=_fill_up, args=(tmp_path, len(before) + 100, outcome))
    process.start()

    assert outcome.get(timeout=240) == "StorageUnavailable"
    process.join()
    assert (analyst / "history.jsonl").read_bytes() == before


class TestIndex:
    def test_a_read_with_after_writes_the_index(self, record, analyst):
        """
        One checkpoint for every 128th entry, by the byte its line begins at; the bytes are those of the original.
        """
        lines = lines_of(300, seconds=60)
        record(lines)

        assert not (analyst / "history.index.json").exists()

        read_ids(analyst, after=NOON)
        size = sum(len(line.line) + 1 for line in lines)
        offset = [sum(len(line.line) + 1 for line in lines[:number]) for number in (128, 256)]

        assert (analyst / "history.index.json").read_text() == (
            f'{{"version":1,"history_size":{size},"entry_count":300,"checkpoints":['
            f'{{"offset":0,"ts":"2026-04-03T12:00:00Z"}},'
            f'{{"offset":{offset[0]},"ts":"2026-04-03T14:08:00Z"}},'
            f'{{"offset":{offset[1]},"ts":"2026-04-03T16:16:00Z"}}]}}\n'
        )

    def test_after_is_strict(self, record, analyst):
        """
        What was said at the moment itself is not told again.
        """
        lines = lines_of(400, seconds=60)
        record(lines)

        assert read_ids(analyst, after=later(300 * 60)) == [line.id for line in lines[301:]]
        assert read_ids(analyst, after=later(-1)) == [line.id for line in lines]
        assert read_ids(analyst, after=later(10**6)) == []

    def test_the_index_saves_reading(self, record, analyst):
        """
        With an index only what lies behind a checkpoint is read.
        """
        lines = lines_of(400, seconds=60)
        record(lines)

        with SafeDirectory.root(analyst) as folder:
            reader = read_session(folder, after=to_instant(later(390 * 60)))
            assert len(list(reader)) == 9

        assert reader.bytes_read == reader.bytes_total < sum(len(line.line) for line in lines) / 2

    def test_it_is_extended_by_what_was_appended(self, record, analyst):
        """
        An index of an earlier state goes on where it ended.
        """
        lines = lines_of(200, seconds=60)
        record(lines[:100])
        read_ids(analyst, after=NOON)
        record(lines[100:])

        assert read_ids(analyst, after=later(180 * 60)) == [line.id for line in lines[181:]]
        assert json.loads((analyst / "history.index.json").read_text())["entry_count"] == 200

    @pytest.mark.parametrize(
        "content",
        [
            "not json",
            "[]",
            '{"version":2,"history_size":0,"entry_count":0}',
            '{"version":1,"history_size":99999999,"entry_count":3}',
            '{"version":1,"history_size":7,"entry_count":1,"checkpoints":[{"offset":3,"ts":"2026-04-03T12:00:00Z"}]}',
            '{"version":1,"history_size":0,"entry_count":0,"checkpoints":[{"offset":0,"ts":"noon"}]}',
        ],
    )
    def test_one_that_cannot_be_used_is_built_anew(self, record, analyst, content):
        """
        Nothing that stands in the index file can hide an entry.
        """
        lines = lines_of(140, seconds=60)
        record(lines)
        (analyst / "history.index.json").write_text(content)

        assert read_ids(analyst, after=later(130 * 60)) == [line.id for line in lines[131:]]
        assert json.loads((analyst / "history.index.json").read_text())["entry_count"] == 140

    def test_a_line_that_is_none_fails_the_build(self, tmp_path):
        """
        The original cannot index such a history, and says so in these words.
        """
        (tmp_path / "history.jsonl").write_bytes(b"nonsense\n")

        with (
            (tmp_path / "history.jsonl").open("rb") as file,
            pytest.raises(BadLine, match=r"^parse history entry for index: "),
        ):
            build_index(file)

    def test_such_a_history_is_read_all_the_same(self, record, analyst):
        """
        A bad line costs the index, and no entry.
        """
        lines = lines_of(4, seconds=3_600)
        record(lines[:2])
        with (analyst / "history.jsonl").open("ab") as file:
            file.write(b"nonsense\n")
        record(lines[2:])

        with SafeDirectory.root(analyst) as folder:
            items = list(read_session(folder, after=to_instant(NOON)))

        assert [item.id for item in items if isinstance(item, HistoryLine)] == [it.id for it in lines[1:]]
        assert [item.reason for item in items if isinstance(item, RejectedLine)] != []

    def test_lookup_is_that_of_the_original(self):
        """
        The last checkpoint before the first that is later.
        """
        index = Index(
            checkpoints=tuple(
                Checkpoint(offset, later(seconds).isoformat())
                for offset, seconds in ((0, 0), (10, 60), (20, 120))
            )
        )

        starts = [index.start(to_instant(NOON + timedelta(seconds=it))) for it in (-1, 0, 59, 60, 119, 500)]

        assert starts == [0, 0, 0, 10, 10, 20]

    def test_turns_that_ended_out_of_order_are_not_missed(self, record, analyst):
        """
        A long turn stands behind shorter ones that began after it; a checkpoint on it must not hide them.
        """
        quick = lines_of(128, seconds=2)
        slow = entry_line("slow", at=later(-60))
        record([*quick, slow])

        assert read_ids(analyst, after=later(100)) == [line.id for line in quick[51:]]

    def test_rotated_files_are_read_as_far_as_needed(self, record, analyst):
        """
        From the newest back; a file whose successor began early enough is not opened for reading.
        """
        lines = lines_of(9, seconds=OVERLAP // 1_000_000 + 60)
        record(lines, max_bytes=3 * len(lines[0].line) + 10)

        for number in range(9):
            assert read_ids(analyst, after=later(number * (OVERLAP // 1_000_000 + 60))) == [
                line.id for line in lines[number + 1 :]
            ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [("1000", 1_000), ("0", MAX_BYTES_DEFAULT), ("-5", MAX_BYTES_DEFAULT), ("many", MAX_BYTES_DEFAULT)],
)
def test_the_size_is_read_as_leniently_as_by_the_original(given, expected):
    """
    What is no positive number leaves the default.
    """
    settings = settings_from({"CLLAMA_SESSION_HISTORY_MAX_BYTES": given, "CLAW_SESSION_HISTORY_DIR": "/x"})

    assert (settings.session_history_max_bytes, settings.session_history_dir) == (expected, "/x")
