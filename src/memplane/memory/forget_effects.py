"""Decisions made by a forgotten statement stay in force.

Example: a user says Lisbon, later Rome, then Lisbon again, and forgets Rome. The user lives in Lisbon as of the last
statement. A replay no longer sees Rome; without a record, the last Lisbon would only repeat the first.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from memplane.clock import to_instant
from memplane.ledger.ids import derivation_id
from memplane.ledger.payloads import ForgetEffects, ForgetPayload, decode
from memplane.storage.claims import Evidence, RivalWindow, noted_window
from memplane.storage.store import Reader
from memplane.types import Entry, Memory

ADD, CONTEST, IGNORE, RETIRE, SUPERSEDE = "add", "contest", "ignore", "retire", "supersede"
"""Outcomes of applying a memory, as named in `extract.conflict`."""


def forget_effects(
    reader: Reader,
    gone: Mapping[str, Memory],
    heirs: Sequence[Evidence],
    odds: Iterable[tuple[str, str]],
) -> ForgetEffects:
    """Collect the effects; call before the entries are erased."""
    taken = {heir.memory: heir.own.id for heir in reversed(heirs)}
    decided = dict.fromkeys(taken.values(), ADD)
    ended: dict[str, list[tuple[str, str, int]]] = {}
    for pair in odds:
        for id_, other_id in (pair, pair[::-1]):
            other = reader.memories.get(other_id)
            if id_ in gone and other_id not in gone and other is not None and other.seq > gone[id_].seq:
                decided[other_id] = CONTEST
    for memory in gone.values():
        new = None if memory.superseded_by in gone else reader.memories.get(memory.superseded_by or "")
        if new is not None and new.seq >= memory.seq and _by_filing(memory, new):
            decided[new.id] = RETIRE if new.superseded_by == new.id else SUPERSEDE
    decided |= dict.fromkeys(reader.claims.overruled(list(gone)), IGNORE)
    _replaced_and_purged(reader, gone, decided, ended)
    for id_ in reader.claims.replaced_by(list(gone)):
        old = reader.memories.get(id_)
        if old is None or old.superseded_by is None or id_ in gone:
            continue
        by = gone[old.superseded_by]
        if not _by_filing(old, by):
            continue  # a person decided it, which is on record
        late = old.seq > by.seq
        if late:
            decided[id_] = ADD
        place = _place_of(reader, old if late else by)
        ended.setdefault(place, []).append((id_, by.id, to_instant(by.created_at)))
    return ForgetEffects(decided=decided, ended=ended, heirs=taken, windows=_windows(reader, decided))


def _windows(reader: Reader, decided: Iterable[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for id_ in decided:
        memory = reader.memories.get(id_)
        if memory is not None and (window := noted_window(memory)) is not None:
            found[id_] = window
    return found


def _replaced_and_purged(
    reader: Reader,
    gone: Mapping[str, Memory],
    decided: dict[str, str],
    ended: dict[str, list[tuple[str, str, int]]],
) -> None:
    """As for existing memories: a replay meets them again before the purge."""
    for lost in reader.claims.purged_by(list(gone)):
        by = gone[lost.by]
        if by.derived and lost.at == to_instant(by.created_at):
            late = lost.seq > by.seq
            if late:
                decided[lost.id] = ADD
            place = _recorded_at(reader, lost.entry_id if late else by.entry_id)
            ended.setdefault(place, []).append((lost.id, by.id, lost.at))


def _by_filing(replaced: Memory, by: Memory) -> bool:
    """Whether it was superseded by a statement at that time rather than by a later decision."""
    return by.derived and replaced.superseded_at == by.created_at


def _place_of(reader: Reader, memory: Memory) -> str:
    return _recorded_at(reader, memory.entry_id)


def _recorded_at(reader: Reader, entry_id: str) -> str:
    """The entry at which the worker applies the memories of this one."""
    recorded = derivation_id(entry_id)
    return recorded if recorded in reader.ledger.known([recorded]) else entry_id


class ForgottenDecisions:
    """The effects of all forgets of a ledger."""

    def __init__(self, forgets: Iterable[Entry] = ()) -> None:
        self._decided: dict[str, str] = {}
        self._ended: dict[str, list[tuple[str, str, int]]] = {}
        self._heirs: dict[str, str] = {}
        self._windows: dict[str, list[Any]] = {}
        for entry in forgets:
            payload = decode(entry)
            assert isinstance(payload, ForgetPayload)
            self._decided |= payload.aftermath.decided
            self._heirs |= payload.aftermath.heirs
            self._windows |= payload.aftermath.windows
            for place, ended in payload.aftermath.ended.items():
                self._ended.setdefault(place, []).extend(ended)

    def outcome(self, memory_id: str) -> str | None:
        """The recorded outcome of a memory, if it can no longer be computed."""
        return self._decided.get(memory_id)

    def window(self, memory_id: str) -> RivalWindow | None:
        """How far a memory was compared with others, if that can no longer be computed."""
        noted = self._windows.get(memory_id)
        return None if noted is None else msgspec.convert(noted, RivalWindow)

    def ended_at(self, entry_id: str) -> Sequence[tuple[str, str, int]]:
        return self._ended.get(entry_id, ())

    def heir_of(self, memory_id: str) -> str:
        """The memory's current successor; itself if there is none."""
        for _ in range(len(self._heirs)):  # two replicas may have made each other's memory the successor
            memory_id = self._heirs.get(memory_id, memory_id)
        return memory_id
