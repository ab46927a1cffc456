"""What a tenant's requests come to: counted when they are over, and its quota told with every answer."""

from contextlib import suppress

from memplane.auth.limits import QuotaStatus
from memplane.auth.usage import Meter
from memplane.engine import Engine
from memplane.errors import StorageError
from memplane.server.exchange import HttpExchange

_UNMETERED = frozenset({"system"})
"""Doors for those who look after the server."""
_TELLING = frozenset({"v6"})
"""Doors whose clients know of quotas."""
_ERROR_STATUS = 400


class Metering:
    """An `Observer` that counts requests of those who were let in."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def begin(self, exchange: HttpExchange) -> None:
        pass

    def end(self, exchange: HttpExchange) -> None:
        route, principal = exchange.route, exchange.principal
        if route is None or principal is None or route.door in _UNMETERED:
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


def tell_quota(plane: Engine, exchange: HttpExchange) -> None:
    """Where the tenant is near the end of its quota, its answer says so. Asks the catalog, so it runs in a thread; nobody
    is refused for want of a warning."""
    route, principal = exchange.route, exchange.principal
    if route is None or principal is None or route.door not in _TELLING:
        return
    with suppress(StorageError):
        standing = plane.allowance.standing(principal.tenant)
        if standing is not None and standing.approaching:
            exchange.extra += _headers(standing)


def _headers(standing: QuotaStatus) -> list[tuple[bytes, bytes]]:
    return [
        (b"x-quota-warning", b"approaching_limit"),
        (b"x-quota-ingests-pct", str(standing.percent).encode()),
        (b"x-quota-reset-date", standing.reset_date.encode()),
    ]
