"""The assistant's reply in one entry of the session history, whichever API it was given through.

The entry holds a JSON body or the text of an event stream, of OpenAI's chat completions, OpenAI's responses or
Anthropic's messages. Nothing here raises on a shape it does not know; it yields less.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from memplane.ledger.gojson import mend_surrogates

_TEXT_PARTS = (None, "text", "input_text", "output_text")
_RESPONSE_ENDS = ("response.completed", "response.incomplete")
# U+2028 ends a line for `str.splitlines`, yet may stand unescaped inside a JSON string.
_LINE_END = re.compile(r"\r\n|\n|\r")
_VALUE = msgspec.json.Decoder()


class _Piece(msgspec.Struct):
    """Something an event adds to a part of the reply: speech if `tool` is None, else a tool's arguments."""

    part: str
    text: str
    tool: str | None = None


def reply_text(response: Any) -> str:
    """What the assistant said, and each tool it called as `tool_call name {"argument":…}`, a line each."""
    if not isinstance(response, dict):
        return ""
    body, stream = response.get("json"), response.get("text")
    if isinstance(body, dict):
        return join_parts(_body_parts(body))
    return join_parts(_stream_parts(stream)) if isinstance(stream, str) else ""


def reply_of(text: str) -> dict[str, Any]:
    """The response of an entry that amounts to this reply: what is left of a stream that cannot be shown as it came."""
    message = {"role": "assistant", "content": text}
    return {"format": "json", "json": {"choices": [{"index": 0, "message": message}]}}


def part_text(part: Any) -> str:
    """The text of one part of a message's content; pictures, thoughts and the unknown have none."""
    if isinstance(part, dict):
        kind = part.get("type")
        part = part.get("refusal") if kind == "refusal" else part.get("text") if kind in _TEXT_PARTS else None
    return part if isinstance(part, str) else ""


def content_text(content: Any) -> str:
    """The text of a message's content, which is one text or a list of parts."""
    return join_parts(map(part_text, content)) if isinstance(content, list) else part_text(content)


def join_parts(texts: Iterable[str]) -> str:
    return "\n".join(text for text in texts if text.strip()).strip()


def decode_leniently(text: str | bytes) -> Any:
    """The value, or None; what Go lets pass, such as an unpaired surrogate or `1e999`, is no obstacle."""
    try:
        return _VALUE.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raw = text.encode(errors="replace") if isinstance(text, str) else text
    try:
        return json.loads(mend_surrogates(raw))
    except (ValueError, RecursionError):
        return None


def spell_compactly(value: Any) -> str:
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
        spelled = " ".join(arguments.split()) if value is None else spell_compactly(value)
    else:
        spelled = spell_compactly(arguments or {})
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
    # Only one of the pieces has to name the tool; without a name there is no telling what was called.
    name = next((piece.tool for piece in pieces if piece.tool), None)
    return _tool_call(name, text) if name else ""


def _events(stream: str) -> Iterator[dict[str, Any]]:
    data: list[str] = []
    for line in [*_LINE_END.split(stream), ""]:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:"))
        elif not line and data:
            event = decode_leniently("\n".join(data))
            # Some servers leave out the empty line between events.
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
            return [_Piece(part, spell_compactly(given) if given else "", name)]
        case {"type": "text" | "text_delta", "text": str(text)}:
            return [_Piece(part, text)]
        case {"type": "input_json_delta", "partial_json": str(text)}:
            return [_Piece(part, text, "")]
    return []


def _response_pieces(event: dict[str, Any]) -> list[_Piece]:
    """OpenAI's responses, where the stream breaks off before it repeats the whole."""
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
