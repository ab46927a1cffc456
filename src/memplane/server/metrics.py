"""Prometheus metrics. Labels are route templates and codes, never user-supplied names."""

from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from memplane.clock import SECOND
from memplane.server.exchange import HttpExchange
from memplane.storage.work import Backlog, WorkerCounts
from memplane.telemetry import MemoryOp, ProviderCall

_UNMATCHED = "(none)"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_TURN_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

MEDIA = CONTENT_TYPE_LATEST

# Disable the extra `_created` series, which several processes would not have. The library does not type this
# function.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """An `Observer` of requests and a listener of the engine.

    With several processes, each writes its metrics to files in a shared directory, which the library finds in the
    environment on import. The process that serves `/metrics` adds them up.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "memplane_http_requests",
            "Completed requests.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "memplane_http_request_seconds",
            "Time from the first byte of a request to the last byte of its response.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._in_flight = Gauge(
            "memplane_http_requests_in_flight",
            "Requests in progress.",
            multiprocess_mode="livesum",
            registry=self._registry,
        )
        self._operations = Counter(
            "memplane_memory_operations",
            "Memory operations.",
            ("operation", "status"),
            registry=self._registry,
        )
        self._operation_seconds = Histogram(
            "memplane_memory_operation_seconds",
            "Duration of memory operations.",
            ("operation",),
            buckets=_SECONDS,
            registry=self._registry,
        )

        self._turns = Counter(
            "memplane_proxy_turns",
            "Turns sent to an upstream.",
            ("upstream", "outcome"),
            registry=self._registry,
        )
        self._turn_seconds = Histogram(
            "memplane_proxy_turn_seconds",
            "Time from a turn's request to the end of its response.",
            ("upstream",),
            buckets=_TURN_SECONDS,
            registry=self._registry,
        )
        self._tokens = Counter(
            "memplane_proxy_tokens",
            "Tokens as reported by upstreams; cached tokens are also prompt tokens.",
            ("upstream", "kind"),
            registry=self._registry,
        )
        self._cost = Counter(
            "memplane_proxy_cost_usd",
            "Cost of turns, as reported by upstreams or from the price list.",
            ("upstream",),
            registry=self._registry,
        )
        self._unkept = Counter(
            "memplane_proxy_turns_kept_late",
            "Turns not yet in the ledger when their client received the end.",
            ("upstream",),
            registry=self._registry,
        )

    def begin(self, exchange: HttpExchange) -> None:  # noqa: ARG002 - one of those who observe
        self._in_flight.inc()

    def end(self, exchange: HttpExchange) -> None:
        self._in_flight.dec()
        route = exchange.route.path if exchange.route is not None else _UNMATCHED
        method = _method(exchange)
        self._requests.labels(method, route, str(exchange.status)).inc()
        self._seconds.labels(method, route).observe(exchange.seconds)

    def on_event(self, event: MemoryOp) -> None:
        self._operations.labels(event.memory_op, event.memory_status).inc()
        self._operation_seconds.labels(event.memory_op).observe(event.latency_ms / 1_000)

    def on_turn(self, turn: ProviderCall) -> None:
        """Record a turn that passed through the proxy."""
        upstream, charge = turn.upstream, turn.charge
        if turn.operation != "embeddings":
            self._turns.labels(upstream, turn.outcome).inc()
            self._turn_seconds.labels(upstream).observe(turn.seconds)
        for kind, count in (
            ("prompt", charge.prompt_tokens),
            ("completion", charge.completion_tokens),
            ("cached", charge.cached_tokens),
        ):
            if count:
                self._tokens.labels(upstream, kind).inc(count)
        if charge.cost_usd:
            self._cost.labels(upstream).inc(charge.cost_usd)
        if turn.recorded is False:
            self._unkept.labels(upstream).inc()

    def exposition(self, work: tuple[Backlog, WorkerCounts] | None = None) -> bytes:
        """Return the metrics; with `work`, include the queue of all workers on all machines."""
        workers = b"" if work is None else _of_workers(*work)
        if self._folder is None:
            return generate_latest(self._registry) + workers
        all_processes = CollectorRegistry()
        MultiProcessCollector(all_processes, path=str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(all_processes) + workers


class _Workers:
    """Metrics that are read from the database instead of counted here."""

    def __init__(self, backlog: Backlog, done: WorkerCounts) -> None:
        self._backlog = backlog
        self._done = done

    def collect(self) -> Iterator[Metric]:
        backlog, done = self._backlog, self._done
        spaces = GaugeMetricFamily("memplane_work_spaces", "Spaces by queue state.", labels=("state",))
        for state in ("waiting", "held", "resting", "failing", "dead"):
            spaces.add_metric((state,), getattr(backlog, state))
        yield spaces
        yield GaugeMetricFamily(
            "memplane_work_oldest_seconds",
            "Wait time of the space that has waited longest.",
            backlog.oldest / SECOND,
        )
        yield GaugeMetricFamily(
            "memplane_work_entries_behind", "Entries that are not enriched yet.", backlog.behind
        )
        for name, said, value in (
            ("taken", "Spaces claimed by workers.", done.taken),
            ("steps", "Steps completed by workers.", done.steps),
            ("failures", "Failures while processing a space.", done.failures),
            ("lost", "Spaces reclaimed from a lost worker.", done.lost),
        ):
            yield CounterMetricFamily(f"memplane_work_{name}", said, value)


def _of_workers(backlog: Backlog, done: WorkerCounts) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Workers(backlog, done))
    return generate_latest(registry)


def forget_process(folder: Path, pid: int) -> None:
    """Remove the gauges of a process that exited; its counters are kept."""
    mark_process_dead(pid, path=str(folder))  # type: ignore[no-untyped-call]


def _method(exchange: HttpExchange) -> str:
    """Clients can invent methods, and every label value costs memory."""
    if exchange.method is None:
        return "WEBSOCKET"
    return exchange.method if exchange.method in _METHODS else "OTHER"
