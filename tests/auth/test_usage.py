"""What tenants use: counted, told, and bounded."""

from collections import Counter
from datetime import UTC, date, datetime
from threading import Barrier, Thread

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import HandClock, SqliteEngine, fresh_folder
from memplane import Settings
from memplane.auth.limits import QuotaGuard, QuotaResource, cycle_of, to_date, to_day
from memplane.auth.usage import Meter
from memplane.config import settings_from
from memplane.errors import InvalidRequest, QuotaExceeded, RateLimited, SettingsInvalid, StorageFull
from memplane.storage.catalog.accounts import Account, UsageCounts

INGEST = "POST /v6/ingest"
RECALL = "POST /v6/recall"


@pytest.fixture
def accounts(engine):
    return engine.accounts()


def as_json(value):
    return msgspec.json.decode(msgspec.json.encode(value))


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_counted_is_told(plane, clock):
    """
    Every figure, in the documented shape, a day without use as well.
    """
    clock.set(datetime(2026, 3, 2, 23, 59, 59, tzinfo=UTC))
    plane.meter.count(
        "default", INGEST, seconds=0.5, request_bytes=10, response_bytes=20, ingest_events=1, tokens=2_500
    )
    plane.meter.count("default", INGEST, failed=True, seconds=0.1, request_bytes=1)
    plane.meter.count("other", INGEST, ingest_events=7)
    clock.advance(seconds=1)
    plane.meter.count("default", RECALL, seconds=0.002, tokens=999)
    plane.meter.count("default", "POST /v6/recall/{recall_id}/feedback")
    plane.meter.count("default", "POST /v6/forget")

    summary = as_json(plane.usage.summary("default"))
    breakdown = as_json(plane.usage.breakdown("default", "today"))
    limits = as_json(plane.usage.limits("default"))

    assert summary | {"daily": summary["daily"][-2:]} == {
        "range": "7d",
        "start_date": "2026-02-25",
        "end_date": "2026-03-03",
        "totals": {
            "requests": 5,
            "ingest_requests": 2,
            "recall_requests": 1,
            "forget_requests": 1,
            "ingest_events": 1,
            "tokens": 3_499,
            "work_units": 6,
            "errors": 1,
            "request_bytes": 11,
            "response_bytes": 20,
        },
        "daily": [
            {
                "date": "2026-03-02",
                "requests": 2,
                "ingest_events": 1,
                "tokens": 2_500,
                "work_units": 3,
                "errors": 1,
            },
            {
                "date": "2026-03-03",
                "requests": 3,
                "ingest_events": 0,
                "tokens": 999,
                "work_units": 3,
                "errors": 0,
            },
        ],
    }
    assert [day["date"][-2:] for day in summary["daily"]] == ["25", "26", "27", "28", "01", "02", "03"]
    assert breakdown == {
        "range": "today",
        "start_date": "2026-03-03",
        "end_date": "2026-03-03",
        "endpoints": [
            {
                "endpoint": "POST /v6/forget",
                "requests": 1,
                "errors": 0,
                "error_rate": 0.0,
                "avg_latency_ms": 0.0,
            },
            {"endpoint": RECALL, "requests": 1, "errors": 0, "error_rate": 0.0, "avg_latency_ms": 2.0},
            {
                "endpoint": "POST /v6/recall/{recall_id}/feedback",
                "requests": 1,
                "errors": 0,
                "error_rate": 0.0,
                "avg_latency_ms": 0.0,
            },
        ],
    }
    unlimited = {"limit": None, "remaining": None, "percentage_used": 0.0}
    assert limits == {
        "plan": "self-hosted",
        "billing_cycle_day": 1,
        "reset_date": "2026-04-01T00:00:00Z",
        "is_within_quota": True,
        "limits": {
            "requests": {"used": 5, **unlimited},
            "tokens": {"used": 3_499, **unlimited},
            "work_units": {"used": 6, **unlimited},
            "ingest_events": {"used": 1, **unlimited},
        },
    }


@pytest.mark.parametrize(
    ("period", "start"), [("today", "11-15"), ("7d", "11-09"), ("month", "11-01"), ("30d", "10-17")]
)
def test_ranges(plane, period, start):
    """
    All of them end today, and have every day.
    """
    summary = plane.usage.summary("default", period)

    assert (summary.start_date, summary.end_date) == (f"2026-{start}", "2026-11-15")
    assert len(summary.daily) == (date(2026, 11, 15) - date.fromisoformat(summary.start_date)).days + 1


def test_another_range_is_refused(plane):
    """
    In words that say which there are.
    """
    with pytest.raises(InvalidRequest, match="7d, 30d, month, today"):
        plane.usage.breakdown("default", "year")


def test_errors_and_latency_by_endpoint(plane):
    """
    The busiest first.
    """
    plane.meter.count("default", RECALL)
    for failed in (True, False, False):
        plane.meter.count("default", INGEST, failed=failed, seconds=0.010)

    first, second = plane.usage.breakdown("default").endpoints

    assert (first.endpoint, first.requests, first.errors, first.error_rate, first.avg_latency_ms) == (
        INGEST,
        3,
        1,
        0.3333,
        10.0,
    )
    assert second.endpoint == RECALL


def test_what_is_counted_until_the_end_is_written(open_plane):
    """
    A plane that is closed leaves nothing in memory, and one that counted nothing writes nothing.
    """
    with open_plane() as plane:
        plane.meter.count("default", RECALL)

    assert open_plane().usage.summary("default").totals.requests == 1


def test_an_embedded_plane_has_no_meter_running(plane, tmp_path):
    """
    Where nobody counts there is no thread and no file.
    """
    plane.space("alice").retain("hello")
    plane.meter.close()

    assert plane.meter._thread is None
    assert not (tmp_path / "data" / "catalog.db").exists()


def test_counts_are_written_by_themselves(accounts, clock):
    """
    Without anybody asking for them.
    """
    written = Barrier(2)

    class Heard:
        def add(self, tallies, *, oldest):
            accounts.add(tallies, oldest=oldest)
            written.wait()

    meter = Meter(Heard(), clock, write_every_s=0.001)
    meter.count("t", RECALL)
    written.wait()
    meter.close()

    assert [tally.requests for _, tally in accounts.tallies("t", first=0, last=99_999)] == [1]


def test_who_writes_outlives_a_bug_and_says_so(accounts, clock, caplog):
    """
    What was counted until then is written with the next.
    """
    written = Barrier(2)

    class Faulty:
        met = False

        def add(self, tallies, *, oldest):
            if not self.met:
                self.met = True
                raise ValueError("a bug")
            accounts.add(tallies, oldest=oldest)
            written.wait()

    meter = Meter(Faulty(), clock, write_every_s=0.001)
    meter.count("t", RECALL)
    written.wait(60)
    meter.close()

    assert [tally.requests for _, tally in accounts.tallies("t", first=0, last=99_999)] == [1]
    said = [record.message for record in caplog.records if record.name == "memplane.usage"]
    assert said == ["usage cannot be written"]


def test_what_could_not_be_written_is_written_later(accounts, clock):
    """
    A full disk costs no count, and no count twice.
    """

    class Full:
        full = True

        def add(self, tallies, *, oldest):
            if self.full:
                raise StorageFull("no room")
            accounts.add(tallies, oldest=oldest)

    store = Full()
    meter = Meter(store, clock, write_every_s=3_600)
    meter.count("t", RECALL, tokens=1)
    with pytest.raises(StorageFull):
        meter.write()
    meter.count("t", RECALL, tokens=2)
    meter.count("t", INGEST)
    store.full = False
    meter.write()
    meter.write()
    meter.close()

    day = clock() // 86_400_000_000
    assert accounts.tallies("t", first=0, last=99_999) == [
        (Account("t", day, INGEST), UsageCounts(requests=1, work_units=1)),
        (Account("t", day, RECALL), UsageCounts(requests=2, tokens=3, work_units=2)),
    ]


COUNTS = st.tuples(
    st.sampled_from(["t", "u"]), st.sampled_from([INGEST, RECALL]), st.integers(0, 5_000), st.booleans()
)


@given(st.lists(st.lists(COUNTS, max_size=30), min_size=1, max_size=4))
def test_counters_add_up_under_threads(shares):
    """
    Whoever counts what and when it is written: in the end everything was counted once.
    """
    with fresh_folder() as folder:
        accounts = SqliteEngine(folder).accounts()
        meter = Meter(accounts, HandClock(), write_every_s=3_600)

        def work(share):
            for tenant, endpoint, tokens, failed in share:
                meter.count(tenant, endpoint, tokens=tokens, failed=failed)
                if tokens % 7 == 0:
                    meter.write()

        threads = [Thread(target=work, args=(share,)) for share in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        meter.close()
        expected = Counter()
        for tenant, endpoint, tokens, failed in (one for share in shares for one in share):
            expected[tenant, endpoint, "requests"] += 1
            expected[tenant, endpoint, "tokens"] += tokens
            expected[tenant, endpoint, "errors"] += failed
            expected[tenant, endpoint, "units"] += 0 if failed else 1 + tokens // 1_000
        found = Counter()
        for tenant in ("t", "u"):
            for account, tally in accounts.tallies(tenant, first=0, last=99_999):
                found[tenant, account.endpoint, "requests"] += tally.requests
                found[tenant, account.endpoint, "tokens"] += tally.tokens
                found[tenant, account.endpoint, "errors"] += tally.errors
                found[tenant, account.endpoint, "units"] += tally.work_units

        assert found == expected


# ── billing cycles ───────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.dates(date(1999, 1, 1), date(2199, 1, 1)), st.integers(1, 28))
def test_every_day_is_in_one_cycle(day, cycle_day):
    """
    A cycle begins and ends on its day of the month, a month apart, and the next begins where it ends.
    """
    cycle = cycle_of(to_day(day), cycle_day)
    first, following = to_date(cycle.first), to_date(cycle.next)

    assert first <= day < following
    assert first.day == following.day == cycle_day
    assert (following.year * 12 + following.month) - (first.year * 12 + first.month) == 1
    assert cycle_of(cycle.next, cycle_day).first == cycle.next
    assert cycle.reset_date == f"{following.isoformat()}T00:00:00Z"


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def use(plane, what=QuotaResource.INGEST, tenant="default"):
    with plane.quota.using(tenant, what):
        pass


def test_without_limits_nothing_is_asked_or_written(plane, tmp_path):
    """
    They are off unless they are set.
    """
    for what in QuotaResource:
        use(plane, what)

    assert plane.quota.status("default") is None
    assert not (tmp_path / "data").exists()


def test_a_quota_is_exact_across_planes(open_plane, clock):
    """
    Two programs share it to the last; then the error says when it begins anew, and it does.
    """
    settings = {"quota_ingest_events": 5, "plan": "free", "billing_cycle_day": 20}
    here, there = open_plane(**settings), open_plane(**settings)
    for plane in (here, there, here, there, here):
        use(plane)

    with pytest.raises(QuotaExceeded) as refused:
        use(there)

    error = refused.value
    assert (error.plan, error.used, error.limit, error.reset_date) == ("free", 5, 5, "2026-11-20T00:00:00Z")
    limits = here.usage.limits("default")
    assert (limits.is_within_quota, limits.limits["ingest_events"].remaining) == (False, 0)
    assert limits.limits["ingest_events"].percentage_used == 100.0
    use(here, tenant="other")
    use(here, QuotaResource.RECALL)
    clock.set(datetime(2026, 11, 20, tzinfo=UTC))
    use(there)
    assert there.quota.status("default").used == 1


def test_what_failed_is_given_back(open_plane):
    """
    Only what was ingested counts.
    """
    plane = open_plane(quota_ingest_events=1)
    with pytest.raises(ZeroDivisionError), plane.quota.using("default", QuotaResource.INGEST):
        _ = 1 / 0

    use(plane)
    with pytest.raises(QuotaExceeded):
        use(plane)


def test_a_quota_counts_what_came_before_it(open_plane):
    """
    Setting one in the middle of a month does not begin the month anew.
    """
    with open_plane() as plane:
        for _ in range(3):
            plane.meter.count("default", INGEST, ingest_events=1)

    plane = open_plane(quota_ingest_events=4)
    use(plane)

    with pytest.raises(QuotaExceeded):
        use(plane)


def test_one_is_told_at_eighty_percent(open_plane):
    """
    Not before; and a hundred is said only when nothing is left.
    """
    plane = open_plane(quota_ingest_events=1_000)
    accounts = plane._parts.stores.accounts()
    told = {}
    for used in (0, 799, 800, 859, 999, 1_000):
        day = plane.quota.cycle().first
        have = plane.quota.status("default").used
        accounts.add({Account("default", day, INGEST): UsageCounts(ingest_events=used - have)}, oldest=0)
        accounts.begin("default", QuotaResource.INGEST, since=day)
        standing = plane.quota.status("default")
        told[standing.used] = (standing.percent, standing.approaching)

    assert told == {
        0: (0, False),
        799: (79, False),
        800: (80, True),
        859: (85, True),
        999: (99, True),
        1_000: (100, True),
    }


def test_a_quota_of_nothing(open_plane):
    """
    Refuses the first, and divides by nobody.
    """
    plane = open_plane(quota_ingest_events=0)

    with pytest.raises(QuotaExceeded):
        use(plane)
    assert plane.usage.limits("default").limits["ingest_events"].percentage_used == 100.0
    assert plane.quota.status("default").percent == 100


def test_a_rate_is_of_any_minute(open_plane, clock):
    """
    The error says how long to wait; whoever waits that long passes.
    """
    plane, other = (open_plane(ingest_per_minute=2, recall_per_minute=1) for _ in range(2))
    use(plane)
    clock.advance(seconds=20.5)
    use(other)
    with pytest.raises(RateLimited) as refused:
        use(plane)
    assert (refused.value.what, refused.value.limit, refused.value.retry_after_s) == ("ingest", 2, 40)

    use(plane, QuotaResource.RECALL)
    with pytest.raises(RateLimited, match="recall"):
        use(other, QuotaResource.RECALL)
    clock.advance(seconds=refused.value.retry_after_s)
    use(other)


def test_a_failure_counts_for_the_rate(open_plane):
    """
    The rate is about the work, not about what comes of it.
    """
    plane = open_plane(recall_per_minute=1)
    with pytest.raises(ZeroDivisionError), plane.quota.using("default", QuotaResource.RECALL):
        _ = 1 / 0

    with pytest.raises(RateLimited):
        use(plane, QuotaResource.RECALL)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("billing_cycle_day", 0),
        ("billing_cycle_day", 29),
        ("quota_ingest_events", -1),
        ("ingest_per_minute", 0),
        ("recall_per_minute", -5),
    ],
)
def test_limits_that_cannot_be_are_refused(accounts, clock, name, value):
    """
    When the plane is opened, by name.
    """
    with pytest.raises(SettingsInvalid, match=name):
        QuotaGuard(accounts, Settings(**{name: value}), clock)


def test_limits_come_from_the_environment():
    """
    Each has its variable.
    """
    settings = settings_from(
        {
            "MEMPLANE_PLAN": "free",
            "MEMPLANE_QUOTA_INGEST_EVENTS": "200",
            "MEMPLANE_BILLING_CYCLE_DAY": "15",
            "MEMPLANE_INGEST_PER_MINUTE": "500",
            "MEMPLANE_RECALL_PER_MINUTE": "600",
        }
    )

    assert (settings.plan, settings.quota_ingest_events, settings.billing_cycle_day) == ("free", 200, 15)
    assert (settings.ingest_per_minute, settings.recall_per_minute) == (500, 600)
