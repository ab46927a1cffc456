"""A space and a remote place brought to the same state: pull, push, status."""

import time
from pathlib import Path

import msgspec

from memplane.clock import Clock, system_clock
from memplane.space import Space
from memplane.sync import segments
from memplane.sync.backend import Pause
from memplane.sync.lines import forgotten_positions, lines_at
from memplane.sync.link import Progress, SyncLink, only_one, silent
from memplane.sync.pull import PullCounts, pull_segments
from memplane.sync.push import PushCounts, holds_forgotten, push_segments, unpushed
from memplane.sync.readable_files import FilePullCounts, FilePushCounts, pull_files, push_files
from memplane.sync.remote_state import note_synced
from memplane.sync.segments import Positions
from memplane.sync.store import ObjectStore


class PullReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a pull brought."""

    url: str
    taken: PullCounts
    files: FilePullCounts

    @property
    def idle(self) -> bool:
        """Whether there was nothing to do."""
        return not (self.taken.changed or self.files.taken)


class PushReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a push brought first, and then gave out."""

    url: str
    taken: PullCounts
    given: PushCounts
    files_taken: FilePullCounts
    files_given: FilePushCounts

    @property
    def idle(self) -> bool:
        return not (
            self.taken.changed
            or self.files_taken.taken
            or self.given.segments
            or self.given.deleted
            or self.files_given.written
            or self.files_given.removed
        )


class SyncStatus(msgspec.Struct, kw_only=True):
    """How far both sides are."""

    url: str
    replica: str
    unpushed: int
    """Entries that are here and not there."""
    unpulled: int
    """Remote segments that were not merged yet."""
    unpulled_bytes: int
    foul: int
    """Remote segments with content that was forgotten here; a push rewrites them."""
    segments: int
    bytes: int
    replicas: int
    files: int
    empty: bool
    """Nothing was ever pushed there."""

    @property
    def even(self) -> bool:
        """Whether both have the same."""
        return not (self.unpushed or self.unpulled or self.foul)


class Sync:
    """One space and one place. Cheap to make; a pull or push takes a lock for as long as it runs."""

    def __init__(
        self,
        space: Space,
        store: ObjectStore,
        data: Path,
        *,
        clock: Clock = system_clock,
        pause: Pause = time.sleep,
        progress: Progress = silent,
        files: bool = True,
    ) -> None:
        """`data` is the data directory that the space lives in. Without `files`, the ledger alone is synced: machines have
        all they need, and there is nothing for people and other programs to read."""
        self._files = files
        self._space = space
        self._store = store
        self._data = data
        self._clock = clock
        self._pause = pause
        self._progress = progress

    @property
    def url(self) -> str:
        """Where to, without anything secret."""
        return self._store.url

    def pull(self, *, look: bool = False) -> PullReport:
        """Pull what other replicas pushed. Costs one request if there is nothing new. Manual edits do not change
        the manifest; with `look`, files are listed even if the manifest is unchanged."""
        pulled = PullReport(url=self.url, taken=PullCounts(), files=FilePullCounts())
        with only_one(self._data, self._space, self.url):
            link = self._link()
            before = set(link.seen.files)
            self._pull(link, pulled.taken, pulled.files, look=look)
            self._wipe_names(link, before)
            note_synced(self._space, self.url, at=self._clock(), pushed=False)
        return pulled

    def push(self, *, look: bool = False) -> PushReport:
        """Pull, then push. Costs one request if nothing changed on either side."""
        pushed = PushReport(
            url=self.url,
            taken=PullCounts(),
            given=PushCounts(),
            files_taken=FilePullCounts(),
            files_given=FilePushCounts(),
        )
        with only_one(self._data, self._space, self.url):
            link = self._link()
            before = set(link.seen.files)
            self._pull(link, pushed.taken, pushed.files_taken, look=look)
            push_segments(link, pushed.given)
            if self._files:
                push_files(link, pushed.files_given, pushed.files_taken, pushed.taken)
                # What was imported on the way is pushed with the next push.
            self._wipe_names(link, before)
            note_synced(self._space, self.url, at=self._clock(), pushed=True)
        return pushed

    def _pull(self, link: SyncLink, taken: PullCounts, files: FilePullCounts, *, look: bool) -> None:
        unsettled = bool(link.seen.pending or link.seen.replacing)
        changed = pull_segments(link, taken, again=unsettled)
        if self._files and (changed or look):
            pull_files(link, files, taken)
        if changed:
            link.seen.version = link.version
            link.save()

    def _wipe_names(self, link: SyncLink, before: set[str]) -> None:
        """A file's name reveals its memory's text. After a file is removed, its name is erased from the disk too."""
        if not before <= link.seen.files.keys():
            self._space.ledger.wipe()

    def status(self) -> SyncStatus:
        """How far both sides are, by the manifest alone; changes nothing."""
        link = self._link()
        manifest = link.manifest
        named = {key: entry for key, entry in manifest.entries.items() if segments.is_segment(key)}
        new = [key for key in named if key not in link.seen.segments]
        link.seen.segments = {key: held for key, held in link.seen.segments.items() if key in named}
        buried = forgotten_positions(self._space)
        return SyncStatus(
            url=self._store.url,
            replica=link.replica,
            unpushed=len(unpushed(link)),
            unpulled=len(new),
            unpulled_bytes=sum(named[key].size for key in new),
            foul=sum(holds_forgotten(held, buried) for held in link.seen.segments.values()),
            segments=len(named),
            bytes=sum(entry.size for entry in named.values()),
            replicas=len({segments.replica_of(key) for key in named} - {None}),
            files=len(manifest.entries) - len(named),
            empty=not manifest.entries,
        )

    def unpushed_bytes(self) -> int:
        """About how much a push would send."""
        found: Positions = unpushed(self._link())
        return sum(len(line.raw) + 1 for placed in lines_at(self._space, found) for line in placed.lines)

    def _link(self) -> SyncLink:
        return SyncLink(
            self._space,
            self._store,
            self._data,
            clock=self._clock,
            pause=self._pause,
            progress=self._progress,
        )
