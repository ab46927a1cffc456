"""A machine that syncs: a data directory with one space, and what it and a place are asked in tests."""

from memplane import Memplane
from memplane.sync.sync import Sync
from memplane.types import State


class Machine:
    """A data directory with one space, and its sync with the place."""

    def __init__(self, folder, store, clock, *, settings=None, **options):
        self.folder = folder
        self.plane = Memplane.open(folder, embedder=None, clock=clock, settings=settings)
        self.space = self.plane.space("alice")
        self.sync = Sync(self.space, store, folder, clock=clock, pause=lambda _: None, **options)

    def texts(self):
        held = {it.text for it in self.space.memories() if it.state is State.ACTIVE}
        return held | {turn.text for turn in self.space.turns()}


def keys(objects, prefix=""):
    return [listed.key for listed in objects.list(prefix)]


def content(objects):
    return b"".join(objects.get(key).data for key in keys(objects))
