"""A tool: its description, its permissions, and its implementation."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from memplane.adapters.carapace.schema import ArgumentsInvalid, Schema, checked
from memplane.auth.principal import Right
from memplane.errors import InvalidRequest
from memplane.safety.fence import defang
from memplane.safety.sanitize import shortened, visible
from memplane.space import Space

Arguments = Mapping[str, Any]


class McpToolResult(msgspec.Struct, frozen=True):
    """A result in two forms: text for the model, and data that matches the tool's output schema."""

    text: str
    data: dict[str, Any]


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool. Clients use the hints to decide whether to ask their user first."""

    name: str
    title: str
    description: str
    arguments: Schema
    answer: Schema
    run: Callable[[Space, Arguments], McpToolResult]
    right: Right
    destructive: bool = False
    idempotent: bool = False


def record(properties: Mapping[str, Schema], *optional: str) -> dict[str, Any]:
    """The schema of an object; all properties are required except those named."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
    }


def listed(items: Schema) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}


def as_data(text: str) -> str:
    """Escape stored text for a result: it cannot close a fence or contain hidden characters."""
    return defang(visible(text))


# Error messages about invalid arguments for a model: they also say which argument is unknown, and why.


_PROVENANCE = frozenset({"id", "session_id", "group", "created_at", "provenance", "superseded_by"})
_NAME_CHARS_MAX = 60
_NAMES_MAX = 5


def checked_for(tool: McpTool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the schema's defaults. Raises `InvalidRequest` with all violations."""
    properties = tool.arguments["properties"]
    try:
        return checked(tool.arguments, given)
    except ArgumentsInvalid as exc:
        unknown = [name for name in given if name not in properties]
        hints = "".join(f"; {_hint(name)}" for name in unknown[:_NAMES_MAX])
        takes = f"; {tool.name} takes {', '.join(properties)}" if unknown else ""
        raise InvalidRequest(f"{exc}{hints}{takes}", field=exc.field) from exc


def _hint(name: str) -> str:
    if name in _PROVENANCE:
        return f'provenance field "{name}" must not appear in tool arguments: the server sets author and time'
    if name == "behavioral":
        return 'the "behavioral" field must not appear in tool arguments: it is derived from the type'
    return f"{shortened(name, _NAME_CHARS_MAX)!r} is not an argument of this tool"
