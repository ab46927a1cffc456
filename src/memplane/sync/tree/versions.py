"""Memories that were stored on purpose, as the ledger has them, and how they followed each other."""

from collections.abc import Iterator

import msgspec

from memplane.errors import NotFound
from memplane.ledger.payloads import FileFrame, StorePayload, decode
from memplane.space import Space
from memplane.types import Entry, Memory, Op, State

_PAGE = 5_000
_CHAIN_MAX = 10_000


class Version(msgspec.Struct, frozen=True):
    """A stored memory: what it says, and what it replaced."""

    entry: Entry
    stored: StorePayload

    @property
    def id(self) -> str:
        return self.entry.id


class LiveVersion(msgspec.Struct, frozen=True):
    """A memory that holds, as it was stored."""

    memory: Memory
    version: Version


class Versions:
    """Looks up each version once."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._known: dict[str, Version | None] = {}

    def get(self, id_: str) -> Version | None:
        """The stored memory with this id; None where there is none, or what it said is forgotten."""
        if id_ not in self._known:
            entry = self._space.ledger.entries_by_id((id_,)).get(id_)
            self._known[id_] = None if entry is None else _version(entry)
        return self._known[id_]

    def live(self) -> list[LiveVersion]:
        """Every memory that was stored on purpose and holds, in the order they came in."""
        found = list(self._live())
        return sorted(found, key=lambda live: (live.version.entry.recorded, live.version.id))

    def _live(self) -> Iterator[LiveVersion]:
        for state in (State.ACTIVE, State.CONTESTED):
            offset = 0
            while page := self._space.memories(state=state, episodes=False, limit=_PAGE, offset=offset):
                wanted = {memory.id: memory for memory in page if memory.key is None and not memory.derived}
                for id_, entry in self._space.ledger.entries_by_id(wanted).items():
                    version = self._known[id_] = _version(entry)
                    if version is not None:
                        yield LiveVersion(wanted[id_], version)
                offset += len(page)

    def chain(self, version: Version) -> Iterator[Version]:
        """This version and those it followed, newest first; what is forgotten of them is left out."""
        at: str | None = version.id
        for _ in range(_CHAIN_MAX):
            if at is None:
                return
            found = self.get(at)
            if found is not None:
                yield found
                at = found.entry.ref
            else:
                entry = self._space.ledger.entries_by_id((at,)).get(at)
                at = None if entry is None else entry.ref

    def root(self, version: Version) -> str:
        """The id of the first of its chain: that of the file, whatever is written into it."""
        last = version
        for earlier in self.chain(version):
            last = earlier
        return last.id

    def page(self, version: Version) -> FileFrame | None:
        """The file that it, or what it followed, was written in last."""
        return next((each.stored.page for each in self.chain(version) if each.stored.page is not None), None)

    def is_current(self, version: Version) -> bool:
        """Whether it was not replaced, nor settled against."""
        try:
            return self._space.memory(version.id).state in (State.ACTIVE, State.CONTESTED)
        except NotFound:
            return False

    def heads(self, version: Version) -> list[Version]:
        """What took its place and was not replaced in turn; itself, where nothing did."""
        found: list[Version] = []
        todo, seen = [version.id], {version.id}
        while todo:
            at = todo.pop()
            following = [id_ for id_ in self._space.ledger.replacements(at) if id_ not in seen]
            seen.update(following)
            todo += following
            here = self.get(at)
            if not following and here is not None:
                found.append(here)
        return found


def _version(entry: Entry) -> Version | None:
    if entry.op is not Op.STORE or not entry.body:
        return None
    stored = decode(entry)
    return Version(entry, stored) if isinstance(stored, StorePayload) else None
