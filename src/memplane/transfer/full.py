"""A whole space as lines of JSON: every entry with its id, and every tombstone. What one Memplane writes, another
reads back into the same memories with the same ids."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.compaction.retention import day_start
from memplane.errors import InvalidRequest
from memplane.extract.proposition import Proposition
from memplane.ledger.history import EXCERPT_BYTES_MAX, RejectedLine, parse_line
from memplane.ledger.ids import DERIVED_PREFIXES, base_of, content_id, models_of, original_id
from memplane.ledger.payloads import (
    CompactPayload,
    DecidePayload,
    DerivePayload,
    DistilPayload,
    Payload,
    PromotePayload,
    PutPayload,
    StorePayload,
    TurnPayload,
    decode_body,
    encode,
)
from memplane.memory.checks import check_encodable, check_name, check_rating, check_role, check_storable_kind
from memplane.memory.projection import RECORDS
from memplane.space import Space
from memplane.types import IMPORTED, Caller, Entry, LoadResult, MergeReport, NewEntry, Op, Tombstone, within

# What an import did, line by line where it matters.


REJECTED_LISTED_MAX = 1_000


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is dropped in silence: what was not taken is in `rejected`, with the reason."""

    format: str
    read: int
    added: int
    known: int
    forgotten: int
    legacy: int
    rejected: tuple[RejectedLine, ...]
    rejected_count: int


class ImportTally:
    """Counts while an import goes on."""

    def __init__(self, format_: str) -> None:
        self._format = format_
        self._loaded = LoadResult(added=0, known=0, forgotten=0)
        self._rejected: list[RejectedLine] = []
        self._rejected_count = 0
        self.read = 0
        self.legacy = 0

    def load(self, loaded: LoadResult | MergeReport) -> None:
        before = self._loaded
        self._loaded = LoadResult(
            added=before.added + loaded.added,
            known=before.known + loaded.known,
            forgotten=before.forgotten + loaded.forgotten,
        )

    @property
    def loaded(self) -> LoadResult:
        return self._loaded

    def reject(self, rejected: RejectedLine) -> None:
        self._rejected_count += 1
        if len(self._rejected) < REJECTED_LISTED_MAX:
            self._rejected.append(rejected)

    def report(self) -> ImportReport:
        return ImportReport(
            format=self._format,
            read=self.read,
            added=self._loaded.added,
            known=self._loaded.known,
            forgotten=self._loaded.forgotten,
            legacy=self.legacy,
            rejected=tuple(self._rejected),
            rejected_count=self._rejected_count,
        )


MARK = b'{"memplane":1,'

UNREADABLE = (msgspec.MsgspecError, ValueError, InvalidRequest, OverflowError, RecursionError)
"""What a line may be refused with."""

TOMBSTONE = "tombstone"
"""The op of a line that is no entry."""

_CHUNK_BYTES = 256 * 1024 * 1024
"""Size of a batch. Entries that belong together but arrive in different batches are derived again with each batch."""
_PROGRESS_LINES = 5_000
_LINE_BYTES_MAX = 64 * 1024 * 1024
_NONE = msgspec.Raw()
_TURNS = (Op.TURN, Op.HISTORY)


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One ledger entry, or one tombstone. `body` is missing where it was erased; `forget` is the id of the forget that
    set a tombstone."""

    memplane: Literal[1] = 1
    id: str
    op: str
    recorded: Instant = 0
    actor: str = ""
    adapter: str = msgspec.field(default="", name="door")
    session: str = ""
    ref: str | None = None
    body: msgspec.Raw = _NONE
    reason: str = ""
    forget: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ExportLine).decode


def full_lines(space: Space) -> Iterator[bytes]:
    """Tombstones are read first and last: what is forgotten while this goes on is not in it."""
    buried = {tombstone.id for tombstone in space.ledger.tombstones()}
    seq = 0
    while entries := space.ledger.entries(after=seq):
        for entry in entries:
            yield encoded(line_of(entry, erased=entry.id in buried))
        seq = entries[-1].seq
    for tombstone in space.ledger.tombstones():
        if tombstone.cause is None:  # a reader of the one it belongs to derives the others
            yield encoded(line_of_tombstone(tombstone))


def line_of(entry: Entry, *, erased: bool = False) -> ExportLine:
    """An entry as it travels; where it is erased, what stays of it."""
    caller = entry.caller
    return ExportLine(
        id=entry.id,
        op=entry.op,
        recorded=entry.recorded,
        actor=caller.actor,
        adapter=caller.adapter.removeprefix(IMPORTED),
        session=caller.session,
        ref=entry.ref,
        body=_NONE if erased or not entry.body else msgspec.Raw(_as_json(entry.op, entry.body)),
    )


def line_of_tombstone(tombstone: Tombstone) -> ExportLine:
    return ExportLine(id=tombstone.id, op=TOMBSTONE, reason=tombstone.reason, forget=tombstone.forget_id)


def encoded(line: ExportLine) -> bytes:
    """Without a line end. The mark is the beginning of every line, so that a file is known by its first bytes."""
    return MARK + _encode(line)[1:]


def decoded(raw: bytes) -> ExportLine:
    """Raises one of `UNREADABLE` for what no engine would have written."""
    line = _decode(raw)
    _check(line)
    return line


def without_body(line: ExportLine) -> ExportLine:
    """What stays of an entry when it is forgotten; a record of forgetting is never erased."""
    return line if line.op in RECORDS else msgspec.structs.replace(line, body=_NONE)


def import_full(space: Space, path: Path, *, progress: Callable[[int, int], None]) -> ImportReport:
    """Merge a whole space into this one. Two passes: the tombstones first, so that what was forgotten there does not
    appear here, not even for a moment; then the entries."""
    tally = ImportTally("full")
    total = path.stat().st_size
    forgets: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for _, line in _lines(path, None):
        if line.op == TOMBSTONE:
            forgets[line.forget][line.id] = line.reason
    buried = {id_ for reasons in forgets.values() for id_ in reasons}
    drafts: list[NewEntry] = []
    size = 0
    for done, line in _lines(path, tally):
        if line.op == TOMBSTONE:
            continue
        drafts.append(draft_of(line, erased=line.id in buried))
        size += len(drafts[-1].body)
        if len(drafts) % _PROGRESS_LINES == 0:
            progress(done, total)
        if size > _CHUNK_BYTES:
            tally.load(space.ledger.merge(drafts, {}))
            drafts.clear()
            size = 0
    tally.load(space.ledger.merge(drafts, forgets))
    progress(total, total)
    return tally.report()


def _lines(path: Path, tally: ImportTally | None) -> Iterator[tuple[int, ExportLine]]:
    """(bytes read, line); invalid lines are reported to the tally."""
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
                line = decoded(raw)
            except UNREADABLE as exc:
                if tally is not None:
                    tally.reject(RejectedLine(path.name, number, str(exc), raw[:EXCERPT_BYTES_MAX]))
                continue
            yield done, line


def _check(line: ExportLine) -> None:
    """An entry that the engine itself would not have written is refused now, not at some later read."""
    for text in (line.id, line.actor, line.adapter, line.session, line.ref or "", line.forget):
        check_encodable(text, field="line")
    if line.op == TOMBSTONE:
        return
    op = Op(line.op)
    _check_time(line.recorded)
    if line.ref is not None and op in _TURNS:
        raise InvalidRequest("a turn supersedes nothing; its ref is not ours")
    if not bytes(line.body):
        if op in RECORDS:
            raise InvalidRequest(f"a {op} is never erased; its body is missing")
        return
    _check_body(line.id, op, _from_json(op, bytes(line.body)))


def _check_body(id_: str, op: Op, body: bytes) -> None:
    if id_.startswith(DERIVED_PREFIXES) and not id_.startswith(f"{op}-"):
        raise InvalidRequest("ids of this form belong to what is derived")
    under = original_id(id_, body)
    if op is not Op.HISTORY:
        _check_payload(under, op, decode_body(op, body))
    elif parse_line(body, trust_ids=True).id != under:
        raise InvalidRequest("the id of the line is not the id of the history entry in it")


def _check_payload(id_: str, op: Op, payload: Payload) -> None:
    match payload:
        case TurnPayload() as said:
            check_role(said.role)
            check_name(said.speaker, field="speaker")
            within(said.scope, conversation=said.conversation, project=said.project)
            _check_time(said.at)
        case StorePayload() as stored:
            within(stored.scope, conversation=stored.conversation, project=stored.project)
            _check_time(stored.at)
        case PutPayload() as put:
            for instant in (put.at, put.expires or 0, put.created or 0):
                _check_time(instant)
        case DerivePayload() | DistilPayload() as made:
            _check_derived(id_, made)
        case PromotePayload() | CompactPayload() | DecidePayload() as kept:
            _check_content_id(id_, op, kept)
        case other:
            check_rating(getattr(other, "rating", None))
            _check_time(getattr(other, "at", 0))


def _check_derived(id_: str, made: DerivePayload | DistilPayload) -> None:
    """What a model made of an entry has an id that follows from that entry's."""
    if id_ not in models_of(made.entry):
        raise InvalidRequest("the id of the record is not that of the entry it was read out of")
    if isinstance(made, DerivePayload):
        msgspec.convert(made.claims, list[list[Proposition]])


def _check_content_id(id_: str, op: Op, payload: PromotePayload | CompactPayload | DecidePayload) -> None:
    """Its id proves what it holds, so that two machines never mean different things by one."""
    if base_of(id_) != content_id(op.value, encode(payload)):
        raise InvalidRequest("the id of the line is not that of what it holds")
    if isinstance(payload, DecidePayload):
        return
    day_start(payload.day)
    if isinstance(payload, PromotePayload):
        _check_time(payload.at)
        within(payload.scope, conversation=payload.conversation, project=payload.project)
        if op is Op.LEARN:
            check_storable_kind(payload.kind)
        elif op is Op.SUMMARIZE:
            check_role(payload.kind)
            check_name(payload.speaker, field="speaker")


def _check_time(instant: Instant) -> None:
    to_datetime(instant)  # raises OverflowError outside of the years 1 to 9999


def draft_of(line: ExportLine, *, erased: bool) -> NewEntry:
    op = Op(line.op)
    body = b"" if erased and op not in RECORDS else _from_json(op, bytes(line.body))
    adapter = IMPORTED + line.adapter.removeprefix(IMPORTED)
    return NewEntry(line.id, op, body, Caller(line.actor, adapter, line.session), line.ref, line.recorded)


def _as_json(op: Op, body: bytes) -> bytes:
    """A history line travels as text, because its id proves its bytes."""
    return _encode(body.decode("utf-8", "surrogateescape")) if op is Op.HISTORY else body


def _from_json(op: Op, body: bytes) -> bytes:
    if op is not Op.HISTORY or not body:
        return body
    return msgspec.json.decode(body, type=str).encode("utf-8", "surrogateescape")
