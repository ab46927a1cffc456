"""The four memory tools as data: what they are called, what they are for, which arguments they take.

The manifest in `plugins/memory` is the one place where that stands; every door that offers these tools reads it here.
"""

import itertools
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import msgspec

from memplane.doors.tools.schema import Schema, violations
from memplane.errors import InvalidRequest

PLUGIN: Final = files("memplane").joinpath("plugins", "memory")
"""The plugin's folder as Carapace lays it out: `manifest.json` and `skill/memory.md`."""
PLUGIN_FILES: Final = ("manifest.json", "skill/memory.md")

_VIOLATIONS_TOLD_MAX = 16
"""A thousand wrong tags need not be told one by one."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of the manifest."""

    name: str
    description: str
    risk_level: str
    arguments_schema: dict[str, Any]


class ArgumentsInvalid(InvalidRequest):
    """The arguments of a tool break its schema; the message lists how, in the words of ajv."""


class _Provided(msgspec.Struct, frozen=True):
    tools: list[Tool]


class _Manifest(msgspec.Struct, frozen=True):
    provides: _Provided


def _load() -> dict[str, Tool]:
    raw = PLUGIN.joinpath("manifest.json").read_bytes()
    return {tool.name: tool for tool in msgspec.json.decode(raw, type=_Manifest).provides.tools}


TOOLS: Final[Mapping[str, Tool]] = MappingProxyType(_load())


def skill_text() -> str:
    """What an agent is told about the tools, as Markdown."""
    return PLUGIN.joinpath("skill", "memory.md").read_text(encoding="utf-8")


def check_arguments(name: str, arguments: object) -> dict[str, Any]:
    """The arguments as they are, or `ArgumentsInvalid` with every reason and the first field that is off."""
    check_schema(TOOLS[name].arguments_schema, arguments)
    assert isinstance(arguments, dict)
    return arguments


def check_schema(schema: Schema, value: object) -> None:
    """As `check_arguments`, for a schema of one's own."""
    found = violations(schema, value)
    told = list(itertools.islice(found, _VIOLATIONS_TOLD_MAX))
    if not told:
        return
    words = [f"{violation.path or '/'}: {violation.message}" for violation in told]
    more = sum(1 for _ in found)
    if more:
        words.append(f"and {more} more")
    field = told[0].path.removeprefix("/") or None
    raise ArgumentsInvalid(f"Argument validation failed: {'; '.join(words)}", field=field)
