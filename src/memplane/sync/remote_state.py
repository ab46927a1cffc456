"""What a space knows of one remote place, kept in the space itself: a crash between any two requests finds it as it was.

Everything in it may be lost and found again: a replica that knows nothing reads all segments once more and finds that it
has what they hold.
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
    """We wrote it; whoever else wrote it said so in the manifest, or did not."""
    apart: bool = False
    """It cannot be taken in, and must not be written over."""


class RemoteState(msgspec.Struct):
    """Changed in place by whoever holds the lock, and kept with `keep`."""

    replica: str = ""
    """Who knows this. A copy of a data directory is another one, and what the first was about to do is not its own."""
    version: str = ""
    """Of the manifest; everything it names is taken in. Empty: none yet."""
    segments: dict[str, SegmentEntries] = {}
    """Those that the manifest names and that are taken in."""
    pending: tuple[str, ...] = ()
    """Segments that we were about to write: unless the manifest names them, nobody knows them but us."""
    replacing: tuple[str, ...] = ()
    """Segments that were about to be replaced: once the manifest does not name them, they can go."""
    foul: tuple[str, ...] = ()
    """Those of them that hold something forgotten: they go at once."""
    doomed: dict[str, Instant] = {}
    """Segments that nobody names any more, and since when."""
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
