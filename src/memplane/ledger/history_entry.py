"""Writing an entry of the session history as Clawdapus itself would write it."""

from collections.abc import Sequence

import msgspec

from memplane.clock import SECOND, Instant, to_datetime
from memplane.ledger import gojson
from memplane.ledger.gojson import Json
from memplane.ledger.history import VERSION, HistoryLine, hash_line

# Go omits what is empty, except in these: a zero is written there, and only what is absent is omitted.
_KEPT_IF_ZERO = frozenset({"name", "round", "arguments", "result", "reported_cost_usd"})


class Payload(msgspec.Struct, frozen=True):
    """What the model answered: a JSON body, or else the text of an event stream."""

    json: Json = None
    text: str = ""


class Usage(msgspec.Struct, frozen=True):
    """Token counts; zero means unknown and is not written. A cost of zero is."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reported_cost_usd: float | None = None
    total_rounds: int = 0


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a managed tool."""

    name: str
    arguments: Json = None
    result: Json = None
    latency_ms: int = 0
    service: str = ""
    status: str = ""
    status_code: int = 0
    duplicate: bool = False
    duplicate_of_round: int = 0
    duplicate_count: int = 0
    duplicate_streak: int = 0
    policy: str = ""


class ToolRound(msgspec.Struct, frozen=True):
    """One exchange with the model within a managed turn, and the tools it called."""

    round: int
    wall_time_ms: int = 0
    prompt_tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    round_usage: Usage = Usage()


def compose_line(
    *,
    at: Instant,
    claw_id: str,
    path: str,
    requested_model: str,
    effective_provider: str,
    effective_model: str,
    response: Payload,
    status_code: int = 200,
    stream: bool = False,
    request_original: Json = None,
    request_effective: Json = None,
    usage: Usage = Usage(),  # noqa: B008  a frozen value
    tool_trace: Sequence[ToolRound] = (),
    status: str = "",
) -> HistoryLine:
    """A new entry with its id. Bytes are taken as JSON text and keep their spelling; `at` loses its fraction."""
    at -= at % SECOND
    if request_effective is not None and not isinstance(request_effective, bytes):
        request_effective = gojson.encode(request_effective, sort_keys=True)
    members: dict[str, Json] = {
        "status": status or None,
        "ts": spell_ts(at),
        "claw_id": claw_id,
        "path": path,
        "requested_model": requested_model,
        "effective_provider": effective_provider,
        "effective_model": effective_model,
        "status_code": status_code,
        "stream": stream,
        "request_original": request_original,
        "request_effective": request_effective,
        "response": _payload_members(response),
        "usage": _members(usage),
        "tool_trace": [_round_members(tool_round) for tool_round in tool_trace] or None,
    }
    head = b'{"version":%d,' % VERSION
    tail = gojson.encode({key: value for key, value in members.items() if value not in (None, b"")})[1:]
    id = hash_line(head + tail)
    return HistoryLine(id, head + b'"id":"' + id.encode() + b'",' + tail, at, legacy=False)


def spell_ts(at: Instant) -> str:
    """RFC 3339 in whole seconds, the only spelling Clawdapus writes."""
    return to_datetime(at - at % SECOND).isoformat().replace("+00:00", "Z")


def _payload_members(payload: Payload) -> dict[str, Json]:
    if payload.json is not None:
        return {"format": "json", "json": payload.json}
    return {"format": "sse", "text": payload.text} if payload.text else {"format": "sse"}


def _round_members(tool_round: ToolRound) -> dict[str, Json]:
    members = _members(tool_round)
    if tool_round.tool_calls:
        members["tool_calls"] = [_members(call) for call in tool_round.tool_calls]
    return members | {"round_usage": _members(tool_round.round_usage)}


def _members(part: Usage | ToolCall | ToolRound) -> dict[str, Json]:
    return {
        key: value
        for key, value in msgspec.structs.asdict(part).items()
        if (value not in (None, b"") if key in _KEPT_IF_ZERO else value)
    }
