"""Quotas per billing cycle and rate limits per minute. Disabled by default."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

import msgspec

from memplane.clock import DAY, SECOND, Clock
from memplane.config import Settings
from memplane.errors import QuotaExceeded, RateLimited, SettingsInvalid
from memplane.storage.catalog.accounts import Accounts, Quota

# Days and billing cycles. A day is a number: days since 1970, in UTC.


_EPOCH = date(1970, 1, 1)


class Cycle(msgspec.Struct, frozen=True):
    """From its first day to the first day of the next."""

    first: int
    next: int

    @property
    def reset_date(self) -> str:
        """`2026-04-01T00:00:00Z`."""
        midnight = datetime.combine(to_date(self.next), datetime.min.time(), UTC)
        return midnight.strftime("%Y-%m-%dT%H:%M:%SZ")


def to_date(day: int) -> date:
    return _EPOCH + timedelta(days=day)


def to_day(moment: date) -> int:
    return (moment - _EPOCH).days


def cycle_of(day: int, cycle_day: int) -> Cycle:
    """The cycle a day is in. Every month has a 28th, so `cycle_day` is at most that."""
    today = to_date(day)
    begun = today.replace(day=cycle_day)
    if begun > today:
        begun = (today.replace(day=1) - timedelta(days=1)).replace(day=cycle_day)
    following = (begun.replace(day=1) + timedelta(days=31)).replace(day=cycle_day)
    return Cycle(to_day(begun), to_day(following))


_APPROACHING_PERCENT = 80
_CYCLE_DAY_MAX = 28


class QuotaResource(StrEnum):
    """What is limited."""

    INGEST = "ingest"
    RECALL = "recall"


class QuotaStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant's use of its quota."""

    used: int
    limit: int
    reset_date: str

    @property
    def percent(self) -> int:
        """Rounded down, so 100 means that nothing is left."""
        return 100 * self.used // self.limit if self.limit else 100

    @property
    def approaching(self) -> bool:
        """Close enough to the limit for a warning."""
        return self.percent >= _APPROACHING_PERCENT


class QuotaGuard:
    """Decides whether one more use is allowed, and counts it. Exact across processes: with a limit set, every use is
    counted in the catalog, which takes a transaction without a sync."""

    def __init__(self, accounts: Accounts, settings: Settings, clock: Clock) -> None:
        _check(settings)
        self.plan = settings.plan
        self.cycle_day = settings.billing_cycle_day
        self.quota = settings.quota_ingest_events
        self._accounts = accounts
        self._clock = clock
        self._rates = {
            QuotaResource.INGEST: settings.ingest_per_minute,
            QuotaResource.RECALL: settings.recall_per_minute,
        }
        self._begun: set[tuple[str, int]] = set()
        self._beginning = threading.Lock()

    @contextmanager
    def using(self, tenant: str, what: QuotaResource) -> Iterator[None]:
        """Count one use for the block. If the block fails, the quota is refunded; the rate is not.

        Raises `RateLimited` or `QuotaExceeded`, and then counts nothing.
        """
        cycle = self.cycle()
        self._consume(tenant, what, cycle)
        try:
            yield
        except BaseException:
            if self._quota_of(what, cycle) is not None:
                self._accounts.give_back(tenant, what, since=cycle.first)
            raise

    def status(self, tenant: str) -> QuotaStatus | None:
        """None without a quota."""
        if self.quota is None:
            return None
        cycle = self.cycle()
        self._begin(tenant, cycle)
        used = self._accounts.used(tenant, QuotaResource.INGEST, since=cycle.first)
        return QuotaStatus(used=used, limit=self.quota, reset_date=cycle.reset_date)

    def cycle(self) -> Cycle:
        """The current billing cycle."""
        return cycle_of(self._clock() // DAY, self.cycle_day)

    def _consume(self, tenant: str, what: QuotaResource, cycle: Cycle) -> None:
        rate, quota = self._rates[what], self._quota_of(what, cycle)
        if rate is None and quota is None:
            return
        if quota is not None:
            self._begin(tenant, cycle)
        taken = self._accounts.take(tenant, what, now=self._clock(), rate=rate, quota=quota)
        if taken.wait:
            assert rate is not None
            raise RateLimited(what, rate, -(-taken.wait // SECOND))
        if taken.exceeded:
            assert quota is not None
            used = self._accounts.used(tenant, what, since=cycle.first)
            raise QuotaExceeded(plan=self.plan, used=used, limit=quota.limit, reset_date=cycle.reset_date)

    def _quota_of(self, what: QuotaResource, cycle: Cycle) -> Quota | None:
        if what is not QuotaResource.INGEST or self.quota is None:
            return None
        return Quota(self.quota, cycle.first)

    def _begin(self, tenant: str, cycle: Cycle) -> None:
        """Events ingested before the quota was set count too; looked up once per tenant and cycle."""
        if (tenant, cycle.first) in self._begun:
            return
        with self._beginning:
            self._accounts.begin(tenant, QuotaResource.INGEST, since=cycle.first)
            self._begun.add((tenant, cycle.first))


def _check(settings: Settings) -> None:
    if not 1 <= settings.billing_cycle_day <= _CYCLE_DAY_MAX:
        raise SettingsInvalid(
            f"billing_cycle_day: {settings.billing_cycle_day} is not a day that every month has; "
            f"give 1 to {_CYCLE_DAY_MAX}"
        )
    if settings.quota_ingest_events is not None and settings.quota_ingest_events < 0:
        raise SettingsInvalid("quota_ingest_events: give 0 or more, or leave it out for no quota")
    for name in ("ingest_per_minute", "recall_per_minute"):
        rate = getattr(settings, name)
        if rate is not None and rate < 1:
            raise SettingsInvalid(f"{name}: give 1 or more, or leave it out for no limit")
