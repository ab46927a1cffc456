"""The outcome of a call to a memory service: a value instead of an exception, so that a failure cannot break a turn."""

from enum import StrEnum

import msgspec

from memplane.clock import Instant
from memplane.ledger.history import format_timestamp
from memplane.safety.outgoing import ServiceBlock
from memplane.telemetry import MemoryOp

DEADLINE = "context deadline exceeded"
"""The telemetry's error text for a timeout."""


class MemoryStatus(StrEnum):
    """The telemetry's status of an operation."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    """No response started in time."""
    SKIPPED = "skipped"
    """The service does not declare the operation."""


class ServiceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one call."""

    operation: str
    status: MemoryStatus
    status_code: int = 0
    latency_ms: int = 0
    error: str = ""
    detail: str = ""
    """The beginning of an error response's body, for the operator; empty if there was none."""
    removed: int = 0
    """Blocks that governance dropped from a recall, or secrets removed from a retain."""

    @property
    def ok(self) -> bool:
        return self.status is MemoryStatus.SUCCEEDED


class RecallOutcome(ServiceOutcome, frozen=True, kw_only=True):
    """The blocks to inject, after governance."""

    blocks: tuple[ServiceBlock, ...] = ()
    returned: int = 0
    """The number of blocks from the service, before governance."""
    text: str = ""
    """The blocks as injected text; empty if there are none."""


def event_of(outcome: ServiceOutcome, *, service: str, agent: str, model: str, now: Instant) -> MemoryOp:
    """The log line for the outcome."""
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
