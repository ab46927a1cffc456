"""Push: publish new entries, and remove forgotten content from the remote.

An object is written before it is listed in the manifest, and removed from the manifest before it is deleted.
Segment names are journaled in the space first, so that after a crash each is either listed or known to be orphaned.
A name enters the manifest once and leaves it once.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from memplane.clock import SECOND, Instant, iso
from memplane.errors import Changed
from memplane.space import Space
from memplane.sync import segments
from memplane.sync.lines import (
    PlacedEntry,
    TombstoneIndex,
    forgotten_positions,
    has_payload,
    head_of,
    lines_at,
    names_of,
)
from memplane.sync.link import SyncLink
from memplane.sync.manifest import Manifest, ManifestEntry
from memplane.sync.remote_state import SegmentEntries
from memplane.sync.segments import Positions, Segment, SegmentDamaged, SegmentLine, union, written
from memplane.sync.store import ABSENT
from memplane.transfer.full import line_of_tombstone, without_body

GATHERED = 8
"""So many segments of about one size are gathered into one."""
GRACE: Instant = 600 * SECOND
"""How long a segment that is named no more is left to those who read the manifest before."""
ROUND_BYTES_MAX = 32 * 1024 * 1024
"""Written between two updates of the manifest: what a failure may cost."""

_CLASS_BYTES = 4 * 1024
_CLASS_FACTOR = 8


class PushCounts(msgspec.Struct, kw_only=True):
    """The result of a push."""

    segments: int = 0
    bytes: int = 0
    entries: int = 0
    rewritten: int = 0
    """Segments that held something forgotten, or were small, and have another in their place."""
    deleted: int = 0


class _NewSegment(msgspec.Struct, frozen=True):
    """A segment to be written, and those in whose place it comes."""

    segment: Segment
    entries: SegmentEntries
    replaces: tuple[str, ...] = ()
    foul: bool = False


def push_segments(link: SyncLink, given: PushCounts) -> None:
    """Call it right after a pull: what the manifest names is known then."""
    while made := _next_round(link):
        _write(link, made, given)
    if link.seen.pending or link.seen.replacing:
        _apply_outcome(link, (), link.manifest, given)
    for key in link.orphans:
        if key not in link.manifest.entries:
            link.store.delete(key)
            given.deleted += 1
    _delete_due(link, given)


def unpushed(link: SyncLink) -> Positions:
    """Our entries that are not there yet."""
    return link.seen.positions.missing(head_of(link.space))


def holds_forgotten(held: SegmentEntries, buried: Positions) -> bool:
    return held.foul or bool(Positions(held.payloads) & buried)


def _next_round(link: SyncLink) -> list[_NewSegment]:
    made = list(_fresh(link))
    if not made:
        made = list(_without_forgotten(link)) or list(_gathered(link))
    return made


def _fresh(link: SyncLink) -> Iterator[_NewSegment]:
    """Our entries that are not there yet, at most a round of them."""
    size = 0
    for chunk in _chunks(lines_at(link.space, unpushed(link))):
        lines = [line for placed in chunk for line in placed.lines]
        segment = segments.make(link.replica, chunk[0].position, lines)
        yield _NewSegment(segment, _entries_in(chunk, segment))
        size += len(segment.data)
        if size >= ROUND_BYTES_MAX:
            return


def _chunks(found: Iterable[PlacedEntry]) -> Iterator[list[PlacedEntry]]:
    chunk: list[PlacedEntry] = []
    size = 0
    for placed in found:
        more = sum(len(line.raw) + 1 for line in placed.lines)
        if chunk and size + more > segments.BYTES_MAX:
            yield chunk
            chunk, size = [], 0
        chunk.append(placed)
        size += more
    if chunk:
        yield chunk


def _entries_in(chunk: Sequence[PlacedEntry], segment: Segment) -> SegmentEntries:
    return SegmentEntries(
        entries=tuple(Positions.of(placed.position for placed in chunk).runs),
        payloads=tuple(Positions.of(placed.position for placed in chunk if placed.has_payload).runs),
        size=len(segment.data),
    )


def _without_forgotten(link: SyncLink) -> Iterator[_NewSegment]:
    """Rewrite every segment that contains a forgotten payload, including those of other replicas."""
    seen, generation = link.seen, link.space.ledger.generation()
    if generation == seen.generation and not any(held.foul for held in seen.segments.values()):
        return
    buried = forgotten_positions(link.space)
    foul = [key for key, held in sorted(seen.segments.items()) if holds_forgotten(held, buried)]
    size = 0
    for key in foul:
        if made := _replacement(link, (key,), buried, foul=True):
            yield made
            size += len(made.segment.data)
        if size >= ROUND_BYTES_MAX:
            return
    if not foul:
        seen.generation = generation
        link.save()


def _gathered(link: SyncLink) -> Iterator[_NewSegment]:
    """Many small segments of our own become a larger one."""
    sizes = {
        key: held.size
        for key, held in link.seen.segments.items()
        if segments.replica_of(key) == link.replica and held.size <= segments.BYTES_MAX // 2
    }
    ordered = sorted(sizes, key=lambda key: (_size_class(sizes[key]), segments.first_of(key), key))
    for _, alike in groupby(ordered, key=lambda key: _size_class(sizes[key])):
        keys = list(alike)
        if len(keys) >= GATHERED:
            total = 0
            fitting = [key for key in keys if (total := total + sizes[key]) <= segments.BYTES_MAX]
            if made := _replacement(link, tuple(fitting), forgotten_positions(link.space)):
                yield made


def _size_class(size: int) -> int:
    return 0 if size <= _CLASS_BYTES else 1 + int(math.log(size / _CLASS_BYTES, _CLASS_FACTOR))


def _replacement(
    link: SyncLink, keys: tuple[str, ...], buried: Positions, *, foul: bool = False
) -> _NewSegment | None:
    """One segment in place of these, without what is forgotten; None where one of them is not there any more, which the
    next pull finds out about."""
    helds = [link.seen.segments[key] for key in keys]
    lines: dict[bytes, SegmentLine] = {}
    stones = TombstoneIndex(link.space.ledger.tombstones())
    for key, held in zip(keys, helds, strict=True):
        found = _read(link, key, held)
        if found is None:
            return None
        lines |= {line.raw: line for line in _scrubbed(link.space, found, stones)}
    segment = segments.make(link.replica, min(map(segments.first_of, keys)), lines.values())
    held = SegmentEntries(
        entries=tuple(union(Positions(held.entries) for held in helds).runs),
        payloads=tuple((union(Positions(held.payloads) for held in helds) - buried).runs),
        size=len(segment.data),
    )
    return _NewSegment(segment, held, keys, foul)


def _read(link: SyncLink, key: str, held: SegmentEntries) -> list[SegmentLine] | None:
    """The segment as stored; if it was damaged since it was merged, rebuilt from the local ledger."""
    got = link.store.get(key)
    if got is None:
        return None
    try:
        return segments.read(key, got.data)
    except SegmentDamaged:
        return [line for placed in lines_at(link.space, Positions(held.entries)) for line in placed.lines]


def _scrubbed(space: Space, found: Sequence[SegmentLine], stones: TombstoneIndex) -> Iterator[SegmentLine]:
    """The same lines without forgotten payloads, with their tombstones."""
    for line in found:
        if line.line is None:
            if (segments.loose_id(line.raw) or "") not in stones:
                yield line
            continue
        if not has_payload(line.line):
            yield line
            continue
        names = names_of(line.line)
        gone = [name for name in names if name in stones]
        if not gone:
            yield line
            continue
        # Under the name that it has here: several bodies may have come under one id.
        known = space.ledger.positions(names)
        called = next((name for name in names if name in known), line.line.id)
        yield written(msgspec.structs.replace(without_body(line.line), id=called))
        yield from (written(line_of_tombstone(stone)) for name in gone for stone in stones.on(name))


def _write(link: SyncLink, made: Sequence[_NewSegment], given: PushCounts) -> None:
    """Journal, write and list new segments, then delete the replaced ones."""
    seen = link.seen
    seen.pending = tuple(dict.fromkeys((*seen.pending, *(one.segment.key for one in made))))
    seen.replacing = tuple(dict.fromkeys((*seen.replacing, *(key for one in made for key in one.replaces))))
    seen.foul = tuple(dict.fromkeys((*seen.foul, *(key for one in made if one.foul for key in one.replaces))))
    for one in made:
        seen.doomed.pop(one.segment.key, None)
    link.save()
    for done, one in enumerate(made):
        link.progress("Writing", done, len(made))
        _put(link, one.segment)
        given.segments += 1
        given.bytes += len(one.segment.data)
        given.rewritten += len(one.replaces)
        if not one.replaces:
            given.entries += len(Positions(one.entries.entries))
    manifest = link.update_manifest(lambda found: _named(found, made, link.clock()))
    _apply_outcome(link, made, manifest, given)


def _put(link: SyncLink, segment: Segment) -> None:
    try:
        link.store.put(segment.key, segment.data, expect=ABSENT)
    except Changed:
        # Written before, by a push that was cut off or whose answer was lost: it is called by what it holds.
        got = link.store.get(segment.key)
        if got is None or got.data != segment.data:
            link.store.put(segment.key, segment.data)


def _named(found: Manifest, made: Sequence[_NewSegment], now: Instant) -> Manifest:
    """Each replaces others only if all of those are still listed: another replica may have replaced one, and its
    segment is unknown here."""
    for one in made:
        if one.segment.key in found.entries or any(key not in found.entries for key in one.replaces):
            continue
        entry = ManifestEntry(size=len(one.segment.data), mtime=iso(now), count=None)
        found = found.without(*one.replaces).with_entry(one.segment.key, entry)
    return found


def _apply_outcome(
    link: SyncLink, made: Sequence[_NewSegment], manifest: Manifest, given: PushCounts
) -> None:
    """What the manifest says became of what we were about to do."""
    seen, now = link.seen, link.clock()
    for one in made:
        if one.segment.key in manifest.entries:
            seen.segments[one.segment.key] = one.entries
    for key in seen.pending:
        if key not in manifest.entries:
            seen.doomed[key] = now - GRACE
    for key in seen.replacing:
        if key not in manifest.entries:
            seen.doomed.setdefault(key, now - GRACE if key in seen.foul else now)
            seen.segments.pop(key, None)
    seen.pending = seen.replacing = seen.foul = ()
    link.save()
    _delete_due(link, given)


def _delete_due(link: SyncLink, given: PushCounts) -> None:
    due = [key for key, since in link.seen.doomed.items() if link.clock() - since >= GRACE]
    for key in due:
        link.store.delete(key)
        del link.seen.doomed[key]
        given.deleted += 1
    if due:
        link.save()
