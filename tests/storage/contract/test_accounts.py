"""What every engine must do for what tenants use."""

from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import SqliteEngine, fresh_folder
from memplane.storage.catalog.accounts import MINUTE, Account, Quota, UsageCounts, UseResult

NOW = 1_790_000_000_000_000
DAY = 20_000


@pytest.fixture
def accounts(engine):
    return engine.accounts()


@pytest.fixture
def elsewhere(engine):
    """Another program on the same data."""
    return engine.accounts()


def test_looking_leaves_no_trace(accounts, tmp_path):
    """
    Where nothing was counted there is nothing, and no file.
    """
    assert accounts.tallies("t", first=0, last=DAY) == []
    assert accounts.used("t", "ingest", since=0) == 0
    assert list(tmp_path.iterdir()) == []


def test_counts_of_all_programs_add_up(accounts, elsewhere):
    """
    Every column, by tenant, day and endpoint.
    """
    full = UsageCounts(
        requests=1,
        errors=2,
        latency_us=3,
        request_bytes=4,
        response_bytes=5,
        ingest_events=6,
        tokens=7,
        work_units=8,
    )
    accounts.add({Account("t", DAY, "GET /a"): full, Account("u", DAY, "GET /a"): full}, oldest=0)
    elsewhere.add({Account("t", DAY, "GET /a"): full, Account("t", DAY + 1, "GET /b"): full}, oldest=0)
    twice = UsageCounts()
    twice.add(full)
    twice.add(full)

    assert accounts.tallies("t", first=DAY, last=DAY + 1) == [
        (Account("t", DAY, "GET /a"), twice),
        (Account("t", DAY + 1, "GET /b"), full),
    ]
    assert accounts.tallies("t", first=DAY + 1, last=DAY + 9) == [(Account("t", DAY + 1, "GET /b"), full)]


def test_what_is_too_old_is_dropped(accounts):
    """
    What is there already, and what comes too late.
    """
    accounts.add({Account("t", DAY, "GET /a"): UsageCounts(requests=1)}, oldest=0)
    accounts.add({Account("t", DAY + 1, "GET /a"): UsageCounts(requests=1)}, oldest=DAY + 1)
    accounts.add({Account("t", DAY, "GET /a"): UsageCounts(requests=1)}, oldest=DAY + 1)

    assert [account.day for account, _ in accounts.tallies("t", first=0, last=DAY + 9)] == [DAY + 1]


def take(accounts, *, now=NOW, rate=None, quota=None, tenant="t", what="ingest"):
    return accounts.take(tenant, what, now=now, rate=rate, quota=quota)


def test_a_quota_ends(accounts, elsewhere):
    """
    At exactly its limit, for every program; another tenant, sort or cycle has its own.
    """
    quota = Quota(2, DAY)
    assert take(accounts, quota=quota) == UseResult()
    assert take(elsewhere, quota=quota) == UseResult()

    assert take(accounts, quota=quota) == take(elsewhere, quota=quota) == UseResult(exceeded=True)
    assert accounts.used("t", "ingest", since=DAY) == 2
    assert take(accounts, quota=quota, tenant="u") == UseResult()
    assert take(accounts, quota=quota, what="other") == UseResult()
    assert take(accounts, quota=Quota(2, DAY + 30)) == UseResult()
    assert take(accounts, quota=Quota(3, DAY)) == UseResult()
    assert take(accounts, quota=Quota(0, DAY + 60)) == UseResult(exceeded=True)


def test_what_is_given_back_can_be_taken_again(accounts):
    """
    And never more than was taken.
    """
    quota = Quota(1, DAY)
    take(accounts, quota=quota)
    for _ in range(3):
        accounts.give_back("t", "ingest", since=DAY)

    assert accounts.used("t", "ingest", since=DAY) == 0
    assert [take(accounts, quota=quota).exceeded for _ in range(2)] == [False, True]


def test_a_quota_begins_with_what_was_metered(accounts):
    """
    Since the cycle began; what was counted and not metered yet stays counted.
    """
    accounts.add({Account("t", DAY - 1, "a"): UsageCounts(ingest_events=9)}, oldest=0)
    accounts.add(
        {
            Account("t", DAY, "a"): UsageCounts(ingest_events=2),
            Account("t", DAY + 1, "b"): UsageCounts(ingest_events=1),
        },
        oldest=0,
    )
    accounts.begin("t", "ingest", since=DAY)
    assert accounts.used("t", "ingest", since=DAY) == 3

    take(accounts, quota=Quota(9, DAY))
    accounts.begin("t", "ingest", since=DAY)

    assert accounts.used("t", "ingest", since=DAY) == 4


def test_a_rate_lets_so_many_through_in_any_minute(accounts, elsewhere):
    """
    Not in a minute of the clock: what was let through late in one counts in the next. What is refused does not count.
    """
    times = [NOW, NOW + 50 * MINUTE // 60]
    for at in times:
        assert take(accounts, now=at, rate=2) == UseResult()

    assert take(elsewhere, now=NOW + MINUTE - 1, rate=2) == UseResult(wait=1)
    assert take(elsewhere, now=NOW + MINUTE, rate=2) == UseResult()
    assert take(accounts, now=NOW + MINUTE, rate=2) == UseResult(wait=50 * MINUTE // 60)
    assert take(accounts, now=NOW + MINUTE, rate=2, what="recall") == UseResult()
    assert take(accounts, now=NOW + MINUTE, rate=2, tenant="u") == UseResult()


def test_a_rate_may_change(accounts):
    """
    A lower one counts what was let through before; a higher one lets more through at once.
    """
    for _ in range(4):
        assert not take(accounts, rate=4).wait

    assert take(accounts, rate=2).wait == MINUTE
    assert take(accounts, rate=5) == UseResult()
    assert take(accounts, rate=5).wait == MINUTE
    assert take(accounts, now=NOW + MINUTE, rate=1) == UseResult()
    assert take(accounts, now=NOW + MINUTE, rate=1).wait == MINUTE


def test_a_clock_that_is_put_back_locks_nobody_out(accounts):
    """
    Times far in the future are passed over.
    """
    take(accounts, rate=1)

    assert take(accounts, now=NOW - 3_600 * 1_000_000, rate=1) == UseResult()


def test_of_a_full_quota_the_rate_is_not_used(accounts):
    """
    Whoever gets nothing has used nothing.
    """
    take(accounts, rate=2, quota=Quota(1, DAY))
    assert take(accounts, rate=2, quota=Quota(1, DAY)).exceeded

    assert take(accounts, rate=2) == UseResult()


@given(
    gaps=st.lists(st.integers(0, MINUTE), min_size=1, max_size=40),
    rate=st.integers(1, 6),
)
def test_no_minute_has_more_than_the_rate_and_nobody_waits_in_vain(gaps, rate):
    """
    Whenever calls come: a refused one would have been one too many, and after its wait it passes.
    """
    with fresh_folder() as folder:
        accounts = SqliteEngine(folder).accounts()
        passed, now = [], NOW
        for gap in gaps:
            now += gap
            taken = take(accounts, now=now, rate=rate)
            recent = [at for at in passed if at > now - MINUTE]
            assert bool(taken.wait) == (len(recent) >= rate)
            if taken.wait:
                assert taken.wait == recent[-rate] + MINUTE - now
            else:
                passed.append(now)


def test_threads_that_take_at_once_get_exactly_the_quota(engine):
    """
    Each a program of its own: neither one too many nor one too few.
    """
    count, each, limit = 4, 25, 60
    begin, got = Barrier(count), []

    def work():
        accounts = engine.accounts()
        begin.wait()
        got.extend(not take(accounts, quota=Quota(limit, DAY)).exceeded for _ in range(each))

    threads = [Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(got) == limit
    assert engine.accounts().used("t", "ingest", since=DAY) == limit
