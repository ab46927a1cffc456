"""The request log of the adapters: one JSON line per request, one file per group, with the caller, the request and
the outcome.

The ledger records writes and their authors. It does not record requests that were rejected before they reached a
space. Lines are numbered, so that a removed line leaves a gap. They contain no content and no secrets.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Literal

import msgspec

from memplane.adapters.carapace.groups import check_group
from memplane.clock import Clock, iso, system_clock
from memplane.errors import StorageUnavailable
from memplane.safety.redact import CARAPACE, redact
from memplane.safety.sanitize import encodable, shortened

try:
    import fcntl
except ImportError:  # without file locks, only one program writes to a directory
    fcntl = None  # type: ignore[assignment]

Outcome = Literal["routed", "rejected", "sanitized", "error"]
Phase = Literal["before_normalization", "after_normalization"]

_TEXT_CHARS_MAX = 300
_PATHS_MAX = 50
_TAIL_BYTES = 64 * 1024


class AuditError(msgspec.Struct, frozen=True):
    """The error of a request."""

    code: str
    message: str


class AuditLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One event. Unknown fields are omitted, except the correlation."""

    seq: int = 0
    """Its position in the file, from 1; set by the log."""
    timestamp: str = ""
    """The time in milliseconds; set by the log."""
    group: str
    source: str
    topic: str
    correlation: str | None
    stage: str
    outcome: Outcome
    reason: str | None = None
    field_paths: tuple[str, ...] = ()
    """The paths of redacted values, never the values."""
    error: AuditError | None = None
    phase: Phase | None = None


class AuditLog:
    """A directory with one `<group>.jsonl` per group. Lines are only appended. Thread-safe."""

    def __init__(self, folder: Path, clock: Clock = system_clock) -> None:
        self._folder = folder
        self._clock = clock
        self._lock = Lock()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise StorageUnavailable(f"{folder} cannot be used for the audit log: {exc.strerror}") from exc

    def append(self, *lines: AuditLine) -> None:
        """Append lines of one group, in this order and contiguously."""
        path = self._path(lines[0].group)
        timestamp = iso(self._clock())
        with self._lock, _locked(path) as file:
            seq = _last_seq(file)
            raw = b"".join(
                msgspec.json.encode(_scrubbed(line, seq + number, timestamp)) + b"\n"
                for number, line in enumerate(lines, start=1)
            )
            file.write(raw)

    def entries(self, group: str) -> list[AuditLine]:
        """Every readable line of the group, in order."""
        found = []
        for raw in self._lines(group):
            try:
                found.append(msgspec.json.decode(raw, type=AuditLine))
            except msgspec.MsgspecError:
                continue
        return found

    def query(
        self,
        group: str,
        *,
        correlation: str | None = None,
        topic: str | None = None,
        outcome: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> list[AuditLine]:
        """Lines that match all filters; a time range includes both ends."""
        return [
            line
            for line in self.entries(group)
            if correlation in (None, line.correlation)
            and topic in (None, line.topic)
            and outcome in (None, line.outcome)
            and (since is None or line.timestamp >= since)
            and (until is None or line.timestamp <= until)
        ]

    def verify(self, group: str) -> list[str]:
        """Errors in the numbering; empty if there are none."""
        problems = []
        for number, raw in enumerate(self._lines(group), start=1):
            seq = _seq_of(raw)
            if seq is None:
                problems.append(f"Line {number}: no sequence number (modification detected)")
            elif seq != number:
                problems.append(
                    f"Line {number}: expected sequence {number}, found {seq} (gap or modification detected)"
                )
        return problems

    def rotate(self, group: str) -> Path | None:
        """Rename the file with the current time and start a new one; None if there is no file."""
        path = self._path(group)
        with self._lock:
            if not path.exists():
                return None
            stamp = re.sub("[:.]", "-", iso(self._clock()))
            aside = path.with_name(f"{group}.{stamp}.jsonl")
            path.rename(aside)
            path.touch(mode=0o600)
            return aside

    def _path(self, group: str) -> Path:
        return self._folder / f"{check_group(group)}.jsonl"

    def _lines(self, group: str) -> Sequence[bytes]:
        try:
            return self._path(group).read_bytes().splitlines()
        except FileNotFoundError:
            return ()


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO]:
    """The file, open for appending, under an exclusive lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file
        file.flush()


def _last_seq(file: BinaryIO) -> int:
    """The number of the last line. A truncated line is terminated first."""
    size = file.seek(0, os.SEEK_END)
    if not size:
        return 0
    file.seek(max(0, size - _TAIL_BYTES))
    tail = file.read()
    if not tail.endswith(b"\n"):
        file.write(b"\n")
    return next((seq for raw in reversed(tail.splitlines()) if (seq := _seq_of(raw)) is not None), 0)


class _Numbered(msgspec.Struct, frozen=True):
    seq: int


def _seq_of(raw: bytes) -> int | None:
    try:
        return msgspec.json.decode(raw, type=_Numbered).seq
    except msgspec.MsgspecError:
        return None


def _scrubbed(line: AuditLine, seq: int, timestamp: str) -> AuditLine:
    error = None if line.error is None else AuditError(line.error.code, _text(line.error.message))
    return msgspec.structs.replace(
        line,
        seq=seq,
        timestamp=timestamp,
        source=_text(line.source),
        topic=_text(line.topic),
        correlation=None if line.correlation is None else _text(line.correlation),
        reason=None if line.reason is None else _text(line.reason),
        field_paths=line.field_paths[:_PATHS_MAX],
        error=error,
    )


def _text(text: str) -> str:
    """Redacted, shortened, and without lone surrogates, which JSON cannot encode."""
    return shortened(encodable(redact(text, CARAPACE).text), _TEXT_CHARS_MAX)
