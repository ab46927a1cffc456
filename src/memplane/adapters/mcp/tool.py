"""What a tool is: what it says of itself, what it may do, and how it is carried out."""

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
    """The same twice: words for the model, and data that fit the tool's output schema."""

    text: str
    data: dict[str, Any]


class McpTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool. The hints are what clients decide by whether to ask their user first."""

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
    """The schema of an object; all of its properties are there but those named."""
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
    """Remembered text as it may stand in an answer: it cannot close a fence, and hides nothing."""
    return defang(visible(text))


# What a model is told of arguments that are refused, beyond the words of the schema: which name is one too many, and why.


_PROVENANCE = frozenset({"id", "session_id", "group", "created_at", "provenance", "superseded_by"})
_NAME_CHARS_MAX = 60
_NAMES_MAX = 5


def checked_for(tool: McpTool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the schema's defaults, or `InvalidRequest` with all that is wrong."""
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
        return f'provenance field "{name}" must not appear in tool arguments: who wrote what, and when, is filled in'
    if name == "behavioral":
        return 'the "behavioral" field must not appear in tool arguments: it follows from the type'
    return f"{shortened(name, _NAME_CHARS_MAX)!r} is no argument of this tool"
