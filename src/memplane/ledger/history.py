"""Clawdapus' session history format: one JSON object per line, whose id is a hash of the line.

A stored line is kept byte for byte, because the id is a hash of the text, not of its meaning.
"""

import hashlib
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from memplane.clock import SECOND, Instant, to_datetime, to_instant
from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.ledger.gojson import Json

VERSION = 1
LINE_BYTES_MAX = 8 * 1024 * 1024
EXCERPT_BYTES_MAX = 200
HISTORY_NAME = "history.jsonl"
ROTATED_NAME = "history.jsonl.1"

_HEAD = b'{"version":1,'
_ID_WHERE_IT_USUALLY_IS = re.compile(rb'\{"version":1,"id":"hist1_[0-9a-f]{64}",')
_ID_USUALLY_ENDS = len(_HEAD) + len('"id":"hist1_",') + 64
# An unterminated string counts as one, which keeps the scan linear on any bytes.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{}\[\],]', re.DOTALL)
_ID_KEY = re.compile(rb'[ \t\r\n]*"id"[ \t\r\n]*:')

_AT_MIN = to_instant(datetime.min.replace(tzinfo=UTC))
_AT_MAX = to_instant(datetime.max.replace(tzinfo=UTC))
_NEWLINE = ord("\n")
_BUFFER_BYTES = 256 * 1024
_OPENINGS_MAX = 20
_ROTATED = re.compile(re.escape(HISTORY_NAME) + r"\.([1-9][0-9]{0,8})")


class BadLine(InvalidRequest):
    """The line is not a session history entry; `malformed` if it is not JSON."""

    def __init__(self, reason: str, *, malformed: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.malformed = malformed


class HistoryLine(msgspec.Struct, frozen=True, gc=False):
    """One entry. `line` has no surrounding whitespace and always carries the id, also for legacy lines."""

    id: str
    line: bytes
    at: Instant
    legacy: bool


class RejectedLine(msgspec.Struct, frozen=True, gc=False):
    """A rejected line: its number, the reason, and how it begins."""

    source: str
    number: int
    reason: str
    excerpt: bytes


class _Envelope(msgspec.Struct):
    """The members that decide whether a line is an entry; the others are only checked for syntax."""

    ts: Annotated[datetime, msgspec.Meta(tz=True)]
    version: int = 0
    id: str | msgspec.UnsetType = msgspec.UNSET


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_MEMBERS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def hash_line(line: bytes) -> str:
    """The id of a line that does not carry one."""
    return "hist1_" + hashlib.sha256(line).hexdigest()


def entry_id(line: bytes) -> str:
    """The id proven by the text of a stored line, whatever id it claims.

    The hash of the line without its first top-level `id` member, or of the whole line if there is none.
    """
    line = line.strip()
    if _ID_WHERE_IT_USUALLY_IS.match(line):
        return hash_line(_HEAD + line[_ID_USUALLY_ENDS:])
    span = _find_id(line)
    if span is None:
        return hash_line(line)
    return hash_line(line[: span[0]] + line[span[1] :])


def parse_line(
    raw: bytes, *, trust_ids: bool = False, line_bytes_max: int = LINE_BYTES_MAX, head: bytes | None = None
) -> HistoryLine:
    """Check one line and keep it verbatim; raise only `BadLine`. `head` is an object with the line's own
    `version`, `id` and `ts`, from a caller that has decoded the line already.

    `trust_ids` is for entries that were redacted or re-encoded on their way: live retain, `claw history export`.
    Their id belongs to the original line, not to this text.
    """
    line = raw.strip()
    if len(line) > line_bytes_max:
        raise BadLine(f"longer than {line_bytes_max} bytes")
    if _NEWLINE in line:
        raise BadLine("more than one line")
    envelope = _decode_envelope(line if head is None else head)
    if envelope.version != VERSION:
        raise BadLine(f"version is {envelope.version or 'missing'}, not {VERSION}")
    at = instant_of(envelope.ts)
    if isinstance(envelope.id, msgspec.UnsetType):
        id = hash_line(line)
        return HistoryLine(id, _with_id(line, id), at, legacy=True)
    if not envelope.id.strip():
        raise BadLine("id is empty")
    if not trust_ids and entry_id(line) != envelope.id:
        raise BadLine("id does not match the content")
    return HistoryLine(envelope.id, line, at, legacy=False)


def instant_of(ts: datetime) -> Instant:
    """A time in the first or last year may fall outside the range in UTC."""
    at = to_instant(ts)
    if not _AT_MIN <= at <= _AT_MAX:
        raise BadLine("ts is outside the years 1 to 9999 in UTC")
    return at


Opened = list[tuple[str, BinaryIO]]
"""Files by name, oldest first, each positioned where reading begins."""


class HistoryReader(Iterator[HistoryLine | RejectedLine]):
    """Entries in the order they were written; `bytes_read` of `bytes_total` shows progress."""

    def __init__(
        self,
        path: Path,
        opening: Callable[[ExitStack], Opened],
        bytes_total: int,
        *,
        line_bytes_max: int = LINE_BYTES_MAX,
        trust_ids: bool = False,
        after: Instant | None = None,
    ) -> None:
        """`opening` is called with the first requested line; `after` skips entries that are not later."""
        self._path = path
        self._opening = opening
        self._line_bytes_max = line_bytes_max
        self._trust_ids = trust_ids
        self._after = after
        self.bytes_total = bytes_total
        self.bytes_read = 0
        self._items = self._read()

    def __next__(self) -> HistoryLine | RejectedLine:
        return next(self._items)

    def close(self) -> None:
        """Close the files early."""
        self._items.close()

    def _read(self) -> Generator[HistoryLine | RejectedLine, None, None]:
        with _translate_errors(self._path), ExitStack() as stack:
            for name, file in self._opening(stack):
                for item in self._read_file(name, file):
                    if self._after is None or isinstance(item, RejectedLine) or item.at > self._after:
                        yield item

    def _read_file(self, name: str, file: BinaryIO) -> Iterator[HistoryLine | RejectedLine]:
        piece_bytes_max = self._line_bytes_max + len(b"\r\n")
        number = 0
        while raw := file.readline(piece_bytes_max):
            number += 1
            self.bytes_read += len(raw)
            ended = raw.endswith(b"\n")
            if len(raw) == piece_bytes_max and not ended:
                self._skip_line(file)
                reason = f"longer than {self._line_bytes_max} bytes"
                yield RejectedLine(name, number, reason, raw[:EXCERPT_BYTES_MAX])
            elif not raw.isspace():
                yield self._parse(name, number, raw, ended=ended)

    def _skip_line(self, file: BinaryIO) -> None:
        while piece := file.readline(_BUFFER_BYTES):
            self.bytes_read += len(piece)
            if piece.endswith(b"\n"):
                return

    def _parse(self, name: str, number: int, raw: bytes, *, ended: bool) -> HistoryLine | RejectedLine:
        try:
            return parse_line(raw, trust_ids=self._trust_ids, line_bytes_max=self._line_bytes_max)
        except BadLine as exc:
            reason = "cut off" if exc.malformed and not ended else exc.reason
            return RejectedLine(name, number, reason, raw.strip()[:EXCERPT_BYTES_MAX])


def read_history(
    path: Path, *, line_bytes_max: int = LINE_BYTES_MAX, trust_ids: bool = False
) -> HistoryReader:
    """Read a history file or an agent's directory, rotated files first, one line at a time.

    A bad line is reported and skipped. Raises `InvalidRequest` if there is no history.
    """
    with _translate_errors(path):
        bytes_total = sum(file.stat().st_size for file in _find_files(path))
    return HistoryReader(
        path,
        lambda stack: _open_files(path, stack),
        bytes_total,
        line_bytes_max=line_bytes_max,
        trust_ids=trust_ids,
    )


def _open_files(path: Path, stack: ExitStack) -> Opened:
    """A consistent set of files: a concurrent rotation renames them, so they are opened again."""
    for _ in range(_OPENINGS_MAX):
        files = _find_files(path)
        with ExitStack() as trying, suppress(FileNotFoundError):
            opened = [
                (file.name, trying.enter_context(file.open("rb", buffering=_BUFFER_BYTES))) for file in files
            ]
            if _find_files(path) == files and all(
                file.stat().st_ino == os.fstat(it.fileno()).st_ino
                for file, (_, it) in zip(files, opened, strict=True)
            ):
                stack.push(trying.pop_all())
                return opened
    raise InvalidRequest(f'"{path}" is rotated faster than it can be read; try again', field="path")


def rotated_number(name: str) -> int | None:
    """The rotation number of a file: 1 is the newest. Clawdapus keeps one, Memplane all."""
    found = _ROTATED.fullmatch(name)
    return int(found[1]) if found else None


def _find_files(path: Path) -> list[Path]:
    if path.is_dir():
        path = path / HISTORY_NAME
    if path.name != HISTORY_NAME:
        files = [path] if path.exists() else []
    else:
        beside = path.parent.iterdir() if path.parent.is_dir() else iter(())
        older = sorted(
            ((number, file) for file in beside if (number := rotated_number(file.name))), reverse=True
        )
        files = [*(file for _, file in older), *([path] if path.exists() else [])]
    if not files:
        raise InvalidRequest(f'no session history found at "{path}"', field="path")
    return files


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise InvalidRequest(f'cannot read "{path}": {exc.strerror}', field="path") from exc


def _decode_envelope(line: bytes) -> _Envelope:
    try:
        return gojson.decode(line, _ENVELOPE)
    except gojson.NotJson as exc:
        raise BadLine(str(exc), malformed=True) from exc
    except msgspec.ValidationError as exc:
        raise _explain(line) from exc


def _explain(line: bytes) -> BadLine:
    """The invalid member of a line that is not an envelope."""
    try:
        members = gojson.decode(line, _MEMBERS)
    except gojson.NotJson as exc:
        return BadLine(str(exc), malformed=True)
    except msgspec.ValidationError:
        return BadLine("not a JSON object")
    version = bytes(members.get("version", b"missing"))
    if version != b"%d" % VERSION:
        return BadLine(f"version is {_excerpt(version)}, not {VERSION}")
    if not bytes(members.get("id", b'"')).startswith(b'"'):
        return BadLine("id is not a string")
    if "ts" not in members:
        return BadLine("ts is missing")
    return BadLine(f"ts is {_excerpt(bytes(members['ts']))}, not an RFC 3339 time with a zone")


def _excerpt(raw: bytes) -> str:
    return raw[:40].decode(errors="replace")


def _with_id(line: bytes, id: str) -> bytes:
    """The line with its id where Clawdapus writes it, if it begins as usual, else in front."""
    cut = len(_HEAD) if line.startswith(_HEAD) else len(b"{")
    return line[:cut] + b'"id":"' + id.encode() + b'",' + line[cut:]


def _find_id(line: bytes) -> tuple[int, int] | None:
    """The span of the first top-level `id` member, with its comma."""
    if not line.startswith(b"{") or b'"id"' not in line:
        return None
    before = 0
    for after in _find_delimiters(line):
        if _ID_KEY.match(line, before + 1):
            if line.startswith(b",", after):
                return before + 1, after + 1
            return (before if line.startswith(b",", before) else before + 1), after
        before = after
    return None


def _find_delimiters(line: bytes) -> Iterator[int]:
    """Where the members of the object end: at its commas and its closing brace."""
    depth = 0
    for match in _TOKEN.finditer(line):
        token = match[0]
        if depth == 1 and token in b",}":
            yield match.start()
        depth += (token in b"{[") - (token in b"}]")


# Writing entries exactly as Clawdapus writes them.


# Go omits empty values, except for these: a zero is written, and only an absent value is omitted.
_KEPT_IF_ZERO = frozenset({"name", "round", "arguments", "result", "reported_cost_usd"})


class Payload(msgspec.Struct, frozen=True):
    """The model's response: a JSON body, or the text of an event stream."""

    json: Json = None
    text: str = ""


class TokenUsage(msgspec.Struct, frozen=True):
    """Token counts; zero means unknown and is omitted. A cost of zero is written."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reported_cost_usd: float | None = None
    total_rounds: int = 0


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a managed tool."""

    name: str
    arguments: Json = None
    result: Json = None
    latency_ms: int = 0
    service: str = ""
    status: str = ""
    status_code: int = 0
    duplicate: bool = False
    duplicate_of_round: int = 0
    duplicate_count: int = 0
    duplicate_streak: int = 0
    policy: str = ""


class ToolRound(msgspec.Struct, frozen=True):
    """One exchange with the model within a managed turn, with the tools it called."""

    round: int
    wall_time_ms: int = 0
    prompt_tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    round_usage: TokenUsage = TokenUsage()


def compose_line(
    *,
    at: Instant,
    claw_id: str,
    path: str,
    requested_model: str,
    effective_provider: str,
    effective_model: str,
    response: Payload,
    status_code: int = 200,
    stream: bool = False,
    request_original: Json = None,
    request_effective: Json = None,
    usage: TokenUsage = TokenUsage(),  # noqa: B008  a frozen value
    tool_trace: Sequence[ToolRound] = (),
    status: str = "",
) -> HistoryLine:
    """A new entry with its id. Bytes are JSON text and are kept as they are; `at` is truncated to seconds."""
    at -= at % SECOND
    if request_effective is not None and not isinstance(request_effective, bytes):
        request_effective = gojson.encode(request_effective, sort_keys=True)
    members: dict[str, Json] = {
        "status": status or None,
        "ts": format_timestamp(at),
        "claw_id": claw_id,
        "path": path,
        "requested_model": requested_model,
        "effective_provider": effective_provider,
        "effective_model": effective_model,
        "status_code": status_code,
        "stream": stream,
        "request_original": request_original,
        "request_effective": request_effective,
        "response": _payload_members(response),
        "usage": _members(usage),
        "tool_trace": [_round_members(tool_round) for tool_round in tool_trace] or None,
    }
    head = b'{"version":%d,' % VERSION
    tail = gojson.encode({key: value for key, value in members.items() if value not in (None, b"")})[1:]
    id = hash_line(head + tail)
    return HistoryLine(id, head + b'"id":"' + id.encode() + b'",' + tail, at, legacy=False)


def format_timestamp(at: Instant) -> str:
    """RFC 3339 in whole seconds, the only format Clawdapus writes."""
    return to_datetime(at - at % SECOND).isoformat().replace("+00:00", "Z")


def _payload_members(payload: Payload) -> dict[str, Json]:
    if payload.json is not None:
        return {"format": "json", "json": payload.json}
    return {"format": "sse", "text": payload.text} if payload.text else {"format": "sse"}


def _round_members(tool_round: ToolRound) -> dict[str, Json]:
    members = _members(tool_round)
    if tool_round.tool_calls:
        members["tool_calls"] = [_members(call) for call in tool_round.tool_calls]
    return members | {"round_usage": _members(tool_round.round_usage)}


def _members(part: TokenUsage | ToolCall | ToolRound) -> dict[str, Json]:
    return {
        key: value
        for key, value in msgspec.structs.asdict(part).items()
        if (value not in (None, b"") if key in _KEPT_IF_ZERO else value)
    }
