"""A space and the place it is synced with: what pull and push both need."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from memplane.clock import Clock, system_clock
from memplane.errors import StorageBusy, StorageUnavailable, Unchanged
from memplane.objects import manifest as manifests
from memplane.objects.backend import Pause
from memplane.objects.manifest import Change, Manifest
from memplane.objects.replica import replica_of_space
from memplane.objects.seen import Seen, keep, seen_of
from memplane.objects.store import ObjectStore
from memplane.space import Space

if sys.platform != "win32":
    import fcntl

Progress = Callable[[str, int, int], None]
"""What is being done, how far, and out of how much."""


def silent(_what: str, _done: int, _total: int) -> None:
    """Tells nobody."""


class Link:
    """For the length of one pull or push, under a lock: nobody else on this machine syncs the same two meanwhile."""

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
        self.seen: Seen = seen_of(space, store.url, self.replica)
        self._pause = pause
        self._manifest: tuple[Manifest, str] | None = None

    def save(self) -> None:
        keep(self.space, self.store.url, self.seen)

    def read_manifest(self, *, again: bool = False) -> Manifest | None:
        """What is there; None where all of it is taken in already."""
        unless = None if again or not self.seen.version else self.seen.version
        try:
            self._manifest = manifests.read(self.store, unless)
        except Unchanged:
            return None
        return self._manifest[0]

    @property
    def version(self) -> str:
        """Of the manifest that was read or written last."""
        return "" if self._manifest is None else self._manifest[1]

    def update_manifest(self, change: Change) -> Manifest:
        self._manifest = manifests.update(
            self.store, change, known=self._manifest, clock=self.clock, pause=self._pause
        )
        return self._manifest[0]


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
