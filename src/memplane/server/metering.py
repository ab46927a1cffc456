"""Usage of a tenant: each request is counted when it has been answered, and responses warn of a quota that runs out."""

from contextlib import suppress

from memplane.auth.limits import QuotaStatus
from memplane.auth.usage import Meter
from memplane.engine import Engine
from memplane.errors import StorageError
from memplane.server.exchange import HttpExchange

_UNMETERED = frozenset({"system"})
"""Adapters for operators."""
_WARNED = frozenset({"v6"})
"""Adapters whose clients know quotas."""
_ERROR_STATUS = 400


class Metering:
    """An `Observer` that counts authenticated requests."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def begin(self, exchange: HttpExchange) -> None:
        pass

    def end(self, exchange: HttpExchange) -> None:
        route, principal = exchange.route, exchange.principal
        if route is None or principal is None or route.adapter in _UNMETERED:
            return
        self._meter.count(
            principal.tenant,
            f"{exchange.method or 'WEBSOCKET'} {route.path}",
            failed=exchange.broken or exchange.gone or exchange.status >= _ERROR_STATUS,
            seconds=exchange.seconds,
            request_bytes=exchange.request_bytes,
            response_bytes=exchange.response_bytes,
            ingest_events=exchange.spent.ingest_events,
            tokens=exchange.spent.tokens,
        )


def quota_headers(plane: Engine, exchange: HttpExchange) -> list[tuple[bytes, bytes]]:
    """A warning for a tenant that has used most of its quota. Reads the catalog, so it runs in a thread; a request does not
    fail for lack of the warning."""
    route, principal = exchange.route, exchange.principal
    if route is None or principal is None or route.adapter not in _WARNED:
        return []
    with suppress(StorageError):
        status = plane.quota.status(principal.tenant)
        if status is not None and status.approaching:
            return _headers(status)
    return []


def _headers(status: QuotaStatus) -> list[tuple[bytes, bytes]]:
    return [
        (b"x-quota-warning", b"approaching_limit"),
        (b"x-quota-ingests-pct", str(status.percent).encode()),
        (b"x-quota-reset-date", status.reset_date.encode()),
    ]
