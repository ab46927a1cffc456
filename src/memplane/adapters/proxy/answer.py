"""Reads a provider's response as it is relayed: its content, whether it is complete, and its usage."""

import re
import zlib
from typing import Any

import msgspec

from memplane.ledger import gojson
from memplane.ledger.history import Payload
from memplane.ledger.history_text import decode_leniently
from memplane.telemetry import Charge

_EVENTS = "text/event-stream"
_FAILURE = (
    rb"^event:[ ]?error\b"
    rb'|^data:[ ]?\{[ ]?"(?:error"[ ]?:[ ]?[{"]|type"[ ]?:[ ]?"(?:error|response\.failed)")'
)
_FAILS = re.compile(_FAILURE, re.MULTILINE)
_ENDS = re.compile(
    rb"^data:[ ]?\[DONE\]"
    rb"|^event:[ ]?(?:message_stop|response\.(?:completed|incomplete|failed))"
    rb'|^data:[ ]?\{[ ]?"type"[ ]?:[ ]?"(?:message_stop|response\.(?:completed|incomplete|failed))"'
    rb"|" + _FAILURE,
    re.MULTILINE,
)
"""Only the stream itself can contain this: a newline inside a text is escaped."""
_MARK_BYTES_MAX = 64
_WITHIN_A_LINE = b"."
"""Replaces the beginning of a line that is too long to be a marker, so that its rest does not match one."""
_USAGE = re.compile(rb'^data:[ ]?(?=.*"usage")(\{.*\})[ \r]*$', re.MULTILINE)
_USAGE_ANYWHERE = re.compile(rb'"usage"\s*:\s*(\{(?:[^{}]|\{[^{}]*\})*+\})')
"""A quote inside a text is escaped, so that no text can contain this."""
_USAGE_BYTES_MAX = 4_096
_PLAIN = frozenset({"", "identity"})
_READABLE = _PLAIN | {"gzip", "x-gzip", "deflate"}
_JSON: msgspec.json.Decoder[msgspec.Raw] = msgspec.json.Decoder(msgspec.Raw)
_KEPT_BYTES_MAX = 64 << 20
_AUTO_DETECT = 47
_INFLATED_PIECE = 1 << 20


class ProviderResponse:
    """The response so far, decompressed. The client gets the original bytes; this is a copy for reading."""

    def __init__(self, *, media: str, encoding: str) -> None:
        self.is_stream = media.partition(";")[0].strip().lower() == _EVENTS
        packed = encoding.strip().lower()
        self._readable = packed in _READABLE
        self._inflate = zlib.decompressobj(_AUTO_DETECT) if packed not in _PLAIN else None
        self._pieces: list[bytes] = []
        self._size = 0
        self._tail = b""

    def add(self, piece: bytes) -> bool:
        """Read one more chunk. Returns whether it contains the end marker."""
        if not self._readable:
            return False
        if self._inflate is not None:
            piece = self._inflated(piece)
        self._size += len(piece)
        if self._size > _KEPT_BYTES_MAX:
            self._readable = False
            self._pieces.clear()
            return False
        self._pieces.append(piece)
        if not self.is_stream:
            return False
        seen = self._tail + piece
        line = seen[seen.rfind(b"\n") + 1 :]
        self._tail = line if len(line) <= _MARK_BYTES_MAX else _WITHIN_A_LINE
        return _ENDS.search(seen) is not None

    def text(self) -> bytes:
        if len(self._pieces) > 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0] if self._pieces else b""

    def failed(self) -> bool:
        """Whether the response is valid: a stream may begin well and end in an error."""
        if self.is_stream:
            return _FAILS.search(self.text()) is not None
        body = self._body()
        return isinstance(body, dict) and (
            bool(body.get("error")) or body.get("status") == "failed" or body.get("type") == "error"
        )

    def payload(self) -> Payload:
        """The response for the session history. The request is kept even if the response cannot be read."""
        if self.is_stream:
            return Payload(text=self.text().decode("utf-8", "replace"))
        raw, body = self.text().strip(), self._body()
        if body is None:
            return Payload(text=raw.decode("utf-8", "replace"))
        try:
            gojson.decode(raw, _JSON)
        except gojson.NotJson:  # Python's encoding, including values such as NaN that JSON does not allow
            return Payload(json=msgspec.json.encode(body))
        return Payload(json=raw)

    def charge(self) -> Charge:
        if not self.is_stream:
            body = self._body()
            return _charge([body.get("usage")]) if isinstance(body, dict) else Charge()
        events = (decode_leniently(found[1]) for found in _USAGE.finditer(self.text()))
        return _charge([_usage_of(event) for event in events if isinstance(event, dict)])

    def _body(self) -> Any:
        return decode_leniently(self.text())

    def _inflated(self, piece: bytes) -> bytes:
        assert self._inflate is not None
        try:
            return self._inflate.decompress(piece, _KEPT_BYTES_MAX)
        except zlib.error:
            self._readable = False
            return b""


class UsageReader:
    """Reads only the usage of a response, whatever its length, without changing the bytes."""

    def __init__(self, *, encoding: str) -> None:
        packed = encoding.strip().lower()
        self._readable = packed in _READABLE
        self._inflate = zlib.decompressobj(_AUTO_DETECT) if self._readable and packed not in _PLAIN else None
        self._tail = b""
        self._usages: list[Any] = []

    def add(self, piece: bytes) -> None:
        if not self._readable:
            return
        if self._inflate is not None:
            try:
                piece = self._inflate.decompress(piece, _INFLATED_PIECE)
            except zlib.error:
                self._readable = False
                return
            # A chunk that expands beyond this is a decompression bomb, and its usage is not counted.
            self._readable = not self._inflate.unconsumed_tail
        seen = self._tail + piece
        end = 0
        for found in _USAGE_ANYWHERE.finditer(seen):
            self._usages.append(decode_leniently(found[1]))
            end = found.end()
        self._tail = seen[max(end, len(seen) - _USAGE_BYTES_MAX) :]

    def charge(self) -> Charge:
        return _charge(self._usages)


def _usage_of(event: dict[str, Any]) -> Any:
    """The usage field of each API: next to the choices, in the message, or in the response."""
    for holder in (event, event.get("message"), event.get("response")):
        if isinstance(holder, dict) and isinstance(holder.get("usage"), dict):
            return holder["usage"]
    return None


def _charge(usages: list[Any]) -> Charge:
    """Counts in a stream only grow, so the maximum is the final value."""
    found = Charge()
    for usage in usages:
        if not isinstance(usage, dict):
            continue
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        details = details if isinstance(details, dict) else {}
        read, made = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
        prompt = _count(usage, "prompt_tokens") or _count(usage, "input_tokens") + read + made
        cost = usage.get("cost")
        found = Charge(
            prompt_tokens=max(found.prompt_tokens, prompt),
            completion_tokens=max(
                found.completion_tokens, _count(usage, "completion_tokens") or _count(usage, "output_tokens")
            ),
            cached_tokens=max(found.cached_tokens, read or _count(details, "cached_tokens")),
            cost_usd=float(cost) if isinstance(cost, int | float) and 0 <= cost < 1e6 else found.cost_usd,  # noqa: PLR2004
        )
    return found


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 53 else 0
