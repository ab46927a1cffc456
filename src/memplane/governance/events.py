"""Structured `memory_op` events: one JSON line per operation, on the logger `memplane.memory_op`. Nothing leaves the
machine, and no content is in them."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import msgspec

from memplane.clock import Clock, iso
from memplane.errors import MemplaneError

_log = logging.getLogger("memplane.memory_op")
_encode = msgspec.json.Encoder().encode
_NOBODY_LISTENS: AbstractContextManager[None] = nullcontext()


class MemoryOp(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One operation on memory, in the words of the memory plane's telemetry."""

    ts: str
    claw_id: str
    type: str = "memory_op"
    latency_ms: int = 0
    error: str = ""
    memory_service: str
    memory_op: str
    memory_status: str
    memory_blocks: int | None = None
    memory_bytes: int | None = None


Listener = Callable[[MemoryOp], None]


def log_event(event: MemoryOp) -> None:
    _log.info("%s", _encode(event).decode())


class Events:
    """Times operations and tells a listener how they went."""

    def __init__(self, clock: Clock, listener: Listener | None) -> None:
        self._clock = clock
        self._listener = listener

    def operation(self, space: str, op: str) -> AbstractContextManager[MemoryOp | None]:
        listener = self._listener
        if listener is None:
            if not _log.isEnabledFor(logging.INFO):
                return _NOBODY_LISTENS
            listener = log_event
        return self._told(space, op, listener)

    @contextmanager
    def _told(self, space: str, op: str, listener: Listener) -> Iterator[MemoryOp]:
        event = MemoryOp(
            ts=iso(self._clock()),
            claw_id=space,
            memory_service="memplane",
            memory_op=op,
            memory_status="succeeded",
        )
        started = time.perf_counter()
        try:
            yield event
        except Exception as exc:
            event.memory_status = "failed"
            event.error = exc.code if isinstance(exc, MemplaneError) else type(exc).__name__
            raise
        finally:
            event.latency_ms = int((time.perf_counter() - started) * 1_000)
            listener(event)
