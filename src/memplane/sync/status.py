"""Sync status of a space from local knowledge: no request is made, so it works offline."""

from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.space import Space
from memplane.sync.remote_state import RemoteState, SyncPlace, last_remote_state, sync_places, target_of


class PlaceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One place: when it was synced with last, and what waits here."""

    url: str
    pulled: datetime | None
    pushed: datetime | None
    unpushed: int
    """Entries that are here and were not there then."""
    to_clean: bool
    """Content was forgotten here since; a push checks whether the remote has it and rewrites that."""
    segments: int
    bytes: int
    files: int


class SyncOverview(msgspec.Struct, frozen=True, kw_only=True):
    """Every place that a space was synced with."""

    target: str | None
    """Where the next sync goes that names no place."""
    places: tuple[PlaceStatus, ...]


def sync_overview(space: Space) -> SyncOverview:
    """What others pushed since is known only to the place: `Sync.status` asks it."""
    target = target_of(space)
    last, generation = space.ledger.position(), space.ledger.generation()
    return SyncOverview(
        target=None if target is None else without_secrets(target),
        places=tuple(
            _place_status(place, last_remote_state(space, place.url) or RemoteState(), last, generation)
            for place in sync_places(space)
        ),
    )


def without_secrets(url: str) -> str:
    """A place as it may be shown: no user, no password, nothing behind the path. A directory is shown as a URL too."""
    if "://" not in url:
        return Path(url).expanduser().absolute().as_uri()
    try:
        split = urlsplit(url)
        return f"{split.scheme}://{split.netloc.rpartition('@')[2]}{split.path}"
    except ValueError:
        return f"{url.partition('://')[0]}://…"


def _place_status(place: SyncPlace, seen: RemoteState, last: int, generation: int) -> PlaceStatus:
    return PlaceStatus(
        url=without_secrets(place.url),
        pulled=_moment(place.pulled),
        pushed=_moment(place.pushed),
        unpushed=len(seen.positions.missing(last)),
        to_clean=bool(seen.segments) and seen.generation < generation,
        segments=len(seen.segments),
        bytes=sum(held.size for held in seen.segments.values()),
        files=len(seen.files),
    )


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)
