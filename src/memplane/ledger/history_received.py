"""An entry as a memory service is sent it: scrubbed or spelled anew on its way, and sometimes with little in it."""

import msgspec

from memplane.clock import Instant
from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.ledger.history import BadLine, HistoryLine, parse_line
from memplane.ledger.history_entry import spell_ts

_MEMBERS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_ABSENT = (b"", b"null", b'""', b"0")


def received_line(entry: bytes, *, now: Instant, line_bytes_max: int) -> HistoryLine:
    """The entry as one line of a ledger, under the id it came with. Raises `BadLine`.

    Only the id must be there: senders simpler than Clawdapus leave out the version and the time, which are then ours.
    """
    try:
        line = gojson.compact(b"{}" if entry.strip() == b"null" else entry)
        members = gojson.decode(line, _MEMBERS)
    except gojson.NotJson as exc:
        raise BadLine(f"entry: {exc}", malformed=True) from exc
    except msgspec.ValidationError as exc:
        raise BadLine("entry is not a JSON object") from exc
    id_ = _id_of(members)
    added = {"version": b"1", "ts": gojson.encode(spell_ts(now)), "id": gojson.encode(id_)}
    if bytes(members.get("id", b"")) == added["id"]:
        del added["id"]
    for name in ("version", "ts"):
        if bytes(members.get(name, b"")) not in _ABSENT:
            del added[name]
    if added:
        line = _rewritten(members, added)
    return parse_line(line, trust_ids=True, line_bytes_max=line_bytes_max)


def _id_of(members: dict[str, msgspec.Raw]) -> str:
    try:
        raw = bytes(members.get("id", b""))
        id_ = "" if raw in _ABSENT else gojson.decode(raw, _TEXT).strip()
    except (msgspec.ValidationError, InvalidRequest) as exc:
        raise BadLine("entry.id is not a text") from exc
    if not id_:
        raise BadLine("entry.id is required")
    return id_


def _rewritten(members: dict[str, msgspec.Raw], added: dict[str, bytes]) -> bytes:
    """With the members that a line begins with in their usual place."""
    raw = {name: bytes(value) for name, value in members.items()} | added
    first: dict[str, gojson.Json] = {name: raw.pop(name) for name in ("version", "id") if name in raw}
    return gojson.encode(first | raw)
