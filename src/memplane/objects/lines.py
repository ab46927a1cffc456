"""Our side of a sync: entries of a space as lines, and lines as entries of a space."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

import msgspec

from memplane.objects.positions import Positions
from memplane.objects.segments import Written, written
from memplane.space import Space
from memplane.transfer.full import RECORDS, TOMBSTONE, Line, draft_of, line_of, line_of_tombstone
from memplane.types import Entry, Merged, Op, Tombstone

_CHUNK = 5_000
_VARIANT_HEX = 12

Forgets = Mapping[str, Mapping[str, str]]
"""Forget id to (entry id to reason), as `Space.merge` takes them."""


class Placed(msgspec.Struct, frozen=True):
    """Where in our own chain an entry stands, and the lines that say it: itself, and the tombstones it must not be
    read without."""

    position: int
    lines: tuple[Written, ...]
    has_payload: bool


def head_of(space: Space) -> int:
    """The last position of the space's chain."""
    return space.position()


def lines_at(space: Space, positions: Positions) -> Iterator[Placed]:
    """What is at these positions. A forget brings its tombstones along, and so does whatever is erased."""
    stones: Stones | None = None
    for entry in entries_at(space, positions):
        line = line_of(entry)
        extra: Iterable[Tombstone] = ()
        if not bytes(line.body) or entry.op in (Op.FORGET, Op.SWEEP):
            stones = stones or Stones(space.tombstones())
            extra = stones.beside(entry)
        lines = (written(line), *(written(line_of_tombstone(stone)) for stone in extra))
        yield Placed(entry.seq, lines, bool(bytes(line.body)))


def entries_at(space: Space, positions: Positions) -> Iterator[Entry]:
    """What is at these positions."""
    for first, last in positions.runs:
        yield from _run(space, first, last)


def buried_positions(space: Space) -> Positions:
    """Where what is forgotten stood."""
    return Positions.of(_places(space, [stone.id for stone in space.tombstones()]).values())


def forgets_in(lines: Iterable[Line]) -> dict[str, dict[str, str]]:
    """The tombstones among these lines."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in lines:
        if line.op == TOMBSTONE:
            found[line.forget][line.id] = line.reason
    return dict(found)


def merge_lines(space: Space, lines: Iterable[Line], forgets: Forgets) -> Merged:
    """Take entries in; what one of these forgets buries comes without its payload."""
    buried = {id_ for reasons in forgets.values() for id_ in reasons}
    drafts = [draft_of(line, erased=line.id in buried) for line in lines if line.op != TOMBSTONE]
    return space.merge(drafts, forgets)


def places_of(space: Space, lines: Sequence[Line]) -> list[int | None]:
    """Where with us these entries stand, which were merged before; None for tombstones, and for what nobody has here."""
    names = [_names(line) for line in lines]
    found = _places(space, list(dict.fromkeys(name for both in names for name in both)))
    return [next((found[name] for name in both if name in found), None) for both in names]


def forgotten_payloads(space: Space, lines: Sequence[Line]) -> bool:
    """Whether any of them brings the payload of something that is forgotten here."""
    ids = list(
        dict.fromkeys(
            name for line in lines if line.op not in RECORDS and bytes(line.body) for name in _names(line)
        )
    )
    return any(space.standing(ids[start : start + _CHUNK])[1] for start in range(0, len(ids), _CHUNK))


def _names(line: Line) -> tuple[str, ...]:
    """What an entry may be called here, the most particular first."""
    if line.op == TOMBSTONE:
        return ()
    return (variant_id(line), line.id) if bytes(line.body) else (line.id,)


def variant_id(line: Line) -> str:
    """What this body is called where another one has the id."""
    body = draft_of(line, erased=False).body
    return f"{line.id}~{sha256(body).hexdigest()[:_VARIANT_HEX]}"


class Stones:
    """Tombstones by what they stand on and by who set them."""

    def __init__(self, stones: Iterable[Tombstone]) -> None:
        self._on: dict[str, Tombstone] = {}
        self._by: defaultdict[str, list[Tombstone]] = defaultdict(list)
        for stone in stones:
            self._on[stone.id] = stone
            self._by[stone.forget_id].append(stone)

    def on(self, *ids: str) -> Tombstone | None:
        """The one that stands on the first of these that has one."""
        return next((self._on[id_] for id_ in ids if id_ in self._on), None)

    def beside(self, entry: Entry) -> list[Tombstone]:
        own = self._on.get(entry.id)
        return [*([own] if own else []), *self._by.get(entry.id, ())]


def _places(space: Space, ids: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(ids), _CHUNK):
        found |= space.positions(ids[start : start + _CHUNK])
    return found


def _run(space: Space, first: int, last: int) -> Iterator[Entry]:
    place = first - 1
    while place < last:
        found = space.entries(after=place, limit=min(1_000, last - place))
        if not found:
            return
        yield from (entry for entry in found if entry.seq <= last)
        place = found[-1].seq
