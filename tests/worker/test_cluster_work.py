"""Which space a worker is given: fair between tenants, to one at a time, again when its worker died, and never not at all
while something waits. All of it on a real database, whose clock is turned by hand."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
    run_state_machine_as_test,
)
from tests.conftest import costly

from fleet_clock import fleet_database, member, work_off
from memplane import Memplane
from memplane.clock import SECOND
from memplane.storage.work import LOST, Job, NoWork
from memplane.worker.cluster import _change_marker

LEASE = 60 * SECOND
TENANTS = ("amber", "birch", "cedar")
OWNERS = ("ann", "ben")


@pytest.fixture(scope="module")
def place(postgres_server):
    """A database with a clock, and a plane on it, for the whole file."""
    with fleet_database(postgres_server) as (url, hand), Memplane.open(url, embedder=None) as plane:
        plane.work.backlog()  # opens it
        yield plane, hand


@pytest.fixture
def fleet(place):
    plane, hand = place
    hand.forget_work()
    yield plane, hand
    hand.rows("DELETE FROM space WHERE owner LIKE 'crowd-%'")


def take(plane, holder="w", after=0):
    return plane.work.take(holder, after=after, length=LEASE)


def crowd(hand, tenants):
    """So many spaces of each tenant, all waiting; written past the engine, because they are many."""
    for name, count in tenants.items():
        hand.rows("INSERT INTO tenant (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))
        hand.rows(
            "INSERT INTO space (tenant, owner) SELECT t.number, 'crowd-' || n FROM tenant t, generate_series(1, %s) n "
            "WHERE t.name = %s ON CONFLICT DO NOTHING",
            (count, name),
        )
        hand.rows(
            "INSERT INTO work (tenant, owner_number, state, due) SELECT s.tenant, s.number, 'waiting', work_clock() "
            "FROM space s JOIN tenant t ON t.number = s.tenant WHERE t.name = %s AND s.owner LIKE 'crowd-%%' LIMIT %s",
            (name, count),
        )


# ── who is given what ────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_comes_in_is_there_to_be_taken_once(fleet):
    """However often something comes in, the space waits once, and one worker has it."""
    plane, _ = fleet
    for text in ("tea", "coffee", "milk"):
        plane.space("ann").retain(text)

    lease = take(plane)

    assert (lease.tenant, lease.owner, lease.attempts) == ("default", "ann", 0)
    assert take(plane, "other") is None


def test_looking_marks_nothing(fleet):
    plane, _ = fleet
    space = plane.space("ann")
    space.retain("tea")
    work_off(member(plane))

    before = plane.work.backlog()
    space.recall("what does she drink?")
    space.brief()
    plane.space("nobody yet").memories()

    assert plane.work.backlog().waiting == before.waiting == 0


@pytest.mark.parametrize("undone", [True, False])
def test_a_write_that_fails_marks_nothing(fleet, undone):
    """The mark stands and falls with what it is about."""
    plane, hand = fleet
    plane.space("new").ledger.bookmark("is there")

    def work(writer):
        writer.state.set_cursor(writer.state.cursor() + 1)
        writer.state.set_note("x", "y")
        if undone:
            raise ValueError("no")

    with plane._parts.stores.open("default", "new", create=True) as store:
        if undone:
            with pytest.raises(ValueError):
                store.write(work)
        else:
            store.write(work)
            store.write(lambda writer: writer.state.set_cursor(0))

    assert (hand.state("new") is None) == undone


def test_a_crowded_tenant_keeps_nobody_waiting(fleet):
    """Ten thousand spaces that waited before the one of another tenant do not come before it."""
    plane, hand = fleet
    crowd(hand, {"huge": 10_000})
    hand.advance(60)
    crowd(hand, {"tiny": 1})

    first = take(plane)
    second = take(plane, after=first.tenant_number)
    hand.rows("ANALYZE work")
    plan = hand.rows(
        "EXPLAIN SELECT 1 FROM work WHERE state = 'waiting' AND tenant > 0 ORDER BY tenant, due LIMIT 1 "
        "FOR UPDATE SKIP LOCKED"
    )

    assert {first.tenant, second.tenant} == {"huge", "tiny"}
    assert any("Index Scan using work_waiting" in line for (line,) in plan)
    assert not any("Sort" in line for (line,) in plan)


@costly(15, thorough=200)
@given(
    counts=st.dictionaries(st.sampled_from(TENANTS), st.integers(1, 9), min_size=1),
    workers=st.lists(st.integers(0, 2), min_size=1, max_size=40),
)
def test_tenants_take_turns(place, counts, workers):
    """
    Between two spaces of one tenant, a worker is given one of every other tenant that has any waiting all the while.
    """
    plane, hand = place
    hand.forget_work()
    crowd(hand, counts)
    left = dict(counts)
    after = [0, 0, 0]
    since = [{}, {}, {}]
    for worker in workers:
        lease = take(plane, f"w{worker}", after=after[worker])
        if lease is None:
            assert not any(left.values())
            break
        left[lease.tenant] -= 1
        after[worker] = lease.tenant_number
        passed = since[worker]
        assert not [
            other
            for other in passed
            if passed[other] and left[other] and other != lease.tenant and (passed[other] >= len(counts))
        ]
        for tenant in counts:
            passed[tenant] = 0 if tenant == lease.tenant else passed.get(tenant, 0) + 1


def test_of_a_tenant_the_one_that_waits_longest_comes_first(fleet):
    plane, hand = fleet
    for owner in ("zoe", "ann", "kim"):
        plane.space(owner).retain("tea")
        hand.advance(1)

    assert [take(plane).owner for _ in range(3)] == ["zoe", "ann", "kim"]


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_lease_that_is_renewed_stays(fleet):
    plane, hand = fleet
    plane.space("ann").retain("tea")
    lease = take(plane)
    for _ in range(5):
        hand.advance(50)
        assert plane.work.renew(lease, length=LEASE)

    assert take(plane, "other") is None


def test_a_lease_that_runs_out_is_somebody_elses(fleet):
    """And whoever had it cannot speak for it any more."""
    plane, hand = fleet
    plane.space("ann").retain("tea")
    dead = take(plane, "dead")
    hand.advance(61)

    taken = take(plane, "heir")
    plane.work.give_back(dead, got_on=True)
    plane.work.fail(dead, error="x", length=1, counted=True)

    assert (taken.owner, taken.error, taken.failures) == ("ann", LOST, 1)
    assert not plane.work.renew(dead, length=LEASE)
    assert not plane.work.finish(dead, lambda _: NoWork())
    assert plane.work.renew(taken, length=LEASE)


def test_what_failed_waits_and_what_comes_in_does_not_hurry_it(fleet):
    """Otherwise a model that is away would be asked with every turn."""
    plane, hand = fleet
    plane.space("ann").retain("tea")
    plane.work.fail(take(plane), error="llm_unavailable", length=10 * SECOND, counted=False)
    plane.space("ann").retain("coffee")

    assert take(plane) is None
    hand.advance(11)
    assert (take(plane).attempts, hand.state("ann")) == (1, ("held", 1, "llm_unavailable"))


def test_what_is_dead_waits_for_a_person(fleet):
    plane, hand = fleet
    work = plane.work
    plane.space("ann").retain("tea")
    work.bury(take(plane), error="internal")
    plane.space("ann").retain("coffee")
    hand.advance(1e6)

    assert take(plane) is None
    assert [(it.tenant, it.owner, it.error) for it in work.dead(limit=9)] == [("default", "ann", "internal")]
    assert (work.backlog().dead, work.in_trouble(limit=9)) == (1, {("default", "ann"): 1})
    assert (work.retry("default", "nobody"), work.retry("default", "ann"), work.retry()) == (0, 1, 0)
    assert take(plane).attempts == 0


# ── no wake-up is lost ───────────────────────────────────────────────────────────────────────────────────────────────


def test_who_finishes_waits_for_who_writes(fleet):
    """An entry that is about to be committed is seen."""
    plane, hand = fleet
    plane.space("held up").retain("tea")
    work_off(member(plane))
    plane.space("held up").retain("coffee")
    lease = take(plane)
    writing, go_on = threading.Event(), threading.Event()
    with plane._parts.stores.open("default", "held up", create=False) as store:
        with store.read() as reader:
            seen = _change_marker(reader)

        def work(writer):
            writer.state.set_cursor(writer.state.cursor() - 1)
            writer.state.set_note("x", "y")
            writing.set()
            go_on.wait(30)

        writer = threading.Thread(target=store.write, args=(work,))
        writer.start()
        writing.wait(30)
        said = []
        finisher = threading.Thread(
            target=lambda: said.append(
                plane.work.finish(lease, lambda reader: NoWork() if _change_marker(reader) == seen else None)
            )
        )
        finisher.start()
        while not hand.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            pass
        go_on.set()
        writer.join()
        finisher.join()

    assert said == [False]
    assert hand.state("held up")[0] == "held"
    plane.space("held up").ledger.catch_up()


def test_who_writes_waits_for_who_finishes(fleet):
    """What comes in while somebody says that nothing waits, waits."""
    plane, hand = fleet
    plane.space("ann").retain("tea")
    lease = take(plane)
    writer = threading.Thread(target=plane.space("ann").retain, args=("coffee",))

    def decide(_reader):
        writer.start()
        while not hand.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            pass
        return NoWork()

    assert plane.work.finish(lease, decide)
    writer.join()
    assert hand.state("ann")[0] == "waiting"


def test_a_replay_is_something_to_do(fleet):
    """Nothing came in, and everything is to be derived again."""
    plane, hand = fleet
    space = plane.space("ann")
    space.retain("I live in Lisbon")
    work_off(member(plane))
    space.ledger.replay()

    assert hand.state("ann")[0] == "waiting"


def test_a_conversation_that_pauses_comes_due_by_itself(fleet):
    plane, hand = fleet
    space = plane.space("paused")
    for text in ("I live in Lisbon.", "I like tea.", "I have a dog.", "My name is Ann."):
        space.retain(text, conversation="c1")
    one = member(plane)
    work_off(one)

    assert hand.state("paused")[0] == "resting"
    hand.advance(3 * 3_600)
    assert one.step()


class Interleaved(RuleBasedStateMachine):
    """Whatever happens in whichever order, a space in which something is to be done is waiting, held, or tried again."""

    plane = hand = None
    leases = Bundle("leases")

    def __init__(self):
        super().__init__()
        self.hand.forget_work()
        self.hand.rows(
            "UPDATE meta SET value = (SELECT value FROM meta c WHERE (c.tenant, c.space, c.name) = "
            "(meta.tenant, meta.space, 'cursor')) WHERE name = 'derived'"
        )
        self.hand.forget_work()
        self.after = 0

    @rule(tenant=st.sampled_from(TENANTS), owner=st.sampled_from(OWNERS))
    def append(self, tenant, owner):
        self.plane.space(owner, tenant=tenant).retain("I like tea")

    @rule(target=leases, holder=st.sampled_from("xyz"))
    def take(self, holder):
        lease = take(self.plane, holder, self.after)
        if lease is not None:
            self.after = lease.tenant_number
        return lease, None

    @rule(target=leases, held=consumes(leases))
    def work(self, held):
        lease, _ = held
        if lease is None:
            return held
        with self.plane._parts.stores.open(lease.tenant, lease.owner, create=False) as store:
            with store.read() as reader:
                seen = _change_marker(reader)
            self.plane._parts.worker.drain(store)
        return lease, seen

    @rule(held=consumes(leases))
    def finish(self, held):
        lease, seen = held
        if lease is not None and seen is not None:
            self.plane.work.finish(lease, lambda reader: member(self.plane)._rest(reader, seen))

    @rule(held=consumes(leases), how=st.sampled_from(["back", "fail", "count", "crash"]))
    def end(self, held, how):
        lease, _ = held
        if lease is None or how == "crash":
            return
        if how == "back":
            self.plane.work.give_back(lease, got_on=True)
        else:
            self.plane.work.fail(lease, error="x", length=5 * SECOND, counted=how == "count")

    @rule(seconds=st.sampled_from([1, 10, 100]))
    def pass_time(self, seconds):
        self.hand.advance(seconds)

    @invariant()
    def nothing_is_overlooked(self):
        overlooked = self.hand.rows(
            "SELECT s.owner FROM space s "
            "JOIN meta c ON (c.tenant, c.space, c.name) = (s.tenant, s.number, 'cursor') "
            "JOIN meta d ON (d.tenant, d.space, d.name) = (s.tenant, s.number, 'derived') "
            "WHERE c.value::bigint > d.value::bigint AND NOT EXISTS (SELECT 1 FROM work w WHERE "
            "(w.tenant, w.owner_number) = (s.tenant, s.number) AND (w.state <> 'resting' OR w.attempts > 0))"
        )
        assert overlooked == []

    @invariant()
    def a_lease_has_a_holder(self):
        assert self.hand.rows("SELECT 1 FROM work WHERE (state = 'held') <> (holder IS NOT NULL)") == []

    def teardown(self):
        self.hand.advance(1_000)
        work_off(member(self.plane, failures_max=1_000))
        backlog = self.plane.work.backlog()
        assert (backlog.waiting, backlog.held, backlog.behind, backlog.dead) == (0, 0, 0, 0)


def test_whatever_the_order_nothing_is_overlooked(place):
    class Here(Interleaved):
        plane, hand = place

    run_state_machine_as_test(Here, settings=costly(6, steps=25, thorough=60))


# ── once for everybody ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_is_one_workers_and_then_nobodys(fleet):
    plane, hand = fleet
    work = plane.work
    day = ("sweep", "2026-11-15")

    assert work.claim_job(*day, "a", length=LEASE) is Job.YOURS
    assert work.claim_job(*day, "b", length=LEASE) is Job.ELSEWHERE
    hand.advance(61)  # a died
    assert work.claim_job(*day, "b", length=LEASE) is Job.YOURS
    assert not work.renew_job(*day, "a", length=LEASE)
    assert not work.finish_job(*day, "a", kept=0)
    assert work.finish_job(*day, "b", kept=0)
    hand.advance(61)
    assert work.claim_job(*day, "a", length=LEASE) is Job.DONE
    assert work.claim_job("sweep", "2026-11-16", "a", length=LEASE) is Job.YOURS


def test_every_space_is_scheduled_but_not_hurried(fleet):
    """Those in trouble keep their time, those at work are left alone."""
    plane, hand = fleet
    for owner in OWNERS:
        plane.space(owner, tenant="quiet").retain("tea")
    work_off(member(plane))
    plane.space("sick", tenant="quiet").retain("tea")
    plane.work.fail(take(plane), error="x", length=9_000 * SECOND, counted=True)
    plane.work.schedule(1_000 * SECOND, renew=lambda: True)

    hand.advance(1_001)
    assert work_off(member(plane)) == len(hand.rows("SELECT 1 FROM space")) - 1
    assert hand.state("sick")[0] == "resting"


def test_who_works_is_known_and_adds_up(fleet):
    plane, hand = fleet
    work = plane.work
    plane.space("ann").retain("I like tea")
    one = member(plane)
    work_off(one)
    work.report("gone", one._done)
    hand.advance(100)
    one.close()

    assert [(it.holder == one.holder, it.ended) for it in work.colleagues(silent=60 * SECOND)] == [
        (False, True),
        (True, True),
    ]
    before = work.worked()
    work.add_up(kept=50 * SECOND)
    assert len(work.colleagues(silent=60 * SECOND)) == 1
    assert work.worked() == before
    assert before.taken == 2 * one._done.taken > 0
