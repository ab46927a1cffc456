"""Arguments of a tool held against its schema, exactly: nothing is converted, nothing unknown is passed over, and every
problem is told at once in words a model can act on."""

from collections.abc import Mapping
from typing import Any

from memplane.errors import InvalidRequest

Schema = Mapping[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "array": (list,),
    "object": (dict,),
}
_NAMES = {"string": "text", "boolean": "true or false", "integer": "a whole number", "array": "a list"}
_PROVENANCE = frozenset({"id", "session_id", "group", "created_at", "provenance", "superseded_by"})
_SHOWN_CHARS_MAX = 60
_PROBLEMS_MAX = 10


def checked(tool: str, schema: Schema, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the schema's defaults, or `InvalidRequest` with all that is wrong."""
    properties: Mapping[str, Schema] = schema["properties"]
    problems = [f"{name} is missing" for name in schema.get("required", ()) if name not in given]
    problems += [_unknown(name, properties) for name in given if name not in properties]
    for name, rules in properties.items():
        if name in given:
            problems += _problems(name, rules, given[name])
    if problems:
        more = f"; and {len(problems) - _PROBLEMS_MAX} more" if len(problems) > _PROBLEMS_MAX else ""
        raise InvalidRequest(f"{tool}: {'; '.join(problems[:_PROBLEMS_MAX])}{more}")
    defaults = {name: rules["default"] for name, rules in properties.items() if "default" in rules}
    return defaults | {
        name: _plain(rules, given[name]) for name, rules in properties.items() if name in given
    }


def _unknown(name: str, properties: Mapping[str, Schema]) -> str:
    if name in _PROVENANCE:
        return f'provenance field "{name}" must not appear in tool arguments: who wrote what, and when, is filled in'
    if name == "behavioral":
        return 'the "behavioral" field must not appear in tool arguments: it follows from the type'
    shown = name if len(name) <= _SHOWN_CHARS_MAX else name[:_SHOWN_CHARS_MAX] + "…"
    return f"{shown!r} is no argument of this tool; it takes {', '.join(properties)}"


def _problems(name: str, rules: Schema, value: Any) -> list[str]:
    kind = rules["type"]
    if not _fits(kind, value):
        return [f"{name} must be {_NAMES[kind]}"]
    found: list[str] = []
    if "enum" in rules and value not in rules["enum"]:
        found.append(f"{name} must be one of {', '.join(rules['enum'])}")
    if kind == "string":
        found += _length(name, rules, len(value), "characters", ("minLength", "maxLength"))
    if kind == "integer":
        found += _bounds(name, rules, value)
    if kind == "array":
        found += _length(name, rules, len(value), "items", ("minItems", "maxItems"))
        if not found:
            for n, item in enumerate(value):
                found += _problems(f"{name}[{n}]", rules["items"], item)
    return found


def _length(name: str, rules: Schema, size: int, unit: str, bounds: tuple[str, str]) -> list[str]:
    least, most = bounds
    if size > rules.get(most, size):
        return [f"{name} has {size:,} {unit} and may have {rules[most]:,} at most"]
    if size < rules.get(least, 0):
        return [f"{name} must have {rules[least]:,} {unit} at least"]
    return []


def _bounds(name: str, rules: Schema, value: float) -> list[str]:
    if value > rules.get("maximum", value):
        return [f"{name} must be {rules['maximum']:,} at most"]
    if value < rules.get("minimum", value):
        return [f"{name} must be {rules['minimum']:,} at least"]
    return []


def _fits(kind: str, value: Any) -> bool:
    """As JSON Schema has it: 20.0 is a whole number, true is not."""
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _plain(rules: Schema, value: Any) -> Any:
    return int(value) if rules["type"] == "integer" else value
