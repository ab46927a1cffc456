"""A space's knowledge of one remote, stored in the space itself, so that it is consistent after a crash between any
two requests.

All of it may be lost: a replica without it reads all segments again and finds that it has their entries.
"""

from hashlib import sha256

import msgspec

from memplane.clock import Instant
from memplane.space import Space
from memplane.sync.segments import Positions, Run, union

_NAME = "sync:"
_TARGET = "sync-target"
_PLACES_BOOKMARK = "sync-places"


class SegmentEntries(msgspec.Struct, frozen=True, array_like=True):
    """Which of our entries a segment holds."""

    entries: tuple[Run, ...] = ()
    """Those of which it says anything."""
    payloads: tuple[Run, ...] = ()
    """Those whose payload it has."""
    size: int = 0
    foul: bool = False
    """It holds the payload of something that was forgotten before it came here."""


class RemoteFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of the tree as it was when we read or wrote it."""

    version: str
    digest: str
    size: int = 0
    written: bool = False
    """Written by this replica. Other writers are listed in the manifest, or not at all."""
    apart: bool = False
    """It cannot be imported and must not be overwritten."""


class RemoteState(msgspec.Struct):
    """Modified in place under the lock, and saved with `keep`."""

    replica: str = ""
    """Who knows this. A copy of a data directory is another one, and what the first was about to do is not its own."""
    version: str = ""
    """Version of the last manifest that was merged completely. Empty: none yet."""
    segments: dict[str, SegmentEntries] = {}
    """Segments that the manifest lists and that were merged."""
    pending: tuple[str, ...] = ()
    """Segments that were about to be written; unless the manifest lists them, no other replica knows them."""
    replacing: tuple[str, ...] = ()
    """Segments that were about to be replaced: once the manifest does not name them, they can go."""
    foul: tuple[str, ...] = ()
    """Those of them that hold something forgotten: they go at once."""
    doomed: dict[str, Instant] = {}
    """Segments that are no longer listed, and since when."""
    generation: int = -1
    """Up to which forget all segments were looked through."""
    files: dict[str, RemoteFile] = {}
    rendered: str = ""
    """What the space was like when its files were written last."""

    @property
    def positions(self) -> Positions:
        """Our entries that the remote place has."""
        return union(Positions(held.entries) for held in self.segments.values())


def load_remote_state(space: Space, url: str, replica: str) -> RemoteState:
    kept = space.ledger.bookmark(_name(url))
    seen = RemoteState(replica=replica) if kept is None else msgspec.json.decode(kept, type=RemoteState)
    if seen.replica != replica:
        seen.replica, seen.pending, seen.replacing, seen.foul, seen.doomed = replica, (), (), (), {}
    return seen


def save_remote_state(space: Space, url: str, seen: RemoteState) -> None:
    space.ledger.set_bookmark(_name(url), msgspec.json.encode(seen).decode())


def last_remote_state(space: Space, url: str) -> RemoteState | None:
    """What is known of a place, for who only looks; None where that is nothing."""
    kept = space.ledger.bookmark(_name(url))
    return None if kept is None else msgspec.json.decode(kept, type=RemoteState)


class SyncPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Somewhere the space was synced with, and when that last went well."""

    url: str
    """Without anything secret."""
    pulled: Instant | None = None
    pushed: Instant | None = None


def sync_places(space: Space) -> list[SyncPlace]:
    """By URL."""
    kept = space.ledger.bookmark(_PLACES_BOOKMARK)
    return [] if kept is None else msgspec.json.decode(kept, type=list[SyncPlace])


def note_synced(space: Space, url: str, *, at: Instant, pushed: bool) -> None:
    """A push has pulled before."""
    places = {place.url: place for place in sync_places(space)}
    before = places.get(url) or SyncPlace(url=url)
    places[url] = SyncPlace(url=url, pulled=at, pushed=at if pushed else before.pushed)
    space.ledger.set_bookmark(
        _PLACES_BOOKMARK, msgspec.json.encode([places[name] for name in sorted(places)]).decode()
    )


def target_of(space: Space) -> str | None:
    """Where the space was synced to last."""
    return space.ledger.bookmark(_TARGET)


def save_target(space: Space, url: str) -> None:
    space.ledger.set_bookmark(_TARGET, url)


def _name(url: str) -> str:
    return f"{_NAME}{sha256(url.encode()).hexdigest()[:32]}"
