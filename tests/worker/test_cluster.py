"""Workers that share a database: what fails is tried again, ever later, until it is dead; what is done once a day is done
once, whoever dies; and whoever ends hands over."""

import threading
from contextlib import contextmanager, suppress

import psycopg
import pytest
from tests.conftest import HandClock

from fleet_clock import fleet_database, member, work_off
from http_server import serving
from memplane import Memplane, Settings
from memplane.clock import SECOND
from memplane.compaction.retention import day_of
from memplane.errors import StorageError
from memplane.models.llm import LLMUnavailable
from memplane.storage.work import WorkerCounts
from memplane.worker.cluster import ClusterJob, cluster_jobs
from stub_embedder_enrich import BagOfWords

PATIENCE_SECONDS = 240


@pytest.fixture(scope="module")
def database(postgres_server):
    with fleet_database(postgres_server) as (url, hand):
        yield url, hand


@pytest.fixture
def fleet(database):
    url, hand = database
    hand.rows("DELETE FROM space")
    hand.forget_work()
    with Memplane.open(url, embedder=BagOfWords(dimension=8), clock=HandClock()) as plane:
        yield plane, hand


class Killed(BaseException):
    """As far as a test can die: nothing is tidied up."""


class Slow(BagOfWords):
    """Goes on when it is told to."""

    def __init__(self):
        super().__init__(dimension=8)
        self.begun, self.go_on = threading.Event(), threading.Event()

    def embed_texts(self, texts):
        self.begun.set()
        assert self.go_on.wait(PATIENCE_SECONDS)
        return super().embed_texts(texts)


def tell(plane, owner="ann", text="I live in Lisbon", **fields):
    plane.space(owner).retain(text, **fields)


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def failing(monkeypatch, plane, error):
    """From now on every step at a space named `sick` fails."""
    real = plane._parts.worker.step

    def step(store, **options):
        if store.owner == "sick":
            raise error
        return real(store, **options)

    monkeypatch.setattr(plane._parts.worker, "step", step)


def test_what_fails_is_tried_ever_later_and_then_waits_for_a_person(fleet, monkeypatch):
    """And keeps nobody else waiting meanwhile."""
    plane, hand = fleet
    failing(monkeypatch, plane, ValueError("a bug"))
    tell(plane, "sick")
    tell(plane, "well")
    one = member(plane, failures_max=4)
    waits = []
    while hand.state("sick")[0] != "dead":
        work_off(one)
        waits.append(0)
        while hand.state("sick")[0] == "resting":
            assert waits[-1] < 100
            hand.advance(0.5)
            waits[-1] += 0.5
            one.step()

    assert [low <= wait <= high for wait, low, high in zip(waits, (0.5, 1, 2), (1.5, 2.5, 4.5), strict=False)]
    assert plane.space("well").overview.enrichment().waiting.nothing
    assert hand.state("sick") == ("dead", 4, "internal")
    assert plane.readiness().ready


def test_what_is_nobodys_fault_never_dies(fleet, monkeypatch):
    """A model may be away for a day; everybody gets on by themselves when it is back."""
    plane, hand = fleet
    failing(monkeypatch, plane, LLMUnavailable("away"))
    tell(plane, "sick")
    one = member(plane, failures_max=2)
    for _ in range(8):
        assert one.step()
        hand.advance(1_000)
    monkeypatch.undo()
    work_off(one)

    assert plane.space("sick").overview.enrichment().waiting.nothing
    assert hand.state("sick") is None


def test_a_space_that_kills_its_workers_dies_itself(fleet, monkeypatch):
    plane, hand = fleet
    failing(monkeypatch, plane, Killed())
    tell(plane, "sick")
    for _ in range(3):
        with pytest.raises(Killed):
            member(plane, failures_max=3).step()
        hand.advance(61)
    work_off(member(plane, failures_max=3))

    assert hand.state("sick")[::2] == ("dead", "lost")


def test_who_takes_over_ends_where_the_dead_would_have(fleet, monkeypatch):
    """Killed between any two steps: nothing is there twice, nothing is missing."""
    plane, hand = fleet
    for number in range(12):
        tell(plane, text=f"I like the lamp number {number}", conversation="c1")
        tell(plane, "twin", text=f"I like the lamp number {number}", conversation="c1")
    plane.space("twin").enrich()
    real, deaths = plane._parts.worker.step, []

    def step(store, **options):
        more = real(store, **options)
        deaths.append(more)
        if len(deaths) % 2:
            raise Killed
        return more

    monkeypatch.setattr(plane._parts.worker, "step", step)
    for _ in range(100):
        hand.advance(61)
        try:
            if not member(plane, failures_max=1_000).step():
                break
        except Killed:
            continue

    def told(owner):
        return sorted((memory.text, memory.state) for memory in plane.space(owner).memories(limit=100))

    assert deaths
    assert told("ann") == told("twin")
    assert plane.space("ann").overview.enrichment().waiting.nothing


# ── once for everybody ───────────────────────────────────────────────────────────────────────────────────────────────


def test_each_space_is_looked_after_once_a_day_by_one_of_the_fleet(fleet):
    """Three workers, six spaces that nobody uses, three days."""
    plane, hand = fleet
    told = []
    plane._daily = (lambda space, day: told.append((space.owner, day)),)
    owners = [f"o{number}" for number in range(6)]
    for owner in owners:
        tell(plane, owner)
    members = [
        member(
            plane,
            daily=plane._daily_maintenance,
            jobs=cluster_jobs(plane.work, usage=lambda: None, model="m"),
        )
        for _ in range(3)
    ]
    days = ["2026-11-14", "2026-11-15", "2026-11-16"]
    for _ in days:
        for one in members:
            one.do_jobs()
        hand.advance(3_601)
        work_off(*members)
        plane.clock.advance(days=1)
        hand.advance(86_400 - 3_601)

    assert sorted(told) == sorted((owner, day) for owner in owners for day in days)
    assert sum(one._done.taken > 0 for one in members) == 3


def test_a_day_is_done_although_its_worker_dies_in_the_middle(fleet):
    """Of the job, and of the look at a space: somebody else completes both, once."""
    plane, hand = fleet
    completed, died = [], []

    def daily(space, day):
        if space.owner == "o1" and not died:
            died.append(day)
            raise Killed
        completed.append(space.owner)

    def dying(_renew):
        died.append("job")
        raise Killed

    plane._daily = (daily,)
    for number in range(4):
        tell(plane, f"o{number}")
    work_off(member(plane))  # before the day's work
    jobs = cluster_jobs(plane.work, usage=lambda: None, model="m")
    first = member(plane, daily=plane._daily_maintenance, jobs=(ClusterJob("look-after", day_of, dying),))
    second = member(plane, daily=plane._daily_maintenance, jobs=jobs)
    with pytest.raises(Killed):
        first.do_jobs()
    second.do_jobs()
    hand.advance(3_601)
    died.clear()
    with pytest.raises(Killed):
        work_off(second)  # the look at every space is not scheduled yet: only what embedding wants
    hand.advance(61)
    third = member(plane, daily=plane._daily_maintenance, jobs=jobs)
    third.do_jobs()
    hand.advance(3_601)
    work_off(third)

    assert sorted(completed) == ["o0", "o1", "o2", "o3"]
    assert hand.rows("SELECT name, attempts, done IS NOT NULL FROM job ORDER BY name") == [
        ("embed", 1, True),
        ("look-after", 2, True),
        ("tidy", 1, True),
    ]


def test_a_job_that_fails_is_tried_again(fleet):
    plane, hand = fleet
    ran = []

    def run(renew):
        ran.append(renew())
        if len(ran) == 1:
            raise ValueError("for once")

    one = member(plane, jobs=(ClusterJob("x", day_of, run),))
    one.do_jobs()
    one.do_jobs()
    hand.advance(31)
    one.do_jobs()
    one.do_jobs()

    assert ran == [True, True]


def test_another_model_has_every_space_embedded_again_once(fleet, database):
    """Also when the first comes back. Whatever worker comes first says so, to all."""
    plane, hand = fleet
    for owner in ("ann", "ben"):
        tell(plane, owner)
    work_off(member(plane))
    embedded = []
    for name in ("bag-2", "bag-3", "bag-2"):
        model = BagOfWords(model_id=name, dimension=8)
        with Memplane.open(database[0], embedder=model, clock=plane.clock) as other:
            for _ in range(2):
                one = member(other, jobs=cluster_jobs(other.work, usage=lambda: None, model=name))
                one.do_jobs()
                hand.advance(1)
                work_off(one)
        embedded.append(len(model.embedded))

    assert embedded[0] > 0
    assert embedded == [embedded[0]] * 3


def test_what_has_expired_and_what_was_superseded_long_ago_goes_by_itself(fleet):
    plane, _ = fleet
    space = plane.space("ann")
    space.put("a/b", "soon gone", ttl=3_600)
    first = space.store("fact", "The lamp is green")
    space.store("fact", "The lamp is blue", supersedes=first.id)
    plane.clock.advance(days=91)
    work_off(member(plane, daily=plane._daily_maintenance))
    for _ in range(4):  # what has expired goes after a few days of grace
        plane.clock.advance(days=1)
        plane._daily_maintenance("default", "ann")

    assert [entry.op for entry in space.ledger.entries()][-2:] == ["purge", "sweep"]
    assert space.overview.stats().superseded == 0


def test_old_usage_is_dropped_once_a_day(fleet):
    plane, _ = fleet
    plane.meter.count("default", "/recall")
    plane.meter.write()
    plane.clock.advance(days=401)
    jobs = cluster_jobs(plane.work, usage=plane._drop_old_usage, model="m")
    member(plane, jobs=jobs).do_jobs()

    assert plane._stores.accounts().tallies("default", first=0, last=10**6) == []


# ── by itself ────────────────────────────────────────────────────────────────────────────────────────────────────────


def settled(plane, owner):
    """Wait until nothing is left to do there."""
    done = threading.Event()
    for _ in range(PATIENCE_SECONDS * 50):
        if plane.space(owner).overview.enrichment().waiting.nothing:
            return True
        done.wait(0.02)
    return False


def test_whoever_writes_wakes_a_worker_elsewhere(postgres_url):
    """Neither recall nor the writer works itself."""
    options = {"embedder": BagOfWords(dimension=8), "settings": Settings(worker_lease_s=5)}
    with (
        Memplane.open(postgres_url, background=True, **options) as _worker,
        Memplane.open(postgres_url, background="elsewhere", **options) as front,
    ):
        for owner in ("ann", "ben"):
            front.space(owner).retain("I live in Lisbon")
        assert settled(front, "ann")
        assert settled(front, "ben")
        assert [memory.text for memory in front.space("ann").memories()]
        assert front.readiness().degraded == ()


def test_a_worker_outlives_its_connections(postgres_url, monkeypatch):
    """The database drops all of them again and again, as one does that fails over: everything is derived once."""
    monkeypatch.setattr("memplane.worker.cluster._AWAY_MAX_S", 0.05)
    monkeypatch.setattr("memplane.worker.cluster._WAIT_FIRST_S", 0.01)  # however often it fails meanwhile
    options = {"embedder": BagOfWords(dimension=8), "settings": Settings(worker_lease_s=1)}
    said = [f"I like the lamp number {number}" for number in range(20)]
    with (
        psycopg.connect(postgres_url, autocommit=True) as past,
        Memplane.open(postgres_url, background=True, **options) as plane,
    ):
        for text in said:
            with suppress(StorageError):
                plane.space("ann").retain(text)
            past.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert settled(plane, "ann")
        kept = [turn.text for turn in plane.space("ann").turns(limit=100)]
        facts = [memory.text for memory in plane.space("ann").memories(limit=100)]
        assert plane.work.backlog().dead == 0

    assert len(set(kept)) == len(kept)
    assert len(set(facts)) == len(facts) == len(kept)


def test_a_server_tells_how_the_work_stands(postgres_url):
    """In its figures for all workers; and to whoever asks whether it is well, that a space does not get on."""
    with Memplane.open(postgres_url, embedder=None, background="elsewhere") as plane:
        plane.space("ann").retain("I live in Lisbon")
        plane.space("sick").retain("I live in Lisbon")
        leases = [plane.work.take("w", after=0, length=3_600 * SECOND) for _ in range(2)]
        plane.work.bury(next(lease for lease in leases if lease.owner == "sick"), error="internal")
        with serving(plane) as server, server.client() as client:
            figures = client.get("/metrics").text.splitlines()
            ready = client.get("/readyz").json()

    assert 'memplane_work_spaces{state="dead"} 1.0' in figures
    assert 'memplane_work_spaces{state="held"} 1.0' in figures
    assert "memplane_work_entries_behind 2.0" in figures
    assert ready["degraded"] == ["enrichment"]


def test_who_ends_finishes_the_step_and_hands_over(postgres_url, monkeypatch):
    """The next one need not wait for a lease to run out."""
    slow = Slow()
    with Memplane.open(postgres_url, embedder=slow, background=True) as first:
        for number in range(12):
            first.space("ann").retain(f"I like the lamp number {number}")
        assert slow.begun.wait(PATIENCE_SECONDS)
        closing = threading.Thread(target=first._parts.background.close)
        closing.start()
        assert first._parts.background._stopped.wait(PATIENCE_SECONDS)
        slow.go_on.set()
        closing.join(PATIENCE_SECONDS)
        backlog = first.work.backlog()
        assert (backlog.waiting, backlog.held) == (1, 0)
        assert first.work.colleagues(silent=10**9)[0].ended
    with Memplane.open(postgres_url, embedder=BagOfWords(dimension=8)) as second:
        lease = second.work.take("next", after=0, length=SECOND)

        assert (lease.owner, lease.failures) == ("ann", 0)
        assert second.work.worked() == WorkerCounts(taken=1, steps=second.work.worked().steps)


@contextmanager
def in_a_long_step(database, monkeypatch):
    """A plane whose worker is in the middle of a step and renews its lease of a minute all the time, and the hand that
    moves the clock."""
    monkeypatch.setattr("memplane.worker.cluster._REPORT_EVERY_S", 0.01)
    url, hand = database
    hand.rows("DELETE FROM space")
    hand.forget_work()
    slow = Slow()
    with Memplane.open(url, embedder=slow, background=True, settings=Settings(worker_lease_s=60)) as plane:
        plane.space("ann").retain("I live in Lisbon")
        assert slow.begun.wait(PATIENCE_SECONDS)
        yield plane, slow, hand


def test_a_lease_is_renewed_for_as_long_as_a_step_takes(database, monkeypatch):
    """However long that is: nobody else takes it."""
    with in_a_long_step(database, monkeypatch) as (plane, slow, hand):
        renewed = threading.Event()
        real = plane.work.renew
        count = []

        def renew(lease, *, length):
            kept = real(lease, length=length)
            if len(count) < 5:
                count.append(kept)
                hand.advance(50)
            else:
                renewed.set()
            return kept

        plane.work.renew = renew
        assert renewed.wait(PATIENCE_SECONDS)
        assert plane.work.take("thief", after=0, length=SECOND) is None
        slow.go_on.set()
        assert settled(plane, "ann")

    assert count == [True] * 5


def test_who_loses_a_lease_says_so_once_and_goes_on_keeping_the_next(database, monkeypatch, caplog):
    """As after a fail-over that took longer than a lease: the colleagues still hear of the worker."""
    with in_a_long_step(database, monkeypatch) as (plane, slow, _):
        reported = threading.Semaphore(0)
        real = plane.work.report

        def report(*args, **options):
            real(*args, **options)
            reported.release()

        plane.work.report = report
        lease = plane._parts.background._held
        plane.work.give_back(lease, got_on=False)
        for _ in range(4):
            assert reported.acquire(timeout=PATIENCE_SECONDS)
        slow.go_on.set()
        assert settled(plane, "ann")

    lost = [record.fields for record in caplog.records if record.message == "lease lost"]
    assert lost == [{"holder": lease.holder, "tenant": lease.tenant, "space": "ann"}]


def test_what_is_given_back_is_not_taken_for_lost(fleet, caplog):
    """Whoever renews while the lease is handed over finds nothing to renew, and nothing to say."""
    plane, _ = fleet
    tell(plane)
    one = member(plane)

    def then_renewed(hand_over):
        def handed_over(*args, **options):
            done = hand_over(*args, **options)
            one._renew_lease()
            return done

        return handed_over

    plane.work.finish = then_renewed(plane.work.finish)
    plane.work.give_back = then_renewed(plane.work.give_back)
    one._stopped.set()
    assert one.step()
    one._stopped.clear()
    work_off(one)

    assert plane.space("ann").overview.enrichment().waiting.nothing
    assert [record.message for record in caplog.records if record.name == "memplane.worker.cluster"] == []
