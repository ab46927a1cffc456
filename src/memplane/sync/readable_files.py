"""Keep the readable files of a remote in step with the ledger: import edits of people and other programs, and write
changes of the space.

Every write expects the version that was read last, so nothing unread is overwritten. A file written by Memplane is
listed in the manifest with its version, and its ledger entries are pushed before it, so it need not be fetched.
Only files of other writers are fetched.
"""

from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from memplane.clock import iso
from memplane.compaction.retention import day_of
from memplane.errors import Changed, RemoteUnavailable, Unchanged
from memplane.space import Space
from memplane.sync.interactions import day_of_key
from memplane.sync.lines import entries_at, head_of
from memplane.sync.link import SyncLink, is_file
from memplane.sync.manifest import Manifest, ManifestEntry
from memplane.sync.pull import PullCounts, pull_orphans, pull_segments
from memplane.sync.remote_state import RemoteFile
from memplane.sync.segments import Positions
from memplane.sync.store import ABSENT, ObjectInfo, StoredObject
from memplane.sync.tree import TreeReport, files_of, import_tree
from memplane.sync.tree.daily import day_of_summary, generated_files, is_expired_summary
from memplane.sync.tree.interactions import day_of_entry, joined
from memplane.sync.tree.names import INTERACTIONS, WRITTEN, below
from memplane.sync.tree.report import digest_of

_TRIES_MAX = 8
_VERSION = "version"
"""In the manifest, of a file that a Memplane wrote: the version it has since."""


class FilePullCounts(msgspec.Struct, kw_only=True):
    """What became of files that others wrote."""

    taken: list[str] = []
    conflicts: list[tuple[str, str]] = []
    """(path, what to know of it): changed there and here; both are kept."""
    rejected: list[tuple[str, str]] = []
    """(path, why); they stay as they are."""
    entries: int = 0

    def add(self, report: TreeReport) -> None:
        self.taken += report.taken
        self.conflicts += report.conflicts
        self.rejected += report.rejected
        self.entries += report.entries


class FilePushCounts(msgspec.Struct, kw_only=True):
    """What became of files that we wrote."""

    written: list[str] = []
    removed: list[str] = []
    kept: list[str] = []
    """A file of another writer that cannot be imported; it is left unchanged."""


def pull_files(link: SyncLink, done: FilePullCounts, taken: PullCounts) -> None:
    """Import edits made since the last look. Files are listed before the ledger is read again, so that files
    generated from a pushed ledger are not mistaken for edits."""
    everything = list(link.store.list())
    listed = {item.key: item for item in everything if is_file(item.key)}
    pull_segments(link, taken)
    link.note_orphans(everything)
    pull_orphans(link, taken)
    fetched: dict[str, StoredObject] = {}
    for key, item in listed.items():
        if _is_up_to_date(link, item) or _is_written(link, item, link.manifest.entries.get(key)):
            continue
        got = link.store.get(key)
        if got is not None and got.version == item.version:
            fetched[key] = got
    link.seen.files = {key: seen for key, seen in link.seen.files.items() if key in listed}
    if fetched:
        _pull_file(link, fetched, listed, done)
    link.save()


def push_files(link: SyncLink, done: FilePushCounts, files: FilePullCounts, taken: PullCounts) -> None:
    """Write what changed since the last write. If another writer was faster, its version is imported first."""
    for _ in range(_TRIES_MAX):
        before = _mark(link)
        if before == link.seen.rendered:
            return
        if _write(link, done, _days(link)):
            _name(link, done.removed)
            if _mark(link) == before:
                link.seen.rendered = before
            link.save()
            return
        pull_files(link, files, taken)
    raise RemoteUnavailable(
        f"the files of {link.store.url} are changed by others all the time; try again later"
    )


# ── taking in ────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_up_to_date(link: SyncLink, item: ObjectInfo) -> bool:
    seen = link.seen.files.get(item.key)
    return seen is not None and seen.version == item.version


def _is_written(link: SyncLink, item: ObjectInfo, entry: ManifestEntry | None) -> bool:
    """Whether it is as a Memplane wrote it, whose ledger is here by now."""
    if entry is None or entry.sha256 is None or entry.others.get(_VERSION) != item.version:
        return False
    link.seen.files[item.key] = RemoteFile(item.version, entry.sha256, item.size)
    return True


def _pull_file(
    link: SyncLink,
    fetched: Mapping[str, StoredObject],
    listed: Mapping[str, ObjectInfo],
    done: FilePullCounts,
) -> None:
    files = {key: got.data for key, got in fetched.items()}
    if WRITTEN in listed and WRITTEN not in files and (got := link.store.get(WRITTEN)) is not None:
        files[WRITTEN] = got.data
    modified: dict[str, datetime] = {key: listed[key].modified for key in files}
    report = import_tree(link.space, files.items(), modified=modified, there=listed.keys())
    done.add(report)
    apart = {path for path, _ in report.rejected} | set(report.left)
    for key, got in fetched.items():
        link.seen.files[key] = RemoteFile(got.version, digest_of(got.data), len(got.data), apart=key in apart)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _mark(link: SyncLink) -> str:
    """What the space is like: how much came in, how often something went, and which day it is."""
    return f"{head_of(link.space)}:{link.space.ledger.generation()}:{day_of(link.space.now())}"


def _days(link: SyncLink) -> Collection[str] | None:
    """The days of which something was said since files were written last, and those that are over since; None: all of
    them, because something went."""
    position, generation, written = (*link.seen.rendered.split(":"), "", "")[:3]
    if generation != str(link.space.ledger.generation()) or not written:
        return None
    new = Positions([(int(position) + 1, head_of(link.space))])
    said = {day for _, entry in entries_at(link.space, new) if (day := day_of_entry(entry)) is not None}
    return said | {day for day in link.space.overview.days() if day >= written}


def _write(link: SyncLink, done: FilePushCounts, days: Collection[str] | None) -> bool:
    """False if another writer changed one of them."""
    there = _DayFile(link)
    made: set[str] = set()
    for path, data in files_of(link.space, there=there, days=days, others=generated_files(link.space, days)):
        if there.unseen:
            return False
        made.add(path)
        seen = link.seen.files.get(path)
        if seen is not None and seen.digest == digest_of(data):
            continue
        if seen is not None and seen.apart:
            done.kept.append(path)
        elif not _put(link, path, data, ABSENT if seen is None else seen.version):
            return False
        else:
            done.written.append(path)
    gone = [
        path
        for path, seen in link.seen.files.items()
        if path not in made and not seen.apart and _is_expected(link.space, path, days)
    ]
    return all(_remove(link, path, done) for path in gone)


def _is_expected(space: Space, path: str, days: Collection[str] | None) -> bool:
    """Whether it would have been made if there was something to say. Another machine's clock may be ahead: the summary
    of a day that is not over here is for that one to write."""
    over = is_expired_summary(space, path)
    if over is None:
        return False
    day = day_of_key(path) or day_of_summary(path)
    return over or days is None or day is None or day in days


class _DayFile:
    """The content of a day's file. If it differs from the version read last, it contains lines that were not
    imported."""

    def __init__(self, link: SyncLink) -> None:
        self._link = link
        self.unseen = False

    def __call__(self, path: str) -> bytes | None:
        seen = self._link.seen.files.get(path)
        if seen is None:
            return None
        got = self._link.store.get(path)
        self.unseen = self.unseen or got is None or got.version != seen.version
        return None if got is None else got.data


def _put(link: SyncLink, path: str, data: bytes, expect: str) -> bool:
    try:
        version = link.store.put(path, data, expect=expect)
    except Changed:
        got = link.store.get(path)
        if got is None or got.data != data:
            return False
        version = got.version
    link.seen.files[path] = RemoteFile(version, digest_of(data), len(data), written=True)
    return True


def _remove(link: SyncLink, path: str, done: FilePushCounts) -> bool:
    """What nothing is to be said of any more. Of a day, lines that are not ours stay."""
    seen = link.seen.files[path]
    if below(path, INTERACTIONS) is not None:
        got = link.store.get(path)
        if got is not None and got.version != seen.version:
            return False
        rest = b"" if got is None else joined(link.space, [], got.data)
        if got is not None and rest:
            return got.data == rest or _put(link, path, rest, got.version)
    else:
        try:
            if link.store.get(path, unless=seen.version) is not None:
                return False
        except Unchanged:
            pass
    link.store.delete(path)
    del link.seen.files[path]
    done.removed.append(path)
    return True


def _name(link: SyncLink, removed: Collection[str]) -> None:
    """The manifest says what we wrote, and not what we removed."""
    now = iso(link.clock())
    written = {key: seen for key, seen in link.seen.files.items() if seen.written}

    def change(found: Manifest) -> Manifest:
        entries = {
            key: ManifestEntry(size=seen.size, mtime=now, sha256=seen.digest, others={_VERSION: seen.version})
            for key, seen in written.items()
            if not _is_named(found.entries.get(key), seen)
        }
        return found.without(*(key for key in removed if key not in link.seen.files)).with_entries(entries)

    link.update_manifest(change)


def _is_named(entry: ManifestEntry | None, seen: RemoteFile) -> bool:
    return entry is not None and (entry.sha256, entry.others.get(_VERSION)) == (seen.digest, seen.version)
