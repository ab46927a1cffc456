"""What a model is told of arguments that are refused, beyond the words of the schema: which name is one too many, and why."""

from collections.abc import Mapping
from typing import Any

from memplane.doors.mcp.tool import Tool
from memplane.doors.plugin.arguments import ArgumentsInvalid, checked
from memplane.errors import InvalidRequest
from memplane.governance.neutral import shortened

_PROVENANCE = frozenset({"id", "session_id", "group", "created_at", "provenance", "superseded_by"})
_NAME_CHARS_MAX = 60
_NAMES_MAX = 5


def checked_for(tool: Tool, given: Mapping[str, Any]) -> dict[str, Any]:
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
