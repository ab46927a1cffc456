"""Clawdapus' tombstone file: the entries that a memory service has forgotten, one JSON object per line."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from memplane.adapters.clawdapus.pod.directory import PodDirectory
from memplane.clock import Instant
from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.ledger.gojson import Json
from memplane.ledger.history import VERSION, BadLine, format_timestamp, instant_of


class ServiceTombstone(msgspec.Struct, frozen=True):
    """An entry that one memory service must not store again. It does not apply to other services."""

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


def parse_tombstone(raw: bytes) -> ServiceTombstone:
    """Raise `BadLine` on invalid input. Skipping a tombstone would bring back a forgotten entry."""
    try:
        line = gojson.decode(raw.strip(), _TOMBSTONE)
        at = instant_of(line.ts)
    except (gojson.NotJson, msgspec.ValidationError, BadLine) as exc:
        malformed = isinstance(exc, gojson.NotJson)
        raise BadLine(f"parse tombstone entry: {exc}", malformed=malformed) from exc
    return ServiceTombstone(at, line.agent_id, line.memory_service, line.entry_id, line.reason)


def compose_tombstone(tombstone: ServiceTombstone) -> bytes:
    """The line without its newline; the time in whole seconds."""
    members: dict[str, Json] = {
        "version": VERSION,
        "ts": format_timestamp(tombstone.at),
        "agent_id": tombstone.agent_id,
        "memory_service": tombstone.memory_service,
        "entry_id": tombstone.entry_id,
    }
    if tombstone.reason:
        members["reason"] = tombstone.reason
    return gojson.encode(members)


# The operator keeps the tombstones of a pod, so that no replay restores forgotten entries.


TOMBSTONES_NAME = "tombstones.jsonl"
_FILE_BYTES_MAX = 1024 * 1024 * 1024


def tombstoned_ids(directory: PodDirectory, agent: str, service: str) -> set[str]:
    """Ids that must not be sent to this service again. An unreadable line is an error, because it may contain one of
    them."""
    folder = directory.tombstones(agent)
    if folder is None:
        return set()
    with folder:
        raw = folder.read(TOMBSTONES_NAME, bytes_max=_FILE_BYTES_MAX) or b""
    return {it.entry_id for it in _parsed(raw) if it.memory_service == service}


def append_tombstones(directory: PodDirectory, agent: str, tombstones: Sequence[ServiceTombstone]) -> None:
    """Append tombstones; they are on disk when this returns."""
    folder = directory.tombstones(agent, create=True)
    assert folder is not None
    with folder, folder.locked():
        raw = folder.read(TOMBSTONES_NAME, bytes_max=_FILE_BYTES_MAX) or b""
        known = {(it.memory_service, it.entry_id) for it in _parsed(raw)}
        lines = [
            compose_tombstone(it) + b"\n"
            for it in tombstones
            if (it.memory_service, it.entry_id) not in known
        ]
        if lines:
            glue = b"" if not raw or raw.endswith(b"\n") else b"\n"
            folder.append(TOMBSTONES_NAME, glue + b"".join(lines), durable=True)


def _parsed(raw: bytes) -> list[ServiceTombstone]:
    try:
        return [parse_tombstone(line) for line in raw.splitlines() if line.strip()]
    except BadLine as exc:
        raise InvalidRequest(exc.reason) from exc
