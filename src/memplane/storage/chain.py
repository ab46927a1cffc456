"""The digests that make a ledger verifiable.

`payload_digest = SHA-256(salt, body)` and `digest = SHA-256(previous digest, payload_digest, header)`. The salt
prevents guessing a short payload from its digest after it was erased. Salt and body are erased together and the
payload's digest stays, so the chain still verifies.
"""

from hashlib import sha256

import msgspec

from memplane.clock import Instant
from memplane.types import Caller, NewEntry

GENESIS = bytes(32)
SALT_BYTES = 16

_encode = msgspec.msgpack.Encoder().encode


def payload_digest(salt: bytes, body: bytes) -> bytes:
    return sha256(salt + body).digest()


def entry_digest(previous: bytes, payload: bytes, position: int, draft: NewEntry, recorded: Instant) -> bytes:
    caller = draft.caller
    header = (position, draft.id, draft.op, recorded, caller.actor, caller.adapter, caller.session, draft.ref)
    if draft.origin:
        return sha256(previous + payload + _encode((*header, draft.origin))).digest()
    return sha256(previous + payload + _encode(header)).digest()


def audit_digest(
    previous: bytes,
    seq: int,
    at: Instant,
    caller: Caller,
    action: str,
    target: str | None,
    outcome: str,
    detail: str,
) -> bytes:
    row = (seq, at, caller.actor, caller.adapter, caller.session, action, target, outcome, detail)
    return sha256(previous + _encode(row)).digest()
