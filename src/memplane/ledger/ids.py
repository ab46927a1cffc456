"""Ids. New ones begin with the time, so an index grows at its end rather than everywhere."""

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
    """The same key always gives the same entry id. For keys with a time window, `generation` counts reuses; user keys
    contain no NUL, so they cannot name another key's later generation."""
    named = idempotency_key if not generation else f"{idempotency_key}\x00{generation}"
    return f"idem-{sha256(named.encode('utf-8')).hexdigest()[:40]}"


DERIVED_PREFIXES = ("fact-", "derive-", "distil-", "learn-", "digest-", "summarize-", "compact-", "decide-")
"""Prefixes of derived ids; callers may not use them."""


def derived_id(entry_id: str, extractor: str, turn: int, number: int) -> str:
    """The same on every replica and in every replay: it is derived from the memory's source."""
    digest = sha256(f"{entry_id}\x00{extractor}\x00{turn}\x00{number}".encode()).hexdigest()
    return f"fact-{digest[:32]}"


def derivation_id(entry_id: str) -> str:
    """The entry that records an LLM's answer about another entry; there is at most one."""
    return f"derive-{sha256(entry_id.encode()).hexdigest()[:40]}"


def distillation_id(entry_id: str) -> str:
    """The entry that records an LLM's summary of an upload; there is at most one."""
    return f"distil-{sha256(entry_id.encode()).hexdigest()[:40]}"


def content_id(prefix: str, body: bytes) -> str:
    """The same content is the same entry on every machine."""
    return f"{prefix}-{sha256(body).hexdigest()[:40]}"


def confirmed_id(learning_id: str) -> str:
    """The memory a draft becomes: one, however many machines confirm it. In the format of `new_memory_id`."""
    digest = sha256(f"confirmed\x00{learning_id}".encode()).digest()
    return f"mem-{uuid.UUID(bytes=digest[:16], version=4)}"


_VARIANT = re.compile(r"(.+?)((?:~[0-9a-f]{12})+)", re.DOTALL)


def variant_id(entry_id: str, body: bytes, depth: int = 1) -> str:
    """The id of a body whose original id another body has, on every replica. A body recorded there already, and again
    later, is `depth` levels down."""
    return entry_id + depth * f"~{sha256(body).hexdigest()[:12]}"


def header_id(entry_id: str, recorded: Instant, depth: int = 1) -> str:
    """Like `variant_id`, for an entry of which only the header remains."""
    return variant_id(entry_id, str(recorded).encode(), depth)


def base_of(entry_id: str) -> str:
    """The original id of a variant; any other id is its own."""
    match = _VARIANT.fullmatch(entry_id)
    return entry_id if match is None else match[1]


def is_variant(entry_id: str) -> bool:
    return _VARIANT.fullmatch(entry_id) is not None


def original_id(entry_id: str, body: bytes) -> str:
    """Like `base_of`, for an entry whose body proves it."""
    match = _VARIANT.fullmatch(entry_id)
    if match is None:
        return entry_id
    link = variant_id("", body)
    return match[1] if match[2] == link * (len(match[2]) // len(link)) else entry_id


def models_of(entry_id: str) -> tuple[str, str]:
    """The ids of possible LLM records of an entry."""
    return derivation_id(entry_id), distillation_id(entry_id)


def is_forgotten_with(entry_id: str, forgotten_id: str) -> bool:
    """Whether one is forgotten because the other is: a body under the same id, or an LLM record of it."""
    base = base_of(entry_id)
    return base == base_of(forgotten_id) or base in models_of(forgotten_id)


# Idempotency keys with a time window: which event a key currently names.


_LOOKUP_BATCH = 4
"""Most keys are used once; a key used daily is found by doubling steps."""


def current_id(writer: Writer, idempotency_key: str, since: Instant) -> str:
    """The id of the last event under this key if recorded after `since`, else of the next one. Generations have no
    gaps: a forgotten one is still known or has a tombstone."""
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
