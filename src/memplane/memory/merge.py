"""Merge entries and tombstones of another replica. The resulting memory depends only on the set of entries and
tombstones, not on the order of arrival: docs/internals/merge.md."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256

import msgspec

from memplane.clock import Instant
from memplane.ledger.ids import base_of, header_id, is_variant, models_of, original_id, variant_id
from memplane.ledger.payloads import (
    DerivePayload,
    DistilPayload,
    ForgetEffects,
    ForgetPayload,
    decode,
    decode_body,
)
from memplane.memory import projection
from memplane.memory.forget import erase, forget_impact, kin, needs_rebuild
from memplane.storage.filter import ForgetScope
from memplane.storage.store import Reader, Writer
from memplane.types import Entry, NewEntry, Op, Variant

# Several bodies under the same id. On every replica the body recorded first keeps the id; the others get derived ids.


class Family(msgspec.Struct, frozen=True):
    """The resolution of bodies that arrived under one id."""

    fresh: list[NewEntry]
    """Entries to add, with their new ids."""
    renamed: list[tuple[str, str]]
    """Existing entries to rename, in order: (old id, new id)."""
    variants: list[Variant]
    known: int
    """Number of received entries that already existed or were duplicates."""


class _Member(msgspec.Struct, frozen=True):
    recorded: Instant
    body: bytes
    present: Entry | None
    draft: NewEntry | None

    @property
    def order(self) -> tuple[Instant, bytes, bool]:
        return self.recorded, sha256(self.body).digest(), self.present is None


def families(
    reader: Reader, drafts: Iterable[NewEntry], same: Callable[[NewEntry, bytes], bool]
) -> tuple[dict[str, Family], set[str]]:
    """Group by original id. `same` says whether an existing body is what became of a received one."""
    coming: defaultdict[str, list[NewEntry]] = defaultdict(list)
    for draft in drafts:
        coming[original_id(draft.id, draft.body)].append(draft)
    there: defaultdict[str, list[Entry]] = defaultdict(list)
    known = reader.ledger.get_many(list(coming))
    for entry in [
        *known,
        *reader.ledger.get_many([it.id for it in reader.replica.variants([it.id for it in known])]),
    ]:
        there[base_of(entry.id) if entry.id not in coming else entry.id].append(entry)
    return {base: _family(base, came, there[base], same) for base, came in coming.items()}, set(coming)


def _family(
    base: str, came: Sequence[NewEntry], there: Sequence[Entry], same: Callable[[NewEntry, bytes], bool]
) -> Family:
    members = [_Member(entry.recorded, entry.body, entry, None) for entry in there if entry.body is not None]
    known = 0
    for draft in sorted(came, key=lambda draft: draft.recorded or 0):
        if _is_recorded(draft, members, same) or (there and not members):
            known += 1
        else:
            members.append(_Member(draft.recorded or 0, draft.body, None, draft))
    return _named(base, sorted(members, key=lambda member: member.order), known)


def _is_recorded(
    draft: NewEntry, members: Sequence[_Member], same: Callable[[NewEntry, bytes], bool]
) -> bool:
    """Whether this body was recorded by then. An entry received without its body adds nothing; one stored without its
    body is waiting for its tombstone."""
    return any(
        not draft.body
        or not member.body
        or (
            member.recorded <= (draft.recorded or 0)
            and (member.body == draft.body or same(draft, member.body))
        )
        for member in members
    )


def _named(base: str, members: Sequence[_Member], known: int) -> Family:
    fresh: list[NewEntry] = []
    renamed: list[tuple[str, str]] = []
    variants: list[Variant] = []
    for place, member in enumerate(members):
        before = sum(other.body == member.body for other in members[:place])
        depth = before if before and members[0].body == member.body else before + 1
        id_ = variant_id(base, member.body, depth) if place else base
        if member.draft is not None:
            fresh.append(msgspec.structs.replace(member.draft, id=id_))
        elif member.present is not None and member.present.id != id_:
            renamed.append((member.present.id, id_))
        if place:
            variants.append(Variant(id=id_, base=base))
    renamed.sort(key=lambda pair: len(pair[1]), reverse=True)  # the deepest makes room for the one above it
    return Family(fresh, renamed, variants, known)


_FORGETS = (Op.FORGET, Op.SWEEP)
_BY_MODELS = (Op.DERIVE, Op.DISTIL)
_NEVER = -1 << 62
_NOTHING: tuple[list[str], ForgetEffects] = ([], ForgetEffects())

Forgets = Mapping[str, Mapping[str, str]]
"""Forget id to (entry id to reason)."""


class MergeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a merge did."""

    fresh: Sequence[NewEntry]
    forgotten: int
    moved: int
    variants: tuple[str, ...]
    erased: bool
    unrecorded: Forgets
    """Tombstones whose forget is not recorded here."""
    rebuilt: bool
    """Whether the whole projection was rebuilt."""


class _NewTombstone(msgspec.Struct, frozen=True):
    """A tombstone to be set."""

    id: str
    position: int
    at: Instant
    reason: str
    cause: str | None = None


class _AppliedForget(msgspec.Struct, frozen=True):
    """The effect of one forget here."""

    tombstones: list[_NewTombstone]
    payload: ForgetPayload


def merge(
    writer: Writer,
    drafts: Sequence[NewEntry],
    forgets: Forgets,
    *,
    now: Instant,
    same: Callable[[NewEntry, bytes], bool] = lambda _, __: False,
) -> MergeResult:
    """Run one merge in a transaction: the union by id, every entry in its place, and nothing forgotten visible. If
    all new entries sort after the existing ones, they are projected like new arrivals; otherwise the projection is
    rebuilt."""
    return _Merge(writer, forgets, same).run(drafts, now)


class _Merge:
    """The steps of one merge."""

    def __init__(self, writer: Writer, forgets: Forgets, same: Callable[[NewEntry, bytes], bool]) -> None:
        self._writer = writer
        self._forgets = forgets
        self._same = same
        self._before = writer.ledger.head()

    def run(self, drafts: Sequence[NewEntry], now: Instant) -> MergeResult:
        writer = self._writer
        gone = self._forgotten(drafts)
        lost = {draft.id: draft for draft in sorted(drafts, key=_order, reverse=True) if draft.id in gone}
        found, _ = families(writer, (draft for draft in drafts if draft.id not in gone), self._same)
        there = {entry.id: entry for entry in writer.ledger.get_many(list(lost))}
        # A forgotten entry keeps its place because its decisions stay in force: of several headers, the first has the
        # id everywhere.
        later = {
            id_: self._free_id(entry)
            for id_, entry in there.items()
            if (lost[id_].recorded or 0) < entry.recorded
        }
        fresh = [draft for family in found.values() for draft in family.fresh]
        came = lost.keys() - (there.keys() - later.keys()) - set(later.values())
        fresh += [_header(lost[id_]) for id_ in came]
        fresh.sort(key=_order)
        renamed = [pair for family in found.values() for pair in family.renamed] + list(later.items())
        variants = [variant for family in found.values() for variant in family.variants]
        burials, unrecorded = self._burials(fresh, gone, {after: id_ for id_, after in later.items()})
        anew = self._needs_rebuild(fresh, renamed, burials)
        for burial in burials:
            self._write_tombstones(burial, anew=anew)
        for before, after in renamed:
            writer.replica.rename(before, after)
        for variant in variants:
            writer.replica.add_variant(variant)
        moved = self._rebuild(fresh) if anew else self._append(fresh, now)
        if fresh or renamed:
            writer.replica.set_merged()
        return MergeResult(
            fresh=fresh,
            forgotten=len(lost),
            moved=moved,
            variants=tuple(sorted({it.id for it in variants} & _new_ids(fresh, renamed))),
            erased=any(burial.tombstones for burial in burials),
            unrecorded=unrecorded,
            rebuilt=anew,
        )

    def _free_id(self, entry: Entry) -> str:
        """The id for a header whose id an earlier one has; it may have arrived under that id before."""
        depth = 1
        while self._writer.ledger.known([header_id(entry.id, entry.recorded, depth)]):
            depth += 1
        return header_id(entry.id, entry.recorded, depth)

    def _forgotten(self, drafts: Sequence[NewEntry]) -> dict[str, str]:
        """The received entries that are forgotten, each with the forgotten id: itself, another body under its id, or
        the source of an LLM record."""
        named = {id_ for reasons in self._forgets.values() for id_ in reasons}
        named |= {base_of(id_) for id_ in named}
        because = {draft.id: _causes(draft) for draft in drafts if draft.op not in projection.RECORDS}
        asked = {id_ for causes in because.values() for id_ in causes}
        stoned = self._writer.ledger.tombstoned(list(asked)) | (asked & named)
        gone: dict[str, str] = {}
        for _ in range(2):  # the LLM record of a variant goes with the variant, which goes with its base
            for id_, causes in because.items():
                for cause in causes:
                    if cause in stoned or cause in gone:
                        gone.setdefault(id_, cause)
        return gone

    def _burials(
        self, fresh: Sequence[NewEntry], gone: Mapping[str, str], renamed: Mapping[str, str]
    ) -> tuple[list[_AppliedForget], Forgets]:
        """The ids each known or received forget covers, and the tombstones of unknown forgets."""
        positions = {draft.id: self._before.position + place for place, draft in enumerate(fresh, start=1)}
        coming = {draft.id: draft for draft in fresh if draft.op in _FORGETS and draft.body}
        there = {entry.id: entry for entry in self._writer.ledger.get_many(list(self._forgets))}
        burials = []
        unrecorded: dict[str, dict[str, str]] = {}
        for forget_id, reasons in self._forgets.items():
            payload = _forgotten(coming.get(forget_id) or there.get(forget_id))
            if payload is None:
                unrecorded[forget_id] = dict(reasons)
                continue
            position = positions.get(forget_id) or self._writer.replica.positions([forget_id])[forget_id]
            ids = self._buriable(set(reasons) - self._writer.replica.buried(forget_id))
            stones = [_NewTombstone(id_, position, payload.at, payload.reason) for id_ in sorted(ids)]
            burials.append(_AppliedForget(stones + self._along(stones), payload))
        along = {draft.id: gone[draft.id] for draft in fresh if draft.erased} | dict(renamed)
        for reasons in unrecorded.values():
            reasons |= {id_: reasons[cause] for id_, cause in along.items() if cause in reasons}
        burials.append(
            _AppliedForget(
                self._implied(along, burials), ForgetPayload(receipt="", at=0, scope={}, counts={})
            )
        )
        return burials, unrecorded

    def _buriable(self, ids: set[str]) -> set[str]:
        """Without records of decisions, which are never forgotten."""
        records = {
            entry.id for entry in self._writer.ledger.get_many(list(ids)) if entry.op in projection.RECORDS
        }
        return ids - records

    def _along(self, stones: Sequence[_NewTombstone]) -> list[_NewTombstone]:
        by_id = {stone.id: stone for stone in stones}
        along = kin(self._writer, list(by_id))
        before = self._writer.ledger.tombstoned(list(along))
        return [
            msgspec.structs.replace(_origin(by_id, along, cause), id=id_, cause=cause)
            for id_, cause in along.items()
            if id_ not in before
        ]

    def _implied(self, along: Mapping[str, str], burials: Sequence[_AppliedForget]) -> list[_NewTombstone]:
        """Dependents of forgotten entries that no forget names."""
        stones = {stone.id: stone for burial in burials for stone in burial.tombstones}
        wanted = {id_: cause for id_, cause in along.items() if id_ not in stones}
        before = self._writer.replica.tombstones([*wanted, *wanted.values()])
        implied = []
        for id_, cause in sorted(wanted.items(), key=lambda pair: pair[1] in wanted):
            if id_ not in before and cause != id_ and (cause in stones or cause in before):
                stone = stones.get(cause) or _NewTombstone(cause, *before[cause])
                stones[id_] = msgspec.structs.replace(stone, id=id_, cause=cause)
                implied.append(stones[id_])
        return implied

    def _needs_rebuild(
        self, fresh: Sequence[NewEntry], renamed: Sequence[tuple[str, str]], burials: Sequence[_AppliedForget]
    ) -> bool:
        """Whether the projection must be rebuilt."""
        writer = self._writer
        if (
            renamed
            or not writer.replica.ordered()
            or (fresh and not writer.replica.sorts_last(*_order(fresh[0])))
        ):
            return True
        if any(self._replaces_reading(draft) for draft in fresh):
            return True
        effects = [effect for burial in burials if (effect := self._effect(burial)) is not None]
        return len(effects) > 1 or not all(effects)

    def _replaces_reading(self, draft: NewEntry) -> bool:
        """Whether it is the LLM record of an entry that was processed by rules here."""
        if draft.op is not Op.DERIVE or not draft.body or is_variant(draft.id):
            return False
        record = decode_body(draft.op, draft.body)
        assert isinstance(record, DerivePayload)
        seq = self._writer.ledger.known([record.entry]).get(record.entry)
        return seq is not None and seq <= self._writer.state.marks().derived

    def _effect(self, burial: _AppliedForget) -> bool | None:
        """Whether a forget has the same effect here as where it was recorded; None if it affects nothing else."""
        victims = self._entries_to_erase(burial)
        loss = forget_impact(self._writer, victims)
        here = (sorted(loss.superseded), loss.effects)
        there = (sorted(burial.payload.superseded), burial.payload.aftermath)
        if needs_rebuild(self._writer, victims, loss):
            return False
        return here == there if here != _NOTHING or there != _NOTHING else None

    def _entries_to_erase(self, burial: _AppliedForget) -> list[tuple[int, str]]:
        ids = [stone.id for stone in burial.tombstones]
        there = (
            {id_: seq for seq, id_ in self._writer.ledger.in_scope(ForgetScope(entries=tuple(ids)))}
            if ids
            else {}
        )
        return [(there.get(id_, 0), id_) for id_ in ids]

    def _write_tombstones(self, burial: _AppliedForget, *, anew: bool) -> None:
        seqs = {id_: seq for seq, id_ in self._entries_to_erase(burial)}
        by_forget: dict[tuple[int, Instant, str], list[_NewTombstone]] = {}
        for stone in burial.tombstones:
            by_forget.setdefault((stone.position, stone.at, stone.reason), []).append(stone)
        for (position, at, reason), stones in by_forget.items():
            victims = [(seqs[stone.id], stone.id) for stone in stones]
            causes = {stone.id: stone.cause for stone in stones if stone.cause is not None}
            if anew:
                self._writer.ledger.erase(victims, position=position, at=at, reason=reason, causes=causes)
            else:
                loss = forget_impact(self._writer, victims)
                erase(self._writer, victims, loss, position=position, at=at, reason=reason, causes=causes)

    def _append(self, fresh: Sequence[NewEntry], now: Instant) -> int:
        writer = self._writer
        read_all = int(writer.state.note(projection.READ) or 0) >= self._before.seq
        projection.load(writer, fresh, now)
        if read_all:  # who recorded it had it read: no model is asked about it a second time
            writer.state.set_note(projection.READ, str(writer.ledger.head().seq))
        for draft in fresh:
            if draft.op is Op.DISTIL and draft.body and not is_variant(draft.id):
                record = decode_body(draft.op, draft.body)
                assert isinstance(record, DistilPayload)
                for seq in writer.ledger.known([record.entry]).values():
                    writer.documents.reset_distillation(seq)
        return 0

    def _rebuild(self, fresh: Sequence[NewEntry]) -> int:
        writer = self._writer
        moves = dict(writer.replica.place(fresh))
        for name in (projection.READ, projection.DISTILLED):
            done = int(writer.state.note(name) or 0)
            now = writer.ledger.head().seq if done >= self._before.seq else moves.get(done, done)
            writer.state.set_note(name, str(now))
        projection.replay(writer)
        return len(moves)


def _header(draft: NewEntry) -> NewEntry:
    return msgspec.structs.replace(draft, body=b"", erased=True)


def _order(draft: NewEntry) -> tuple[Instant, str]:
    return _NEVER if draft.recorded is None else draft.recorded, draft.id


def _causes(draft: NewEntry) -> tuple[str, ...]:
    """The ids whose forgetting makes this one forgotten, itself first."""
    base = base_of(draft.id)
    source = None
    if draft.op in _BY_MODELS and draft.body:
        record = decode_body(draft.op, draft.body)
        assert isinstance(record, DerivePayload | DistilPayload)
        source = record.entry if base in models_of(record.entry) else None
    return tuple(dict.fromkeys(id_ for id_ in (draft.id, base, source) if id_ is not None))


def _forgotten(record: NewEntry | Entry | None) -> ForgetPayload | None:
    if record is None or record.op not in _FORGETS or not record.body:
        return None
    payload = decode(record) if isinstance(record, Entry) else decode_body(record.op, record.body)
    return payload if isinstance(payload, ForgetPayload) else None


def _origin(stones: Mapping[str, _NewTombstone], along: Mapping[str, str], cause: str) -> _NewTombstone:
    """The tombstone set by the forget itself, at the start of a chain of causes."""
    while cause not in stones:
        cause = along[cause]
    return stones[cause]


def _new_ids(fresh: Iterable[NewEntry], renamed: Iterable[tuple[str, str]]) -> set[str]:
    return {draft.id for draft in fresh} | {after for _, after in renamed}
