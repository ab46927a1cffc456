"""Tools for facts under a key."""

from typing import Any

from memplane.adapters.mcp.tool import (
    MAYBE_TEXT,
    TEXT,
    Arguments,
    McpTool,
    McpToolResult,
    as_data,
    listed,
    record,
)
from memplane.auth.principal import Right
from memplane.clock import iso
from memplane.memory.facts import KEY_CHARS_MAX, TTL_MAX, TTL_MIN
from memplane.safety.fence import fence
from memplane.safety.sanitize import one_line
from memplane.space import Space
from memplane.types import Memory

_LIMIT_MAX = 1_000
_VALUE_CHARS_MAX = 65_536

_KEY = {
    "type": "string",
    "minLength": 1,
    "maxLength": KEY_CHARS_MAX,
    "description": "Such as preferences/theme.",
}
_CATEGORY = {"type": "string", "maxLength": KEY_CHARS_MAX, "description": "Such as project_conventions."}

PUT_ARGUMENTS = {
    "type": "object",
    "required": ["key", "value"],
    "additionalProperties": False,
    "properties": {
        "key": _KEY,
        "value": {"type": "string", "minLength": 1, "maxLength": _VALUE_CHARS_MAX},
        "category": _CATEGORY,
        "tags": {
            "type": "array",
            "items": {"type": "string", "maxLength": 50},
            "maxItems": 10,
            "default": [],
        },
        "ttl_seconds": {
            "type": "integer",
            "minimum": int(TTL_MIN.total_seconds()),
            "maximum": int(TTL_MAX.total_seconds()),
            "description": "Time to live; 90 days if omitted.",
        },
    },
}

GET_ARGUMENTS = {
    "type": "object",
    "required": ["key"],
    "additionalProperties": False,
    "properties": {
        "key": _KEY,
        "include_history": {
            "type": "boolean",
            "default": False,
            "description": "Also return past values, oldest first.",
        },
    },
}

LIST_ARGUMENTS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "prefix": {
            "type": "string",
            "maxLength": KEY_CHARS_MAX,
            "default": "",
            "description": "Only keys with this prefix, such as preferences/.",
        },
        "category": _CATEGORY,
        "limit": {"type": "integer", "default": 100, "minimum": 1, "maximum": _LIMIT_MAX},
    },
}

_FACT = {
    "id": TEXT,
    "key": TEXT,
    "value": TEXT,
    "category": TEXT,
    "tags": listed(TEXT),
    "created_at": TEXT,
    "updated_at": TEXT,
    "expires_at": MAYBE_TEXT,
}
_VERSION = record({"value": TEXT, "state": TEXT, "updated_at": TEXT})


def _put(space: Space, given: Arguments) -> McpToolResult:
    fact = space.put(
        given["key"],
        given["value"],
        category=given.get("category"),
        tags=given["tags"],
        ttl=given.get("ttl_seconds"),
    )
    return McpToolResult(f"{one_line(fact.key or '')} expires at {_expiry(fact)}.", _fact(fact))


def _get(space: Space, given: Arguments) -> McpToolResult:
    fact = space.get(given["key"])
    data = _fact(fact)
    if given["include_history"]:
        data["history"] = [
            {
                "value": as_data(version.text),
                "state": version.state.value,
                "updated_at": iso(version.updated_at),
            }
            for version in space.history(given["key"])
        ]
    return McpToolResult(fence(as_data(fact.text)), data)


def _list(space: Space, given: Arguments) -> McpToolResult:
    facts = space.facts.list(given["prefix"], category=given.get("category"), limit=given["limit"])
    lines = [f"- {one_line(as_data(fact.line))}" for fact in facts]
    text = fence("\n".join(lines)) if lines else "No matching facts."
    return McpToolResult(text, {"facts": [_fact(fact) for fact in facts]})


def _fact(fact: Memory) -> dict[str, Any]:
    return {
        "id": fact.id,
        "key": as_data(fact.key or ""),
        "value": as_data(fact.text),
        "category": as_data(fact.category or ""),
        "tags": [as_data(tag) for tag in fact.tags],
        "created_at": iso(fact.created_at),
        "updated_at": iso(fact.updated_at),
        "expires_at": None if fact.expires_at is None else iso(fact.expires_at),
    }


def _expiry(fact: Memory) -> str:
    return "it is forgotten" if fact.expires_at is None else iso(fact.expires_at)


TOOLS = (
    McpTool(
        name="fact_put",
        title="Put a fact under a key",
        description=(
            "Store a value under a key, such as preferences/theme = dark. A second put replaces the value and keeps the "
            "history. For settings and small state; for insights use memory_store."
        ),
        arguments=PUT_ARGUMENTS,
        answer=record(_FACT),
        run=_put,
        right=Right.WRITE,
        idempotent=True,
    ),
    McpTool(
        name="fact_get",
        title="Get a fact by its key",
        description="The current value of a key and, on request, its past values.",
        arguments=GET_ARGUMENTS,
        answer=record(_FACT | {"history": listed(_VERSION)}, "history"),
        run=_get,
        right=Right.READ,
        idempotent=True,
    ),
    McpTool(
        name="fact_list",
        title="List facts",
        description="Facts by prefix or category, newest first.",
        arguments=LIST_ARGUMENTS,
        answer=record({"facts": listed(record(_FACT))}),
        run=_list,
        right=Right.READ,
        idempotent=True,
    ),
)
