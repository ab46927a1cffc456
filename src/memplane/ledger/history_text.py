"""What was said in one entry of the session history: the text worth remembering.

Read from the request as the agent sent it, never as it went upstream: that one holds memories which were
recalled into it, and remembering them again would be hearing our own echo.
"""

from typing import Any

import msgspec

from memplane.governance.fence import strip_injected
from memplane.ledger.history_reply import (
    content_text,
    decode_leniently,
    join_parts,
    part_text,
    reply_text,
    spell_compactly,
)

RUNTIME_CONTEXT = "[Runtime context for this invocation."
FAILED = "error"
"""The status of a managed turn that came to nothing; Clawdapus writes it down and hands it to no memory."""

WITHIN = "memplane_within"
"""In the metadata of a line that was made from a turn of ours: the only place where that is told."""

SYSTEM_ROLES = ("system", "developer")
_TOOL_ROLES = ("tool", "function")
_TOOL_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class SpokenTurn(msgspec.Struct, frozen=True):
    """Who said it (user, tool or assistant) and what."""

    role: str
    text: str


class _Entry(msgspec.Struct):
    request_original: Any = None
    response: Any = None
    status: Any = None


_ENTRY = msgspec.json.Decoder(_Entry)


def extract_turns(line: bytes) -> list[SpokenTurn]:
    """The last thing the user said, the tool results since, and the assistant's reply, in this order.

    An agent that runs its own tools sends the user's message with every round, so it comes with each of those
    entries. A turn that failed is on record, and nothing was said in it. Never raises: a shape it does not know
    yields less.
    """
    entry = _decode_entry(line)
    if entry.status == FAILED:
        return []
    return [*heard(entry.request_original), *_turn("assistant", reply_text(entry.response))]


def within_of(line: bytes) -> str | None:
    """The only place where it is told, for a line that was made from a turn of ours; None: everywhere."""
    if WITHIN.encode() not in line:
        return None
    request = _decode_entry(line).request_original
    metadata = request.get("metadata") if isinstance(request, dict) else None
    place = metadata.get(WITHIN) if isinstance(metadata, dict) else None
    return place if isinstance(place, str) else None


def _decode_entry(line: bytes) -> _Entry:
    try:
        return _ENTRY.decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        entry = decode_leniently(line)
    if not isinstance(entry, dict):
        return _Entry()
    return _Entry(entry.get("request_original"), entry.get("response"), entry.get("status"))


def heard(request: Any) -> list[SpokenTurn]:
    """The last thing the user said in a request, and the tool results since.

    Walks back to the last message in which the user speaks: the whole conversation is sent every turn.
    """
    newest_first: list[SpokenTurn] = []
    for message in reversed(_messages(request)):
        turns = _message_turns(message)
        newest_first += reversed(turns)
        if any(turn.role == "user" for turn in turns):
            break
    return newest_first[::-1]


def question_in(request: Any) -> str:
    """What memory is asked before a turn: the last thing the user said; without one, what the agent was told to be."""
    spoken = [turn.text for turn in heard(request) if turn.role == "user"]
    if spoken:
        return spoken[-1]
    told = [
        message.get("content")
        for message in _messages(request)
        if isinstance(message, dict) and message.get("role") in SYSTEM_ROLES
    ]
    beside = (request.get(name) for name in ("system", "instructions")) if isinstance(request, dict) else ()
    return join_parts(map(content_text, (*told, *beside)))


def _messages(request: Any) -> list[Any]:
    """The conversation sent for a chat completion, an Anthropic message or an OpenAI response."""
    match request:
        case {"messages": list(messages)} | {"input": list(messages)}:
            return messages
        case {"input": str(text)}:
            return [{"role": "user", "content": text}]
    return []


def _message_turns(message: Any) -> list[SpokenTurn]:
    if not isinstance(message, dict):
        return []
    role, content = message.get("role"), message.get("content")
    if role in _TOOL_ROLES:
        return _turn("tool", _result_text(content))
    if message.get("type") in _TOOL_OUTPUTS:
        return _turn("tool", _result_text(message.get("output")))
    return _user_turns(content) if role == "user" else []


def _user_turns(content: Any) -> list[SpokenTurn]:
    """Anthropic puts the results of tools into a message of the user, before what the user says."""
    turns: list[SpokenTurn] = []
    spoken: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part.get("type") == "tool_result":
            turns += _turn("tool", _result_text(part.get("content")))
        else:
            spoken.append(_own_words(part_text(part)))
    return turns + _turn("user", join_parts(spoken))


def _result_text(content: Any) -> str:
    """A tool answers with text, with parts of which some are text, or with any other JSON."""
    return content_text(content) or (spell_compactly(content) if isinstance(content, dict) else "")


def _own_words(text: str) -> str:
    """Without the proxy's words, which it may put into the user's mouth: recalled memory, feeds, the time."""
    return "" if text.lstrip().startswith(RUNTIME_CONTEXT) else strip_injected(text)


def _turn(role: str, text: str) -> list[SpokenTurn]:
    text = text.strip()
    return [SpokenTurn(role, text)] if text else []
