"""The log of what came through a door. Named after the titles of Carapace's audit-log and audit-log-security suites."""

import json
import stat
from threading import Thread

import pytest

from memplane.adapters.carapace.audit import AuditError, AuditLine, AuditLog
from memplane.errors import InvalidRequest, StorageUnavailable

TOKEN = "ghp_" + "a1B2c3D4e5" * 4


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "new" / "audit"


@pytest.fixture
def log(folder, clock):
    return AuditLog(folder, clock)


def a_line(**changes):
    plain = {
        "group": "main",
        "source": "container-6331",
        "topic": "tool.invoke.memory_store",
        "correlation": "corr-1",
        "stage": "route",
        "outcome": "routed",
    }
    return AuditLine(**{**plain, **changes})


def raw(folder, group="main"):
    return (folder / f"{group}.jsonl").read_text().splitlines()


def test_creates_the_base_directory_if_it_does_not_exist(log, folder):
    """
    sets restrictive permissions on base directory.
    """
    log.append(a_line())

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "main.jsonl").stat().st_mode) == 0o600


def test_writes_a_single_json_object_per_line(log, folder):
    """
    preserves all required fields in the logged entry, seq first; does not include reason, fieldPaths, error or phase when
    not provided; handles entries with null correlation.
    """
    log.append(a_line(correlation=None))

    assert [json.loads(line) for line in raw(folder)] == [
        {
            "seq": 1,
            "timestamp": "2026-11-15T08:30:00.000Z",
            "group": "main",
            "source": "container-6331",
            "topic": "tool.invoke.memory_store",
            "correlation": None,
            "stage": "route",
            "outcome": "routed",
        }
    ]
    assert raw(folder)[0].startswith('{"seq":1,')


def test_is_append_only(log, folder):
    """
    existing entries are never mutated; does not expose delete or modify methods.
    """
    log.append(a_line())
    first = raw(folder)
    log.append(a_line(outcome="rejected", reason="no", stage="payload"))

    assert raw(folder)[:1] == first
    assert {name for name in vars(AuditLog) if not name.startswith("_")} == {
        "append",
        "entries",
        "query",
        "verify",
        "rotate",
    }


def test_logs_every_outcome(log, folder):
    """
    logs routed, rejected, sanitized and error messages; field paths affected, not redacted values; dual entries.
    """
    error = AuditError("HANDLER_ERROR", "not found")
    log.append(a_line())
    log.append(a_line(outcome="rejected", stage="payload", reason="must be string"))
    log.append(a_line(outcome="sanitized", field_paths=("$.result.content",)))
    log.append(
        a_line(outcome="error", error=error, phase="before_normalization"),
        a_line(outcome="error", error=error, phase="after_normalization"),
    )

    lines = [json.loads(line) for line in raw(folder)]
    assert [line["outcome"] for line in lines] == ["routed", "rejected", "sanitized", "error", "error"]
    assert (lines[1]["stage"], lines[1]["reason"]) == ("payload", "must be string")
    assert lines[2]["fieldPaths"] == ["$.result.content"]
    assert lines[3]["error"] == {"code": "HANDLER_ERROR", "message": "not found"}
    assert [line["phase"] for line in lines[3:]] == ["before_normalization", "after_normalization"]


def test_writes_to_separate_files_based_on_group(log, folder):
    """
    does not mix entries between groups; maintains separate sequences per group.
    """
    for group in ("a", "b", "a"):
        log.append(a_line(group=group))

    assert [line.seq for line in log.entries("a")] == [1, 2]
    assert [line.seq for line in log.entries("b")] == [1]
    with pytest.raises(InvalidRequest):
        log.append(a_line(group="../x"))


def test_queries(log, clock):
    """
    queryByCorrelation, queryByTimeRange (inclusive), queryByTopic, queryByOutcome; empty when nothing fits.
    """
    for number in range(3):
        log.append(
            a_line(correlation=f"c{number}", topic=f"t{number}", outcome=["routed", "error"][number % 2])
        )
        clock.advance(seconds=1)

    def found(**asked):
        return [line.correlation for line in log.query("main", **asked)]

    assert found(correlation="c1") == found(topic="t1") == found(outcome="error") == ["c1"]
    assert found(since="2026-11-15T08:30:01.000Z", until="2026-11-15T08:30:02.000Z") == ["c1", "c2"]
    assert found(until="2026-11-15T08:29:59.999Z") == found(correlation="c9") == []
    assert log.query("nowhere") == []


def test_resumes_sequence_from_existing_entries_on_new_instance(log, folder, clock):
    """
    Also after a line that was cut off in the middle, which shows.
    """
    log.append(a_line())
    log.append(a_line())
    with (folder / "main.jsonl").open("a") as file:
        file.write('{"seq":3,"time')
    AuditLog(folder, clock).append(a_line())

    assert [line.seq for line in log.entries("main")] == [1, 2, 3]
    assert log.verify("main") == [
        "Line 3: no sequence number (modification detected)",
        "Line 4: expected sequence 4, found 3 (gap or modification detected)",
    ]


def test_verify_integrity(log, folder):
    """
    returns valid for contiguous sequence and for empty group; detects missing entries, modified sequence numbers, entries
    without sequence numbers.
    """
    assert log.verify("main") == []
    for _ in range(5):
        log.append(a_line())
    assert log.verify("main") == []

    lines = raw(folder)
    (folder / "main.jsonl").write_text("\n".join([*lines[:2], *lines[4:]]) + "\n")
    assert log.verify("main") == ["Line 3: expected sequence 3, found 5 (gap or modification detected)"]
    (folder / "main.jsonl").write_text('{"group":"main"}\n')
    assert log.verify("main") == ["Line 1: no sequence number (modification detected)"]


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("Bearer a1b2c3d4e5f6g7h8", "Bearer [REDACTED]"),
        ("api_key=a1b2c3d4e5f6g7h8", "api_key=[REDACTED]"),
        ("postgres://u:hunter22pw@db/x", "[REDACTED]"),
        (TOKEN, "[REDACTED]"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\nx9", "[REDACTED]"),
        ("an ordinary sentence", "an ordinary sentence"),
        ("cut \ud83d", "cut \\ud83d"),
        ("x" * 1_000, "x" * 299 + "…"),
    ],
)
def test_credential_scrubbing(log, text, scrubbed):
    """
    scrubs bearer tokens from error messages, API keys from rejection reasons, connection strings, GitHub tokens from any
    string field, private key blocks; preserves non-sensitive data unchanged.
    """
    log.append(a_line(reason=text, topic=text, error=AuditError("X", text)))

    (line,) = log.entries("main")
    assert (line.reason, line.topic, line.error.message) == (scrubbed,) * 3


def test_rotate(log, folder):
    """
    rotates a group log file to a timestamped archive, preserves all entries in it, creates a fresh empty log, resets
    sequence; nothing to rotate where no log file exists.
    """
    assert log.rotate("main") is None
    log.append(a_line())
    before = raw(folder)

    aside = log.rotate("main")
    assert aside.name == "main.2026-11-15T08-30-00-000Z.jsonl"
    assert aside.read_text().splitlines() == before
    assert raw(folder) == []
    log.append(a_line())
    assert [line.seq for line in log.entries("main")] == [1]


def test_many_writers_leave_no_gap(log, folder, clock):
    """
    Threads, and other programs, number their lines one after the other.
    """
    other = AuditLog(folder, clock)

    def write(target):
        for _ in range(50):
            target.append(a_line(), a_line())

    threads = [Thread(target=write, args=(target,)) for target in (log, other, log)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert log.verify("main") == []
    assert len(log.entries("main")) == 300


def test_a_folder_that_cannot_be_is_said(tmp_path):
    """
    In our words.
    """
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable, match="cannot be used for the audit log"):
        AuditLog(tmp_path / "file" / "audit")
