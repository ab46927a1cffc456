"""The part of the contract that a person who looks asks for: cheap figures, facts around a subject, two moments compared."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import MORNING, Scribe, a_memory, costly, fresh_plane

from memplane.clock import DAY, SECOND, to_datetime, to_instant
from memplane.storage.filter import EntryFilter, Filter
from memplane.storage.overview import TurnSpan
from memplane.types import Caller, Op

HOUR = 3_600 * SECOND
TODAY = to_instant(MORNING) // DAY


def fact(scribe: Scribe, subject: str, what: str, *, at: datetime = MORNING, predicate="likes", **fields):
    entry = scribe.entry(op=Op.STORE)
    made = a_memory(
        f"{subject} likes {what}",
        id=entry.id,
        seq=entry.seq,
        subject=subject,
        predicate=predicate,
        object_text=what,
        created_at=at,
        updated_at=at,
        **fields,
    )
    scribe.store.write(lambda writer: writer.memories.add([made]))
    return made


def test_activity_counts_turns_and_memories_by_day(scribe):
    """Each day has its own count, days without anything have none, and what is outside is not counted."""
    for days in (0, 0, 2, 40):
        scribe.turn("said", at=MORNING - timedelta(days=days))
    fact(scribe, "ann", "tea", at=MORNING - timedelta(days=2))

    with scribe.store.read() as reader:
        assert reader.overview.activity(TODAY - 3, TODAY) == [0, 2, 0, 2]


def test_figures(scribe):
    """Current memories, of them those that have expired; conflicts; documents that failed."""
    left, right = fact(scribe, "ann", "tea"), fact(scribe, "ann", "coffee")
    old = fact(scribe, "ann", "milk")
    fact(scribe, "ann", "water", expires_at=MORNING)
    now = to_instant(MORNING)
    scribe.store.write(lambda writer: writer.claims.contest(left.id, right.id))
    scribe.store.write(lambda writer: writer.memories.supersede(old.id, by=left.id, at=now))

    with scribe.store.read() as reader:
        assert (reader.overview.current_count(), reader.overview.expired_count(now=now)) == (3, 1)
        assert reader.overview.expired_count(now=now - 1) == 0
        assert reader.overview.conflict_count() == 1
        assert reader.documents.failed_count() == 0


def test_subjects_come_by_name(scribe):
    """Each once, from where one says."""
    for name in ("bob", "ann", "bob", "<carol>"):
        fact(scribe, name, "tea")
    scribe.memory("of nobody")

    with scribe.store.read() as reader:
        assert reader.overview.subjects(first="", limit=9) == ["<carol>", "ann", "bob"]
        assert reader.overview.subjects(first="ann", limit=1) == ["ann"]
        assert reader.overview.subjects(first="b", limit=9) == ["bob"]
        assert reader.overview.subjects(first="z", limit=9) == []
        assert reader.overview.recent_subjects(limit=3) == ["<carol>", "bob"]


def test_facts_about_a_subject_are_those_that_held(scribe):
    """As of a time, what was replaced later is there and what came later is not."""
    later = MORNING + timedelta(days=3)
    old = fact(scribe, "ann", "tea")
    new = fact(scribe, "ann", "coffee", at=later)
    fact(scribe, "bob", "milk")
    fact(scribe, "ann", "nothing", predicate=None)
    scribe.store.write(lambda writer: writer.memories.supersede(old.id, by=new.id, at=to_instant(later)))

    def about(as_of: datetime | None) -> list[str]:
        where = Filter(now=0, audience=None, as_of=None if as_of is None else to_instant(as_of))
        with scribe.store.read() as reader:
            return [memory.id for memory in reader.overview.facts_about("ann", where, limit=9)]

    assert about(None) == [new.id]
    assert about(MORNING) == [old.id]
    assert about(MORNING - timedelta(days=1)) == []


def test_a_subject_with_very_many_facts_tells_the_newest(scribe, monkeypatch):
    """They are looked for among the memories written last, and are the same as those of a smaller subject."""
    made = [fact(scribe, "ann", str(number), at=MORNING + timedelta(days=number)) for number in range(6)]
    for number in range(3):
        fact(scribe, "bob", str(number), at=MORNING + timedelta(days=number))
    where = Filter(now=to_instant(MORNING + timedelta(days=99)), audience=None)
    with scribe.store.read() as reader:
        whole = reader.overview.facts_about("ann", where, limit=3)
        monkeypatch.setitem(type(reader.overview).facts_about.__globals__, "_ABOUT_MAX", 2)

        assert reader.overview.facts_about("ann", where, limit=3) == whole
        assert [memory.id for memory in whole] == [memory.id for memory in made[:2:-1]]


def test_forgets_come_by_the_page(space, clock):
    """The newest first, of a time, and one by its id."""
    receipts = []
    for _ in range(3):
        told = space.retain("something")
        clock.advance(days=1)
        receipts.append(space.forget(entries=[told.id]))
        clock.advance(days=1)

    assert [it.id for it in space.ledger.newest_receipts(limit=2)] == [it.id for it in receipts[:0:-1]]
    assert [it.id for it in space.ledger.newest_receipts(limit=2, offset=2)] == [receipts[0].id]
    assert space.ledger.receipt(receipts[1].id).digest == space.ledger.receipts()[1].digest


@costly(15, thorough=200)
@given(st.lists(st.sampled_from("scw"), min_size=1, max_size=14), st.data())
def test_a_comparison_leads_from_one_moment_to_the_other(does, data):
    """
    Whatever was stored, replaced and told: what held at the beginning, less what was replaced, with what took its place and
    what was learned, is what held at the end.
    """
    with fresh_plane() as plane:
        clock, space = plane.clock, plane.space("alice")
        kept: list[str] = []
        moments = [clock()]
        for number, step in enumerate(does):
            clock.advance(hours=1)
            if step == "s" or (step == "c" and not kept):
                kept.append(space.store("fact", f"it says {number}").id)
            elif step == "c":
                before = data.draw(st.sampled_from(kept))
                kept.append(space.store("fact", f"it says {number}", supersedes=before).id)
            elif step == "w":
                space.put(f"k/{number % 2}", f"value {number}")
            moments.append(clock())
            clock.advance(hours=1)
        begin, end = sorted((data.draw(st.sampled_from(moments)), data.draw(st.sampled_from(moments))))

        def held(at: int) -> set[str]:
            with space._context.read() as reader:
                where = Filter(now=clock(), as_of=at, audience=None)
                return {memory.id for memory in reader.memories.find(where, limit=1_000)}

        found = space.overview.compare(begin, end, limit=1_000)
        gone = {change.before.id for change in found.changed}
        came = {change.after.id for change in found.changed if change.after}
        learned = {memory.id for memory in found.learned}

        assert held(end) == (held(begin) - gone) | came | learned
        assert gone <= held(begin)
        assert learned.isdisjoint(came | held(begin))


def test_entries_are_narrowed(scribe, clock):
    """By what they are, through which door, in which role and conversation they came, and when; the last first."""
    first = scribe.turn("one", conversation="c", role="user")
    clock.advance(hours=1)
    second = scribe.entry(op=Op.STORE, caller=Caller("ann", "mcp", "s"))
    clock.advance(hours=1)
    third = scribe.turn("two", conversation="d", role="tool")
    clock.advance(hours=1)
    scribe.store.write(
        lambda writer: writer.ledger.erase([(second.seq, second.id)], position=1, at=clock(), reason="test")
    )

    def seqs(before: int = 99, limit: int = 9, **narrowed) -> list[int]:
        with scribe.store.read() as reader:
            found = reader.ledger.before(before, EntryFilter(**narrowed), limit=limit)
            assert all((entry.body is None) == (entry.seq == second.seq) for entry in found)
            return [entry.seq for entry in found]

    assert seqs() == [third.seq, second.seq, first.seq]
    assert seqs(limit=1) == [third.seq]
    assert seqs(before=third.seq) == [second.seq, first.seq]
    assert seqs(ops=frozenset({Op.STORE, Op.PUT})) == [second.seq]
    assert seqs(adapter="mcp") == [second.seq]
    assert seqs(adapter="' OR 1=1 --") == []
    assert seqs(role="tool") == [third.seq]
    assert seqs(conversation="c") == [first.seq]
    assert seqs(since=clock() - 2 * HOUR, until=clock() - HOUR) == [second.seq]


@given(
    st.lists(st.tuples(st.sampled_from("tps"), st.integers(-30, 0)), max_size=10),
    st.integers(-32, 12),
    st.integers(-32, 12),
    st.integers(1, 12),
)
@costly(20, thorough=200)
def test_entries_are_narrowed_by_when_they_were_said(does, since, until, before):
    """Whatever was said long before it was recorded: by when it was said, and what says nothing by when it was recorded."""
    with fresh_plane() as plane:
        clock, space = plane.clock, plane.space("alice")
        start, expected = clock(), []
        for number, (step, hours) in enumerate(does, start=1):
            at = clock()
            if step == "p":
                space.put(f"k/{number}", "value")
            else:
                at += hours * HOUR if step == "t" else 0
                space.retain("said", at=to_datetime(at), conversation="c")
            expected.append((number, at))
            clock.advance(hours=1)
        since, until = start + since * HOUR, start + until * HOUR

        def told(end: int, **narrowed) -> list[int]:
            found = space.overview.timeline(EntryFilter(**narrowed), before=end, limit=20)
            return [happening.seq for happening in found]

        fitting = [seq for seq, at in reversed(expected) if since <= at < until]
        assert told(99, since=since, until=until) == fitting
        assert told(before, since=since, until=until) == [seq for seq in fitting if seq < before]
        assert told(99, since=since) == [seq for seq, at in reversed(expected) if since <= at]
        assert told(99, until=until) == [seq for seq, at in reversed(expected) if at < until]
        assert set(told(99, since=since, until=until, conversation="c")) <= set(fitting)
        assert space.overview.first_moment() == min((at for _, at in expected), default=None)


@given(st.lists(st.integers(0, 3), max_size=8), st.integers(-1, 30))
@costly(20, thorough=200)
def test_a_place_is_found_by_its_time(waits, hours):
    """However many were recorded: the last that was before then."""
    with fresh_plane() as plane:
        clock, space = plane.clock, plane.space("alice")
        start = clock()
        for wait in waits:
            clock.advance(hours=wait)
            space.retain("said")
        at = start + hours * HOUR
        recorded = [entry.recorded for entry in space.ledger.entries()]
        with space._context.read() as reader:
            assert reader.ledger.last_recorded_before(at) == sum(each < at for each in recorded)


def test_how_much_was_said_and_when(scribe):
    """Nothing of nothing; and only what was said since."""
    with scribe.store.read() as reader:
        assert reader.overview.turn_span(0) == TurnSpan(0, None, None)
    for hours in (0, 1, 5):
        scribe.turn("said", at=MORNING + timedelta(hours=hours))
    at = to_instant(MORNING)

    with scribe.store.read() as reader:
        assert reader.overview.turn_span(at) == TurnSpan(3, at, at + 5 * HOUR)
        assert reader.overview.turn_span(at + 1) == TurnSpan(2, at + HOUR, at + 5 * HOUR)
