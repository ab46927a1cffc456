"""An entry of the session history without secrets, for whoever reads it from outside.

The ledger keeps a line byte for byte. Going out, every text of it is redacted: what was asked, what was answered,
and what tools were given and gave, which Clawdapus itself leaves as it was.
"""

import json
import math
from typing import Any

from memplane.errors import InvalidRequest
from memplane.governance.redact import find_secrets, redact, redact_tree
from memplane.ledger import gojson
from memplane.ledger.history_reply import reply_of, reply_text

_OWN = ("version", "id", "status", "ts", "claw_id")
"""What is left of a line that can be read and not be written again."""
_DIGITS_MAX = 4_000


def scrub_line(line: bytes) -> tuple[bytes, int]:
    """The line and how many secrets went. Without any, it is the same line, byte for byte."""
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
    """JSON with numbers that can be written again; None where it is none."""
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
    """A secret may be spread over the events of a stream, where no single one of them shows it. Such a stream is told
    as the reply it amounts to."""
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
    except InvalidRequest:  # nested so deeply that it cannot be written again
        return gojson.encode({name: entry[name] for name in _OWN if isinstance(entry.get(name), str | int)})
