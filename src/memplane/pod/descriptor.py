"""What a service says of itself: its `claw.describe` document, as far as memory is concerned."""

from typing import Any

import msgspec

from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.services.manifest import OPERATIONS

_AUTH_TYPES = ("bearer", "header", "none")
_VERSIONS = (1, 2)


class DescriptorInvalid(InvalidRequest):
    """A descriptor breaks a rule of the format; the message is the original's."""


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """Where the operations of a memory service are, and which variable holds the token for it."""

    memory: dict[str, str]
    """Operation → path; empty where the service is no memory."""
    auth_type: str = ""
    auth_env: str = ""


_DOCUMENT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def parse_descriptor(raw: bytes) -> Described:
    """Raise `DescriptorInvalid` on what the original refuses; keys it does not know are passed over."""
    try:
        document = gojson.decode(raw, _DOCUMENT)
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise DescriptorInvalid(f"parse descriptor: {exc}") from exc
    version = document.get("version", 0)
    if isinstance(version, bool) or version not in _VERSIONS:
        raise DescriptorInvalid(f"descriptor version must be 1 or 2, got {_shown(version)}")
    memory = document.get("memory")
    if memory is not None and version == 1:
        raise DescriptorInvalid("descriptor version 1 does not support memory")
    auth_type, auth_env = _auth(document.get("auth"))
    return Described(memory=_memory(memory), auth_type=auth_type, auth_env=auth_env)


def _memory(memory: Any) -> dict[str, str]:
    if memory is None:
        return {}
    if not isinstance(memory, dict):
        raise DescriptorInvalid("memory must be an object")
    paths: dict[str, str] = {}
    for name in OPERATIONS:
        operation = memory.get(name)
        if operation is None:
            continue
        path = operation.get("path") if isinstance(operation, dict) else None
        if not isinstance(path, str) or not path.strip():
            raise DescriptorInvalid(f"memory.{name}.path is required")
        if not path.startswith("/"):
            raise DescriptorInvalid(f"memory.{name}.path \"{path}\" must start with '/'")
        paths[name] = path
    if not {"recall", "retain"} & paths.keys():
        raise DescriptorInvalid("memory: at least one of recall or retain must be declared")
    return paths


def _auth(auth: Any) -> tuple[str, str]:
    if auth is None:
        return "", ""
    if not isinstance(auth, dict):
        raise DescriptorInvalid("auth must be an object")
    given, env = auth.get("type"), auth.get("env")
    type_ = given.strip().lower() if isinstance(given, str) else ""
    if type_ not in _AUTH_TYPES:
        raise DescriptorInvalid(f"auth.type must be bearer, header or none, got {_shown(given)}")
    return type_, env.strip() if isinstance(env, str) else ""


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else type(value).__name__
