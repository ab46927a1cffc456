"""Accounts: what tenants used, and their limits.

Nothing here is synced to the disk. A killed process loses nothing; a power failure may lose the last moments.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from memplane.clock import SECOND, Instant
from memplane.storage.catalog.catalog import Catalog, CatalogWriter

MINUTE = 60 * SECOND


class Account(NamedTuple):
    """What is counted together: the calls of a tenant to an endpoint on one day."""

    tenant: str
    day: int
    """Days since 1970, in UTC."""
    endpoint: str


class UsageCounts(msgspec.Struct, kw_only=True, gc=False):
    """What was counted. The fields are named as the columns."""

    requests: int = 0
    errors: int = 0
    latency_us: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    ingest_events: int = 0
    tokens: int = 0
    work_units: int = 0

    def add(self, other: "UsageCounts") -> None:
        self.requests += other.requests
        self.errors += other.errors
        self.latency_us += other.latency_us
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        self.ingest_events += other.ingest_events
        self.tokens += other.tokens
        self.work_units += other.work_units


class Quota(msgspec.Struct, frozen=True):
    """A limit, counted from the day a billing cycle began."""

    limit: int
    since: int


class UseResult(msgspec.Struct, frozen=True):
    """The result of an attempt to use something. It was counted unless one of these fields is set."""

    wait: Instant = 0
    """How long until the rate limit allows the next use."""
    exceeded: bool = False
    """The quota is used up."""


_COUNTS = UsageCounts.__struct_fields__


class Accounts:
    """Any number of threads and processes use it at once; what one adds, all see.

    The rate is exact: the times of the last calls are kept, as many as one minute may have, so that whether another may pass is
    a look at the call so many before it.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def add(self, tallies: Mapping[Account, UsageCounts], *, oldest: int) -> None:
        """Add counts, all or none; counts of days before `oldest` are dropped."""
        rows = [
            (*account, *(getattr(tally, name) for name in _COUNTS))
            for account, tally in tallies.items()
            if account.day >= oldest
        ]

        def work(writer: CatalogWriter) -> None:
            writer.run_many("add_usage", rows)
            writer.run("drop_usage", oldest=oldest)

        self._catalog.write_unsynced(work)

    def tallies(self, tenant: str, *, first: int, last: int) -> list[tuple[Account, UsageCounts]]:
        """The counts of a tenant from the first day to the last, in order."""
        found = self._catalog.read("usage", tenant=tenant, first=first, last=last)
        return [
            (Account(tenant, day, endpoint), UsageCounts(**dict(zip(_COUNTS, counts, strict=True))))
            for day, endpoint, *counts in found
        ]

    def begin(self, tenant: str, what: str, *, since: int) -> None:
        """Start a quota from what was metered since then, if that is more than was counted."""
        self._catalog.write_unsynced(
            lambda writer: writer.run("begin_spent", tenant=tenant, what=what, since=since)
        )

    def take(
        self, tenant: str, what: str, *, now: Instant, rate: int | None, quota: Quota | None
    ) -> UseResult:
        """Use one. Exact across processes: at most `rate` in any minute, and at most the quota in a cycle. A
        refused attempt is not counted."""

        def work(writer: CatalogWriter) -> UseResult:
            writer.alone(tenant, what)
            if rate is not None and (wait := _wait(writer, tenant, what, now, rate)):
                return UseResult(wait=wait)
            if quota is not None and not writer.run(
                "spend", tenant=tenant, what=what, since=quota.since, limit=quota.limit
            ):
                return UseResult(exceeded=True)
            if rate is not None:
                writer.run("pass", tenant=tenant, what=what, at=now)
                writer.run("forget_passed", tenant=tenant, what=what, rate=rate)
            return UseResult()

        return self._catalog.write_unsynced(work)

    def give_back(self, tenant: str, what: str, *, since: int) -> None:
        """Return one use to the quota."""
        self._catalog.write_unsynced(
            lambda writer: writer.run("give_back", tenant=tenant, what=what, since=since)
        )

    def used(self, tenant: str, what: str, *, since: int) -> int:
        """How much of the quota is used."""
        found = self._catalog.read("spent", tenant=tenant, what=what, since=since)
        return int(found[0][0]) if found else 0


def _wait(writer: CatalogWriter, tenant: str, what: str, now: Instant, rate: int) -> Instant:
    """Times in the future come from a clock that was set back, and must not block a tenant."""
    found = writer.run("passed", tenant=tenant, what=what, rate=rate)
    at = found[0][0] if found else now - MINUTE
    return min(MINUTE, at + MINUTE - now) if now - MINUTE < at <= now + MINUTE else 0
