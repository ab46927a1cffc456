"""Our side of a sync: entries of a space as lines, and lines as entries of a space."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from memplane.clock import Instant
from memplane.ledger.ids import base_of, is_variant, variant_id
from memplane.memory.merge import Forgets
from memplane.memory.projection import RECORDS
from memplane.space import Space
from memplane.sync.segments import Positions, SegmentLine, written
from memplane.transfer.full import TOMBSTONE, ExportLine, draft_of, line_of, line_of_tombstone
from memplane.types import Entry, MergeReport, Op, Tombstone

_CHUNK = 5_000
_PAGE = 1_000


class PlacedEntry(msgspec.Struct, frozen=True):
    """An entry's position in the local chain and the lines that express it: the entry itself, and the tombstones
    that must be read with it."""

    position: int
    lines: tuple[SegmentLine, ...]
    has_payload: bool


def head_of(space: Space) -> int:
    """The last position of the space's chain."""
    return space.ledger.position()


def lines_at(space: Space, positions: Positions) -> Iterator[PlacedEntry]:
    """What is at these positions. A forget brings its tombstones along, and so does whatever is erased."""
    stones: TombstoneIndex | None = None
    for position, entry in entries_at(space, positions):
        line = line_of(entry)
        extra: Iterable[Tombstone] = ()
        if not bytes(line.body) or entry.op in (Op.FORGET, Op.SWEEP):
            stones = stones or TombstoneIndex(space.ledger.tombstones())
            extra = [*stones.on(entry.id), *stones.set_by(entry.id)]
        lines = (written(line), *(written(line_of_tombstone(stone)) for stone in extra))
        yield PlacedEntry(position, lines, bool(bytes(line.body)))


def entries_at(space: Space, positions: Positions) -> Iterator[tuple[int, Entry]]:
    """What is at these positions."""
    for first, last in positions.runs:
        place = first - 1
        while place < last:
            found = space.ledger.chained(after=place, limit=min(_PAGE, last - place))
            if not found:
                return
            yield from (pair for pair in found if pair[0] <= last)
            place = found[-1][0]


def forgotten_positions(space: Space) -> Positions:
    """Positions of forgotten entries."""
    return Positions.of(_places(space, [stone.id for stone in space.ledger.tombstones()]).values())


def forgets_in(lines: Iterable[ExportLine]) -> dict[str, dict[str, str]]:
    """The tombstones among these lines."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in lines:
        if line.op == TOMBSTONE:
            found[line.forget][line.id] = line.reason
    return dict(found)


def merge_lines(space: Space, lines: Iterable[ExportLine], forgets: Forgets) -> MergeReport:
    """Take entries in; what one of these forgets buries comes without its payload."""
    drafts = [draft_of(line, erased=False) for line in lines if line.op != TOMBSTONE]
    return space.ledger.merge(drafts, forgets)


class BodyPosition(msgspec.Struct, frozen=True):
    """The local position of a line's body."""

    position: int
    is_same: bool
    """Whether it is the same entry. Otherwise another replica recorded the same content at another time, and the
    earlier record counts, so this replica has to publish an earlier one of its own."""


def positions_of(space: Space, lines: Sequence[ExportLine]) -> list[BodyPosition | None]:
    """Local positions of entries that were merged before; None for tombstones and for unknown entries."""
    ids = list(dict.fromkeys(line.id for line in lines if line.op != TOMBSTONE))
    found: dict[str, tuple[int, Instant]] = {}
    for start in range(0, len(ids), _CHUNK):
        found |= space.ledger.recordings(ids[start : start + _CHUNK])
    shared: defaultdict[str, set[str]] = defaultdict(set)
    for variant in space.ledger.variants():
        shared[variant.base].add(variant.id)
    return [
        _place_in_family(space, line, shared)
        if line.op != TOMBSTONE and (is_variant(line.id) or base_of(line.id) in shared)
        else _place(line, found.get(line.id))
        for line in lines
    ]


def _place(line: ExportLine, recorded: tuple[int, Instant] | None) -> BodyPosition | None:
    return None if recorded is None else BodyPosition(recorded[0], recorded[1] == line.recorded)


def _place_in_family(space: Space, line: ExportLine, shared: Mapping[str, set[str]]) -> BodyPosition | None:
    """Several bodies came under this id: which of them it is, its body says, and when it was recorded."""
    base = base_of(line.id)
    known = space.ledger.entries_by_id({line.id, base, *shared.get(base, ())})
    body = draft_of(line, erased=False).body
    alike = [entry for entry in known.values() if body and entry.body == body]
    alike.sort(key=lambda entry: (entry.recorded != line.recorded, entry.id != line.id, entry.id))
    chosen = alike[0].id if alike else line.id
    if not alike and not (line.id in known and not known[line.id].body):
        return None
    return _place(line, space.ledger.recordings([chosen]).get(chosen))


def forgotten_payloads(space: Space, lines: Sequence[ExportLine]) -> bool:
    """Whether any of them brings the payload of something that is forgotten here."""
    ids = list(dict.fromkeys(name for line in lines if has_payload(line) for name in names_of(line)))
    return any(space.ledger.status(ids[start : start + _CHUNK])[1] for start in range(0, len(ids), _CHUNK))


def has_payload(line: ExportLine) -> bool:
    """Whether it brings something that can be forgotten."""
    return line.op != TOMBSTONE and line.op not in RECORDS and bool(bytes(line.body))


def names_of(line: ExportLine) -> tuple[str, ...]:
    """What an entry with a body may be called on a replica, and whose forgetting takes it along."""
    base = base_of(line.id)
    body = draft_of(line, erased=False).body
    return tuple(dict.fromkeys((variant_id(base, body), line.id, base)))


class TombstoneIndex:
    """Tombstones by target and by author. Derived ones are left out: every reader of the others derives them."""

    def __init__(self, stones: Iterable[Tombstone]) -> None:
        self._on: defaultdict[str, list[Tombstone]] = defaultdict(list)
        self._by: defaultdict[str, list[Tombstone]] = defaultdict(list)
        for stone in stones:
            self._on[stone.id].append(stone)
            if stone.cause is None:
                self._by[stone.forget_id].append(stone)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._on

    def on(self, id_: str) -> list[Tombstone]:
        """Those that say that this one is forgotten, or the one it went with."""
        found: dict[tuple[str, str], Tombstone] = {}
        asked = [id_]
        for name in asked:
            for stone in self._on.get(name, ()):
                if stone.cause is None:
                    found[stone.id, stone.forget_id] = stone
                elif stone.cause not in asked:
                    asked.append(stone.cause)
        return list(found.values())

    def set_by(self, forget_id: str) -> list[Tombstone]:
        return self._by.get(forget_id, [])


def _places(space: Space, ids: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(ids), _CHUNK):
        found |= space.ledger.positions(ids[start : start + _CHUNK])
    return found
