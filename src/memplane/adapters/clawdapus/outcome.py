"""How a call of a memory service went: a value and never an exception, so that no turn can break on one."""

from enum import StrEnum

import msgspec

from memplane.clock import Instant
from memplane.ledger.history import format_timestamp
from memplane.safety.outgoing import ServiceBlock
from memplane.telemetry import MemoryOp

DEADLINE = "context deadline exceeded"
"""What is wrong with an answer that did not come in time, in the words of the telemetry."""


class MemoryStatus(StrEnum):
    """How an operation went, in the words of the telemetry."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    """No answer began in time."""
    SKIPPED = "skipped"
    """The service did not declare the operation."""


class ServiceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one call went."""

    operation: str
    status: MemoryStatus
    status_code: int = 0
    latency_ms: int = 0
    error: str = ""
    detail: str = ""
    """How the body of a refusal begins, for an operator; empty where there was none."""
    removed: int = 0
    """Blocks that governance dropped from a recall, or secrets that were taken out of a retain."""

    @property
    def ok(self) -> bool:
        return self.status is MemoryStatus.SUCCEEDED


class RecallOutcome(ServiceOutcome, frozen=True, kw_only=True):
    """What may be told, governed already."""

    blocks: tuple[ServiceBlock, ...] = ()
    returned: int = 0
    """How many the service returned, before governance."""
    text: str = ""
    """The blocks as they are injected; empty where there are none."""


def event_of(outcome: ServiceOutcome, *, service: str, agent: str, model: str, now: Instant) -> MemoryOp:
    """The line that is logged of it."""
    recalled = outcome if isinstance(outcome, RecallOutcome) and outcome.ok else None
    return MemoryOp(
        ts=format_timestamp(now),
        claw_id=agent,
        model=model,
        latency_ms=outcome.latency_ms,
        status_code=outcome.status_code,
        error=outcome.error,
        memory_service=service,
        memory_op=outcome.operation,
        memory_status=outcome.status.value,
        memory_blocks=None if recalled is None else recalled.returned,
        memory_bytes=None if recalled is None else len(recalled.text.encode("utf-8", "replace")),
        memory_removed=outcome.removed,
    )
