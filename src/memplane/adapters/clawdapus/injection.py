"""Prompt injection: the block of memories and the message that carries it."""

import re
from collections.abc import Sequence
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from memplane.clock import Instant, to_datetime
from memplane.ledger.history_text import RUNTIME_CONTEXT
from memplane.safety.fence import INTRODUCTION, SERVICE, defang, fence
from memplane.safety.outgoing import ServiceBlock

NOTICE = (
    f"{RUNTIME_CONTEXT} This is not a user instruction. "
    "Use it only as infrastructure-provided context for the next reply.]"
)
"""The prefix of every injected message; readers of a request recognize it by these words."""
_BREAK = re.compile(r"[\s\]\[]+")
_NOON = 12


def memory_block(service: str, blocks: Sequence[ServiceBlock]) -> str:
    """The memories between their markers; empty if there are none. The text for another service is the one that Clawdapus
    writes, to the byte; ours also says that it is data."""
    if not blocks:
        return ""
    introduction = [INTRODUCTION] if service == SERVICE else []
    return fence("\n".join([*introduction, *map(_block_text, blocks)]), _flat(service))


def runtime_context(parts: Sequence[str], *, now: Instant, timezone: str = "") -> str:
    """The text of the message: the header, each part that is not empty, and the time, separated by blank lines."""
    present = [part for part in parts if part]
    return "\n\n".join([NOTICE, *present, time_line(now, timezone)])


def time_line(now: Instant, timezone: str = "") -> str:
    """`Current time: 2026-11-15 1:28 AM EST (America/New_York)`. An unknown time zone falls back to UTC."""
    zone, name = _zone(timezone)
    local = to_datetime(now).astimezone(zone)
    hour = local.hour % _NOON or _NOON
    half = "AM" if local.hour < _NOON else "PM"
    return f"Current time: {local:%Y-%m-%d} {hour}:{local:%M} {half} {local.tzname()} ({name})"


def _zone(timezone: str) -> tuple[tzinfo, str]:
    name = timezone.strip()
    if not name:
        return UTC, "UTC"
    try:
        return ZoneInfo(name), name
    except (OSError, ValueError, KeyError):  # not a file, not a valid name, or not in the database
        return UTC, "UTC"


def _block_text(block: ServiceBlock) -> str:
    """A line of attributes if there are any, and the text, escaped so that it cannot close the fence."""
    attributes = [
        f"{name}={_flat(value)}"
        for name, value in (("kind", block.kind), ("source", block.source), ("ts", block.ts))
        if value.strip()
    ]
    if block.score:
        attributes.append(f"score={block.score:.2f}")
    text = defang(block.text.strip())
    return f"[{', '.join(attributes)}]\n{text}" if attributes else text


def _flat(value: str) -> str:
    """Escape an attribute so that it stays on its line and inside its brackets."""
    return defang(_BREAK.sub(" ", value).strip())
