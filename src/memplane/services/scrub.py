"""An entry of the session history as a memory service may see it: the same id, and no secrets.

Clawdapus scrubs what was asked and answered, and leaves what tools were given and gave; we scrub that too.
"""

import msgspec

from memplane.governance.outgoing import redact_outgoing, redact_outgoing_tree
from memplane.ledger import gojson
from memplane.ledger.gojson import Json
from memplane.ledger.history_reply import reply_of, reply_text
from memplane.ledger.history_scrub import decode_rewritable

_SCRUBBED = ("request_original", "request_effective", "response", "tool_trace")
_MEMBERS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def scrub_entry(line: bytes) -> tuple[bytes, int]:
    """The entry and how many secrets went. A member that held one is written anew with its keys sorted, all others stay
    as they are. Raises `NotJson` or `msgspec.ValidationError` on what is no JSON object."""
    members = {name: bytes(raw) for name, raw in gojson.decode(line, _MEMBERS).items()}
    count = 0
    for name in _SCRUBBED:
        if name in members:
            members[name], found = _scrubbed(members[name])
            count += found
    if not count:
        return line.strip(), 0
    spelled: dict[str, Json] = dict(members)
    return gojson.encode(spelled), count


def _scrubbed(raw: bytes) -> tuple[bytes, int]:
    value = decode_rewritable(raw)
    if value is None:
        return raw, 0
    clean, count = redact_outgoing_tree(value)
    if isinstance(clean, dict) and isinstance(clean.get("text"), str):
        # A secret may be spread over the events of a stream, where no single one of them shows it.
        reply, spread = redact_outgoing(reply_text(clean))
        if spread:
            clean = reply_of(reply)
            count += spread
    return (gojson.encode(clean, sort_keys=True), count) if count else (raw, 0)
