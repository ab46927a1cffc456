"""What a server does once a day for a space that is synced: what its day came to reaches the place, and what decayed here
leaves it."""

from collections.abc import Mapping

from memplane.engine import Daily
from memplane.errors import InvalidRequest, RemoteError, SettingsInvalid, StorageBusy
from memplane.objects.opening import check_local, open_store
from memplane.objects.seen import target_of
from memplane.objects.sync import Sync
from memplane.space import Space


def daily_push(environment: Mapping[str, str]) -> Daily:
    """Push to where the space was synced to last, if it ever was.

    A place that cannot be reached keeps nobody's memory from decaying here: that is noted, and whoever pushes next, or
    this one tomorrow, makes up for it.
    """

    def work(space: Space, _day: str) -> None:
        target = target_of(space)
        if target is None:
            return
        space.compact()  # first, so that one push says all of it
        try:
            store = open_store(target, environment)
            if space.settings.keep_memory_local:
                check_local(store)
            Sync(space, store, space.settings.folder, clock=space.now).push()
        except (RemoteError, StorageBusy, SettingsInvalid, InvalidRequest) as exc:
            space.note_audit("sync", target=target, outcome="failed", detail=exc.code)

    return work
