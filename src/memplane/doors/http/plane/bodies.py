"""The bodies of the memory plane as its clients write them, for the description; `wire` reads them more leniently."""

from typing import Annotated, Any

import msgspec

AgentId = Annotated[str, msgspec.Meta(min_length=1, description="Names the space")]


class RecallBody(msgspec.Struct, kw_only=True):
    """A turn that is about to begin."""

    agent_id: AgentId
    messages: Any = None
    """The conversation, as it was sent to OpenAI or Anthropic."""
    system: Any = None
    pod: str = ""
    metadata: dict[str, Any] = {}


class ResponseBody(msgspec.Struct, kw_only=True):
    """What the model answered: a JSON body, or the text of an event stream."""

    format: str
    json: Any = None
    text: str = ""


class EntryBody(msgspec.Struct, kw_only=True):
    """An entry of the session history; members that are not listed are kept too."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    version: int = 1
    ts: str = ""
    status: str = ""
    request_original: Any = None
    response: ResponseBody | None = None


class RetainBody(msgspec.Struct, kw_only=True):
    """A turn that is over."""

    agent_id: AgentId
    entry: EntryBody
    pod: str = ""
    metadata: dict[str, Any] = {}


class ForgetBody(msgspec.Struct, kw_only=True):
    """What is to be forgotten for good."""

    agent_id: AgentId
    entry_ids: Annotated[list[str], msgspec.Meta(min_length=1)]
    reason: str = ""
    pod: str = ""
    metadata: dict[str, Any] = {}
