"""Usage per tenant: counted, and reported in the format of usage clients."""

import logging
import threading
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from typing import Literal, TypeVar, get_args

import msgspec

from memplane.auth.limits import QuotaGuard, to_date, to_day
from memplane.clock import DAY, SECOND, Clock
from memplane.errors import InvalidRequest, StorageError
from memplane.storage.catalog.accounts import Account, Accounts, UsageCounts

# Counting costs requests almost nothing. Counts are collected in memory and written every few seconds, when usage is
# read, and on shutdown. A killed process loses the counts since its last write.


RETENTION_DAYS = 400
"""How long usage is kept: a year, and the month it is compared with."""

_WRITE_EVERY_S = 5.0
_TOKENS_PER_UNIT = 1_000

_log = logging.getLogger("memplane.usage")


class Meter:
    """Thread-safe. The writing thread starts with the first count."""

    def __init__(self, accounts: Accounts, clock: Clock, *, write_every_s: float = _WRITE_EVERY_S) -> None:
        self._accounts = accounts
        self._clock = clock
        self._write_every_s = write_every_s
        self._counted: dict[Account, UsageCounts] = {}
        self._counting = threading.Lock()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def count(
        self,
        tenant: str,
        endpoint: str,
        *,
        failed: bool = False,
        seconds: float = 0.0,
        request_bytes: int = 0,
        response_bytes: int = 0,
        ingest_events: int = 0,
        tokens: int = 0,
    ) -> None:
        """Count one request. `endpoint` is a template, never a path, because paths contain user data. A work unit is
        a successful request, plus one per thousand tokens."""
        account = Account(tenant, self._clock() // DAY, endpoint)
        with self._counting:
            tally = self._counted.get(account)
            if tally is None:
                tally = self._counted[account] = UsageCounts()
                self._begin()
            tally.requests += 1
            tally.latency_us += int(seconds * SECOND)
            tally.request_bytes += request_bytes
            tally.response_bytes += response_bytes
            if failed:
                tally.errors += 1
            else:
                tally.work_units += 1 + tokens // _TOKENS_PER_UNIT
            tally.ingest_events += ingest_events
            tally.tokens += tokens

    def write(self) -> None:
        """Write the counts. What cannot be written is kept for the next time."""
        with self._writing:
            with self._counting:
                counted, self._counted = self._counted, {}
            if not counted:
                return
            try:
                self._accounts.add(counted, oldest=self._clock() // DAY - RETENTION_DAYS)
            except BaseException:
                self._flush(counted)
                raise

    def close(self) -> None:
        """Write the rest and stop, ignoring failures."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        with suppress(StorageError):
            self.write()

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="memplane-meter", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._closing.wait(self._write_every_s):
            try:
                self.write()
            except StorageError:
                pass  # kept for the next time
            except Exception:  # noqa: BLE001 - a thread's edge: usage would not be written until it is read
                _log.exception("usage cannot be written")

    def _flush(self, counted: dict[Account, UsageCounts]) -> None:
        with self._counting:
            for account, tally in counted.items():
                self._counted.setdefault(account, UsageCounts()).add(tally)


K = TypeVar("K", bound=Hashable)

Period = Literal["7d", "30d", "month", "today"]
"""The last days including today, the current calendar month, or today; in UTC."""

_SORTS = {"ingest": "ingest", "retain": "ingest", "recall": "recall", "forget": "forget"}
"""By endpoint suffix."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """For a range of days, over all endpoints."""

    requests: int
    ingest_requests: int
    recall_requests: int
    forget_requests: int
    ingest_events: int
    tokens: int
    work_units: int
    errors: int
    request_bytes: int
    response_bytes: int


class DayUsage(msgspec.Struct, frozen=True, kw_only=True):
    """For one day, over all endpoints."""

    date: str
    requests: int
    ingest_events: int
    tokens: int
    work_units: int
    errors: int


class UsageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's usage over a range of days, including days without use."""

    range: str
    start_date: str
    end_date: str
    totals: Totals
    daily: tuple[DayUsage, ...]


class EndpointUsage(msgspec.Struct, frozen=True, kw_only=True):
    """For one endpoint: its method and template."""

    endpoint: str
    requests: int
    errors: int
    error_rate: float
    """A share, 0 to 1."""
    avg_latency_ms: float


class UsageBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's usage over a range of days by endpoint, busiest first."""

    range: str
    start_date: str
    end_date: str
    endpoints: tuple[EndpointUsage, ...]


class UsageLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Usage in the billing cycle; a limit of None means no limit."""

    used: int
    limit: int | None = None
    remaining: int | None = None
    percentage_used: float = 0.0


class UsageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's position in its billing cycle."""

    plan: str
    billing_cycle_day: int
    reset_date: str
    is_within_quota: bool
    limits: dict[str, UsageLimit]


class UsageReports:
    """Reads what all processes wrote. This process writes its counts first; the others do within seconds."""

    def __init__(self, accounts: Accounts, meter: Meter, allowance: QuotaGuard, clock: Clock) -> None:
        self._accounts = accounts
        self._meter = meter
        self._allowance = allowance
        self._clock = clock

    def summary(self, tenant: str, period: str = "7d") -> UsageSummary:
        first, last = self._days(period)
        found = self._tallies(tenant, first, last)
        by_day = _added(found, lambda account: account.day)
        whole = _added(found, lambda _: None).get(None, UsageCounts())
        sorts = _added(found, lambda account: _SORTS.get(account.endpoint.rpartition("/")[2]))
        return UsageSummary(
            range=period,
            start_date=to_date(first).isoformat(),
            end_date=to_date(last).isoformat(),
            totals=Totals(
                requests=whole.requests,
                ingest_requests=sorts.get("ingest", UsageCounts()).requests,
                recall_requests=sorts.get("recall", UsageCounts()).requests,
                forget_requests=sorts.get("forget", UsageCounts()).requests,
                ingest_events=whole.ingest_events,
                tokens=whole.tokens,
                work_units=whole.work_units,
                errors=whole.errors,
                request_bytes=whole.request_bytes,
                response_bytes=whole.response_bytes,
            ),
            daily=tuple(_day_usage(day, by_day.get(day, UsageCounts())) for day in range(first, last + 1)),
        )

    def breakdown(self, tenant: str, period: str = "7d") -> UsageBreakdown:
        first, last = self._days(period)
        by_endpoint = _added(self._tallies(tenant, first, last), lambda account: account.endpoint)
        busiest = sorted(by_endpoint.items(), key=lambda pair: (-pair[1].requests, pair[0]))
        return UsageBreakdown(
            range=period,
            start_date=to_date(first).isoformat(),
            end_date=to_date(last).isoformat(),
            endpoints=tuple(_endpoint_usage(endpoint, tally) for endpoint, tally in busiest),
        )

    def limits(self, tenant: str) -> UsageLimits:
        cycle = self._allowance.cycle()
        found = self._tallies(tenant, cycle.first, cycle.next - 1)
        whole = _added(found, lambda _: None).get(None, UsageCounts())
        status = self._allowance.status(tenant)
        ingested = UsageLimit(used=whole.ingest_events)
        if status is not None:
            ingested = UsageLimit(
                used=status.used,
                limit=status.limit,
                remaining=max(0, status.limit - status.used),
                percentage_used=round(100 * status.used / status.limit, 2) if status.limit else 100.0,
            )
        return UsageLimits(
            plan=self._allowance.plan,
            billing_cycle_day=self._allowance.cycle_day,
            reset_date=cycle.reset_date,
            is_within_quota=status is None or status.used < status.limit,
            limits={
                "requests": UsageLimit(used=whole.requests),
                "tokens": UsageLimit(used=whole.tokens),
                "work_units": UsageLimit(used=whole.work_units),
                "ingest_events": ingested,
            },
        )

    def _tallies(self, tenant: str, first: int, last: int) -> list[tuple[Account, UsageCounts]]:
        self._meter.write()
        return self._accounts.tallies(tenant, first=first, last=last)

    def _days(self, period: str) -> tuple[int, int]:
        today = self._clock() // DAY
        match period:
            case "7d":
                return today - 6, today
            case "30d":
                return today - 29, today
            case "month":
                return to_day(to_date(today).replace(day=1)), today
            case "today":
                return today, today
        raise InvalidRequest(f"range: give one of {', '.join(get_args(Period))}", field="range")


def _added(found: Iterable[tuple[Account, UsageCounts]], key: Callable[[Account], K]) -> dict[K, UsageCounts]:
    sums: dict[K, UsageCounts] = {}
    for account, tally in found:
        sums.setdefault(key(account), UsageCounts()).add(tally)
    return sums


def _day_usage(day: int, tally: UsageCounts) -> DayUsage:
    return DayUsage(
        date=to_date(day).isoformat(),
        requests=tally.requests,
        ingest_events=tally.ingest_events,
        tokens=tally.tokens,
        work_units=tally.work_units,
        errors=tally.errors,
    )


def _endpoint_usage(endpoint: str, tally: UsageCounts) -> EndpointUsage:
    return EndpointUsage(
        endpoint=endpoint,
        requests=tally.requests,
        errors=tally.errors,
        error_rate=round(tally.errors / tally.requests, 4),
        avg_latency_ms=round(tally.latency_us / tally.requests / 1_000, 3),
    )
