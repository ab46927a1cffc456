"""Quarantine: flagged entries that wait for review, each with its turns and derived memories."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.safety.injection import FLAGS
from memplane.safety.sanitize import has_expired, sanitized_memory, sanitized_turn
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.store import Reader
from memplane.types import Caller, Memory, State, Turn


class QuarantinedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is flagged, or has a flagged memory, and was not released. One decision applies to all of it."""

    id: str
    """The id of the entry, to be released or forgotten."""
    flags: tuple[str, ...]
    recorded: datetime
    caller: Caller
    turns: tuple[Turn, ...] = ()
    """Its flagged turns."""
    memories: tuple[Memory, ...] = ()
    """Its flagged memories that are active."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The text to review: the turns, or the stored memory."""
        return tuple(turn.text for turn in self.turns) or tuple(memory.line for memory in self.memories)


def suspects(reader: Reader, *, now: Instant, limit: int, offset: int) -> list[QuarantinedEntry]:
    """The newest first."""
    seqs = reader.review.quarantined(now=now, limit=limit, offset=offset)
    remembered: dict[int, list[Memory]] = {}
    for memory in reader.memories.of_entries(seqs):
        if memory.quarantined and memory.state is not State.SUPERSEDED and not has_expired(memory, now):
            remembered.setdefault(memory.seq, []).append(sanitized_memory(memory, now))
    found = []
    for entry in reversed(reader.ledger.at(seqs)):
        turns = tuple(sanitized_turn(turn) for turn in turns_of(reader, entry.seq) if turn.quarantined)
        memories = tuple(remembered.get(entry.seq, ()))
        found.append(
            QuarantinedEntry(
                id=entry.id,
                flags=_flags([*(turn.flags for turn in turns), *(memory.flags for memory in memories)]),
                recorded=to_datetime(entry.recorded),
                caller=entry.caller,
                turns=turns,
                memories=memories,
            )
        )
    return found


def turns_of(reader: Reader, seq: int) -> list[Turn]:
    return reader.turns.between(turn_number(seq, 0), turn_number(seq, TURNS_PER_ENTRY_MAX - 1))


def _flags(each: Iterable[tuple[str, ...] | None]) -> tuple[str, ...]:
    found = {flag for flags in each for flag in flags or ()}
    return tuple(sorted(found, key=lambda flag: FLAGS.index(flag) if flag in FLAGS else len(FLAGS)))
