"""Taking in what others pushed: the manifest, then every segment it names that is not known yet."""

from collections.abc import Iterator, Sequence

import msgspec

from memplane.clock import iso
from memplane.memory.merge import Forgets
from memplane.sync import segments
from memplane.sync.lines import forgets_in, forgotten_payloads, merge_lines, positions_of
from memplane.sync.link import SyncLink
from memplane.sync.manifest import Manifest, ManifestEntry
from memplane.sync.remote_state import SegmentEntries
from memplane.sync.segments import Positions, SegmentDamaged, SegmentLine
from memplane.sync.store import ABSENT
from memplane.transfer.full import ExportLine

CACHED_BYTES_MAX = 256 * 1024 * 1024
"""Of segments that are held in memory between looking for tombstones in all and taking the first in; what is beyond is
fetched twice."""
BATCH_BYTES_MAX = 32 * 1024 * 1024
"""Entries merged in one batch, so that entries of many segments arrive in the order of recording."""

_ATTEMPTS_MAX = 10


class PullCounts(msgspec.Struct, kw_only=True):
    """The result of a pull."""

    changed: bool = False
    """Whether anything was there that was not known."""
    segments: int = 0
    bytes: int = 0
    added: int = 0
    known: int = 0
    forgotten: int = 0
    conflicts: int = 0
    """Bodies that came under an id which another body has; both are kept."""
    damaged: list[str] = []
    """Segments whose content does not match their name; they were skipped."""
    missing: list[str] = []
    """Segments that are named and not there; they are named no more."""
    unreadable: int = 0
    """Lines that this version cannot read."""


def pull_segments(link: SyncLink, taken: PullCounts, *, again: bool = False) -> bool:
    """Whether anything changed; one request where nothing has. With `again`, what is known is looked through all the
    same."""
    if not link.read_manifest(again=again) and not link.names_more:
        return False
    if link.version == ABSENT:
        _adopt_orphans(link)
    if link.version != link.seen.version:
        taken.changed = True
    elif not again:
        return False  # there is no manifest, and was none
    fetch = _Fetch(link, taken)
    for _ in range(_ATTEMPTS_MAX):
        absent = _pull_segments(link, fetch, taken)
        if not absent:
            break
        # They were replaced since; the manifest lists the new ones.
        link.read_manifest(again=True)
        gone = [key for key in absent if key in link.manifest.entries]
        if gone:
            taken.missing += gone
            link.update_manifest(lambda found: found.without(*gone))  # noqa: B023 - called before the next look
    _drop_unnamed(link)
    link.save()
    return True


def _adopt_orphans(link: SyncLink) -> None:
    """If the manifest was lost, segments still exist and may contain entries that no other replica has."""
    found = {
        item.key: ManifestEntry(size=item.size, mtime=iso(item.modified))
        for item in link.store.list(segments.PREFIX)
        if segments.replica_of(item.key) is not None
    }
    if found:
        link.update_manifest(lambda there: there if there.updated_at else there.with_entries(found))


def pull_orphans(link: SyncLink, taken: PullCounts) -> None:
    """Merge unlisted segments before they are deleted: a lost or truncated manifest may have listed them. Damaged
    ones are ignored."""
    read: list[list[SegmentLine]] = []
    for key in link.orphans:
        try:
            got = link.store.get(key)
            read += [] if got is None else [segments.read(key, got.data)]
        except SegmentDamaged:
            continue
    lines = [line for found in read for line in _read(found)]
    if lines:
        merged = merge_lines(link.space, lines, forgets_in(lines))
        taken.added += merged.added
        taken.known += merged.known
        taken.forgotten += merged.forgotten
        taken.conflicts += len(merged.variants)


class _Fetch:
    """Segments by name, read once as long as there is room for them."""

    def __init__(self, link: SyncLink, taken: PullCounts) -> None:
        self._link = link
        self._taken = taken
        self._kept: dict[str, bytes] = {}
        self._room = CACHED_BYTES_MAX

    def __call__(self, key: str) -> list[SegmentLine] | None:
        """None where it is not there. Raises `SegmentDamaged`."""
        data = self._kept.get(key)
        if data is None:
            got = self._link.store.get(key)
            if got is None:
                return None
            data = got.data
            self._taken.bytes += len(data)
            if len(data) <= self._room:
                self._kept[key] = data
                self._room -= len(data)
        return segments.read(key, data)

    def drop(self, key: str) -> None:
        self._room += len(self._kept.pop(key, b""))


def _pull_segments(link: SyncLink, fetch: _Fetch, taken: PullCounts) -> list[str]:
    """Merge new segments; returns those that are listed but missing. All tombstones are read first, so that
    forgotten content never appears, not even briefly."""
    new = sorted(
        (key for key in link.manifest.entries if segments.is_segment(key) and key not in link.seen.segments),
        key=lambda key: (segments.first_of(key), key),
    )
    absent: list[str] = []
    whole: list[str] = []
    forgets: dict[str, dict[str, str]] = {}
    for done, key in enumerate(new):
        link.progress("Fetching", done, len(new))
        try:
            found = fetch(segments.checked(key))
        except SegmentDamaged:
            if key not in taken.damaged:
                taken.damaged.append(key)
            continue
        if found is None:
            absent.append(key)
            continue
        whole.append(key)
        for forget, reasons in forgets_in(_read(found)).items():
            forgets.setdefault(forget, {}).update(reasons)
    for done, batch in _batches(whole, link.manifest):
        link.progress("Merging", done, len(whole))
        absent += _merge(link, batch, fetch, forgets, taken)
    return absent


def _merge(
    link: SyncLink, batch: Sequence[str], fetch: _Fetch, forgets: Forgets, taken: PullCounts
) -> list[str]:
    read: dict[str, list[SegmentLine]] = {}
    absent: list[str] = []
    for key in batch:
        found = fetch(key)
        if found is None:
            absent.append(key)
        else:
            read[key] = found
            taken.unreadable += sum(written.line is None for written in found)
    lines = [line for found in read.values() for line in _read(found)]
    merged = merge_lines(link.space, lines, forgets)
    taken.added += merged.added
    taken.known += merged.known
    taken.forgotten += merged.forgotten
    taken.conflicts += len(merged.variants)
    for key, found in read.items():
        link.seen.segments[key] = segment_entries(link, found)
        taken.segments += 1
        fetch.drop(key)
    link.save()
    return absent


def segment_entries(link: SyncLink, found: Sequence[SegmentLine]) -> SegmentEntries:
    """The positions of a merged segment's entries in the local chain."""
    lines = list(_read(found))
    places = positions_of(link.space, lines)
    known = [(line, place) for line, place in zip(lines, places, strict=True) if place is not None]
    return SegmentEntries(
        entries=tuple(Positions.of(place.position for _, place in known if place.is_same).runs),
        payloads=tuple(Positions.of(place.position for line, place in known if bytes(line.body)).runs),
        size=sum(len(written.raw) + 1 for written in found),
        foul=forgotten_payloads(link.space, lines),
    )


def _read(found: Sequence[SegmentLine]) -> Iterator[ExportLine]:
    return (written.line for written in found if written.line is not None)


def _batches(keys: Sequence[str], manifest: Manifest) -> Iterator[tuple[int, list[str]]]:
    batch: list[str] = []
    size = done = 0
    for key in keys:
        batch.append(key)
        size += manifest.entries[key].size
        if size >= BATCH_BYTES_MAX:
            yield done, batch
            done, batch, size = done + len(batch), [], 0
    if batch:
        yield done, batch


def _drop_unnamed(link: SyncLink) -> None:
    """Segments that the manifest no longer lists were replaced by others, which were merged before this."""
    link.seen.segments = {
        key: segment for key, segment in link.seen.segments.items() if key in link.manifest.entries
    }
