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


DERIVED_PREFIXES = ("fact-", "derive-", "distil-")
"""Ids that follow from others; nobody else may take one."""


def derived_id(entry_id: str, extractor: str, turn: int, number: int) -> str:
    """The same on every replica and after every replay: it follows from where the memory was read."""
    digest = sha256(f"{entry_id}\x00{extractor}\x00{turn}\x00{number}".encode()).hexdigest()
    return f"fact-{digest[:32]}"


def derivation_id(entry_id: str) -> str:
    """The entry that records what a model read out of another; there is one at most."""
    return f"derive-{sha256(entry_id.encode()).hexdigest()[:40]}"


def distillation_id(entry_id: str) -> str:
    """The entry that records what a model made of an upload; there is one at most."""
    return f"distil-{sha256(entry_id.encode()).hexdigest()[:40]}"
