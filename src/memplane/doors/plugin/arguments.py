"""Arguments of a tool held against its schema, exactly: nothing is converted and nothing unknown is passed over."""

import itertools
from typing import Any

from memplane.doors.plugin.schema import Schema, violations
from memplane.errors import InvalidRequest

_VIOLATIONS_TOLD_MAX = 16
"""A thousand wrong tags need not be told one by one."""


class ArgumentsInvalid(InvalidRequest):
    """The arguments of a tool break its schema; the message lists how, in the words of ajv."""


def checked(schema: Schema, given: object) -> dict[str, Any]:
    """The arguments with the schema's defaults; or `ArgumentsInvalid` with every reason and the first field that is off."""
    found = violations(schema, given)
    told = list(itertools.islice(found, _VIOLATIONS_TOLD_MAX))
    if told:
        words = [f"{violation.path or '/'}: {violation.message}" for violation in told]
        more = sum(1 for _ in found)
        if more:
            words.append(f"and {more} more")
        field = told[0].path.removeprefix("/") or None
        raise ArgumentsInvalid(f"Argument validation failed: {'; '.join(words)}", field=field)
    assert isinstance(given, dict)
    properties: dict[str, Schema] = schema["properties"]
    defaults = {name: rules["default"] for name, rules in properties.items() if "default" in rules}
    return defaults | {name: _plain(properties[name], value) for name, value in given.items()}


def _plain(rules: Schema, value: Any) -> Any:
    """JSON Schema takes 20.0 for a whole number; from here on it is one."""
    return int(value) if rules["type"] == "integer" else value
