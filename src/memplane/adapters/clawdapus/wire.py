"""Request bodies of the memory plane, parsed as leniently as the reference service does."""

from typing import Annotated, Any, TypeVar

import msgspec

from memplane.auth.principal import Forbidden, LockedOut, Unauthenticated
from memplane.ledger import gojson
from memplane.server.endpoint import HttpCall
from memplane.server.errors import HttpError
from memplane.server.guard import MissingCredential

# The memory plane's request bodies for the OpenAPI description. The parser below is more lenient.


AgentId = Annotated[str, msgspec.Meta(min_length=1, description="Names the space")]


class PlaneRecallBody(msgspec.Struct, kw_only=True):
    """An upcoming turn."""

    agent_id: AgentId
    messages: Any = None
    """The conversation as sent to OpenAI or Anthropic."""
    system: Any = None
    pod: str = ""
    metadata: dict[str, Any] = {}


class ResponseBody(msgspec.Struct, kw_only=True):
    """The model's response: a JSON body, or the text of an event stream."""

    format: str
    json: Any = None
    text: str = ""


class EntryBody(msgspec.Struct, kw_only=True):
    """An entry of the session history; unlisted fields are stored too."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    version: int = 1
    ts: str = ""
    status: str = ""
    request_original: Any = None
    response: ResponseBody | None = None


class PlaneRetainBody(msgspec.Struct, kw_only=True):
    """A completed turn."""

    agent_id: AgentId
    entry: EntryBody
    pod: str = ""
    metadata: dict[str, Any] = {}


class PlaneForgetBody(msgspec.Struct, kw_only=True):
    """Entries to forget permanently."""

    agent_id: AgentId
    entry_ids: Annotated[list[str], msgspec.Meta(min_length=1)]
    reason: str = ""
    pod: str = ""
    metadata: dict[str, Any] = {}


T = TypeVar("T", bound="PlaneRequest")


class PlaneRequest(msgspec.Struct, kw_only=True):
    """Fields of every request. `pod` and `metadata` are accepted and ignored."""

    agent_id: str | None = None

    @property
    def agent(self) -> str:
        agent = (self.agent_id or "").strip()
        if not agent:
            raise bad_request("agent_id is required")
        return agent


class PlaneRecallRequest(PlaneRequest, kw_only=True):
    """The conversation as the agent sent it; `system` if the API has a separate field for it."""

    messages: Any = None
    system: Any = None


class PlaneRetainRequest(PlaneRequest, kw_only=True):
    """One entry of the session history."""

    entry: msgspec.Raw = msgspec.Raw(b"{}")


class PlaneForgetRequest(PlaneRequest, kw_only=True):
    """Entries to forget permanently."""

    entry_ids: list[str] | None = None
    reason: str | None = None


class PlaneBlock(msgspec.Struct, kw_only=True):
    """One recalled memory."""

    text: str
    score: float
    kind: str
    source: str
    ts: str


class PlaneRecallResponse(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A recall response. `degraded` lists what was unavailable; clients that do not know the field ignore it."""

    memories: list[PlaneBlock]
    degraded: list[str] = []


_DECODERS: dict[type[PlaneRequest], msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in (PlaneRecallRequest, PlaneRetainRequest, PlaneForgetRequest)
}


def read(call: HttpCall, kind: type[T], name: str) -> T:
    """Parse the body as this type; `name` is the reference service's name for it in error messages."""
    try:
        asked: T = gojson.decode(call.raw, _DECODERS[kind])
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise bad_request(f"decode {name} request: {exc}") from exc
    return asked


def bad_request(message: str) -> HttpError:
    return HttpError(400, "invalid_request", message)


def refuse(error: Exception) -> HttpError | None:
    """The error text that the contract fixes for an invalid credential."""
    if isinstance(error, LockedOut):
        return None
    if isinstance(error, MissingCredential):
        return HttpError(401, error.code, "missing bearer token")
    if isinstance(error, Unauthenticated):
        return HttpError(401, error.code, "invalid bearer token")
    if isinstance(error, Forbidden):
        return HttpError(403, error.code, "forbidden")
    return None


def own_history_error(error: Exception) -> HttpError | None:
    """`GET /history` requires the agent's own `<agent>:<secret>`."""
    if isinstance(error, MissingCredential):
        return HttpError(401, error.code, "invalid bearer token")
    if isinstance(error, Unauthenticated) and not isinstance(error, LockedOut):
        return HttpError(403, error.code, "invalid agent secret")
    return refuse(error)


def refuse_foreign(error: Exception) -> HttpError | None:
    """`GET /history/{agent}`: an invalid credential is forbidden, as is one for another agent."""
    if isinstance(error, Unauthenticated) and not isinstance(error, MissingCredential | LockedOut):
        return HttpError(403, error.code, "forbidden")
    return refuse(error)


EXAMPLES: dict[str, Any] = {
    "recall": {"agent_id": "alice", "messages": [{"role": "user", "content": "Where do I live?"}]},
    "retain": {
        "agent_id": "alice",
        "entry": {
            "id": "turn-1",
            "ts": "2026-11-15T08:30:00Z",
            "request_original": {"messages": [{"role": "user", "content": "I moved to Lisbon last week"}]},
            "response": {
                "format": "json",
                "json": {"choices": [{"message": {"role": "assistant", "content": "Noted."}}]},
            },
        },
    },
    "forget": {"agent_id": "alice", "entry_ids": ["turn-1"], "reason": "requested by the user"},
}
"""Request examples for the OpenAPI description."""
