"""The four memory tools as data: what they are called, what they are for, which arguments they take.

The manifest in `plugins/memory` is the one place where that stands; every door that offers these tools reads it here.
"""

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

import msgspec

from memplane.doors.plugin.schema import Schema

PLUGIN: Final = files("memplane").joinpath("plugins", "memory")
"""The plugin's folder as Carapace lays it out: `manifest.json` and `skill/memory.md`."""
PLUGIN_FILES: Final = ("manifest.json", "skill/memory.md")


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool of the manifest."""

    name: str
    description: str
    risk_level: str
    arguments_schema: Schema


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
