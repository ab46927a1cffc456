"""Ids. New ones begin with the time, so that an index grows at its end instead of everywhere."""

import re
import uuid
from hashlib import sha256

from memplane.clock import Instant
from memplane.entropy import random_bytes
from memplane.storage.store import Writer


def new_id(prefix: str, at: Instant) -> str:
    """`turn-019a…`: twelve hex digits of milliseconds, then 80 random bits."""
    return f"{prefix}-{max(0, at) // 1_000 & 0xFFFF_FFFF_FFFF:012x}{random_bytes(10).hex()}"


def new_memory_id() -> str:
    """`mem-<uuid4>`, the form Carapace clients expect."""
    return f"mem-{uuid.uuid4()}"


def keyed_id(idempotency_key: str, generation: int = 0) -> str:
    """The same key always names the same entry. Where a key holds for a while only, `generation` counts how often it was
    used anew: no key given by a user can name the entry of another one's later use, since none holds a NUL."""
    named = idempotency_key if not generation else f"{idempotency_key}\x00{generation}"
    return f"idem-{sha256(named.encode('utf-8')).hexdigest()[:40]}"


DERIVED_PREFIXES = ("fact-", "derive-", "distil-", "learn-", "digest-", "summarize-", "compact-", "decide-")
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


def content_id(prefix: str, body: bytes) -> str:
    """The same content is the same entry, on whichever machine it is written."""
    return f"{prefix}-{sha256(body).hexdigest()[:40]}"


def confirmed_id(learning_id: str) -> str:
    """The memory that a learning becomes: one, however many machines confirm it. Of the form of `new_memory_id`."""
    digest = sha256(f"confirmed\x00{learning_id}".encode()).digest()
    return f"mem-{uuid.UUID(bytes=digest[:16], version=4)}"


_VARIANT = re.compile(r"(.+?)((?:~[0-9a-f]{12})+)", re.DOTALL)


def variant_id(entry_id: str, body: bytes, depth: int = 1) -> str:
    """What a body is kept under whose id another body has, on every replica. One that was recorded there already, and
    again later, stands `depth` levels down."""
    return entry_id + depth * f"~{sha256(body).hexdigest()[:12]}"


def header_id(entry_id: str, recorded: Instant, depth: int = 1) -> str:
    """As `variant_id`, for an entry of which only the header is left."""
    return variant_id(entry_id, str(recorded).encode(), depth)


def base_of(entry_id: str) -> str:
    """The id that a variant came under; any other id is its own."""
    match = _VARIANT.fullmatch(entry_id)
    return entry_id if match is None else match[1]


def is_variant(entry_id: str) -> bool:
    return _VARIANT.fullmatch(entry_id) is not None


def original_id(entry_id: str, body: bytes) -> str:
    """As `base_of`, for an entry whose body is there to prove it."""
    match = _VARIANT.fullmatch(entry_id)
    if match is None:
        return entry_id
    link = variant_id("", body)
    return match[1] if match[2] == link * (len(match[2]) // len(link)) else entry_id


def models_of(entry_id: str) -> tuple[str, str]:
    """The ids of what a model may have made of an entry."""
    return derivation_id(entry_id), distillation_id(entry_id)


def is_forgotten_with(entry_id: str, forgotten_id: str) -> bool:
    """Whether one is forgotten because the other is: a body under the same id, or what a model made of it."""
    base = base_of(entry_id)
    return base == base_of(forgotten_id) or base in models_of(forgotten_id)


# Idempotency keys that hold for a while: which event a key names just now.


_LOOKUP_BATCH = 4
"""Most keys are used once; one that comes back every day is found by looking ever further ahead."""


def current_id(writer: Writer, idempotency_key: str, since: Instant) -> str:
    """The id of the last event under this key if it was recorded after `since`, and of the next one if not. Generations
    leave no gap: a forgotten one is still known, or has its tombstone."""
    first, count, last = 0, _LOOKUP_BATCH, -1
    while last == first - 1:
        ids = [keyed_id(idempotency_key, first + number) for number in range(count)]
        taken = writer.ledger.known(ids).keys() | writer.ledger.tombstoned(ids)
        last += next((number for number, id_ in enumerate(ids) if id_ not in taken), count)
        first, count = first + count, count * 2
    if last < 0:
        return keyed_id(idempotency_key)
    entry = writer.ledger.get(keyed_id(idempotency_key, last))
    is_over = entry is not None and entry.recorded <= since
    return keyed_id(idempotency_key, last + is_over)
