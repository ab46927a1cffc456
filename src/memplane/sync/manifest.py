"""`manifest.json`: an index of all objects in one object, so that a client need not list or fetch everything at
start.

    {"schema_version": 1, "updated_at": "2026-04-17T20:00:00.000Z",
     "entries": {"behavioral/MEMORY.md": {"size": 1234, "mtime": "…", "sha256": "…"},
                 "behavioral/feedback_*.md": {"count": 15, "total_size": 24000}}}

An object is written first and listed afterwards; `rebuild` recreates the index from a listing. Members of other
programs are preserved. Every change is read, modify, conditional write (`update`).

Many concurrent writers compete for one object. A writer that had to retry `HOT_TRIES` times moves the entries below
the first part of its paths (`interactions/…`) into a separate manifest, `manifests/interactions.json`, and names
that part under `"split"` in the root manifest. The same happens to a part with more than `HOT_ENTRIES` entries.
Writers of different parts then no longer compete, and readers request one more object per part.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from memplane.clock import Clock, iso, system_clock
from memplane.errors import Changed, InvalidRequest, ManifestUnreadable, RemoteUnavailable, Unchanged
from memplane.sync.backend import Pause, pause_s
from memplane.sync.store import ABSENT, ObjectStore, StoredObject, checked

KEY: Final = "manifest.json"
SCHEMA_VERSION: Final = 1
HOT_TRIES: Final = 6
HOT_ENTRIES: Final = 5_000

_TRIES_MAX = 200
_PARTS = "manifests/"
_SPLIT = "split"


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of an object, or, with `count`, of so many that a pattern names."""

    size: int
    mtime: str = ""
    sha256: str | None = None
    count: int | None = None
    others: Mapping[str, Any] = {}
    """Members of other programs."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is there. A change makes a new one: `with_entry`, `without`."""

    schema_version: int = SCHEMA_VERSION
    updated_at: str = ""
    entries: Mapping[str, ManifestEntry] = {}
    split: tuple[str, ...] = ()
    """First parts of paths whose entries have a separate manifest; `entries` includes them too."""
    others: Mapping[str, Any] = {}

    def with_entry(self, key: str, entry: ManifestEntry) -> "Manifest":
        return msgspec.structs.replace(self, entries={**self.entries, key: entry})

    def with_entries(self, entries: Mapping[str, ManifestEntry]) -> "Manifest":
        return msgspec.structs.replace(self, entries={**self.entries, **entries})

    def without(self, *keys: str) -> "Manifest":
        gone = frozenset(keys)
        return msgspec.structs.replace(
            self, entries={key: entry for key, entry in self.entries.items() if key not in gone}
        )


Change = Callable[[Manifest], Manifest]
"""Computes the new manifest. It may run several times, even after its change was applied, so it must always make
the same change: put these entries, drop those."""


def read(store: ObjectStore, unless: str | None = None) -> tuple[Manifest, str]:
    """The manifest as it is now and its version; an empty one and `ABSENT` where there is none.

    One request, and one more for each part that is split off. Raises `Unchanged` where all of it is in version `unless`.
    """
    if unless is not None and _is_split(unless) and _is_unchanged(store, unless):
        raise Unchanged(KEY)
    found = _Read(store, store.get(KEY, unless=unless))
    return found.manifest, found.version


def update(
    store: ObjectStore,
    change: Change,
    *,
    known: tuple[Manifest, str] | None = None,
    clock: Clock = system_clock,
    pause: Pause = time.sleep,
) -> tuple[Manifest, str]:
    """Make a change that no other writer's change can undo, and return the manifest as it then is.

    `known` is what was read last: while it is still so, a change costs one request. Writes nothing where there is nothing
    to change. Raises `RemoteUnavailable` where others are always faster.
    """
    for attempt in range(_TRIES_MAX):
        found = _known(store, known) if attempt == 0 and known is not None else _Read(store, store.get(KEY))
        changed = change(found.manifest)
        if changed.entries == found.manifest.entries and changed.others == found.manifest.others:
            return found.manifest, found.version
        stamped = msgspec.structs.replace(changed, updated_at=iso(clock()))
        try:
            return found.write(stamped, is_hot=attempt >= HOT_TRIES)
        except Changed:
            pause(pause_s(attempt))
    raise RemoteUnavailable(f"the manifest of {store.url} is changed by others all the time; try again later")


def rebuild(store: ObjectStore, *, clock: Clock = system_clock, pause: Pause = time.sleep) -> Manifest:
    """Recreate the manifest from a listing. Objects written at the same time may be missing until they are written
    again, or until the next rebuild."""
    try:
        read(store)
    except ManifestUnreadable:
        store.delete(KEY)
    listed = {
        item.key: ManifestEntry(size=item.size, mtime=iso(item.modified))
        for item in store.list()
        if not is_manifest(item.key)
    }

    def change(manifest: Manifest) -> Manifest:
        entries = {
            key: old if (old := manifest.entries.get(key)) is not None and old.size == entry.size else entry
            for key, entry in listed.items()
        }
        return msgspec.structs.replace(manifest, entries=entries)

    return update(store, change, clock=clock, pause=pause)[0]


def entry_of(data: bytes, moment: datetime | int, digest: str | None = None) -> ManifestEntry:
    """The entry of an object that was just written."""
    return ManifestEntry(size=len(data), mtime=iso(moment), sha256=digest)


def is_manifest(key: str) -> bool:
    """Whether an object is part of the manifest itself, which does not list itself."""
    return key == KEY or key.startswith(_PARTS)


class _Read:
    """A root manifest and those split off from it, each in the version it was read in."""

    def __init__(self, store: ObjectStore, root: StoredObject | None) -> None:
        self._store = store
        self._root = _parsed(root, KEY, store)
        self._versions = {KEY: ABSENT if root is None else root.version}
        self._parts: dict[str, Manifest] = {}
        for part in self._root.split:
            key = _part_key(part)
            got = store.get(key)
            self._parts[part] = _parsed(got, key, store)
            self._versions[key] = ABSENT if got is None else got.version
        self.manifest = _merged(self._root, self._parts.values())
        self.version = _version(self._versions)

    @classmethod
    def of(cls, store: ObjectStore, manifest: Manifest, version: str) -> "_Read | None":
        """As it was when it was read before; None where it has parts, whose own members are not known any more."""
        if manifest.split:
            return None
        found = cls(store, None)
        found._root = found.manifest = manifest
        found._versions = {KEY: version}
        found.version = version
        return found

    def write(self, manifest: Manifest, *, is_hot: bool) -> tuple[Manifest, str]:
        """Put what differs where it belongs. Raises `Changed` where one of them is not what was read."""
        new = _hot_parts(self.manifest, manifest, is_hot=is_hot) - set(self._root.split)
        if new:
            self._split_off(new)
            raise Changed(KEY)
        versions = dict(self._versions)
        for part, old in self._parts.items():
            entries = _below(manifest, part)
            if entries != dict(old.entries):
                key = _part_key(part)
                changed = msgspec.structs.replace(old, entries=entries, updated_at=manifest.updated_at)
                versions[key] = self._store.put(key, _composed(changed), expect=self._versions[key])
        rest = msgspec.structs.replace(
            manifest, entries=_outside(manifest.entries, self._root.split), split=self._root.split
        )
        if rest.entries != self._root.entries or rest.others != self._root.others:
            versions[KEY] = self._store.put(KEY, _composed(rest), expect=self._versions[KEY])
        return msgspec.structs.replace(manifest, split=self._root.split), _version(versions)

    def _split_off(self, parts: Iterable[str]) -> None:
        """Move entries into separate manifests, then name them in the root.

        A concurrent split must not replace a part with fewer entries than the root has. So the part's version is
        read before the root: of two writers, the later one has then read everything that the earlier one read.
        """
        before = {part: self._store.get(_part_key(part)) for part in parts}
        got = self._store.get(KEY)
        root = _parsed(got, KEY, self._store)
        for part, old in before.items():
            if part not in root.split:
                moved = Manifest(updated_at=root.updated_at, entries=_below(root, part))
                self._store.put(
                    _part_key(part), _composed(moved), expect=ABSENT if old is None else old.version
                )
        split = tuple(sorted({*root.split, *before}))
        rest = msgspec.structs.replace(root, entries=_outside(root.entries, split), split=split)
        self._store.put(KEY, _composed(rest), expect=ABSENT if got is None else got.version)


def _known(store: ObjectStore, known: tuple[Manifest, str]) -> _Read:
    return _Read.of(store, *known) or _Read(store, store.get(KEY))


def _hot_parts(before: Manifest, after: Manifest, *, is_hot: bool) -> set[str]:
    """The first parts of paths that deserve a manifest of their own: where others are too often faster, those that are
    being changed; and those that have many entries."""
    if is_hot:
        keys = before.entries.keys() | after.entries.keys()
        return {_first(key) for key in keys if before.entries.get(key) != after.entries.get(key)} - {""}
    if len(after.entries) <= HOT_ENTRIES:
        return set()
    counts: dict[str, int] = {}
    for key in after.entries:
        counts[_first(key)] = counts.get(_first(key), 0) + 1
    return {part for part, count in counts.items() if count > HOT_ENTRIES} - {""}


def _merged(root: Manifest, parts: Iterable[Manifest]) -> Manifest:
    """All entries combined. An entry that another program added to the root, unaware of parts, counts if it is
    newer."""
    entries: dict[str, ManifestEntry] = {}
    for part in parts:
        entries.update(part.entries)
    for key, entry in root.entries.items():
        other = entries.get(key)
        if other is None or entry.mtime > other.mtime:
            entries[key] = entry
    return msgspec.structs.replace(root, entries=entries)


def _first(key: str) -> str:
    first, slash, _ = key.partition("/")
    return first if slash else ""


def _below(manifest: Manifest, part: str) -> dict[str, ManifestEntry]:
    return {key: entry for key, entry in manifest.entries.items() if _first(key) == part}


def _outside(entries: Mapping[str, ManifestEntry], split: Iterable[str]) -> dict[str, ManifestEntry]:
    gone = frozenset(split)
    return {key: entry for key, entry in entries.items() if _first(key) not in gone}


def _part_key(part: str) -> str:
    return f"{_PARTS}{part}.json"


def _version(versions: Mapping[str, str]) -> str:
    """One word for all: that of the root where it is alone."""
    if len(versions) == 1:
        return versions[KEY]
    return msgspec.json.encode(versions, order="sorted").decode()


def _is_split(version: str) -> bool:
    return version.startswith('{"')


def _is_unchanged(store: ObjectStore, version: str) -> bool:
    """Whether the root and all its parts are as they were, without fetching those that are."""
    for key, known in msgspec.json.decode(version, type=dict[str, str]).items():
        try:
            if store.get(key, unless=known) is not None or known != ABSENT:
                return False
        except Unchanged:
            continue
    return True


def _parsed(got: StoredObject | None, key: str, store: ObjectStore) -> Manifest:
    if got is None:
        return Manifest()
    try:
        raw = msgspec.json.decode(got.data, type=dict[str, Any])
        version = msgspec.convert(raw.pop("schema_version", SCHEMA_VERSION), int)
        if version > SCHEMA_VERSION:
            raise ManifestUnreadable(
                f"{key} in {store.url} has schema_version {version}, and this Memplane reads up to "
                f"{SCHEMA_VERSION}; install a newer one. Nothing was changed"
            )
        entries = msgspec.convert(raw.pop("entries", {}), dict[str, dict[str, Any]])
        split = msgspec.convert(raw.pop(_SPLIT, ()), tuple[str, ...])
        for part in split:
            checked(_part_key(part))
        return Manifest(
            updated_at=msgspec.convert(raw.pop("updated_at", ""), str),
            split=split,
            entries={name: _entry(members) for name, members in entries.items()},
            others=raw,
        )
    except (msgspec.MsgspecError, UnicodeError, RecursionError, InvalidRequest) as exc:
        raise ManifestUnreadable(
            f"{key} in {store.url} is damaged ({exc}); nothing was changed. Remove it, and it is rebuilt from a listing"
        ) from exc


def _entry(members: dict[str, Any]) -> ManifestEntry:
    raw = dict(members)
    count = msgspec.convert(raw.pop("count", None), int | None)
    size = raw.pop("size" if count is None else "total_size", 0)
    return ManifestEntry(
        size=msgspec.convert(size, int),
        mtime=msgspec.convert(raw.pop("mtime", ""), str),
        sha256=msgspec.convert(raw.pop("sha256", None), str | None),
        count=count,
        others=raw,
    )


def _composed(manifest: Manifest) -> bytes:
    """As a person may want to read it, in an order that does not change with the order of writes."""
    document: dict[str, Any] = {
        "schema_version": manifest.schema_version,
        "updated_at": manifest.updated_at,
        **({_SPLIT: manifest.split} if manifest.split else {}),
        **manifest.others,
        "entries": {key: _members(entry) for key, entry in sorted(manifest.entries.items())},
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _members(entry: ManifestEntry) -> dict[str, Any]:
    members: dict[str, Any] = {"size": entry.size}
    if entry.count is not None:
        members = {"count": entry.count, "total_size": entry.size}
    if entry.mtime:
        members["mtime"] = entry.mtime
    if entry.sha256 is not None:
        members["sha256"] = entry.sha256
    return {**entry.others, **members}
