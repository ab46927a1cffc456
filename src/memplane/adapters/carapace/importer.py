"""Import Carapace memory files, in the schema of its code and in the documented one."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from memplane.clock import Instant, parse_instant
from memplane.errors import InvalidRequest
from memplane.ledger.history import RejectedLine
from memplane.ledger.payloads import StorePayload, encode
from memplane.memory.checks import check_encodable, check_kind
from memplane.space import Space
from memplane.transfer.full import ImportReport, ImportTally
from memplane.types import IMPORTED, Caller, NewEntry, Op

MAGIC = b"SQLite format 3\0"

_CODE = "SELECT id, type, content, tags, supersedes, superseded_by, session_id, created_at FROM entries ORDER BY created_at, rowid"
_DOCUMENT = (
    "SELECT id, type, content, tags, NULL, superseded_by, session_id, created_at FROM memory_entries "
    "ORDER BY created_at, rowid"
)
_tags = msgspec.json.Decoder(tuple[str, ...]).decode


class _Row(msgspec.Struct, frozen=True):
    """An entry of a Carapace file."""

    number: int
    id: str
    stored: StorePayload
    session: str
    supersedes: str | None
    superseded_by: str | None


def import_carapace(space: Space, path: Path) -> ImportReport:
    """Import with the same ids, times and supersede chains. A link that closes a cycle or has no target is dropped
    and reported."""
    tally = ImportTally("carapace")
    rows: dict[str, _Row] = {}
    for number, raw in enumerate(_read(path), start=1):
        tally.read += 1
        try:
            row = _row(number, raw)
        except (InvalidRequest, msgspec.MsgspecError, TypeError) as exc:
            tally.reject(RejectedLine(path.name, number, str(exc), str(raw[0]).encode("utf-8", "replace")))
            continue
        rows[row.id] = row
    replaced = _links(rows, tally, path.name)
    drafts = [_draft(row, replaced.get(row.id)) for row in _in_order(rows, replaced)]
    tally.load(space.ledger.load(drafts))
    return tally.report()


def _read(path: Path) -> Iterator[tuple[Any, ...]]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            tables = {
                name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            if "entries" in tables:
                yield from connection.execute(_CODE)
            elif "memory_entries" in tables:
                yield from connection.execute(_DOCUMENT)
            else:
                raise InvalidRequest(f"{path.name}: no `entries` or `memory_entries` table")
    except sqlite3.Error as exc:
        raise InvalidRequest(f"{path.name} cannot be read as a Carapace memory file: {exc}") from exc


def _row(number: int, raw: tuple[Any, ...]) -> _Row:
    id_, kind, content, tags, supersedes, superseded_by, session, created = raw
    if not isinstance(id_, str) or not isinstance(content, str):
        raise InvalidRequest("id and content must be text")
    check_encodable(id_, field="id")
    stored = StorePayload(
        kind=check_kind(kind), content=content, at=_instant(created), tags=_tags(tags or "[]")
    )
    return _Row(number, id_, stored, str(session or ""), supersedes, superseded_by)


def _instant(created: Any) -> Instant:
    return parse_instant(created, field="created_at")


def _links(rows: dict[str, _Row], tally: ImportTally, source: str) -> dict[str, str]:
    """Map each entry to the entry that it replaces."""
    replaced: dict[str, str] = {}
    for row in rows.values():
        pairs = [(row.id, row.supersedes)] if row.supersedes else []
        pairs += [(row.superseded_by, row.id)] if row.superseded_by else []
        for newer, older in pairs:
            if newer not in rows or older not in rows:
                reason = f"the link between {older} and {newer} has no target in the file and was dropped"
            elif replaced.setdefault(newer, older) != older:
                reason = f"{newer} replaces {replaced[newer]} already; its link to {older} was dropped"
            else:
                continue
            tally.reject(RejectedLine(source, row.number, reason, row.id.encode()))
    for newer in _circles(replaced):
        reason = f"the link between {replaced.pop(newer)} and {newer} closes a cycle and was dropped"
        tally.reject(RejectedLine(source, rows[newer].number, reason, newer.encode()))
    return replaced


def _circles(replaced: dict[str, str]) -> list[str]:
    """For each cycle, the entry whose link closes it."""
    closing = []
    finished: set[str] = set()
    for start in replaced:
        walked: dict[str, None] = {}
        at: str | None = start
        while at is not None and at not in finished and at not in walked:
            walked[at] = None
            at = replaced.get(at)
        if at in walked:
            closing.append(list(walked)[-1])
        finished.update(walked)
    return closing


def _in_order(rows: dict[str, _Row], replaced: dict[str, str]) -> list[_Row]:
    """Sort by time, but put each replaced entry before its replacement."""
    ordered: dict[str, _Row] = {}
    for row in rows.values():
        chain = []
        at: str | None = row.id
        while at is not None and at not in ordered:
            chain.append(rows[at])
            at = replaced.get(at)
        for link in reversed(chain):
            ordered[link.id] = link
    return list(ordered.values())


def _draft(row: _Row, replaced: str | None) -> NewEntry:
    caller = Caller("", f"{IMPORTED}carapace", row.session)
    return NewEntry(row.id, Op.STORE, encode(row.stored), caller, replaced, row.stored.at)
