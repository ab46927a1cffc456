"""A receipt out of the ledger, where it is kept."""

from memplane.clock import to_datetime
from memplane.ledger.payloads import Forgotten, decode
from memplane.storage.base import LedgerRow
from memplane.types import Receipt


def receipt_of(row: LedgerRow) -> Receipt:
    """What a row of a forget proves."""
    payload = decode(row.entry)
    assert isinstance(payload, Forgotten)
    return Receipt(
        id=payload.receipt,
        scope=payload.scope,
        counts=payload.counts,
        reason=payload.reason,
        at=to_datetime(payload.at),
        seq=row.position,
        digest=row.digest.hex(),
        off_disk=None,
    )
