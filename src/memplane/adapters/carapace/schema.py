"""The subset of JSON Schema that the tools' arguments need, with ajv's wording and order, which agents know from
Carapace. A general validator would word its errors differently, and is slow to import."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from memplane.errors import InvalidRequest

Schema = Mapping[str, Any]


class Violation(NamedTuple):
    """One violated rule."""

    path: str
    """The JSON pointer; empty for the value itself."""
    message: str


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value == value // 1,
    "number": _is_number,
}


def violations(schema: Schema, value: Any, path: str = "") -> Iterator[Violation]:
    """Every violated rule, in ajv's order: type, size, enum, then members."""
    expected = schema.get("type")
    if expected is not None and not _TYPES[expected](value):
        yield Violation(path, f"must be {expected}")
    if _is_number(value):
        yield from _number_violations(schema, value, path)
    if isinstance(value, str):
        yield from _size_violations(schema, len(value), path, unit="characters", keyword="Length")
    if "enum" in schema and value not in schema["enum"]:
        yield Violation(path, "must be equal to one of the allowed values")
    if isinstance(value, list):
        yield from _array_violations(schema, value, path)
    if isinstance(value, dict):
        yield from _object_violations(schema, value, path)


def _number_violations(schema: Schema, value: float, path: str) -> Iterator[Violation]:
    if value > schema.get("maximum", value):
        yield Violation(path, f"must be <= {schema['maximum']}")
    if value < schema.get("minimum", value):
        yield Violation(path, f"must be >= {schema['minimum']}")


def _size_violations(schema: Schema, size: int, path: str, *, unit: str, keyword: str) -> Iterator[Violation]:
    most, least = schema.get(f"max{keyword}", size), schema.get(f"min{keyword}", size)
    if size > most:
        yield Violation(path, f"must NOT have more than {most} {unit}")
    if size < least:
        yield Violation(path, f"must NOT have fewer than {least} {unit}")


def _array_violations(schema: Schema, value: list[Any], path: str) -> Iterator[Violation]:
    yield from _size_violations(schema, len(value), path, unit="items", keyword="Items")
    items = schema.get("items", {})
    for index, item in enumerate(value):
        yield from violations(items, item, f"{path}/{index}")


def _object_violations(schema: Schema, value: dict[str, Any], path: str) -> Iterator[Violation]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Violation(path, f"must have required property '{name}'")
    if schema.get("additionalProperties") is False:
        for name in value:
            if name not in properties:
                yield Violation(path, "must NOT have additional properties")
    for name, inner in properties.items():
        if name in value:
            yield from violations(inner, value[name], f"{path}/{_pointer(name)}")


def _pointer(name: str) -> str:
    return re.sub("[~/]", lambda found: "~0" if found.group() == "~" else "~1", name)


# Validate a tool's arguments strictly: no conversions, and no unknown fields.


_VIOLATIONS_LISTED_MAX = 16
"""Limits the list: a thousand invalid tags need not be listed one by one."""


class ArgumentsInvalid(InvalidRequest):
    """The arguments of a tool violate its schema; the message lists all violations in ajv's wording."""


def checked(schema: Schema, given: object) -> dict[str, Any]:
    """The arguments with the schema's defaults. Raises `ArgumentsInvalid` with every violation and the first invalid
    field."""
    found = violations(schema, given)
    listed = list(itertools.islice(found, _VIOLATIONS_LISTED_MAX))
    if listed:
        words = [f"{violation.path or '/'}: {violation.message}" for violation in listed]
        more = sum(1 for _ in found)
        if more:
            words.append(f"and {more} more")
        field = listed[0].path.removeprefix("/") or None
        raise ArgumentsInvalid(f"Argument validation failed: {'; '.join(words)}", field=field)
    assert isinstance(given, dict)
    properties: dict[str, Schema] = schema["properties"]
    defaults = {name: rules["default"] for name, rules in properties.items() if "default" in rules}
    return defaults | {name: _plain(properties[name], value) for name, value in given.items()}


def _plain(rules: Schema, value: Any) -> Any:
    """JSON Schema accepts 20.0 as an integer; convert it to one."""
    return int(value) if rules["type"] == "integer" else value
