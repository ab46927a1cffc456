"""The ledger as a person reads it: the newest first, what each entry brought, and in which words."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from memplane.clock import to_datetime
from memplane.errors import MemplaneError
from memplane.ledger.payloads import decode
from memplane.safety.redact import redact
from memplane.safety.sanitize import sanitized_turn
from memplane.storage.filter import EntryFilter
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.store import Reader
from memplane.types import Caller, Entry, Op, Turn

_TEXT_OPS = (Op.TURN, Op.HISTORY)
_HIDDEN_FIELDS = frozenset(
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
"""Members for machines, too long for a line, or redundant with the ledger entry."""
_VALUE_CHARS_MAX = 300
_RECENT_NAMES = 1_000
_NAMES_MAX = 100
_AT_ONCE = timedelta(minutes=1)


class TimelineEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One entry as text."""

    seq: int
    id: str
    op: Op
    recorded: datetime
    said: datetime
    """When it came about; history that is brought in later was said long before it was recorded."""
    caller: Caller
    erased: bool
    """Its payload was forgotten; that it was there is still on record."""
    turns: tuple[Turn, ...] = ()
    members: Mapping[str, str] = {}
    """What it says besides turns, by name."""

    @property
    def late(self) -> bool:
        """Whether it was not recorded when it was said."""
        return abs(self.recorded - self.said) >= _AT_ONCE


def timeline_page(
    reader: Reader, narrowed: EntryFilter, *, before: int | None, limit: int
) -> list[TimelineEvent]:
    """At most `limit` of those that came before that place, the newest first. A filter that takes almost nothing is
    given up after a while: what it found by then is returned."""
    last = reader.ledger.head().seq + 1
    end = last if before is None else min(max(before, 0), last)
    return [timeline_event(reader, entry) for entry in reader.ledger.before(end, narrowed, limit=limit)]


def recent_names(reader: Reader) -> tuple[list[str], list[str]]:
    """The conversations and the adapters of the latest entries, by name."""
    newest = reader.ledger.newest_ops(limit=_RECENT_NAMES)
    conversations = reader.turns.conversations_of([entry.seq for entry in newest]) if newest else []
    return conversations[:_NAMES_MAX], sorted(
        {entry.caller.adapter for entry in newest if entry.caller.adapter}
    )


def timeline_event(reader: Reader, entry: Entry) -> TimelineEvent:
    turns: tuple[Turn, ...] = ()
    if entry.op in _TEXT_OPS:
        first = turn_number(entry.seq, 0)
        between = reader.turns.between(first, first + TURNS_PER_ENTRY_MAX - 1)
        turns = tuple(sanitized_turn(turn) for turn in between)
    recorded = to_datetime(entry.recorded)
    return TimelineEvent(
        seq=entry.seq,
        id=entry.id,
        op=entry.op,
        recorded=recorded,
        said=turns[0].at if turns else recorded,
        caller=entry.caller,
        erased=entry.body is None,
        turns=turns,
        members=_members(entry),
    )


def _members(entry: Entry) -> dict[str, str]:
    if entry.body is None or entry.op in _TEXT_OPS:
        return {}
    try:
        members: dict[str, Any] = msgspec.to_builtins(decode(entry))
    except (MemplaneError, msgspec.MsgspecError, ValueError):
        return {}
    return {
        name: redact(_field_text(name, value)[:_VALUE_CHARS_MAX]).text
        for name, value in members.items()
        if name not in _HIDDEN_FIELDS and value not in (None, "", [], {}, 0)
    }


def _field_text(name: str, value: Any) -> str:
    return f"{to_datetime(value):%Y-%m-%d %H:%M:%S}" if name == "expires" else line_of(value)


def line_of(value: Any) -> str:
    """As a person would write it: no brackets, and nothing about what there is none of."""
    match value:
        case dict():
            return ", ".join(f"{name} {line_of(given)}" for name, given in value.items() if given)
        case list() | tuple():
            return ", ".join(map(line_of, value))
    return str(value)
