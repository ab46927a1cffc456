"""Verification that nothing in a ledger was changed, reordered or removed."""

from collections import defaultdict
from collections.abc import Callable

import msgspec

from memplane.clock import to_instant
from memplane.ledger.ids import base_of, is_forgotten_with, original_id
from memplane.ledger.payloads import ForgetPayload, decode, forgotten_ids_digest
from memplane.storage.chain import GENESIS, SALT_BYTES, audit_digest, entry_digest, payload_digest
from memplane.storage.ledger import LedgerRow
from memplane.storage.store import Reader
from memplane.types import Caller, NewEntry, Op, Tombstone

_CHUNK = 2_000
_PROBLEMS_MAX = 20


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `verify`. `seq`, the end of the chain, and `digest` can be stored elsewhere and checked by a
    later verification."""

    ok: bool
    entries: int
    erased: int
    audit_records: int
    seq: int
    digest: str
    problems: tuple[str, ...] = ()


def verify(
    reader: Reader,
    *,
    expected: dict[int, str] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Verification:
    """Walk the whole chain. `expected` maps positions to digests recorded earlier, from receipts or an earlier
    verification; a rewritten ledger cannot reproduce them."""
    walk = _Walk(dict(expected or {}))
    while rows := reader.ledger.rows(after=walk.position, limit=_CHUNK):
        for row in rows:
            walk.step(row)
        progress(walk.position)
    if reader.state.cursor() > walk.position:
        walk.blame(
            f"the ledger ends at entry {walk.position} but {reader.state.cursor()} were there: the end is missing"
        )
    for position in sorted(walk.expected):
        walk.blame(f"entry {position} is gone, and a digest of it is on record")
    if (misplaced := reader.replica.misplaced()) is not None:
        walk.blame(
            f"entry {misplaced[0]} ({misplaced[1]}) is not in the place that its time and id determine"
        )
    _verify_tombstones(reader, walk)
    audited = _verify_audit(reader, walk)
    return Verification(
        ok=not walk.problems,
        entries=walk.count,
        erased=walk.erased,
        audit_records=audited,
        seq=walk.position,
        digest=walk.digest.hex(),
        problems=tuple(walk.problems),
    )


class _Walk:
    """The position reached and the problems found."""

    def __init__(self, expected: dict[int, str]) -> None:
        self.expected = expected
        self.position = 0
        self.count = 0
        self.erased = 0
        self.digest = GENESIS
        self.problems: list[str] = []
        self.forgets: dict[int, ForgetPayload] = {}

    def blame(self, problem: str) -> None:
        if len(self.problems) < _PROBLEMS_MAX:
            self.problems.append(problem)

    def step(self, row: LedgerRow) -> None:
        entry, place = row.entry, row.position
        if place != self.position + 1:
            self.blame(f"entries {self.position + 1} to {place - 1} are missing")
        self._check_payload(row)
        self._note_forget(row)
        draft = NewEntry(row.chained_id, entry.op, b"", entry.caller, entry.ref, origin=row.origin)
        if entry_digest(self.digest, row.payload_digest, place, draft, entry.recorded) != row.digest:
            self.blame(f"entry {place} ({entry.id}) does not follow from the one before it")
        if row.chained_id != entry.id and not _is_variant_of(row):
            self.blame(f"entry {place} ({row.chained_id}) has a name that does not follow from its body")
        wanted = self.expected.pop(place, None)
        if wanted is not None and wanted != row.digest.hex():
            self.blame(f"entry {place} ({entry.id}) has another digest than the one on record")
        self.position, self.digest, self.count = place, row.digest, self.count + 1

    def _note_forget(self, row: LedgerRow) -> None:
        entry = row.entry
        if entry.op in (Op.FORGET, Op.SWEEP) and entry.body:
            try:
                payload = decode(entry)
            except ValueError:
                self.blame(f"the record of the forget at {row.position} ({entry.id}) cannot be read")
                return
            assert isinstance(payload, ForgetPayload)
            self.forgets[row.position] = payload

    def _check_payload(self, row: LedgerRow) -> None:
        entry, place = row.entry, row.position
        if entry.body is None or row.salt is None:
            self.erased += 1
            if not row.tombstoned:
                self.blame(f"the payload of entry {place} ({entry.id}) is missing, and no forget removed it")
        elif len(row.salt) != SALT_BYTES or payload_digest(row.salt, entry.body) != row.payload_digest:
            self.blame(f"the payload of entry {place} ({entry.id}) was changed")


def _is_variant_of(row: LedgerRow) -> bool:
    """Whether a renamed entry is named after its body; once that is erased, only the original id can be checked."""
    body, base = row.entry.body, base_of(row.chained_id)
    return base_of(row.entry.id) == base and (body is None or original_id(row.entry.id, body) == base)


def _verify_tombstones(reader: Reader, walk: _Walk) -> None:
    """Every tombstone belongs to a recorded forget, and every forget has all of its tombstones."""
    stones: defaultdict[int, list[Tombstone]] = defaultdict(list)
    buried: set[str] = set()
    for tombstone in reader.ledger.tombstones():
        stones[tombstone.position].append(tombstone)
        buried.add(tombstone.id)
    for position in sorted(stones.keys() | walk.forgets.keys()):
        forget = walk.forgets.get(position)
        named = [stone for stone in stones[position] if stone.cause is None]
        if forget is None:
            walk.blame(f"{len(stones[position])} tombstones name entry {position}, which is no forget")
        elif (
            forgotten_ids_digest(stone.id for stone in named) != forget.victims
            or any((to_instant(stone.at), stone.reason) != (forget.at, forget.reason) for stone in named)
            or any(not _follows(stone, buried) for stone in stones[position] if stone.cause is not None)
        ):
            walk.blame(f"the tombstones of the forget at {position} are not the ones it set")


def _follows(stone: Tombstone, buried: set[str]) -> bool:
    """Whether one is forgotten because another is."""
    cause = stone.cause or ""
    return cause in buried and is_forgotten_with(stone.id, cause)


def _verify_audit(reader: Reader, walk: _Walk) -> int:
    seq, digest = 0, GENESIS
    while rows := reader.audit.rows(after=seq, limit=_CHUNK):
        for row in rows:
            record = row.record
            caller = Caller(record.actor, record.adapter, record.session)
            if row.seq != seq + 1:
                walk.blame(f"audit records {seq + 1} to {row.seq - 1} are missing")
            wanted = audit_digest(
                digest, row.seq, row.at, caller, record.action, record.target, record.outcome, record.detail
            )
            if wanted != row.digest:
                walk.blame(f"audit record {row.seq} was changed")
            seq, digest = row.seq, row.digest
    if reader.audit.count() > seq:
        walk.blame(
            f"the audit log ends at {seq} but {reader.audit.count()} records were there: the end is missing"
        )
    return seq
