"""The APIs that carry turns: what a request says in each, and where memory goes into it."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from memplane.ledger import gojson
from memplane.ledger.history_text import SYSTEM_ROLES, content_text, latest_input, question_in

# Where things stand in a JSON text, so that something can be put between them and every other byte stays as it was.
#
# Providers cache the beginning of a prompt by what it says, and a body that is decoded and written anew may spell the same
# thing differently. So nothing of a client's body is ever written anew.


_MEMBERS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_NAME_TEXT: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_OPENING = re.compile(rb"[ \t\r\n]*[{\[]")
_NAME = re.compile(rb'[ \t\r\n,]*("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_GAP = re.compile(rb"[ \t\r\n,]*")

_encode = msgspec.json.Encoder().encode


class Extent(NamedTuple):
    """From the first byte of a value to behind its last."""

    start: int
    end: int


class NotPlain(ValueError):
    """No JSON object, or one in which a name stands twice, so that two readers would take different values."""


def members_of(raw: bytes) -> dict[str, Extent]:
    """Where the value of each member of the outermost object stands."""
    text = gojson.mend_surrogates(raw)  # as long as before, so places stay what they are
    try:
        members = gojson.decode(text, _MEMBERS)
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise NotPlain(str(exc)) from exc
    opening = _OPENING.match(text)
    assert opening is not None
    at, found = opening.end(), {}
    for name, value in members.items():
        key = _NAME.match(text, at)
        if key is None or _NAME_TEXT.decode(key[1]) != name or not text.startswith(bytes(value), key.end()):
            raise NotPlain("a name stands twice")
        at = key.end() + len(memoryview(value))
        found[name] = Extent(key.end(), at)
    if text[at:].strip() != b"}":
        raise NotPlain("a name stands twice")
    return found


def items_of(raw: bytes, array: Extent) -> list[Extent]:
    """Where each item of an array stands."""
    text = gojson.mend_surrogates(raw[array.start : array.end])
    at, found = 1, []
    for item in gojson.decode(text, _ITEMS):
        gap = _GAP.match(text, at)
        assert gap is not None
        at = gap.end() + len(memoryview(item))
        found.append(Extent(array.start + gap.end(), array.start + at))
    return found


def put_items(
    array: Extent, items: list[Extent], additions: Iterable[tuple[int, Any]]
) -> list[tuple[Extent, bytes]]:
    """Changes that put a value before each named place; the number of items is the place behind the last."""
    changes = []
    for place, value in additions:
        written = _encode(value)
        if place < len(items):
            start = items[place].start
            changes.append((Extent(start, start), written + b","))
        elif items:
            end = items[-1].end
            changes.append((Extent(end, end), b"," + written))
        else:  # behind the bracket; a second one needs a comma, which the first of them cannot know of
            comma = b"," if changes else b""
            changes.append((Extent(array.start + 1, array.start + 1), comma + written))
    return changes


def changed(raw: bytes, changes: Iterable[tuple[Extent, bytes]]) -> bytes:
    """The text with each span replaced. Changes at one place stay in the order they are given."""
    parts: list[bytes] = []
    at = 0
    for span, new in sorted(changes, key=lambda change: change[0].start):
        parts += raw[at : span.start], new
        at = span.end
    return b"".join((*parts, raw[at:]))


_VALUE = msgspec.json.Decoder()
_SITTING = re.compile(r"(user_[^_]+_account_[^_]*)_session_([\w-]+)")
"""How Claude Code named its user before it took to JSON: who it is, and which sitting."""


class _ClaudeCode(msgspec.Struct):
    """Who Claude Code is, as it says since 2.1.78."""

    device_id: str
    session_id: str
    account_uuid: str = ""


class _Model(msgspec.Struct):
    model: str = ""


_MODEL = msgspec.json.Decoder(_Model)
_CLAUDE_CODE = msgspec.json.Decoder(_ClaudeCode)


class Api(StrEnum):
    """How a turn is asked for."""

    CHAT = "chat/completions"
    RESPONSES = "responses"
    MESSAGES = "messages"


def api_of(method: str, path: str) -> Api | None:
    """Which API a path speaks, wherever a provider keeps it: `/v1/chat/completions`, `/openai/deployments/x/chat/…`."""
    if method != "POST":
        return None
    if path.endswith(f"/{Api.MESSAGES}") and not path.endswith(f"/v1/{Api.MESSAGES}"):
        return None  # of a thread of OpenAI's
    return next((api for api in Api if path.endswith(f"/{api}")), None)


def model_in(body: bytes | None) -> str:
    """The model that a body names, whatever else is in it."""
    try:
        return _MODEL.decode(body or b"{}").model
    except msgspec.DecodeError:
        return ""


class ChatRequest:
    """A turn that a client asks for: its bytes, and what they say."""

    def __init__(self, api: Api, raw: bytes) -> None:
        """Raise `NotPlain` for a body whose members cannot be told apart."""
        self.api = api
        self.raw = raw
        self.members = members_of(raw)
        try:
            self.body: dict[str, Any] = gojson.decode(raw, _VALUE)
        except (gojson.NotJson, msgspec.ValidationError) as exc:  # the latter for a number beyond all bounds
            raise NotPlain(str(exc)) from exc

    @property
    def model(self) -> str:
        model = self.body.get("model")
        return model if isinstance(model, str) else ""

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True

    @cached_property
    def messages(self) -> list[Any]:
        """The conversation, each turn of it a JSON value; a plain input is what the user said."""
        said = self.body.get("input" if self.api is Api.RESPONSES else "messages")
        if isinstance(said, str):
            return [{"role": "user", "content": said}]
        return said if isinstance(said, list) else []

    @cached_property
    def question(self) -> str:
        return question_in(self.body)

    @property
    def is_first(self) -> bool:
        """Whether nobody has answered yet."""
        return not any(_role(message) == "assistant" for message in self.messages)

    @property
    def continues(self) -> bool:
        """Whether the agent works on what the user said before, as it does between the calls of its tools."""
        last = latest_input({"messages": self.messages[-1:]})
        return not any(turn.role == "user" for turn in last)

    @property
    def has_tools(self) -> bool:
        """Whether the agent may come back with results of tools before the user says anything more."""
        return bool(self.body.get("tools") or self.body.get("functions")) or self.continues

    @property
    def stored_by_provider(self) -> bool:
        """Whether the provider has the conversation, and this request only its newest part."""
        return bool(self.body.get("previous_response_id") or self.body.get("conversation"))

    @property
    def style(self) -> str:
        return "anthropic" if self.api is Api.MESSAGES else "openai"

    @property
    def inbound(self) -> Any:
        return self.body.get("input" if self.api is Api.RESPONSES else "messages")

    @property
    def system(self) -> Any:
        return self.body.get("system") if self.api is Api.MESSAGES else None

    @property
    def opening(self) -> str:
        """A name for the conversation where the client gives none: how it began, which every later request repeats."""
        first = next((at for at, one in enumerate(self.messages) if _role(one) not in SYSTEM_ROLES), 0)
        begun = [self.body.get("system"), self.body.get("instructions"), self.messages[: first + 1]]
        return hashlib.sha256(_encode(begun)).hexdigest()

    def texts(self) -> list[str]:
        """Everything that is said in the request, which therefore need not be told again."""
        return [_content(message) for message in self.messages]

    def named_space(self) -> str | None:
        """Whose memory the body names: `metadata.memplane_space`, else the user."""
        metadata = self._metadata()
        named = _name(metadata.get("memplane_space"))
        if named is not None or self.api is not Api.MESSAGES:
            return named or _name(self.body.get("user"))
        return _sitting(metadata.get("user_id"))[0]

    def named_conversation(self) -> str | None:
        """Which conversation the body names."""
        metadata = self._metadata()
        named = _name(metadata.get("memplane_conversation")) or _name(metadata.get("conversation_id"))
        if named is not None:
            return named
        held = self.body.get("conversation")
        held = held.get("id") if isinstance(held, dict) else held
        if self.api is Api.RESPONSES and _name(held):
            return _name(held)
        return _sitting(metadata.get("user_id"))[1] if self.api is Api.MESSAGES else None

    def _metadata(self) -> dict[str, Any]:
        metadata = self.body.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    # ── what goes upstream ───────────────────────────────────────────────────────────────────────────────────

    def with_model(self, model: str) -> list[tuple[Extent, bytes]]:
        """The change that names another model."""
        return [(self.members["model"], _encode(model))]

    def with_memory(self, brief: str, context: str) -> list[tuple[Extent, bytes]]:
        """The changes that tell the model what memory has: the brief where the conversation begins, the same bytes in
        every request of it; what bears on this turn beside the last thing the user said."""
        array = self.members.get("input" if self.api is Api.RESPONSES else "messages")
        if array is None or not (brief or context):
            return []
        if self.raw[array.start : array.start + 1] == b'"':
            return _unfolded(array, brief, context)
        if self.raw[array.start : array.start + 1] != b"[":
            return []
        roles = [_role(message) for message in self.messages]
        additions = [(_first(roles, self.api), self._message(brief))] if brief else []
        if context:
            additions.append((_beside_last_user(roles, self.api), self._message(context)))
        return put_items(array, items_of(self.raw, array), additions)

    def effective(self, changes: Sequence[tuple[Extent, bytes]]) -> bytes:
        return changed(self.raw, changes) if changes else self.raw

    def _message(self, text: str) -> Any:
        if self.api is Api.MESSAGES:
            return {"role": "user", "content": [{"type": "text", "text": text}]}
        return {"role": "system", "content": text}


def _first(roles: list[str], api: Api) -> int:
    """Where the conversation begins: behind what the system says."""
    if api is Api.MESSAGES:
        return 0
    return next((at for at, role in enumerate(roles) if role not in SYSTEM_ROLES), len(roles))


def _beside_last_user(roles: list[str], api: Api) -> int:
    """Before it for OpenAI, behind it for Anthropic; the end where the user said nothing."""
    last = next((at for at in range(len(roles) - 1, -1, -1) if roles[at] == "user"), None)
    if last is None:
        return len(roles)
    return last + 1 if api is Api.MESSAGES else last


def _unfolded(text: Extent, brief: str, context: str) -> list[tuple[Extent, bytes]]:
    """A plain input becomes a list around it: what the user said stays as it is spelled."""
    before = b"".join(
        _encode({"role": "system", "content": told}) + b"," for told in (brief, context) if told
    )
    return [
        (Extent(text.start, text.start), b"[" + before + b'{"role":"user","content":'),
        (Extent(text.end, text.end), b"}]"),
    ]


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    return role if isinstance(role, str) else ""


def _content(message: Any) -> str:
    return content_text(message.get("content")) if isinstance(message, dict) else ""


def _sitting(user_id: Any) -> tuple[str | None, str | None]:
    """Whose an Anthropic request is, and which sitting where Claude Code says both; spelled alike for all its versions."""
    user = _name(user_id)
    if user is None:
        return None, None
    if old := _SITTING.fullmatch(user):
        return old[1], old[2]
    try:
        new = _CLAUDE_CODE.decode(user)
    except msgspec.DecodeError:
        return user, None
    return f"user_{new.device_id}_account_{new.account_uuid}", _name(new.session_id)


def _name(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
