"""`Accounts` in the catalog database."""

from collections.abc import Mapping

from memplane.clock import Instant
from memplane.storage.accounts import MINUTE, Account, Quota, UsageCounts, UseResult
from memplane.storage.sql.catalog.catalog import Catalog, CatalogWriter

_COUNTS = UsageCounts.__struct_fields__


class SqlAccounts:
    """The rate is kept exactly by the times of the last calls, as many as one minute may have: whether another may pass
    is a look at the one that was let through so many calls ago."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def add(self, tallies: Mapping[Account, UsageCounts], *, oldest: int) -> None:
        rows = [
            (*account, *(getattr(tally, name) for name in _COUNTS))
            for account, tally in tallies.items()
            if account.day >= oldest
        ]

        def work(writer: CatalogWriter) -> None:
            writer.run_many("add_usage", rows)
            writer.run("drop_usage", oldest=oldest)

        self._catalog.jot(work)

    def tallies(self, tenant: str, *, first: int, last: int) -> list[tuple[Account, UsageCounts]]:
        found = self._catalog.read("usage", tenant=tenant, first=first, last=last)
        return [
            (Account(tenant, day, endpoint), UsageCounts(**dict(zip(_COUNTS, counts, strict=True))))
            for day, endpoint, *counts in found
        ]

    def begin(self, tenant: str, what: str, *, since: int) -> None:
        self._catalog.jot(lambda writer: writer.run("begin_spent", tenant=tenant, what=what, since=since))

    def take(
        self, tenant: str, what: str, *, now: Instant, rate: int | None, quota: Quota | None
    ) -> UseResult:
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

        return self._catalog.jot(work)

    def give_back(self, tenant: str, what: str, *, since: int) -> None:
        self._catalog.jot(lambda writer: writer.run("give_back", tenant=tenant, what=what, since=since))

    def used(self, tenant: str, what: str, *, since: int) -> int:
        found = self._catalog.read("spent", tenant=tenant, what=what, since=since)
        return int(found[0][0]) if found else 0


def _wait(writer: CatalogWriter, tenant: str, what: str, now: Instant, rate: int) -> Instant:
    """Times from the future are of a clock that was put back, and must not lock anybody out until it is there again."""
    found = writer.run("passed", tenant=tenant, what=what, rate=rate)
    at = found[0][0] if found else now - MINUTE
    return min(MINUTE, at + MINUTE - now) if now - MINUTE < at <= now + MINUTE else 0
