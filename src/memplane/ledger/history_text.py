"""The text worth remembering in a session history entry.

It is read from the request as the agent sent it, not as it went upstream: the latter contains injected memory, which
must not be stored again.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from memplane.clock import Instant
from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.ledger.gojson import mend_surrogates
from memplane.ledger.history import BadLine, HistoryLine, format_timestamp, parse_line
from memplane.safety.fence import strip_injected
from memplane.safety.redact import find_secrets, redact, redact_tree

# The assistant's reply in an entry: a JSON body or the text of an event stream, of OpenAI's chat completions,
# OpenAI's responses or Anthropic's messages. Unknown shapes raise nothing and yield less.


_TEXT_PARTS = (None, "text", "input_text", "output_text")
_RESPONSE_ENDS = ("response.completed", "response.incomplete")
# U+2028 ends a line for `str.splitlines`, but may occur unescaped inside a JSON string.
_LINE_END = re.compile(r"\r\n|\n|\r")
_VALUE = msgspec.json.Decoder()


class _Piece(msgspec.Struct):
    """What an event adds to a part of the reply: text if `tool` is None, else a tool's arguments."""

    part: str
    text: str
    tool: str | None = None


def reply_text(response: Any) -> str:
    """The assistant's text, and each tool call as `tool_call name {"argument":…}`, one per line."""
    if not isinstance(response, dict):
        return ""
    body, stream = response.get("json"), response.get("text")
    if isinstance(body, dict):
        return join_parts(_body_parts(body))
    return join_parts(_stream_parts(stream)) if isinstance(stream, str) else ""


def reply_of(text: str) -> dict[str, Any]:
    """The response equivalent to this reply, for a stream that cannot be shown as it is."""
    message = {"role": "assistant", "content": text}
    return {"format": "json", "json": {"choices": [{"index": 0, "message": message}]}}


def part_text(part: Any) -> str:
    """The text of one content part; images, thinking and unknown parts have none."""
    if isinstance(part, dict):
        kind = part.get("type")
        part = part.get("refusal") if kind == "refusal" else part.get("text") if kind in _TEXT_PARTS else None
    return part if isinstance(part, str) else ""


def content_text(content: Any) -> str:
    """The text of a message's content, which is a string or a list of parts."""
    return join_parts(map(part_text, content)) if isinstance(content, list) else part_text(content)


def join_parts(texts: Iterable[str]) -> str:
    return "\n".join(text for text in texts if text.strip()).strip()


def decode_leniently(text: str | bytes) -> Any:
    """The value, or None, also for one of too many values. Accepts what Go accepts, such as an unpaired surrogate or
    `1e999`."""
    raw = text.encode(errors="replace") if isinstance(text, str) else text
    try:
        gojson.check_values(raw)
        return _VALUE.decode(text)
    except gojson.NotJson:
        return None
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    try:
        return json.loads(mend_surrogates(raw))
    except (ValueError, RecursionError):
        return None


def encode_compact(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return ""


def _body_parts(body: dict[str, Any]) -> list[str]:
    match body:
        case {"choices": [{"message": dict(message)}, *_]}:
            return _message_parts(message)
        case {"choices": [{"text": str(text)}, *_]}:
            return [text]
        case {"output": [*items]}:
            return [part for item in items for part in _item_parts(item)]
    return _block_parts(body.get("content"))


def _message_parts(message: dict[str, Any]) -> list[str]:
    parts = [*_block_parts(message.get("content")), part_text(message.get("refusal"))]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        match call:
            case {"function": {"name": str(name), **function}}:
                parts.append(_tool_call(name, function.get("arguments")))
    return parts


def _item_parts(item: Any) -> list[str]:
    match item:
        case {"type": "function_call", "name": str(name)}:
            return [_tool_call(name, item.get("arguments"))]
        case {"type": "message", "content": content}:
            return _block_parts(content)
    return []


def _block_parts(content: Any) -> list[str]:
    return [_block_part(block) for block in (content if isinstance(content, list) else [content])]


def _block_part(block: Any) -> str:
    match block:
        case {"type": "tool_use", "name": str(name)}:
            return _tool_call(name, block.get("input"))
    return part_text(block)


def _tool_call(name: str, arguments: Any) -> str:
    if isinstance(arguments, str):
        value = decode_leniently(arguments)
        spelled = " ".join(arguments.split()) if value is None else encode_compact(value)
    else:
        spelled = encode_compact(arguments or {})
    return f"tool_call {name} {spelled or '{}'}"


def _stream_parts(stream: str) -> list[str]:
    parts: dict[str, list[_Piece]] = {}
    for event in _events(stream):
        if event.get("type") in _RESPONSE_ENDS and isinstance(event.get("response"), dict):
            whole = _body_parts(event["response"])
            if any(whole):
                return whole
        for piece in _event_pieces(event):
            parts.setdefault(piece.part, []).append(piece)
    return [_assemble(pieces) for pieces in parts.values()]


def _assemble(pieces: list[_Piece]) -> str:
    text = "".join(piece.text for piece in pieces)
    if all(piece.tool is None for piece in pieces):
        return text
    # Only one piece has to name the tool; without a name the call is unknown.
    name = next((piece.tool for piece in pieces if piece.tool), None)
    return _tool_call(name, text) if name else ""


def _events(stream: str) -> Iterator[dict[str, Any]]:
    data: list[str] = []
    for line in [*_LINE_END.split(stream), ""]:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:"))
        elif not line and data:
            event = decode_leniently("\n".join(data))
            # Some servers omit the empty line between events.
            events = map(decode_leniently, data) if event is None else [event]
            yield from (event for event in events if isinstance(event, dict))
            data = []


def _event_pieces(event: dict[str, Any]) -> list[_Piece]:
    match event:
        case {"type": str(kind)} if kind.startswith("content_block"):
            return _block_pieces(event)
        case {"type": str(kind)} if kind.startswith("response."):
            return _response_pieces(event)
        case {"choices": [{"delta": dict(delta), **choice}, *_]} if choice.get("index", 0) == 0:
            return _delta_pieces(delta)
        case {"choices": [{"text": str(text), **choice}, *_]} if choice.get("index", 0) == 0:
            return [_Piece("text", text)]
    return []


def _block_pieces(event: dict[str, Any]) -> list[_Piece]:
    """Anthropic's messages."""
    part = f"block {event.get('index')}"
    match event.get("content_block") or event.get("delta"):
        case {"type": "tool_use", "name": str(name), **block}:
            given = block.get("input")
            return [_Piece(part, encode_compact(given) if given else "", name)]
        case {"type": "text" | "text_delta", "text": str(text)}:
            return [_Piece(part, text)]
        case {"type": "input_json_delta", "partial_json": str(text)}:
            return [_Piece(part, text, "")]
    return []


def _response_pieces(event: dict[str, Any]) -> list[_Piece]:
    """OpenAI's responses, if the stream ends before it repeats the whole response."""
    part = f"output {event.get('output_index')} {event.get('content_index')}"
    match event:
        case {"type": "response.output_text.delta" | "response.refusal.delta", "delta": str(text)}:
            return [_Piece(part, text)]
        case {
            "type": "response.output_item.done",
            "item": {"type": "function_call", "name": str(name), **item},
        }:
            return [_Piece(part, part_text(item.get("arguments")), name)]
    return []


def _delta_pieces(delta: dict[str, Any]) -> list[_Piece]:
    """OpenAI's chat completions."""
    content = delta.get("content")
    spoken = "".join(map(part_text, content)) if isinstance(content, list) else part_text(content)
    pieces = [_Piece("text", spoken), _Piece("refusal", part_text(delta.get("refusal")))]
    calls = delta.get("tool_calls")
    for position, call in enumerate(calls if isinstance(calls, list) else []):
        match call:
            case {"function": dict(function)}:
                name = part_text(function.get("name"))
                arguments = part_text(function.get("arguments"))
                pieces.append(_Piece(f"call {call.get('index', position)}", arguments, name))
    return pieces


RUNTIME_CONTEXT = "[Runtime context for this invocation."
FAILED = "error"
"""The status of a failed managed turn; Clawdapus records it but sends it to no memory."""

WITHIN = "memplane_within"
"""Metadata key of a line made from a turn of ours: the scope it is limited to."""

SYSTEM_ROLES = ("system", "developer")
_TOOL_ROLES = ("tool", "function")
_TOOL_OUTPUTS = ("function_call_output", "custom_tool_call_output")


class SpokenTurn(msgspec.Struct, frozen=True):
    """The role (user, tool or assistant) and the text."""

    role: str
    text: str


class _Entry(msgspec.Struct):
    request_original: Any = None
    response: Any = None
    status: Any = None


_ENTRY = msgspec.json.Decoder(_Entry)


def extract_turns(line: bytes) -> list[SpokenTurn]:
    """The user's last message, the tool results since, and the assistant's reply, in this order.

    An agent that runs its own tools sends the user's message with every round, so it is part of each of those
    entries. A failed turn has no text. Never raises: unknown shapes yield less.
    """
    entry = _decode_entry(line)
    if entry.status == FAILED:
        return []
    return [*latest_input(entry.request_original), *_turn("assistant", reply_text(entry.response))]


def within_of(line: bytes) -> str | None:
    """The scope of a line made from a turn of ours; None for no limit."""
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


def latest_input(request: Any) -> list[SpokenTurn]:
    """The user's last message in a request, and the tool results since.

    Searches backwards, because every turn sends the whole conversation.
    """
    newest_first: list[SpokenTurn] = []
    for message in reversed(_messages(request)):
        turns = _message_turns(message)
        newest_first += reversed(turns)
        if any(turn.role == "user" for turn in turns):
            break
    return newest_first[::-1]


def question_in(request: Any) -> str:
    """The query for a recall before a turn: the user's last message, else the system prompt."""
    spoken = [turn.text for turn in latest_input(request) if turn.role == "user"]
    if spoken:
        return spoken[-1]
    instructions = [
        message.get("content")
        for message in _messages(request)
        if isinstance(message, dict) and message.get("role") in SYSTEM_ROLES
    ]
    beside = (request.get(name) for name in ("system", "instructions")) if isinstance(request, dict) else ()
    return join_parts(map(content_text, (*instructions, *beside)))


def _messages(request: Any) -> list[Any]:
    """The messages of a chat completion, an Anthropic message or an OpenAI response."""
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
    """Anthropic puts tool results into a user message, before the user's text."""
    turns: list[SpokenTurn] = []
    spoken: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, dict) and part.get("type") == "tool_result":
            turns += _turn("tool", _result_text(part.get("content")))
        else:
            spoken.append(_without_injected(part_text(part)))
    return turns + _turn("user", join_parts(spoken))


def _result_text(content: Any) -> str:
    """A tool result is text, a list of parts, or any other JSON."""
    return content_text(content) or (encode_compact(content) if isinstance(content, dict) else "")


def _without_injected(text: str) -> str:
    """Without text the proxy adds to a user message: injected memory, feeds, the time."""
    return "" if text.lstrip().startswith(RUNTIME_CONTEXT) else strip_injected(text)


def _turn(role: str, text: str) -> list[SpokenTurn]:
    text = text.strip()
    return [SpokenTurn(role, text)] if text else []


# Redaction of an entry before it leaves. The ledger keeps the line byte for byte; on the way out every text is
# redacted: the request, the response, and tool arguments and results, which Clawdapus leaves as they are.


_OWN = ("version", "id", "status", "ts", "claw_id")
"""The replacement for a line that can be read but not written again."""
_DIGITS_MAX = 4_000


def scrub_line(line: bytes) -> tuple[bytes, int]:
    """The redacted line and the number of secrets; without any, the same line, byte for byte."""
    entry = decode_rewritable(line)
    if not isinstance(entry, dict):
        text = redact(line.decode("utf-8", "replace"))
        return (text.text.encode(), len(text.findings)) if text.findings else (line, 0)
    scrubbed, count = redact_tree(entry, named=True)
    scrubbed |= {name: entry[name] for name in ("id", "ts") if name in entry}
    response, more = _scrub_stream(scrubbed.get("response"))
    count += more
    if not count:
        return line, 0
    if more:
        scrubbed["response"] = response
    return _encode(scrubbed), count


def decode_rewritable(line: bytes) -> Any:
    """JSON whose numbers can be written again; None if it is not JSON."""
    try:
        return json.loads(gojson.mend_surrogates(line), parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError):
        return None


def _finite(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _whole(text: str) -> int | str:
    return int(text) if len(text) < _DIGITS_MAX else text


def _scrub_stream(response: Any) -> tuple[Any, int]:
    """A secret may be spread over several events of a stream. Such a stream is replaced by its reply."""
    if not (isinstance(response, dict) and isinstance(response.get("text"), str)):
        return response, 0
    reply = reply_text(response)
    found = find_secrets(reply)
    if not found:
        return response, 0
    return reply_of(redact(reply).text), len(found)


def _encode(entry: dict[str, Any]) -> bytes:
    try:
        return gojson.encode(entry)
    except InvalidRequest:  # nested too deeply to be written again
        return gojson.encode({name: entry[name] for name in _OWN if isinstance(entry.get(name), str | int)})


# An entry as received by a memory service: redacted or re-encoded on its way, sometimes incomplete.


_MEMBERS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_ABSENT = (b"", b"null", b'""', b"0")


def received_line(entry: bytes, *, now: Instant, line_bytes_max: int) -> HistoryLine:
    """The entry as one ledger line, under the id it came with. Raises `BadLine`.

    Only the id is required: simple senders omit the version and the time, which are then filled in.
    """
    if entry.strip() == b"null":
        entry = b"{}"
    members = _members_of(entry)
    line = gojson.compact_valid(entry)
    id_ = _id_of(members)
    added = {"version": b"1", "ts": gojson.encode(format_timestamp(now)), "id": gojson.encode(id_)}
    if bytes(members.get("id", b"")) == added["id"]:
        del added["id"]
    for name in ("version", "ts"):
        if bytes(members.get(name, b"")) not in _ABSENT:
            del added[name]
    if added:
        line = _rewritten(members, added)
    version, id_json, ts = (added.get(name) or bytes(members[name]) for name in ("version", "id", "ts"))
    head = b'{"version":%b,"id":%b,"ts":%b}' % (version, id_json, ts)
    return parse_line(line, trust_ids=True, line_bytes_max=line_bytes_max, head=head)


def _members_of(entry: bytes) -> dict[str, msgspec.Raw]:
    try:
        return gojson.decode(entry, _MEMBERS)
    except gojson.NotJson as exc:
        raise BadLine(f"entry: {exc}", malformed=True) from exc
    except msgspec.ValidationError as exc:
        try:
            gojson.compact(entry)  # what follows the first wrong type may not be JSON at all
        except gojson.NotJson as broken:
            raise BadLine(f"entry: {broken}", malformed=True) from broken
        raise BadLine("entry is not a JSON object") from exc


def _id_of(members: dict[str, msgspec.Raw]) -> str:
    try:
        raw = bytes(members.get("id", b""))
        id_ = "" if raw in _ABSENT else gojson.decode(raw, _TEXT).strip()
    except (msgspec.ValidationError, InvalidRequest) as exc:
        raise BadLine("entry.id is not a text") from exc
    if not id_:
        raise BadLine("entry.id is required")
    return id_


def _rewritten(members: dict[str, msgspec.Raw], added: dict[str, bytes]) -> bytes:
    """With the leading members in their usual order."""
    raw = {name: bytes(value) for name, value in members.items()} | added
    first: dict[str, gojson.Json] = {name: raw.pop(name) for name in ("version", "id") if name in raw}
    return gojson.encode(first | raw)
