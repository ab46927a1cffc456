"""A space and the place it is synced with: what pull and push both need."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import msgspec

from memplane.clock import DAY, Clock, system_clock, to_datetime
from memplane.entropy import random_bytes
from memplane.errors import StorageBusy, StorageUnavailable, Unchanged
from memplane.space import Space
from memplane.sync import manifest as manifests
from memplane.sync import segments
from memplane.sync.backend import Pause
from memplane.sync.manifest import Change, Manifest, ManifestEntry
from memplane.sync.remote_state import RemoteState, load_remote_state, save_remote_state
from memplane.sync.store import ObjectInfo, ObjectStore
from memplane.sync.tree.names import FILES, GENERATED, INTERACTIONS, PREFIXES, STATE, below

# The replica's name, under which it writes segments. Only one replica may write under a name, because only it knows
# which of its segments are obsolete. The name is created once and kept in the space with its home directory: a copy
# of a data directory has another home and becomes another replica with its first push. Nothing is lost by that, since
# entries are found by content.


_NAME = "replica"
_NAME_BYTES = 8


class Replica(msgspec.Struct, frozen=True):
    """The name, and a digest of where it was given."""

    name: str
    home: str


def replica_of_space(space: Space, data: Path) -> Replica:
    """The one that is kept in the space, if it was made in this data directory; otherwise a new one, kept from now on."""
    home = _home(data)
    kept = space.ledger.bookmark(_NAME)
    if kept is not None:
        found = msgspec.json.decode(kept, type=Replica)
        if found.home == home:
            return found
    made = Replica(random_bytes(_NAME_BYTES).hex(), home)
    space.ledger.set_bookmark(_NAME, msgspec.json.encode(made).decode())
    return made


def _home(data: Path) -> str:
    """The directory's inode and path: a copy of the directory has another inode or another path."""
    path = data.expanduser().resolve()
    try:
        inode = path.stat().st_ino
    except OSError:
        inode = 0
    return sha256(f"{os.fspath(path)}\x00{inode}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


if sys.platform != "win32":
    import fcntl

_FOLDERS = (*PREFIXES, INTERACTIONS, STATE, FILES, *GENERATED)

Progress = Callable[[str, int, int], None]
"""What is being done, how far, and out of how much."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Reports nothing."""


class SyncLink:
    """Lock the pair of space and remote for one pull or push, across the processes of this machine."""

    def __init__(
        self,
        space: Space,
        store: ObjectStore,
        data: Path,
        *,
        clock: Clock = system_clock,
        pause: Pause = time.sleep,
        progress: Progress = silent,
    ) -> None:
        self.space = space
        self.store = store
        self.clock = clock
        self.progress = progress
        self.replica = replica_of_space(space, data).name
        self.seen: RemoteState = load_remote_state(space, store.url, self.replica)
        self._pause = pause
        self._manifest: tuple[Manifest, str] | None = None
        self.orphans: list[str] = []
        """Segments that no manifest lists, left by a machine that may never return."""

    def save(self) -> None:
        save_remote_state(self.space, self.store.url, self.seen)

    def read_manifest(self, *, again: bool = False) -> bool:
        """Whether anything changed since the last read in this link or, if everything was merged then, in an
        earlier one."""
        unless = None if again else self.version or self.seen.version or None
        try:
            self._manifest = manifests.read(self.store, unless)
        except Unchanged:
            return False
        return True

    @property
    def manifest(self) -> Manifest:
        """As it was read or written last."""
        if self._manifest is None:
            self._manifest = manifests.read(self.store)
        return self._manifest[0]

    @property
    def names_more(self) -> bool:
        """Whether the known manifest lists a segment that was not merged: it may have arrived with this replica's
        own update, without a change since."""
        return self._manifest is not None and any(
            segments.is_segment(key) and key not in self.seen.segments for key in self.manifest.entries
        )

    @property
    def version(self) -> str:
        """Of that; empty where it was not read yet."""
        return "" if self._manifest is None else self._manifest[1]

    def update_manifest(self, change: Change) -> Manifest:
        """What came in with it from others is found by the next pull, unless there is nothing of theirs in it."""
        self._manifest = manifests.update(
            self.store, change, known=self._manifest, clock=self.clock, pause=self._pause
        )
        if all(self._is_known(key, entry) for key, entry in self.manifest.entries.items()):
            self.seen.version = self.version
        return self.manifest

    def note_orphans(self, listed: Iterable[ObjectInfo]) -> None:
        """A segment is written before it is listed, so an unlisted one counts as orphaned after a day."""
        before = to_datetime(self.clock() - DAY)
        self.orphans = [
            item.key
            for item in listed
            if segments.is_segment(item.key)
            and segments.replica_of(item.key) is not None
            and item.key not in self.manifest.entries
            and item.modified < before
        ]

    def _is_known(self, key: str, entry: ManifestEntry) -> bool:
        if segments.is_segment(key):
            return key in self.seen.segments or key in self.seen.pending
        seen = self.seen.files.get(key)
        return not is_file(key) or (seen is not None and seen.digest == entry.sha256)


def is_file(key: str) -> bool:
    """Whether an object is one of the readable files of a space."""
    return any(below(key, folder) is not None for folder in _FOLDERS)


@contextmanager
def only_one(data: Path, space: Space, url: str) -> Iterator[None]:
    """Raises `StorageBusy` where another process, or thread, is at it."""
    named = sha256(f"{space.tenant}\x00{space.owner}\x00{url}".encode()).hexdigest()[:32]
    path = data.expanduser() / "sync" / f"{named}.lock"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as exc:
        raise StorageUnavailable(f"{path} cannot be written: {exc.strerror}") from exc
    try:
        if sys.platform != "win32":
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as exc:
                raise StorageBusy(
                    f"another sync of {space.owner!r} with {url} is going on; try again when it is done"
                ) from exc
        yield
    finally:
        os.close(descriptor)
