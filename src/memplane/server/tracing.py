"""OpenTelemetry spans: one per request, with one per memory operation inside it. Loaded only if an exporter is
configured.

Names follow OpenTelemetry's conventions for HTTP servers and generative AI memory. Spans never contain memory
content, queries or request bodies.
"""

import time
from importlib.metadata import version
from typing import Any

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from memplane.server.exchange import HttpExchange
from memplane.telemetry import MemoryOp, ProviderCall

_OPERATIONS = {
    "retain": "create_memory",
    "store": "create_memory",
    "record_run": "create_memory",
    "put": "upsert_memory",
    "resolve": "update_memory",
    "forget": "delete_memory",
    "delete": "delete_memory",
    "sweep": "delete_memory",
    "purge": "delete_memory",
}
"""Operation names of the conventions; every other operation is a search."""
_FAULT_STATUS = 500
_NS_PER_MS = 1_000_000


class Tracing:
    """An `Observer` of requests and a listener of the engine."""

    def __init__(self, endpoint: str, processor: SpanProcessor | None = None) -> None:
        name = {"service.name": "memplane", "service.version": version("memplane")}
        self._provider = TracerProvider(resource=Resource.create(name), shutdown_on_exit=False)
        exporter = (
            OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces") if processor is None else None
        )
        self._provider.add_span_processor(processor or BatchSpanProcessor(exporter))  # type: ignore[arg-type]
        self._tracer = self._provider.get_tracer("memplane")
        self._open: dict[int, tuple[Span, Any]] = {}

    def begin(self, exchange: HttpExchange) -> None:
        parent = extract(exchange.headers)
        method = exchange.method or "GET"
        span = self._tracer.start_span(method, context=parent, kind=SpanKind.SERVER)
        span.set_attribute("http.request.method", method)
        span.set_attribute("memplane.request.id", exchange.request_id)
        self._open[id(exchange)] = (span, context.attach(trace.set_span_in_context(span)))

    def end(self, exchange: HttpExchange) -> None:
        span, token = self._open.pop(id(exchange))
        context.detach(token)
        if exchange.route is not None:
            span.update_name(f"{exchange.method or 'GET'} {exchange.route.path}")
            span.set_attribute("http.route", exchange.route.path)
            span.set_attribute("memplane.door", exchange.route.adapter)
        span.set_attribute("http.response.status_code", exchange.status)
        if exchange.status >= _FAULT_STATUS or exchange.broken:
            span.set_attribute("error.type", exchange.code or str(exchange.status))
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def on_event(self, event: MemoryOp) -> None:
        """Create the span of a finished operation, below its request."""
        now = time.time_ns()
        operation = _OPERATIONS.get(event.memory_op, "search_memory")
        span = self._tracer.start_span(
            f"{operation} {event.memory_op}", start_time=now - event.latency_ms * _NS_PER_MS
        )
        span.set_attribute("gen_ai.operation.name", operation)
        span.set_attribute("gen_ai.provider.name", "memplane")
        span.set_attribute("gen_ai.memory.store.id", event.claw_id)
        span.set_attribute("memplane.operation", event.memory_op)
        if event.error:
            span.set_attribute("error.type", event.error)
            span.set_status(Status(StatusCode.ERROR))
        span.end(end_time=now)

    def on_turn(self, turn: ProviderCall) -> None:
        """Create the span of a turn sent to an upstream, below its request."""
        now = time.time_ns()
        started = now - int(turn.seconds * 1_000 * _NS_PER_MS)
        span = self._tracer.start_span(
            f"{turn.operation} {turn.model}".strip(), start_time=started, kind=SpanKind.CLIENT
        )
        span.set_attribute("gen_ai.operation.name", turn.operation)
        span.set_attribute("gen_ai.provider.name", turn.upstream)
        span.set_attribute("gen_ai.request.model", turn.model)
        span.set_attribute("gen_ai.usage.input_tokens", turn.charge.prompt_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", turn.charge.completion_tokens)
        span.set_attribute("http.response.status_code", turn.status)
        if turn.outcome != "ok":
            span.set_attribute("error.type", turn.outcome)
            span.set_status(Status(StatusCode.ERROR))
        span.end(end_time=now)

    def close(self) -> None:
        """Send pending spans."""
        self._provider.shutdown()
