"""Message frames: requests from a DEALER socket, and the response envelope."""

import json
import re
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from memplane.adapters.carapace.failure import Code, IpcError, Stage
from memplane.clock import Instant, iso
from memplane.safety.redact import CARAPACE, redact
from memplane.safety.redact.rule import PLACEHOLDER
from memplane.safety.sanitize import shortened

VERSION = 1
MESSAGE_BYTES_MAX = 1_048_576
FIELD_BYTES_MAX = 102_400
DEPTH_MAX = 64

_CORRELATION_CHARS_MAX = 1_024
_TOPIC_CHARS_MAX = 256


class IpcMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The three fields of a request. Other fields are ignored."""

    topic: Any
    correlation: str
    arguments: Any
    size: int

    @property
    def topic_text(self) -> str:
        """The topic for the response: text, shortened."""
        return shortened(self.topic, _TOPIC_CHARS_MAX) if isinstance(self.topic, str) else ""


def split(frames: Sequence[bytes]) -> tuple[bytes, bytes] | None:
    """Identity and payload, with or without the empty delimiter frame; None for other messages."""
    match frames:
        case [identity, payload] | [identity, b"", payload]:
            return identity, payload
    return None


def parse(payload: bytes) -> IpcMessage | None:
    """None if this is not a request, or if its response could not be correlated, so that no client could use it."""
    try:
        value = json.loads(payload.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    correlation = value.get("correlation")
    if not isinstance(correlation, str) or not 0 < len(correlation) <= _CORRELATION_CHARS_MAX:
        return None
    return IpcMessage(
        topic=value.get("topic"),
        correlation=correlation,
        arguments=value.get("arguments"),
        size=len(payload),
    )


def check_limits(message: IpcMessage) -> None:
    """Raise `IpcError` for a message that is too large or too deeply nested to parse."""
    if message.size > MESSAGE_BYTES_MAX:
        raise _too_large(
            f"Message exceeds raw byte size limit: {message.size} bytes > {MESSAGE_BYTES_MAX} byte limit"
        )
    depth = 1 + _depth(message.arguments)
    if depth > DEPTH_MAX:
        raise _too_large(
            f"Message exceeds JSON nesting depth limit: {depth} levels > {DEPTH_MAX} level limit"
        )
    if not isinstance(message.arguments, dict) or message.size <= FIELD_BYTES_MAX:
        return
    for name, value in message.arguments.items():
        size = len(encode(value))
        if size > FIELD_BYTES_MAX:
            shown = name[:_TOPIC_CHARS_MAX]
            raise _too_large(
                f'Argument field "{shown}" exceeds field size limit: {size} bytes > {FIELD_BYTES_MAX} byte limit',
                field=shown,
            )


def envelope(message: IpcMessage, *, source: str, group: str, payload: dict[str, Any], now: Instant) -> bytes:
    """An encoded response."""
    return encode(
        {
            "id": str(uuid.uuid4()),
            "version": VERSION,
            "type": "response",
            "topic": message.topic_text,
            "source": source,
            "correlation": message.correlation,
            "timestamp": iso(now),
            "group": group,
            "payload": payload,
        }
    )


def encode(value: Any) -> bytes:
    """JSON in UTF-8; a lone surrogate is returned as the escape that it arrived as."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _too_large(text: str, *, field: str | None = None) -> IpcError:
    return IpcError(Stage.CONSTRUCT, Code.VALIDATION_FAILED, text, field=field)


def _depth(value: Any) -> int:
    depth = 0
    level = [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Final check of a response: secrets are redacted, however they were stored, in Carapace's format.


PLACEHOLDER_TEXT = CARAPACE.placeholder

_ADDRESS = re.compile(
    r"\b(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqp)://\S{0,512}?\[REDACTED\]\S*", re.IGNORECASE
)
"""Memory stores such a URL without its password; Carapace redacts the whole URL."""


def sanitize(value: Any, path: str = "$") -> tuple[Any, list[str]]:
    """A deep copy without secrets, and the paths of redacted texts. Member names are not changed."""
    match value:
        case str():
            clean = sanitize_text(value)
            return clean, [path] if clean != value else []
        case dict():
            parts = {name: sanitize(inner, f"{path}.{name}") for name, inner in value.items()}
            return {name: part for name, (part, _) in parts.items()}, _paths(parts.values())
        case list() | tuple():
            items = [sanitize(inner, f"{path}[{index}]") for index, inner in enumerate(value)]
            return [item for item, _ in items], _paths(items)
    return value, []


def sanitize_text(text: str) -> str:
    clean = redact(text, CARAPACE).text
    if "[REDACTED" in clean or "[redacted" in clean:
        clean = _ADDRESS.sub(PLACEHOLDER_TEXT, PLACEHOLDER.sub(PLACEHOLDER_TEXT, clean))
    return clean


def _paths(parts: Any) -> list[str]:
    return [path for _, paths in parts for path in paths]
