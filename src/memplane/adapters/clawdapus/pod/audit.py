"""`memplane audit` of a pod: merge the proxies' log events and the tool calls in session histories into one format."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from memplane.adapters.clawdapus.pod.directory import PodDirectory
from memplane.adapters.clawdapus.session_history import read_session
from memplane.clock import SECOND, Instant, zoned_instant
from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.ledger.history import HistoryLine

MEMORY_OP = "memory_op"
MEMORY_FIELDS = (
    "memory_service",
    "memory_op",
    "memory_status",
    "memory_blocks",
    "memory_bytes",
    "memory_removed",
)
_FIELDS = (
    "claw_id",
    "type",
    "model",
    "manifest_present",
    "tools_count",
    "latency_ms",
    "status_code",
    "tokens_in",
    "tokens_out",
    "cost_usd",
    "intervention_reason",
    "error",
    "feed_name",
    "feed_url",
    "source_service",
    "session_entry_id",
    "final_status",
    "final_status_code",
    "total_rounds",
    "tool_name",
    "tool_service",
    "tool_round",
    "tool_duplicate",
    "tool_duplicate_of_round",
    "tool_duplicate_count",
    "tool_duplicate_streak",
    "provider",
    "key_id",
    "action",
    "reason",
    "cooldown_until",
    *MEMORY_FIELDS,
)
_COUNTED = {
    "request": "requests",
    "response": "responses",
    "error": "errors",
    "intervention": "interventions",
}
_BAD_STATUSES = frozenset({"failed", "timed_out"})
_FAULT_STATUS = 400

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h|d)")
_UNITS = {"ms": SECOND // 1_000, "s": SECOND, "m": 60 * SECOND, "h": 3_600 * SECOND, "d": 86_400 * SECOND}

Event = dict[str, Any]


class AgentSummary(msgspec.Struct, kw_only=True):
    """The activity of one agent."""

    claw_id: str
    requests: int = 0
    responses: int = 0
    errors: int = 0
    interventions: int = 0
    tools: int = 0
    tool_errors: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    models: list[str] = []
    memory_ops: int = 0
    memory_errors: int = 0
    memory_skipped: int = 0
    memory_blocks: int = 0
    memory_bytes: int = 0
    memory_removed: int = 0


class AuditSummary(AgentSummary, kw_only=True):
    """Totals, and the figures of each agent."""

    claw_id: str = ""
    agents: list[AgentSummary] = []


class AuditReport(msgspec.Struct, kw_only=True):
    """The whole report."""

    pod: str
    skipped_lines: int
    summary: AuditSummary
    events: list[Event]


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The event filter."""

    since: Instant | None = None
    claw: str | None = None
    type: str | None = None

    def matches(self, event: Event) -> bool:
        if self.claw is not None and event.get("claw_id") != self.claw:
            return False
        if self.type is not None and event["type"] != self.type:
            return False
        return self.since is None or zoned_instant(event["timestamp"]) >= self.since


_OBJECT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def parse_since(text: str, now: Instant) -> Instant:
    """Parse a duration such as `90m`, `24h` or `1h30m` before now, or an RFC 3339 time."""
    spelled = text.strip()
    found = _DURATION.findall(spelled)
    if found and "".join(number + unit for number, unit in found) == spelled:
        return now - int(sum(float(number) * _UNITS[unit] for number, unit in found))
    try:
        return zoned_instant(spelled)
    except ValueError as exc:
        raise InvalidRequest(
            "--since must be a duration such as 24h or an RFC3339 time", field="since"
        ) from exc


def audit_of(
    pod: str, lines: Iterable[bytes], wanted: AuditQuery, *, directory: PodDirectory | None = None
) -> AuditReport:
    """Count and skip lines without a time or an event type."""
    events: list[Event] = []
    skipped = 0
    for raw in lines:
        if not raw.strip():
            continue
        event = parse_event(raw)
        if event is None:
            skipped += 1
        elif wanted.matches(event):
            events.append(event)
    if directory is not None:
        events += [event for event in tool_events(directory, wanted) if wanted.matches(event)]
    events.sort(key=lambda event: zoned_instant(event["timestamp"]))
    return AuditReport(pod=pod, skipped_lines=skipped, summary=summarise(events), events=events)


def parse_event(raw: bytes) -> Event | None:
    """Convert a line of a proxy's log to the common format; None if it is not an event."""
    try:
        line = gojson.decode(raw.strip(), _OBJECT)
    except (gojson.NotJson, msgspec.ValidationError):
        return None
    at = line.get("timestamp") or line.get("ts")
    if not isinstance(at, str) or not isinstance(line.get("type"), str) or not line["type"]:
        return None
    try:
        zoned_instant(at)
    except ValueError:
        return None
    line.setdefault("intervention_reason", line.get("intervention"))
    return {
        "timestamp": at,
        **{name: line[name] for name in _FIELDS if line.get(name) is not None},
    }


def tool_events(directory: PodDirectory, wanted: AuditQuery) -> Iterator[Event]:
    """Managed tool calls from the session histories of the pod's agents."""
    for agent, _ in directory.contexts():
        folder = directory.history(agent) if wanted.claw in {None, agent} else None
        if folder is None:
            continue
        with folder:
            reader = read_session(folder, after=None if wanted.since is None else wanted.since - 1)
            for item in reader:
                if isinstance(item, HistoryLine) and b'"tool_trace"' in item.line:
                    yield from _traced(agent, item)


def _traced(agent: str, item: HistoryLine) -> Iterator[Event]:
    try:
        entry = gojson.decode(item.line, _OBJECT)
    except (gojson.NotJson, msgspec.ValidationError):
        return
    usage = entry.get("usage") if isinstance(entry.get("usage"), dict) else {}
    for round_ in _objects(entry.get("tool_trace")):
        for call in _objects(round_.get("tool_calls")):
            event = {
                "timestamp": entry["ts"],
                "claw_id": agent,
                "type": "tool_call",
                "model": entry.get("requested_model"),
                "latency_ms": call.get("latency_ms"),
                "status_code": call.get("status_code"),
                "session_entry_id": item.id,
                "final_status": entry.get("status"),
                "final_status_code": entry.get("status_code"),
                "total_rounds": (usage or {}).get("total_rounds"),
                "tool_name": call.get("name"),
                "tool_service": call.get("service"),
                "tool_round": round_.get("round"),
                "tool_duplicate": call.get("duplicate"),
                "tool_duplicate_of_round": call.get("duplicate_of_round"),
                "tool_duplicate_count": call.get("duplicate_count"),
                "tool_duplicate_streak": call.get("duplicate_streak"),
                "error": call.get("status") if call.get("status") not in {None, "ok"} else None,
            }
            yield {name: value for name, value in event.items() if value is not None}


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    return (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))


def summarise(events: Iterable[Event]) -> AuditSummary:
    total = AuditSummary()
    agents: dict[str, AgentSummary] = {}
    for event in events:
        claw = str(event.get("claw_id") or "")
        agent = agents.setdefault(claw, AgentSummary(claw_id=claw))
        _count(agent, event)
        _count(total, event)
    total.agents = [agents[name] for name in sorted(agents)]
    return total


def _count(summary: AgentSummary, event: Event) -> None:
    kind = event["type"]
    if kind in _COUNTED:
        _add(summary, _COUNTED[kind], 1)
    elif kind == "tool_call":
        summary.tools += 1
        summary.tool_errors += bool(event.get("error")) or _number(event, "status_code") >= _FAULT_STATUS
    elif kind == MEMORY_OP:
        summary.memory_ops += 1
        summary.memory_errors += event.get("memory_status") in _BAD_STATUSES
        summary.memory_skipped += event.get("memory_status") == "skipped"
        for name in ("memory_blocks", "memory_bytes", "memory_removed"):
            _add(summary, name, int(_number(event, name)))
    if kind != MEMORY_OP:
        for name in ("tokens_in", "tokens_out"):
            _add(summary, name, int(_number(event, name)))
        summary.cost_usd += _number(event, "cost_usd")
    model = event.get("model")
    if isinstance(model, str) and model and model not in summary.models:
        summary.models = sorted([*summary.models, model])


def _add(summary: AgentSummary, name: str, more: int) -> None:
    setattr(summary, name, getattr(summary, name) + more)


def _number(event: Event, name: str) -> float:
    value = event.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
