"""What tenants used, and what they may use: the part of the catalog that metering and limits need.

Nothing here is synced to the disk: a process that is killed loses nothing of it, a loss of power the last moments. Every
engine passes tests/contract/test_accounts.py.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import msgspec

from memplane.clock import SECOND, Instant

MINUTE = 60 * SECOND


class Account(NamedTuple):
    """What is counted together: the calls of a tenant to an endpoint, on one day."""

    tenant: str
    day: int
    """Since 1970, in UTC."""
    endpoint: str


class UsageCounts(msgspec.Struct, kw_only=True, gc=False):
    """What was counted. The names are the columns'."""

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
    """So many, counted from the day on which a billing cycle began."""

    limit: int
    since: int


class UseResult(msgspec.Struct, frozen=True):
    """How an attempt to use something ended; it was counted unless one of these says no."""

    wait: Instant = 0
    """How long until the rate lets the next one through."""
    exceeded: bool = False
    """The quota is used up."""


class Accounts(Protocol):
    """Any number of threads and processes use it at once; what one adds, all see."""

    def add(self, tallies: Mapping[Account, UsageCounts], *, oldest: int) -> None:
        """Add to what is there, all or none; what is of a day before `oldest` is dropped."""

    def tallies(self, tenant: str, *, first: int, last: int) -> list[tuple[Account, UsageCounts]]:
        """Of the days from the first to the last, in their order."""

    def begin(self, tenant: str, what: str, *, since: int) -> None:
        """Count a quota from what was metered since then, where that is more than was counted."""

    def take(
        self, tenant: str, what: str, *, now: Instant, rate: int | None, quota: Quota | None
    ) -> UseResult:
        """Use one. Exact, whichever processes ask: of any minute no more than `rate` are let through, of the cycle no more
        than the quota. What is refused is not counted."""

    def give_back(self, tenant: str, what: str, *, since: int) -> None:
        """One was taken from the quota and not used after all."""

    def used(self, tenant: str, what: str, *, since: int) -> int:
        """Of the quota, so far."""
