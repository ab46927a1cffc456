"""What a memory service is asked and told: the bodies of recall, retain and forget, byte for byte as Clawdapus has them."""

from typing import Any

import msgspec

from memplane.ledger import gojson
from memplane.ledger.gojson import Json
from memplane.services.manifest import AgentContext
from memplane.services.scrub import scrub_entry


class RecallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that is about to be made. `messages` is the whole inbound array, or None where there is none."""

    context: AgentContext
    path: str
    """`openai` or `anthropic`."""
    requested_model: str = ""
    messages: Any = None
    system: Any = None
    """Of an Anthropic request."""


class RetainRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that was made: its line in the session history, unscrubbed."""

    context: AgentContext
    line: bytes
    requested_model: str = ""


class ForgetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that the service must not remember any more."""

    context: AgentContext
    entry_ids: tuple[str, ...]
    reason: str = ""


def recall_body(request: RecallRequest) -> bytes:
    """The question; keys inside the messages are sorted, as they come out of a Go map."""
    metadata = _metadata(request.context, request.path, request.requested_model)
    members: dict[str, Json] = _who(request.context)
    for name, value in (("messages", request.messages), ("system", request.system)):
        if value is not None:
            members[name] = gojson.encode(value, sort_keys=True)
    return gojson.encode({**members, "metadata": metadata})


def retain_body(request: RetainRequest) -> tuple[bytes, int]:
    """The entry without secrets, and how many there were."""
    entry, removed = scrub_entry(request.line)
    metadata = _metadata(request.context, "retain", request.requested_model)
    if removed:
        metadata["policy_removed"] = removed
    members: dict[str, Json] = _who(request.context)
    members["metadata"] = dict(sorted(metadata.items()))
    members["entry"] = entry
    return gojson.encode(members), removed


def forget_body(request: ForgetRequest) -> bytes:
    members: dict[str, Json] = _who(request.context)
    members["metadata"] = _metadata(request.context, "forget", "")
    members["entry_ids"] = list(request.entry_ids)
    if request.reason:
        members["reason"] = request.reason
    return gojson.encode(members)


def _who(context: AgentContext) -> dict[str, Json]:
    pod: dict[str, Json] = {"pod": context.pod} if context.pod else {}
    return {"agent_id": context.agent_id, **pod}


def _metadata(context: AgentContext, path: str, model: str) -> dict[str, Json]:
    members: dict[str, Json] = {"path": path}
    if model:
        members["requested_model"] = model
    members["service"] = context.service
    if context.timezone:
        members["timezone"] = context.timezone
    members["type"] = context.type
    return members
