"""Export and import of a whole tree in an object store: the ledger and the readable files.

This is a one-time copy for a migration, an inspection or a backup; `sync` keeps a space and a remote in step.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from memplane.clock import to_datetime
from memplane.entropy import random_bytes
from memplane.errors import Changed
from memplane.space import Space
from memplane.sync import manifest, segments
from memplane.sync.lines import forgets_in, merge_lines
from memplane.sync.store import ABSENT, ObjectStore, StoredObject
from memplane.sync.tree.daily import generated_files, is_expired_summary
from memplane.sync.tree.interactions import joined
from memplane.sync.tree.names import (
    BEHAVIORAL,
    FACTS,
    FILES,
    GENERATED,
    INTERACTIONS,
    PREFIXES,
    WRITTEN,
    below,
)
from memplane.sync.tree.report import TreeReport, WriteReport, compose, digest_of, parse
from memplane.sync.tree.tree import check_prefix, files_of, import_tree
from memplane.transfer.full import TOMBSTONE, ExportLine, full_lines

_REPLICA = "tree-replica"
_NAME_BYTES = 8
_NOT_IMPORTED = "it contains edits that were not imported; import it first"


def write_tree(
    space: Space,
    store: ObjectStore,
    *,
    prefix: str = BEHAVIORAL,
    ledger: bool = True,
) -> WriteReport:
    """Export the whole space. Files that were edited there and not imported yet are left unchanged and reported.

    The ledger is written first, so that a partial tree contains the source of its readable files. Files with only
    forgotten content are removed or rewritten without it.
    """
    check_prefix(prefix)
    writing = _TreeExport(space, store)
    if ledger:
        writing.ledger()
    writing.readable(prefix, generated_files(space))
    space.ledger.add_audit("export", target="tree", outcome="ok")
    return writing.finish()


def read_tree(
    store: ObjectStore,
    space: Space,
    *,
    prefix: str = BEHAVIORAL,
    forget_missing: bool = False,
    dry_run: bool = False,
) -> TreeReport:
    """Take a whole tree in: its ledger, if it has one, then what the readable files say beyond that."""
    rejected: list[tuple[str, str]] = []
    lines = list(_lines(store, rejected))
    count = _merge(space, lines, dry_run=dry_run)
    files: dict[str, bytes] = {}
    modified: dict[str, datetime] = {}
    for listed in store.list():
        if segments.is_segment(listed.key) or manifest.is_manifest(listed.key):
            continue
        got = store.get(listed.key)
        if got is not None:
            files[listed.key] = got.data
            modified[listed.key] = listed.modified
    if dry_run and count:
        # Without importing the ledger, its entries cannot be distinguished from edits in the files.
        files = {}
    report = import_tree(
        space,
        files.items(),
        prefix=prefix,
        modified=modified,
        forget_missing=forget_missing,
        dry_run=dry_run,
    )
    if not dry_run:
        detail = f"{count} entries of its ledger, {report.entries} of its files"
        space.ledger.add_audit("import", target="tree", outcome="ok", detail=detail)
    return msgspec.structs.replace(
        report, rejected=(*rejected, *report.rejected), entries=count + report.entries
    )


class _TreeExport:
    """One export."""

    def __init__(self, space: Space, store: ObjectStore) -> None:
        self._space = space
        self._store = store
        self._written: dict[str, bytes] = {}
        self._unchanged: list[str] = []
        self._removed: list[str] = []
        self._kept: dict[str, str] = {}
        self._listed = {
            listed.key: listed.modified for listed in store.list() if not manifest.is_manifest(listed.key)
        }

    def ledger(self) -> None:
        """Segments of our own. One from an earlier export goes when everything in it is in the new ones."""
        replica = _replica(self._space)
        ours: set[str] = set()
        for segment in _segments(self._space, replica):
            ours.add(segment.key)
            if segment.key in self._listed:
                self._unchanged.append(segment.key)
            else:
                self._store.put(segment.key, segment.data)
                self._written[segment.key] = segment.data
        for key in self._listed:
            if segments.replica_of(key) == replica and key not in ours and self._is_known(key):
                self._remove(key)

    def _is_known(self, key: str) -> bool:
        got = self._store.get(key)
        if got is None:
            return False
        try:
            lines = [written.line for written in segments.read(key, got.data)]
        except segments.SegmentDamaged:
            return False
        ids = [line.id for line in lines if line is not None]
        known, forgotten = self._space.ledger.status(ids)
        return len(ids) == len(lines) and all(id_ in known or id_ in forgotten for id_ in ids)

    def readable(self, prefix: str, others: Iterable[tuple[str, bytes]]) -> None:
        there = {
            key: got for key in self._listed if not segments.is_segment(key) and (got := self._store.get(key))
        }
        files = {key: got.data for key, got in there.items()}
        found = import_tree(self._space, files.items(), prefix=prefix, modified=self._listed, dry_run=True)
        theirs = {path for path in found.left if _is_generated(path)}
        apart = {path: _NOT_IMPORTED for path in found.taken if below(path, INTERACTIONS) is None}
        apart |= {path: why for path, why in found.rejected if path in files}
        for named, why in found.rejected:
            if named.startswith(f"{FACTS}:"):
                apart[FACTS] = why
        made: set[str] = set()
        for path, made_data in files_of(self._space, prefix=prefix, there=files.get, others=others):
            made.add(path)
            if path in theirs:
                continue  # another program's summary of the day is as good
            data = _with_records(made_data, files.get(WRITTEN), apart) if path == WRITTEN else made_data
            if path in apart and files[path] != data:
                self._kept[path] = apart[path]
            else:
                self._put(path, data, there.get(path))
        self._tidy(prefix, files, made, apart, set(found.forgotten), set(found.unchanged))

    def _tidy(
        self,
        prefix: str,
        files: Mapping[str, bytes],
        made: set[str],
        apart: Mapping[str, str],
        forgotten: set[str],
        unchanged: set[str],
    ) -> None:
        """Remaining files: one is removed if all its content is forgotten or stored elsewhere."""
        for path, data in files.items():
            if path in made:
                continue
            if path in apart:
                self._kept[path] = apart[path]
                continue
            if below(path, INTERACTIONS) is not None and path in unchanged:
                rest = joined(self._space, [], data)
                if not rest:
                    self._remove(path)
                elif rest != data:
                    self._put(path, rest, self._store.get(path))
            elif is_expired_summary(self._space, path) is None:
                pass  # the writer's clock is ahead
            elif path in forgotten or (path in unchanged and _is_own_file(path, prefix)):
                self._remove(path)
            elif any(below(path, folder) for folder in PREFIXES) and path not in unchanged:
                self._kept.setdefault(path, "it was not written by Memplane")

    def _put(self, path: str, data: bytes, got: StoredObject | None) -> None:
        if got is not None and got.data == data:
            self._unchanged.append(path)
            return
        try:
            self._store.put(path, data, expect=ABSENT if got is None else got.version)
        except Changed:
            self._kept[path] = "it is being written right now; export again"
        else:
            self._written[path] = data

    def _remove(self, path: str) -> None:
        self._store.delete(path)
        self._removed.append(path)

    def finish(self) -> WriteReport:
        now = to_datetime(self._space.now())
        entries = {
            path: manifest.entry_of(data, now, digest_of(data)) for path, data in self._written.items()
        }

        def change(found: manifest.Manifest) -> manifest.Manifest:
            return found.with_entries(entries).without(*self._removed)

        if entries or self._removed:
            manifest.update(self._store, change, clock=self._space.now)
        return WriteReport(
            written=tuple(sorted(self._written)),
            unchanged=tuple(sorted(self._unchanged)),
            removed=tuple(sorted(self._removed)),
            kept=tuple(sorted(self._kept.items())),
        )


def _is_own_file(path: str, prefix: str) -> bool:
    return path == FACTS or any(below(path, folder) is not None for folder in (prefix, FILES, *GENERATED))


def _is_generated(path: str) -> bool:
    return any(below(path, folder) is not None for folder in GENERATED)


def _with_records(made: bytes, before: bytes | None, apart: Mapping[str, str]) -> bytes:
    """What was written, with what is still so of the files that were left as they are."""
    old, new = parse(before).files, parse(made).files
    return compose(
        {path: record for path, record in new.items() if path not in apart}
        | {path: record for path, record in old.items() if path in apart}
    )


def _replica(space: Space) -> str:
    """The name under which this space exports. A copy of the space has it too, so nothing of its goes unless it is
    known here."""
    kept = space.ledger.bookmark(_REPLICA)
    if kept is None:
        kept = f"tree-{random_bytes(_NAME_BYTES).hex()}"
        space.ledger.set_bookmark(_REPLICA, kept)
    return kept


def _segments(space: Space, replica: str) -> Iterator[segments.Segment]:
    lines: list[segments.SegmentLine] = []
    first, size = 1, 0
    for number, raw in enumerate(full_lines(space), start=1):
        if lines and size + len(raw) >= segments.BYTES_MAX:
            yield segments.make(replica, first, lines)
            lines, size, first = [], 0, number
        lines.append(segments.SegmentLine(raw, None))
        size += len(raw) + 1
    if lines:
        yield segments.make(replica, first, lines)


def _lines(store: ObjectStore, rejected: list[tuple[str, str]]) -> Iterator[ExportLine]:
    for listed in store.list(segments.PREFIX):
        got = store.get(listed.key)
        if got is None:
            continue
        try:
            found = segments.read(listed.key, got.data)
        except segments.SegmentDamaged as exc:
            rejected.append((listed.key, exc.why))
            continue
        for number, written in enumerate(found, start=1):
            if written.line is None:
                rejected.append(
                    (f"{listed.key}:{number}", "it is no line of a ledger that this Memplane reads")
                )
            else:
                yield written.line


def _merge(space: Space, lines: Sequence[ExportLine], *, dry_run: bool) -> int:
    """How many entries are, or would be, new."""
    if dry_run:
        ids = {line.id for line in lines if line.op != TOMBSTONE}
        known, forgotten = space.ledger.status(list(ids))
        return len(ids - known - forgotten)
    return merge_lines(space, lines, forgets_in(lines)).added if lines else 0
