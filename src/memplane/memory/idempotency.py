"""Idempotency keys that hold for a while: which event a key names just now."""

from memplane.clock import Instant
from memplane.ledger.ids import keyed_id
from memplane.storage.base import Writer

_LOOK_FIRST = 4
"""Most keys are used once; one that comes back every day is found by looking ever further ahead."""


def current_id(writer: Writer, idempotency_key: str, since: Instant) -> str:
    """The id of the last event under this key if it was recorded after `since`, and of the next one if not. Generations
    leave no gap: a forgotten one is still known, or has its tombstone."""
    first, count, last = 0, _LOOK_FIRST, -1
    while last == first - 1:
        ids = [keyed_id(idempotency_key, first + number) for number in range(count)]
        taken = writer.known(ids).keys() | writer.tombstoned(ids)
        last += next((number for number, id_ in enumerate(ids) if id_ not in taken), count)
        first, count = first + count, count * 2
    if last < 0:
        return keyed_id(idempotency_key)
    entry = writer.entry(keyed_id(idempotency_key, last))
    is_over = entry is not None and entry.recorded <= since
    return keyed_id(idempotency_key, last + is_over)
