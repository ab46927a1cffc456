"""What a tool is: what it says of itself, what it may do, and how it is carried out."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from memplane.doors.plugin.schema import Schema
from memplane.governance.fence import defang
from memplane.governance.neutral import visible
from memplane.identity.principal import Right
from memplane.space import Space

Arguments = Mapping[str, Any]


class Answer(msgspec.Struct, frozen=True):
    """The same twice: words for the model, and data that fit the tool's output schema."""

    text: str
    data: dict[str, Any]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool. The hints are what clients decide by whether to ask their user first."""

    name: str
    title: str
    description: str
    arguments: Schema
    answer: Schema
    run: Callable[[Space, Arguments], Answer]
    right: Right
    destructive: bool = False
    idempotent: bool = False


def record(properties: Mapping[str, Schema], *optional: str) -> dict[str, Any]:
    """The schema of an object; all of its properties are there but those named."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
    }


def listed(items: Schema) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}


def as_data(text: str) -> str:
    """Remembered text as it may stand in an answer: it cannot close a fence, and hides nothing."""
    return defang(visible(text))
