"""The two packs. REST and MCP calls get the same checks and the same envelope."""

import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from memplane.adapters.helmdeck.caller import CallerFacts
from memplane.adapters.helmdeck.wire import (
    ForgetArguments,
    HelmdeckForgotten,
    PackForgotten,
    PackStored,
    StoreArguments,
    StoreResponse,
    read_object,
)
from memplane.errors import InvalidRequest

VERSION = "v1"

STORE = "helmdeck.memory_store"
FORGET = "helmdeck.memory_forget"

_KINDS: Mapping[str, tuple[type, ...]] = {"string": (str,), "number": (int, Decimal), "array": (list,)}


class Pack(msgspec.Struct, frozen=True, kw_only=True):
    """A named action with an input schema."""

    name: str
    description: str
    required: tuple[str, ...]
    properties: dict[str, dict[str, Any]]
    run: Callable[[CallerFacts, Any], StoreResponse | HelmdeckForgotten]
    takes: type[StoreArguments | ForgetArguments]

    @property
    def input_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        return schema | ({"required": list(self.required)} if self.required else {})


_STORE = Pack(
    name=STORE,
    description=(
        "Persist a durable fact the user told you: a preference, convention, decision or constraint. "
        "The same key again replaces the value. Not for secrets and not for the conversation at hand."
    ),
    required=("key", "value"),
    properties={
        "key": {"type": "string", "description": 'A stable name, such as "preferences/frontend-framework".'},
        "value": {"type": "string", "description": "The fact, as text."},
        "category": {"type": "string", "description": 'The category; "user_facts" if omitted.'},
        "tags": {"type": "array", "items": {"type": "string"}},
        "ttl_seconds": {
            "type": "number",
            "description": "Time to live: 3600 to 31536000; 0 or omitted means 90 days.",
        },
    },
    run=CallerFacts.store,
    takes=StoreArguments,
)
_FORGET = Pack(
    name=FORGET,
    description=(
        "Forget stored rows of this caller. Scopes: all (audit rows and facts), packs, pipelines, "
        "pack:<id>, pipeline:<id>, key:<exact-key>."
    ),
    required=(),
    properties={"scope": {"type": "string", "description": 'What to forget; "all" if omitted.'}},
    run=CallerFacts.forget,
    takes=ForgetArguments,
)
PACKS: Mapping[str, Pack] = {pack.name: pack for pack in (_STORE, _FORGET)}

_SHORT = {name.removeprefix("helmdeck."): name for name in PACKS}


def pack_named(name: str) -> Pack | None:
    """Find a pack by its wire name, or by a variant that clients and documents use."""
    short = name
    for prefix in ("mcp__", "helmdeck__", "helmdeck.", "helmdeck_"):
        short = short.removeprefix(prefix)
    return PACKS.get(name) or PACKS.get(_SHORT.get(short, ""))


def run_pack(pack: Pack, caller: CallerFacts, given: Any) -> PackStored | PackForgotten:
    """Validate and run. Raises `InvalidRequest` for invalid input."""
    began = time.perf_counter_ns()
    _check(pack, given)
    output = pack.run(caller, read_object(given, pack.takes))
    took = time.perf_counter_ns() - began
    if isinstance(output, StoreResponse):
        return PackStored(pack=pack.name, version=VERSION, output=output, duration_ms=took)
    return PackForgotten(pack=pack.name, version=VERSION, output=output, duration_ms=took)


def _check(pack: Pack, given: Any) -> None:
    """Validate against the schema, with its messages. A `null` is a separate type here, unlike in the body of a
    store."""
    if not isinstance(given, dict):
        raise InvalidRequest(f"input must be an object, got {kind_of(given)}")
    for name in pack.required:
        if name not in given:
            raise InvalidRequest(f'missing required field "{name}"', field=name)
    for name, schema in pack.properties.items():
        kind = schema["type"]
        if name in given and (isinstance(given[name], bool) or not isinstance(given[name], _KINDS[kind])):
            raise InvalidRequest(f'field "{name}": expected {kind}, got {kind_of(given[name])}', field=name)


def kind_of(value: Any) -> str:
    """The JSON type name."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | float() | Decimal():
            return "number"
        case list():
            return "array"
        case _:
            return "object"
