"""Migrate local memory to the cloud: upload it, list it in the manifest, and read it back."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from memplane.adapters.entrabot.storage.local import files_in
from memplane.adapters.entrabot.storage.migration import MigrationReport, key_for, migrate_local_to_backend
from memplane.errors import Changed, RemoteError
from memplane.sync import manifest
from memplane.sync.backend import RemoteBackend, bytes_of
from memplane.sync.manifest import ManifestEntry
from memplane.sync.store import ABSENT, ObjectStore

_BLOCK_BYTES = 512
_KILOBYTE = 1024


class MoveSource(msgspec.Struct, frozen=True, kw_only=True):
    """A directory to migrate."""

    root: Path
    prefix: str
    name: str

    @property
    def is_empty(self) -> bool:
        return not files_in(self.root)


class MoveResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result. `verified` counts files that were read back and match the manifest; `differ` names files that the
    cloud has in another version, which was not replaced."""

    report: MigrationReport
    verified: int
    differ: list[str]
    errors: list[tuple[str, str]]


def question(sources: Sequence[MoveSource]) -> str:
    """The question to confirm before anything is uploaded."""
    size = sum(kilobytes(source.root) for source in sources)
    what = " + ".join(source.name for source in sources)
    return f"  Upload existing local memory (~{size} KB, {what}) to blob? [y/N] "


def kilobytes(root: Path) -> int:
    """The disk usage of a directory, as `du -sk` reports it."""
    seen: set[tuple[int, int]] = set()
    taken = 0
    for path in (root, *root.rglob("*")):
        status = path.lstat()
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            blocks: int | None = getattr(status, "st_blocks", None)
            taken += status.st_size if blocks is None else blocks * _BLOCK_BYTES
    return math.ceil(taken / _KILOBYTE)


def move(sources: Sequence[MoveSource], store: ObjectStore) -> MoveResult:
    """Upload missing files, update the manifest, then verify. It can be interrupted and run again; local files are
    only read. Raises `RemoteError`, before anything is uploaded, if the store cannot be used."""
    manifest.read(store)
    target = _Target(store)
    report = migrate_local_to_backend([(source.root, source.prefix) for source in sources], target)
    failed = {key for key, _ in report.errors}
    local = {
        key: path
        for source in sources
        for path in files_in(source.root)
        if (key := key_for(path, source.root, source.prefix)) not in failed
    }
    try:
        differ = _entered(store, target, local)
        wrong = _differing(store, local)
    except RemoteError as exc:
        errors = [*report.errors, (manifest.KEY, str(exc))]
        return MoveResult(report=report, verified=0, differ=[], errors=errors)
    verified = len(local) - len(wrong)
    return MoveResult(report=report, verified=verified, differ=differ, errors=[*report.errors, *wrong])


def _entered(store: ObjectStore, target: "_Target", local: Mapping[str, Path]) -> list[str]:
    """List the uploaded files in the manifest, and return those that differ from the local ones."""
    entries: dict[str, ManifestEntry] = {}
    differ: list[str] = []
    for key, path in local.items():
        data = target.written.get(key)
        if data is None:
            got = store.get(key)
            if got is None:
                continue
            data = got.data
            if data != path.read_bytes():
                differ.append(key)
        entries[key] = manifest.entry_of(data, datetime.now(UTC), hashlib.sha256(data).hexdigest())
    manifest.update(store, lambda known: known.with_entries(_new_entries(known.entries, entries)))
    return differ


def _new_entries(
    known: Mapping[str, ManifestEntry], entries: Mapping[str, ManifestEntry]
) -> dict[str, ManifestEntry]:
    """Entries that changed, so that a second run writes nothing."""
    return {
        key: entry
        for key, entry in entries.items()
        if (old := known.get(key)) is None or (old.size, old.sha256) != (entry.size, entry.sha256)
    }


def _differing(store: ObjectStore, local: Mapping[str, Path]) -> list[tuple[str, str]]:
    """Files that do not match the manifest."""
    known, _ = manifest.read(store)
    wrong: list[tuple[str, str]] = []
    for key in local:
        entry, got = known.entries.get(key), store.get(key)
        if entry is None or got is None:
            wrong.append((key, f"is missing in {'the manifest' if got is not None else store.url}"))
        elif (len(got.data), hashlib.sha256(got.data).hexdigest()) != (entry.size, entry.sha256):
            wrong.append(
                (key, "does not match the manifest; unless another program changed it, it is damaged")
            )
    return wrong


class _Target(RemoteBackend):
    """A backend that only creates, and remembers what it wrote."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store)
        self._objects = store
        self.written: dict[str, bytes] = {}

    def create_text(self, key: str, text: str) -> bool:
        data = bytes_of(text, key)
        try:
            self._objects.put(key, data, expect=ABSENT)
        except Changed:
            got = self._objects.get(key)
            if got is None or got.data != data:  # else it was our own write, whose first answer got lost
                return False
        self.written[key] = data
        return True
