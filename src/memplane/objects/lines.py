"""Our side of a sync: entries of a space as lines, and lines as entries of a space."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from memplane.objects.positions import Positions
from memplane.objects.segments import Written, written
from memplane.space import Space
from memplane.transfer.full import TOMBSTONE, Line, draft_of, line_of, line_of_tombstone
from memplane.types import Entry, Op, Tombstone

_CHUNK = 5_000

Forgets = Mapping[str, Mapping[str, str]]
"""Forget id to (entry id to reason), as `Space.bury` takes them."""


class Placed(msgspec.Struct, frozen=True):
    """Where in our own chain an entry stands, and the lines that say it: itself, and the tombstones it must not be
    read without."""

    position: int
    lines: tuple[Written, ...]
    payload: bool


def lines_at(space: Space, positions: Positions) -> Iterator[Placed]:
    """What is at these positions. A forget brings its tombstones along, and so does whatever is erased."""
    stones: _Stones | None = None
    for first, last in positions.runs:
        for entry in _entries(space, first, last):
            line = line_of(entry)
            extra: Iterable[Tombstone] = ()
            if not bytes(line.body) or entry.op in (Op.FORGET, Op.SWEEP):
                stones = stones or _Stones(space.tombstones())
                extra = stones.beside(entry)
            lines = (written(line), *(written(line_of_tombstone(stone)) for stone in extra))
            yield Placed(entry.seq, lines, bool(bytes(line.body)))


def buried_positions(space: Space) -> Positions:
    """Where what is forgotten stood."""
    ids = [stone.id for stone in space.tombstones()]
    found: list[int] = []
    for start in range(0, len(ids), _CHUNK):
        found += space.positions(ids[start : start + _CHUNK]).values()
    return Positions.of(found)


def forgets_in(lines: Iterable[Line]) -> dict[str, dict[str, str]]:
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in lines:
        if line.op == TOMBSTONE:
            found[line.forget][line.id] = line.reason
    return dict(found)


class Taken(msgspec.Struct):
    """What taking lines in came to."""

    added: int = 0
    known: int = 0
    forgotten: int = 0


def take_in(space: Space, lines: Sequence[Line], forgets: Forgets) -> Taken:
    """Entries in the order they were recorded; what one of these forgets buries comes without its payload."""
    buried = {id_ for reasons in forgets.values() for id_ in reasons}
    entries = sorted(
        {line for line in lines if line.op != TOMBSTONE}, key=lambda line: (line.recorded, line.id)
    )
    drafts = [draft_of(line, erased=line.id in buried) for line in entries]
    taken = Taken()
    for start in range(0, len(drafts), _CHUNK):
        loaded = space.load(drafts[start : start + _CHUNK])
        taken.added += loaded.added
        taken.known += loaded.known
        taken.forgotten += loaded.forgotten
    if forgets:
        space.bury(forgets)
    space.catch_up()
    return taken


def places_of(space: Space, lines: Sequence[Line]) -> dict[str, int]:
    """By id, where these entries stand with us."""
    ids = [line.id for line in lines if line.op != TOMBSTONE]
    found: dict[str, int] = {}
    for start in range(0, len(ids), _CHUNK):
        found |= space.positions(ids[start : start + _CHUNK])
    return found


def forgotten_among(space: Space, lines: Sequence[Line]) -> set[str]:
    """Ids of entries that come with a payload and are forgotten here."""
    ids = [line.id for line in lines if line.op != TOMBSTONE and bytes(line.body)]
    found: set[str] = set()
    for start in range(0, len(ids), _CHUNK):
        found |= space.standing(ids[start : start + _CHUNK])[1]
    return found


class _Stones:
    """Tombstones by what they stand on and by who set them."""

    def __init__(self, stones: Iterable[Tombstone]) -> None:
        self._on: dict[str, Tombstone] = {}
        self._by: defaultdict[str, list[Tombstone]] = defaultdict(list)
        for stone in stones:
            self._on[stone.id] = stone
            self._by[stone.forget_id].append(stone)

    def beside(self, entry: Entry) -> list[Tombstone]:
        own = self._on.get(entry.id)
        return [*([own] if own else []), *self._by.get(entry.id, ())]


def _entries(space: Space, first: int, last: int) -> Iterator[Entry]:
    place = first - 1
    while place < last:
        found = space.entries(after=place, limit=min(1_000, last - place))
        if not found:
            return
        yield from (entry for entry in found if entry.seq <= last)
        place = found[-1].seq
