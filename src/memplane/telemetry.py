"""Structured `memory_op` events: one JSON line per operation, on the logger `memplane.memory_op`. Events stay on the
machine and carry no content."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import msgspec

from memplane.clock import Clock
from memplane.errors import MemplaneError
from memplane.ledger import gojson
from memplane.ledger.history import TokenUsage, format_timestamp

_log = logging.getLogger("memplane.memory_op")
_NO_LISTENER: AbstractContextManager[None] = nullcontext()


class MemoryOp(msgspec.Struct, kw_only=True):
    """One memory operation, with the field names of Clawdapus' telemetry."""

    ts: str
    claw_id: str
    type: str = "memory_op"
    model: str = ""
    latency_ms: int = 0
    status_code: int = 0
    intervention: None = None
    error: str = ""
    memory_service: str
    memory_op: str
    memory_status: str
    memory_blocks: int | None = None
    memory_bytes: int | None = None
    memory_removed: int = 0


Listener = Callable[[MemoryOp], None]


def ignore_event(_: MemoryOp) -> None:
    """A `Listener` that ignores events which another component reports."""


_OMITTED_IF_ZERO = ("model", "latency_ms", "status_code", "error", "memory_removed")
_OMITTED_IF_NONE = ("memory_blocks", "memory_bytes")


def format_event(event: MemoryOp) -> str:
    """The line as cllama writes it: the same keys in the same order, empty ones omitted."""
    members = msgspec.structs.asdict(event)
    for name in _OMITTED_IF_ZERO:
        if not members[name]:
            del members[name]
    for name in _OMITTED_IF_NONE:
        if members[name] is None:
            del members[name]
    return gojson.encode(members).decode()


def log_event(event: MemoryOp) -> None:
    _log.info("%s", format_event(event))


class Events:
    """Times operations and reports each to a listener."""

    def __init__(self, clock: Clock, listener: Listener | None) -> None:
        self._clock = clock
        self._listener = listener

    def operation(self, space: str, op: str) -> AbstractContextManager[MemoryOp | None]:
        listener = self._listener
        if listener is None:
            if not _log.isEnabledFor(logging.INFO):
                return _NO_LISTENER
            listener = log_event
        return self._report(space, op, listener)

    @contextmanager
    def _report(self, space: str, op: str, listener: Listener) -> Iterator[MemoryOp]:
        event = MemoryOp(
            ts=format_timestamp(self._clock()),
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


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens and the cost of a turn, as the provider counts them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            reported_cost_usd=self.cost_usd,
        )


class ProviderCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that the proxy forwarded to a provider. It holds no content."""

    upstream: str
    operation: str
    """`chat` for every chat API; `text_completion`, `embeddings`."""
    model: str
    status: int
    """Zero where there was no response."""
    outcome: str
    """`ok`, `refused` by the provider, `failed` or `aborted`."""
    seconds: float
    charge: Charge = Charge()
    recorded: bool | None = None
    """Whether it was in the ledger when the client read the end; None where it is not recorded."""


PassedListener = Callable[[ProviderCall], None]
