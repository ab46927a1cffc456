"""Reading the files of a session history: their order, their bad lines, their bounds."""

import json
import tracemalloc

import pytest

from memplane.errors import InvalidRequest
from memplane.ledger.history import EXCERPT_BYTES_MAX, HistoryLine, RejectedLine, parse_line, read_history


def legacy_line(number):
    ts = f"2026-11-15T06:{number // 60:02}:{number % 60:02}Z"
    return json.dumps({"version": 1, "ts": ts, "number": number}).encode()


@pytest.fixture
def write_history(tmp_path):
    """Write entries to a file as Clawdapus would and return their ids."""

    def write(numbers, name="history.jsonl"):
        lines = [parse_line(legacy_line(number)) for number in numbers]
        (tmp_path / name).write_bytes(b"".join(line.line + b"\n" for line in lines))
        return [line.id for line in lines]

    return write


def ids(items):
    return [item.id for item in items if isinstance(item, HistoryLine)]


def test_a_directory_is_read_oldest_first(tmp_path, write_history):
    """
    The rotated predecessor comes before the current file, and nothing else in the directory is read.
    """
    older = write_history(range(3), "history.jsonl.1")
    newer = write_history(range(3, 6))
    (tmp_path / "history.index.json").write_text('{"version":1}')

    assert ids(read_history(tmp_path)) == older + newer
    assert ids(read_history(tmp_path / "history.jsonl")) == older + newer


def test_other_files_are_read_alone(tmp_path, write_history):
    """
    An export or a rotated file named as such has no predecessor.
    """
    rotated = write_history(range(3), "history.jsonl.1")
    export = write_history(range(2), "export.jsonl")

    assert ids(read_history(tmp_path / "history.jsonl.1")) == rotated
    assert ids(read_history(tmp_path / "export.jsonl")) == export


def test_a_history_just_rotated_is_read(tmp_path, write_history):
    """
    The current file may not exist yet.
    """
    rotated = write_history(range(3), "history.jsonl.1")

    assert ids(read_history(tmp_path)) == rotated
    assert ids(read_history(tmp_path / "history.jsonl")) == rotated


@pytest.mark.parametrize("name", ["", "history.jsonl", "absent", "file/history.jsonl"])
def test_no_history_is_said_before_reading(tmp_path, name):
    """
    A wrong path is an error at once, not an empty history.
    """
    (tmp_path / "file").touch()

    with pytest.raises(InvalidRequest, match="no session history found"):
        read_history(tmp_path / name)


def test_a_file_that_cannot_be_read_is_an_error_of_ours(tmp_path):
    """
    Trouble with the disk does not reach the caller as a bare OSError.
    """
    (tmp_path / "history.jsonl").mkdir()

    with pytest.raises(InvalidRequest, match="cannot read"):
        list(read_history(tmp_path))


def test_an_empty_history_has_no_lines(tmp_path, write_history):
    """
    A file of nothing, or of blank lines, is a history without entries.
    """
    write_history([])

    assert list(read_history(tmp_path)) == []


def test_blank_lines_and_line_ends_of_windows_do_not_matter(tmp_path):
    """
    Entries are the same with them, and line numbers count them.
    """
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"\r\n" + legacy_line(1) + b"\r\n \t\r\n\n" + legacy_line(2) + b"\r\nbroken\r\n")

    one, two, broken = read_history(path)

    assert [one, two] == [parse_line(legacy_line(1)), parse_line(legacy_line(2))]
    assert isinstance(broken, RejectedLine)
    assert (broken.source, broken.number, broken.excerpt) == ("history.jsonl", 6, b"broken")


def test_a_bad_line_is_reported_and_passed_over(tmp_path, write_history):
    """
    Each rejection names file, line and reason, and all good lines around it are read.
    """
    good = write_history(range(2), "history.jsonl.1")
    with (tmp_path / "history.jsonl.1").open("ab") as file:
        file.write(b"{broken\n" + legacy_line(7).replace(b"1,", b"2,", 1) + b"\n")
    good += write_history(range(2, 4))

    items = list(read_history(tmp_path))

    assert ids(items) == good
    assert [(item.source, item.number, item.reason) for item in items if isinstance(item, RejectedLine)] == [
        ("history.jsonl.1", 3, "not JSON: JSON is malformed: object keys must be strings (byte 1)"),
        ("history.jsonl.1", 4, "version is 2, not 1"),
    ]


def test_an_entry_with_a_foreign_id_is_rejected_unless_trusted(tmp_path, write_history):
    """
    An altered line is not taken over, except from a source whose ids are trusted.
    """
    (id,) = write_history([1])
    path = tmp_path / "history.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"number": 1', b'"number": 2'))

    (rejected,) = read_history(path)

    assert rejected.reason == "id does not match the content"
    assert ids(read_history(path, trust_ids=True)) == [id]


@pytest.mark.parametrize("kept", [1, 20, 60, len("…".encode()) + 5])
def test_a_last_line_that_was_cut_off_is_said_to_be(tmp_path, kept):
    """
    A write that was not finished is told from a line that is wrong, wherever it stopped.
    """
    whole = json.dumps({"version": 1, "é…": 1, "ts": "2026-11-15T06:28:17Z"}, ensure_ascii=False).encode()
    path = tmp_path / "history.jsonl"
    path.write_bytes(legacy_line(1) + b"\n" + whole[: min(kept, len(whole) - 1)])

    good, rejected = read_history(path)

    assert isinstance(good, HistoryLine)
    assert (rejected.number, rejected.reason) == (2, "cut off")


def test_a_last_line_without_newline_counts_if_it_is_whole(tmp_path):
    """
    Only the newline may be missing; a whole line with another fault keeps its own reason.
    """
    path = tmp_path / "history.jsonl"

    path.write_bytes(legacy_line(1))
    assert ids(read_history(path)) == [parse_line(legacy_line(1)).id]

    path.write_bytes(b'{"version":1}')
    assert [item.reason for item in read_history(path)] == ["ts is missing"]


def test_a_broken_line_in_the_middle_is_not_cut_off(tmp_path):
    """
    Only the end of a file can be cut off.
    """
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"version":1,\n' + legacy_line(1) + b"\n")

    rejected, _ = read_history(path)

    assert rejected.reason.startswith("not JSON")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_the_limit_is_exact(tmp_path, end):
    """
    A line of just the limit is read and one byte more is not, whatever ends it.
    """
    line = legacy_line(1)
    path = tmp_path / "history.jsonl"
    path.write_bytes(line + end)

    assert len(ids(read_history(path, line_bytes_max=len(line)))) == 1
    for limit in (len(line) - 1, len(line) - 2, len(line) - 3, 10):
        (rejected,) = read_history(path, line_bytes_max=limit)
        assert rejected.reason == f"longer than {limit} bytes"


def test_an_endless_line_is_skipped_in_bounded_memory(tmp_path):
    """
    Forty megabytes without a newline cost neither memory nor the lines around them.
    """
    path = tmp_path / "history.jsonl"
    with path.open("wb") as file:
        file.write(legacy_line(1) + b"\n")
        for _ in range(40):
            file.write(b"x" * 2**20)
        file.write(b"\n" + legacy_line(2) + b"\n")

    tracemalloc.start()
    items = list(read_history(path, line_bytes_max=2**20))
    memory_bytes_peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    first, rejected, second = items
    assert ids([first, second]) == [parse_line(legacy_line(number)).id for number in (1, 2)]
    assert rejected == RejectedLine("history.jsonl", 2, "longer than 1048576 bytes", b"x" * EXCERPT_BYTES_MAX)
    assert memory_bytes_peak < 6 * 2**20


def test_progress_ends_at_the_total(tmp_path, write_history):
    """
    The bytes read grow with every line to the size of all files.
    """
    write_history(range(5), "history.jsonl.1")
    write_history(range(5, 9))
    with (tmp_path / "history.jsonl").open("ab") as file:
        file.write(b"x" * 500)
    reader = read_history(tmp_path, line_bytes_max=300)

    positions = [reader.bytes_read for _ in reader]

    assert positions == sorted(set(positions))
    assert reader.bytes_read == reader.bytes_total == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_a_reader_can_be_left_early(tmp_path, write_history):
    """
    Closing lets go of the files; nothing more is read.
    """
    write_history(range(5))
    reader = read_history(tmp_path)
    next(reader)

    reader.close()

    assert list(reader) == []
