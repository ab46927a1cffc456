"""A whole space as lines of JSON: every entry with its id, and every tombstone. What one Memplane writes, another
reads back into the same memories with the same ids."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from memplane.clock import Instant
from memplane.errors import InvalidRequest
from memplane.ledger.history import EXCERPT_BYTES_MAX, Rejected, parse_line
from memplane.ledger.payloads import decode_body
from memplane.space import Space
from memplane.transfer.history import entries_of
from memplane.transfer.report import ImportReport, Tally
from memplane.types import Caller, Draft, Op

MARK = b'{"memplane":1,'

_CHUNK = 5_000
_LINE_BYTES_MAX = 64 * 1024 * 1024


_NONE = msgspec.Raw()


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One ledger entry, or one tombstone. `body` is missing where it was erased."""

    memplane: Literal[1] = 1
    id: str
    op: str
    recorded: Instant = 0
    actor: str = ""
    door: str = ""
    session: str = ""
    ref: str | None = None
    body: msgspec.Raw = _NONE
    reason: str = ""


_TOMBSTONE = "tombstone"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


def full_lines(space: Space) -> Iterator[bytes]:
    for entry in entries_of(space):
        caller = entry.caller
        line = Line(
            id=entry.id,
            op=entry.op,
            recorded=entry.recorded,
            actor=caller.actor,
            door=caller.door,
            session=caller.session,
            ref=entry.ref,
            body=_NONE if entry.body is None else msgspec.Raw(_as_json(entry.op, entry.body)),
        )
        yield MARK + _encode(line)[1:]
    for tombstone in space.tombstones():
        yield MARK + _encode(Line(id=tombstone.id, op=_TOMBSTONE, reason=tombstone.reason))[1:]


def import_full(space: Space, path: Path, *, progress: Callable[[int, int], None]) -> ImportReport:
    """Two passes: the tombstones first, so that what was forgotten there does not appear here, not even for a
    moment; then the entries in their order."""
    tally = Tally("full")
    total = path.stat().st_size
    buried = {line.id: line.reason for _, line in _lines(path, None) if line.op == _TOMBSTONE}
    placed: set[str] = set()
    drafts: list[Draft] = []
    erased: dict[str, str] = {}

    def flush() -> None:
        if drafts:
            tally.load(space.load(drafts, erased=erased))
            drafts.clear()
            erased.clear()

    for done, line in _lines(path, tally):
        if line.op == _TOMBSTONE:
            continue
        placed.add(line.id)
        drafts.append(_draft(line))
        if not bytes(line.body):
            erased[line.id] = buried.get(line.id, "")
        if len(drafts) == _CHUNK:
            flush()
            progress(done, total)
    flush()
    space.bury({id_: reason for id_, reason in buried.items() if id_ not in placed})
    space.catch_up()
    progress(total, total)
    return tally.report()


def _lines(path: Path, tally: Tally | None) -> Iterator[tuple[int, Line]]:
    """(bytes read, line); what is no line of this format is told to the tally."""
    done = 0
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(_LINE_BYTES_MAX):
            number += 1
            done += len(raw)
            if raw.isspace():
                continue
            if tally is not None:
                tally.read += 1
            try:
                line = _decode(raw)
                _check(line)
            except (msgspec.MsgspecError, ValueError, InvalidRequest, KeyError) as exc:
                if tally is not None:
                    tally.reject(Rejected(path.name, number, str(exc), raw[:EXCERPT_BYTES_MAX]))
                continue
            yield done, line


def _check(line: Line) -> None:
    """An entry that could not be replayed later is refused now."""
    if line.op == _TOMBSTONE:
        return
    op = Op(line.op)
    if not bytes(line.body):
        return
    body = _from_json(op, bytes(line.body))
    if op is Op.HISTORY:
        parse_line(body, trust_ids=True)
    else:
        decode_body(op, body)


def _draft(line: Line) -> Draft:
    op = Op(line.op)
    body = b"" if not bytes(line.body) else _from_json(op, bytes(line.body))
    return Draft(line.id, op, body, Caller(line.actor, line.door, line.session), line.ref, line.recorded)


def _as_json(op: Op, body: bytes) -> bytes:
    """A history line travels as text, because its id proves its bytes."""
    return _encode(body.decode("utf-8", "surrogateescape")) if op is Op.HISTORY else body


def _from_json(op: Op, body: bytes) -> bytes:
    return (
        msgspec.json.decode(body, type=str).encode("utf-8", "surrogateescape") if op is Op.HISTORY else body
    )
