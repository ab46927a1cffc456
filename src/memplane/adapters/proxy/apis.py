"""The APIs that carry turns: how to read their requests and where to insert memory."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from memplane.ledger import gojson
from memplane.ledger.history_text import SYSTEM_ROLES, content_text, latest_input, question_in

# Byte offsets in a JSON text, so that text can be inserted while every other byte stays the same. Providers cache
# prompt prefixes by content, and a body that is decoded and encoded again may be spelled differently. So a client's
# body is never re-encoded.


_MEMBERS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_NAME_TEXT: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_OPENING = re.compile(rb"[ \t\r\n]*[{\[]")
_NAME = re.compile(rb'[ \t\r\n,]*("[^"\\]*+(?:\\.[^"\\]*+)*+")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_GAP = re.compile(rb"[ \t\r\n,]*")

_encode = msgspec.json.Encoder().encode


class Extent(NamedTuple):
    """From the first byte of a value to after its last."""

    start: int
    end: int


class NotPlain(ValueError):
    """Not a JSON object, or one with a duplicate name, which two parsers could read differently."""


def members_of(raw: bytes) -> dict[str, Extent]:
    """The span of the value of each member of the outermost object."""
    try:
        gojson.check_values(raw, gojson.REQUEST_VALUES_MAX)
        text = gojson.mend_surrogates(raw)  # same length as before, so that offsets stay valid
        members = gojson.decode(text, _MEMBERS)
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise NotPlain(str(exc)) from exc
    opening = _OPENING.match(text)
    assert opening is not None
    at, found = opening.end(), {}
    for name, value in members.items():
        key = _NAME.match(text, at)
        if key is None or _NAME_TEXT.decode(key[1]) != name or not text.startswith(bytes(value), key.end()):
            raise NotPlain("duplicate name")
        at = key.end() + len(memoryview(value))
        found[name] = Extent(key.end(), at)
    if text[at:].strip() != b"}":
        raise NotPlain("duplicate name")
    return found


def items_of(raw: bytes, array: Extent) -> list[Extent]:
    """The span of each item of an array."""
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
    """Edits that insert a value before each given index; the item count as index appends."""
    changes = []
    for place, value in additions:
        written = _encode(value)
        if place < len(items):
            start = items[place].start
            changes.append((Extent(start, start), written + b","))
        elif items:
            end = items[-1].end
            changes.append((Extent(end, end), b"," + written))
        else:  # insert after the bracket; a second insertion needs a comma, which the first cannot know about
            comma = b"," if changes else b""
            changes.append((Extent(array.start + 1, array.start + 1), comma + written))
    return changes


def changed(raw: bytes, changes: Iterable[tuple[Extent, bytes]]) -> bytes:
    """Replace each span in the text. Edits at one offset keep their order."""
    parts: list[bytes] = []
    at = 0
    for span, new in sorted(changes, key=lambda change: change[0].start):
        parts += raw[at : span.start], new
        at = span.end
    return b"".join((*parts, raw[at:]))


_VALUE = msgspec.json.Decoder()
_SITTING = re.compile(r"(user_[^_]+_account_[^_]*)_session_([\w-]+)")
"""Claude Code's user id format before it used JSON: user and session."""


class _ClaudeCode(msgspec.Struct):
    """Claude Code's user id format since 2.1.78."""

    device_id: str
    session_id: str
    account_uuid: str = ""


class _Model(msgspec.Struct):
    model: str = ""


_MODEL = msgspec.json.Decoder(_Model)
_CLAUDE_CODE = msgspec.json.Decoder(_ClaudeCode)


class Api(StrEnum):
    """The format of a turn request."""

    CHAT = "chat/completions"
    RESPONSES = "responses"
    MESSAGES = "messages"


def api_of(method: str, path: str) -> Api | None:
    """The API of a path, with any provider prefix: `/v1/chat/completions`, `/openai/deployments/x/chat/…`."""
    if method != "POST":
        return None
    if path.endswith(f"/{Api.MESSAGES}") and not path.endswith(f"/v1/{Api.MESSAGES}"):
        return None  # messages of an OpenAI thread
    return next((api for api in Api if path.endswith(f"/{api}")), None)


def model_in(body: bytes | None) -> str:
    """The model that a body names, whatever else it contains."""
    try:
        return _MODEL.decode(body or b"{}").model
    except msgspec.DecodeError:
        return ""


class ChatRequest:
    """A turn request: its bytes and their parsed content."""

    def __init__(self, api: Api, raw: bytes) -> None:
        """Raise `NotPlain` for a body with ambiguous members."""
        self.api = api
        self.raw = raw
        self.members = members_of(raw)
        try:
            self.body: dict[str, Any] = gojson.decode(raw, _VALUE)
        except (gojson.NotJson, msgspec.ValidationError) as exc:  # the latter for a number out of range
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
        """The conversation, each turn as a JSON value; a plain input is a user message."""
        said = self.body.get("input" if self.api is Api.RESPONSES else "messages")
        if isinstance(said, str):
            return [{"role": "user", "content": said}]
        return said if isinstance(said, list) else []

    @cached_property
    def question(self) -> str:
        return question_in(self.body)

    @property
    def is_first(self) -> bool:
        """Whether the conversation has no response yet."""
        return not any(_role(message) == "assistant" for message in self.messages)

    @property
    def continues(self) -> bool:
        """Whether the agent still works on an earlier user message, as it does between tool calls."""
        last = latest_input({"messages": self.messages[-1:]})
        return not any(turn.role == "user" for turn in last)

    @property
    def has_tools(self) -> bool:
        """Whether the agent may return tool results before the next user message."""
        return bool(self.body.get("tools") or self.body.get("functions")) or self.continues

    @property
    def stored_by_provider(self) -> bool:
        """Whether the provider stores the conversation, and this request has only its newest part."""
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
        """A conversation name for clients that give none, derived from the first messages, which every later request
        repeats."""
        first = next((at for at, one in enumerate(self.messages) if _role(one) not in SYSTEM_ROLES), 0)
        begun = [self.body.get("system"), self.body.get("instructions"), self.messages[: first + 1]]
        return hashlib.sha256(_encode(begun)).hexdigest()

    def texts(self) -> list[str]:
        """All text in the request, which need not be injected again."""
        return [_content(message) for message in self.messages]

    def named_space(self) -> str | None:
        """The space that the body names: `metadata.memplane_space`, else the user."""
        metadata = self._metadata()
        named = _name(metadata.get("memplane_space"))
        if named is not None or self.api is not Api.MESSAGES:
            return named or _name(self.body.get("user"))
        return _sitting(metadata.get("user_id"))[0]

    def named_conversation(self) -> str | None:
        """The conversation that the body names."""
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

    # ── upstream request ─────────────────────────────────────────────────────────────────────────────────────

    def with_model(self, model: str) -> list[tuple[Extent, bytes]]:
        """The edit that replaces the model name."""
        return [(self.members["model"], _encode(model))]

    def with_memory(self, brief: str, context: str) -> list[tuple[Extent, bytes]]:
        """The edits that inject memory: the brief at the start of the conversation, with the same bytes in each of
        its requests, and the recall for this turn next to the last user message."""
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
    """The start of the conversation: after the system messages."""
    if api is Api.MESSAGES:
        return 0
    return next((at for at, role in enumerate(roles) if role not in SYSTEM_ROLES), len(roles))


def _beside_last_user(roles: list[str], api: Api) -> int:
    """Before the last user message for OpenAI, after it for Anthropic; at the end if there is none."""
    last = next((at for at in range(len(roles) - 1, -1, -1) if roles[at] == "user"), None)
    if last is None:
        return len(roles)
    return last + 1 if api is Api.MESSAGES else last


def _unfolded(text: Extent, brief: str, context: str) -> list[tuple[Extent, bytes]]:
    """Convert a plain input into a list; the user's text keeps its spelling."""
    before = b"".join(
        _encode({"role": "system", "content": part}) + b"," for part in (brief, context) if part
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
    """The user of an Anthropic request, and the session if Claude Code gives both. The result is the same for all
    versions of Claude Code."""
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
