"""The file in which Clawdapus notes what a memory service was told to forget: one JSON object a line."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from memplane.clock import Instant
from memplane.ledger import gojson
from memplane.ledger.gojson import Json
from memplane.ledger.history import VERSION, BadLine, instant_of
from memplane.ledger.history_entry import spell_ts


class Tombstone(msgspec.Struct, frozen=True):
    """An entry that one memory service must not remember again; other services are not meant."""

    at: Instant
    agent_id: str
    memory_service: str
    entry_id: str
    reason: str = ""


class _TombstoneLine(msgspec.Struct):
    version: Literal[1]
    ts: Annotated[datetime, msgspec.Meta(tz=True)]
    agent_id: str
    memory_service: str
    entry_id: Annotated[str, msgspec.Meta(pattern=r"\S")]
    reason: str = ""


_TOMBSTONE = msgspec.json.Decoder(_TombstoneLine)


def parse_tombstone(raw: bytes) -> Tombstone:
    """Raise `BadLine` on anything else; passing one over would bring back what was forgotten."""
    try:
        line = gojson.decode(raw.strip(), _TOMBSTONE)
        at = instant_of(line.ts)
    except (gojson.NotJson, msgspec.ValidationError, BadLine) as exc:
        malformed = isinstance(exc, gojson.NotJson)
        raise BadLine(f"parse tombstone entry: {exc}", malformed=malformed) from exc
    return Tombstone(at, line.agent_id, line.memory_service, line.entry_id, line.reason)


def compose_tombstone(tombstone: Tombstone) -> bytes:
    """The line without its newline; the time in whole seconds."""
    members: dict[str, Json] = {
        "version": VERSION,
        "ts": spell_ts(tombstone.at),
        "agent_id": tombstone.agent_id,
        "memory_service": tombstone.memory_service,
        "entry_id": tombstone.entry_id,
    }
    if tombstone.reason:
        members["reason"] = tombstone.reason
    return gojson.encode(members)
