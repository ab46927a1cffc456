"""Two moments of one space side by side: what was learned between them, what changed, what was forgotten."""

import msgspec

from memplane.clock import Instant, to_instant
from memplane.memory.forget import receipt_of
from memplane.memory.supersession import successor
from memplane.safety.sanitize import sanitized_memory
from memplane.storage.store import Reader
from memplane.types import Memory, Receipt

_STEPS_MAX = 64


class MemoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that held at the first moment, and what held in its place at the second."""

    before: Memory
    after: Memory | None = None
    """None where nothing does, or what did was forgotten since."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One page of each list, the newest first, and which of them goes on."""

    learned: tuple[Memory, ...]
    changed: tuple[MemoryChange, ...]
    forgotten: tuple[Receipt, ...]
    """What a receipt says is all that is known: what was forgotten is gone."""
    more: frozenset[str] = frozenset()


def compare(
    reader: Reader, begin: Instant, end: Instant, *, now: Instant, limit: int, offset: int
) -> Comparison:
    page = {"limit": limit + 1, "offset": offset}
    learned = reader.overview.learned(begin, end, **page)
    replaced = reader.overview.replaced(begin, end, **page)
    forgets = reader.ledger.forgets_between(begin, end, **page)
    lengths = {"learned": len(learned), "changed": len(replaced), "forgotten": len(forgets)}
    return Comparison(
        learned=tuple(sanitized_memory(memory, now) for memory in learned[:limit]),
        changed=tuple(_change(reader, memory, end, now) for memory in replaced[:limit]),
        forgotten=tuple(receipt_of(row, reader) for row in forgets[:limit]),
        more=frozenset(name for name, length in lengths.items() if length > limit),
    )


def _change(reader: Reader, memory: Memory, end: Instant, now: Instant) -> MemoryChange:
    """The last of its chain by then; what replaced that later is another story."""
    after = successor(reader, memory)
    for _ in range(_STEPS_MAX):
        if after is None or after.superseded_at is None or to_instant(after.superseded_at) > end:
            break
        after = successor(reader, after)
    return MemoryChange(
        before=sanitized_memory(memory, now), after=None if after is None else sanitized_memory(after, now)
    )
