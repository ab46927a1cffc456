"""Ids. New ones begin with the time, so that an index grows at its end instead of everywhere."""

import uuid
from hashlib import sha256

from memplane.clock import Instant
from memplane.entropy import random_bytes


def new_id(prefix: str, at: Instant) -> str:
    """`turn-019a…`: twelve hex digits of milliseconds, then 80 random bits."""
    return f"{prefix}-{max(0, at) // 1_000 & 0xFFFF_FFFF_FFFF:012x}{random_bytes(10).hex()}"


def new_memory_id() -> str:
    """`mem-<uuid4>`, the form Carapace clients expect."""
    return f"mem-{uuid.uuid4()}"


def keyed_id(idempotency_key: str) -> str:
    """The same key always names the same entry."""
    return f"idem-{sha256(idempotency_key.encode('utf-8')).hexdigest()[:40]}"
