"""The ledger as a person reads it: the newest first, what each entry brought, and in which words."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.errors import MemplaneError
from memplane.governance.redact import redact
from memplane.ledger.payloads import decode
from memplane.memory.shown import shown_turn
from memplane.storage.base import Reader
from memplane.storage.index import TURNS_PER_ENTRY_MAX, turn_number
from memplane.types import Caller, Entry, Op, Turn

_WINDOW = 500
"""Entries looked at for one page that a filter thins out, at a time."""
_WINDOWS_MAX = 40
_SAYING = (Op.TURN, Op.HISTORY)
_NOT_TOLD = frozenset(
    [
        "at",
        "claims",
        "data",
        "text",
        "aftermath",
        "victims",
        "superseded",
        "metadata",
        "sections",
        "judgements",
        "sources",
    ]
)
"""Members that are for machines, too long for a line, or told already: the ledger says when."""
_VALUE_CHARS_MAX = 300


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One entry, told."""

    seq: int
    id: str
    op: Op
    recorded: datetime
    caller: Caller
    erased: bool
    """Its payload was forgotten; that it was there is still on record."""
    turns: tuple[Turn, ...] = ()
    members: Mapping[str, str] = {}
    """What it says besides turns, by name."""


class Narrowed(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries to tell. Every condition narrows."""

    ops: frozenset[Op] = frozenset()
    conversation: str | None = None
    door: str | None = None
    role: str | None = None
    since: Instant | None = None
    until: Instant | None = None

    def takes(self, happening: Happening) -> bool:
        return (
            (not self.ops or happening.op in self.ops)
            and (self.door is None or happening.caller.door == self.door)
            and (self.role is None or any(turn.role == self.role for turn in happening.turns))
            and (self.conversation is None or _of_conversation(happening, self.conversation))
        )


def tell(reader: Reader, narrowed: Narrowed, *, before: int | None, limit: int) -> list[Happening]:
    """At most `limit` of those that came before that place, the newest first. A filter that takes almost nothing is
    given up after a while: what it found by then is told."""
    found: list[Happening] = []
    for entries in _backwards(reader, before):
        for entry in entries:
            if narrowed.until is not None and entry.recorded >= narrowed.until:
                continue
            if narrowed.since is not None and entry.recorded < narrowed.since:
                return found
            happening = told(reader, entry)
            if narrowed.takes(happening):
                found.append(happening)
                if len(found) == limit:
                    return found
    return found


def told(reader: Reader, entry: Entry) -> Happening:
    turns: tuple[Turn, ...] = ()
    if entry.op in _SAYING:
        first = turn_number(entry.seq, 0)
        between = reader.turns_between(first, first + TURNS_PER_ENTRY_MAX - 1)
        turns = tuple(shown_turn(turn) for turn in between)
    return Happening(
        seq=entry.seq,
        id=entry.id,
        op=entry.op,
        recorded=to_datetime(entry.recorded),
        caller=entry.caller,
        erased=entry.body is None,
        turns=turns,
        members=_members(entry),
    )


def _backwards(reader: Reader, before: int | None) -> Iterator[list[Entry]]:
    end = reader.head().seq + 1 if before is None else before
    for _ in range(_WINDOWS_MAX):
        if end <= 1:
            return
        start = max(0, end - 1 - _WINDOW)
        window = [entry for entry in reader.entries(after=start, limit=_WINDOW) if entry.seq < end]
        yield window[::-1]
        end = start + 1


def _members(entry: Entry) -> dict[str, str]:
    if entry.body is None or entry.op in _SAYING:
        return {}
    try:
        members: dict[str, Any] = msgspec.to_builtins(decode(entry))
    except (MemplaneError, msgspec.MsgspecError, ValueError):
        return {}
    return {
        name: redact(line_of(value)[:_VALUE_CHARS_MAX]).text
        for name, value in members.items()
        if name not in _NOT_TOLD and value not in (None, "", [], {}, 0)
    }


def line_of(value: Any) -> str:
    """As a person would write it: no brackets, and nothing about what there is none of."""
    match value:
        case dict():
            return ", ".join(f"{name} {line_of(given)}" for name, given in value.items() if given)
        case list() | tuple():
            return ", ".join(map(line_of, value))
    return str(value)


def _of_conversation(happening: Happening, conversation: str) -> bool:
    if happening.turns:
        return any(turn.conversation == conversation for turn in happening.turns)
    return happening.members.get("conversation") == conversation
