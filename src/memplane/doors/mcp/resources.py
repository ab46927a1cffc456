"""What can be read without calling a tool: the brief, the categories, the skill, and a memory with its evidence."""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from memplane.clock import iso
from memplane.doors.mcp.skill import SKILL
from memplane.doors.mcp.tool import as_data
from memplane.errors import NotFound
from memplane.space import Space
from memplane.types import Memory

JSON = "application/json"
MARKDOWN = "text/markdown"

MEMORY_TEMPLATE = "memplane://memory/{id}"
_MEMORY_PREFIX = "memplane://memory/"


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A text with an address. `read` is given the space, or None for what is the same for everybody."""

    uri: str
    name: str
    title: str
    description: str
    media: str
    read: Callable[[Space], str]


def _categories(space: Space) -> str:
    found = [
        {
            "name": as_data(category.name),
            "count": category.count,
            "recent_keys": [as_data(key) for key in category.recent_keys],
        }
        for category in space.categories()
    ]
    return msgspec.json.encode({"categories": found}).decode()


RESOURCES = (
    Resource(
        uri="memplane://brief",
        name="brief",
        title="Session brief",
        description="What to know at the start of a session.",
        media=MARKDOWN,
        read=lambda space: space.brief().markdown,
    ),
    Resource(
        uri="memplane://categories",
        name="categories",
        title="Categories of facts",
        description="Categories of keyed facts, how many each holds, and the keys written last.",
        media=JSON,
        read=_categories,
    ),
    Resource(
        uri="memplane://skill",
        name="skill",
        title="How to use memory",
        description="When to store, what to store, and how to treat what memory says.",
        media=MARKDOWN,
        read=lambda _space: SKILL,
    ),
)


def read_resource(space: Space, uri: str) -> tuple[str, str]:
    """(media type, text) of a resource; `NotFound` where there is none."""
    for resource in RESOURCES:
        if resource.uri == uri:
            return resource.media, resource.read(space)
    if uri.startswith(_MEMORY_PREFIX) and (memory_id := unquote(uri.removeprefix(_MEMORY_PREFIX))):
        return JSON, msgspec.json.encode(_memory(space, memory_id)).decode()
    raise NotFound("resource", uri)


def _memory(space: Space, memory_id: str) -> dict[str, Any]:
    places = space.evidence(memory_id)
    memory = places[0]
    return {
        "id": memory.id,
        "type": memory.kind.value,
        "content": as_data(memory.line),
        "behavioral": memory.behavioral,
        "state": memory.state.value,
        "tags": [as_data(tag) for tag in memory.tags],
        "created_at": iso(memory.created_at),
        "updated_at": iso(memory.updated_at),
        "expires_at": None if memory.expires_at is None else iso(memory.expires_at),
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "evidence": [_place(place) for place in places],
    }


def _place(place: Memory) -> dict[str, Any]:
    """A memory that was stored on purpose is its own evidence; one that was read out of a turn quotes it."""
    return {
        "entry_id": place.entry_id,
        "start": place.start,
        "end": place.end,
        "quote": as_data(place.text if place.quote is None else place.quote),
        "role": place.role,
        "extractor": place.extractor,
        "at": iso(place.created_at),
        "actor": as_data(place.caller.actor),
        "door": place.caller.door,
        "session_id": as_data(place.caller.session),
    }
