"""The four memory tools carried out on a space, with the answers that Carapace's plugin gives."""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from memplane.clock import iso, to_instant
from memplane.doors.tools.catalog import check_arguments
from memplane.identity.principal import Right
from memplane.recall.search import LIMIT_DEFAULT, LIMIT_MAX
from memplane.space import Space
from memplane.types import STORABLE_KINDS, Memory

_CONTENT_CHARS_MAX = 2_000

RIGHTS: Final[Mapping[str, Right]] = MappingProxyType(
    {
        "memory_store": Right.WRITE,
        "memory_search": Right.READ,
        "memory_brief": Right.READ,
        "memory_delete": Right.WRITE,
    }
)
"""What a caller must be allowed for each tool."""


def call_tool(space: Space, name: str, arguments: object) -> dict[str, Any]:
    """Check the arguments and carry the tool out; raises `ArgumentsInvalid`, then whatever the space raises."""
    return _TOOLS[name](space, check_arguments(name, arguments))


def _store(space: Space, arguments: dict[str, Any]) -> dict[str, Any]:
    memory = space.store(
        arguments["type"],
        arguments["content"],
        tags=arguments.get("tags", ()),
        supersedes=arguments.get("supersedes"),
    )
    return {
        "id": memory.id,
        "type": memory.kind.value,
        "content": memory.text,
        "behavioral": memory.behavioral,
        "tags": list(memory.tags),
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "session_id": memory.caller.session,
        "group": space.owner,
        "created_at": _moment(memory.created_at),
    }


def _search(space: Space, arguments: dict[str, Any]) -> dict[str, Any]:
    limit = int(arguments.get("limit", LIMIT_DEFAULT))
    if limit == 0:
        return {"results": []}
    hits = space.search(
        arguments.get("query", ""),
        kinds=[arguments["type"]] if "type" in arguments else STORABLE_KINDS,
        tags=arguments.get("tags", ()),
        include_superseded=arguments.get("include_superseded", False),
        turns=False,
        limit=limit if limit > 0 else LIMIT_MAX,  # a negative limit is none, as in SQL
    )
    found = [(hit.memory, hit.score) for hit in hits if hit.memory is not None]
    return {
        "results": [
            {
                "id": memory.id,
                "type": memory.kind.value,
                "content": _content(memory),
                "behavioral": memory.behavioral,
                "tags": list(memory.tags),
                "created_at": _moment(memory.created_at),
                "relevance_score": score,
            }
            for memory, score in found
        ]
    }


def _brief(space: Space, arguments: dict[str, Any]) -> dict[str, Any]:
    brief = space.brief()
    entries: list[dict[str, Any]] = []
    for entry in brief.entries:
        told = {
            "id": entry.id,
            "type": entry.kind.value,
            "content": entry.content,
            "behavioral": entry.behavioral,
            "tags": list(entry.tags),
            "age_days": entry.age_days,
        }
        if arguments.get("include_provenance", False):
            told |= {"session_id": entry.caller.session, "group": space.owner}
        entries.append(told)
    return {
        "entries": entries,
        "generated_at": _moment(brief.generated_at),
        "entry_count": brief.entry_count,
        "brief_count": brief.brief_count,
    }


def _delete(space: Space, arguments: dict[str, Any]) -> dict[str, Any]:
    space.delete(arguments["id"])
    return {"deleted": True, "id": arguments["id"]}


_TOOLS: Mapping[str, Callable[[Space, dict[str, Any]], dict[str, Any]]] = {
    "memory_store": _store,
    "memory_search": _search,
    "memory_brief": _brief,
    "memory_delete": _delete,
}


def _content(memory: Memory) -> str:
    """A keyed fact of another door says its key, and is no longer than what can be stored here."""
    text = memory.line
    return text if len(text) <= _CONTENT_CHARS_MAX else text[: _CONTENT_CHARS_MAX - 1] + "…"


def _moment(moment: datetime) -> str:
    return iso(to_instant(moment))
