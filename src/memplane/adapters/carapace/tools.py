"""The four memory tools on a space, with the responses of Carapace's plugin.

Arguments are already validated against the manifest and include its defaults.
"""

from collections.abc import Callable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import msgspec

from memplane.adapters.carapace.schema import Schema
from memplane.auth.principal import Right
from memplane.clock import iso
from memplane.recall.brief import Brief, BriefEntry
from memplane.recall.search import LIMIT_MAX, SearchResults
from memplane.safety.injection import marked
from memplane.safety.sanitize import shortened
from memplane.space import Space
from memplane.types import STORABLE_KINDS, Memory

# The four memory tools as data: names, descriptions and arguments. The manifest in `plugin/` is the only
# definition; every adapter that offers these tools reads it here.


PLUGIN: Final = files("memplane.adapters.carapace").joinpath("plugin")
"""The plugin's directory in Carapace's layout: `manifest.json` and `skill/memory.md`."""
PLUGIN_FILES: Final = ("manifest.json", "skill/memory.md")


class PluginTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the manifest."""

    name: str
    description: str
    risk_level: str
    arguments_schema: Schema


class _Provided(msgspec.Struct, frozen=True):
    tools: list[PluginTool]


class _Manifest(msgspec.Struct, frozen=True):
    provides: _Provided


def _load() -> dict[str, PluginTool]:
    raw = PLUGIN.joinpath("manifest.json").read_bytes()
    return {tool.name: tool for tool in msgspec.json.decode(raw, type=_Manifest).provides.tools}


TOOLS: Final[Mapping[str, PluginTool]] = MappingProxyType(_load())


_CONTENT_CHARS_MAX = 2_000

RIGHTS: Final[Mapping[str, Right]] = MappingProxyType(
    {
        "memory_store": Right.WRITE,
        "memory_search": Right.READ,
        "memory_brief": Right.READ,
        "memory_delete": Right.WRITE,
    }
)
"""The permission that each tool requires."""


Arguments = Mapping[str, Any]
Result = dict[str, Any]


def call_tool(space: Space, name: str, arguments: Arguments) -> Result:
    """Run the tool; raises the errors of the space."""
    return _TOOLS[name](space, arguments)


def store(space: Space, arguments: Arguments) -> Result:
    memory = space.store(
        arguments["type"],
        arguments["content"],
        tags=arguments["tags"],
        supersedes=arguments.get("supersedes"),
    )
    return _entry(memory, memory.text) | {
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "session_id": memory.caller.session,
        "group": space.owner,
        "created_at": iso(memory.created_at),
    }


def search(space: Space, arguments: Arguments) -> Result:
    """By words: Carapace's plugin promises a full-text search."""
    return show_results(find(space, arguments, words_only=True))


def find(space: Space, arguments: Arguments, *, words_only: bool) -> SearchResults:
    limit = arguments["limit"]
    if limit == 0:
        return SearchResults()
    return space.search(
        arguments.get("query", ""),
        kinds=[arguments["type"]] if "type" in arguments else STORABLE_KINDS,
        tags=arguments.get("tags", ()),
        include_superseded=arguments["include_superseded"],
        turns=False,
        limit=limit if limit > 0 else LIMIT_MAX,  # a negative limit means no limit, as in SQL
        words_only=words_only,
    )


def show_results(hits: SearchResults, *, marks: bool = False) -> Result:
    """Carapace's contract is the content as it was stored; other adapters add marks to it."""
    found = [(hit, hit.memory) for hit in hits if hit.memory is not None]
    return {
        "results": [
            _entry(memory, f"{_content(memory)}{hit.mark if marks else ''}")
            | {"created_at": iso(memory.created_at), "relevance_score": hit.score}
            for hit, memory in found
        ]
    }


def show_brief(space: Space, brief: Brief, arguments: Arguments) -> Result:
    """A brief as data; an adapter may add its text."""
    entries: list[Result] = []
    for entry in brief.entries:
        fields = _entry(entry, entry.content) | {"age_days": entry.age_days}
        if arguments["include_provenance"]:
            fields |= {"session_id": entry.caller.session, "group": space.owner}
        entries.append(fields)
    return {
        "entries": entries,
        "generated_at": iso(brief.generated_at),
        "entry_count": brief.entry_count,
        "brief_count": brief.brief_count,
    }


def delete(space: Space, arguments: Arguments) -> Result:
    space.delete(arguments["id"])
    return {"deleted": True, "id": arguments["id"]}


_TOOLS: Mapping[str, Callable[[Space, Arguments], Result]] = {
    "memory_store": store,
    "memory_search": search,
    "memory_brief": lambda space, arguments: show_brief(space, space.brief(), arguments),
    "memory_delete": delete,
}


def _entry(memory: Memory | BriefEntry, content: str) -> Result:
    return {
        "id": memory.id,
        "type": memory.kind.value,
        "content": content,
        "behavioral": memory.behavioral,
        "tags": list(memory.tags),
    }


def _content(memory: Memory) -> str:
    """A keyed fact from another adapter includes its key, cut to the length that can be stored here."""
    line = f"{marked(memory.flags or ())} {memory.line}" if memory.quarantined else memory.line
    return shortened(line, _CONTENT_CHARS_MAX)
