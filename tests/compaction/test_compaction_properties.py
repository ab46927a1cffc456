"""Compaction over any days, cut off anywhere, on any machine: nothing it judged worth keeping is lost, nothing is there
twice."""

from collections import Counter
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import HandClock, fresh_folder, fresh_plane

from engines import HOME, both_engines
from memplane import Memplane, Settings
from memplane.adapters.importers import export_lines, import_file
from memplane.clock import to_instant
from memplane.compaction.judging import RawEntry, is_idle, judge, reason_against
from memplane.storage.compaction import Layer
from memplane.sync.digests import digest_files
from memplane.types import Turn

pytestmark = both_engines

SAID = [
    "Hello!",
    "thanks a lot",
    "the nightly build passed",
    "I prefer Teams over email.",
    "Always answer in German.",
    "I prefer email over Teams.",
    "My sister Anna lives in Lisbon.",
    "I live in Oslo.",
    "I moved to Rome.",
    "Actually, I live in Bern now.",
    "We decided to use Postgres for billing.",
    "Please run the nightly import job again",
    "My favorite color is green.",
    "My favorite color is blue.",
    "What is the weather like?",
    "The capital of France is Paris.",
]
TURNS = st.lists(
    st.tuples(
        st.integers(0, len(SAID) - 1),
        st.integers(0, 3),
        st.sampled_from([None, "c1", "c2"]),
        st.sampled_from(["user", "user", "user", "assistant"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)


class Broken(BaseException):
    """The process ended here."""


class FailingClock(HandClock):
    """A clock that ends the process when it has been looked at so often."""

    left = -1

    def __call__(self):
        self.left -= 1
        if self.left == 0:
            raise Broken
        return super().__call__()


def tell(space, turns, *, prefix="t"):
    """The days lie 10 to 13 days before the clock's."""
    for number, (which, day, conversation, role, scoped) in enumerate(turns):
        space.retain(
            SAID[which],
            id=f"{prefix}{number}",
            role=role,
            at=f"2026-11-0{2 + day}T10:{number:02}:00Z",
            conversation=conversation,
            scope="conversation" if scoped and conversation else "global",
        )


def kept(space):
    """What compaction is about, without what is different each time: receipts and places in the ledger."""
    return {
        "learnings": space.review.drafts(),
        "digests": list(digest_files(space)),
        "lines": sorted(line.id for line in space.overview.digest_lines()),
        "judged": space.review.judgements(limit=10_000),
        "memories": sorted((memory.id, memory.text, memory.state) for memory in space.memories(limit=10_000)),
        "turns": sorted(turn.entry_id for turn in space.turns(limit=10_000)),
        "gone": sorted(stone.id for stone in space.ledger.tombstones()),
    }


@settings(max_examples=30)
@given(TURNS)
def test_nothing_that_was_worth_keeping_is_lost(turns):
    """Whatever was derived from a raw day is in a draft or a digest before the day goes; and the proof still holds."""
    with fresh_plane(retention="adr") as plane:
        space = plane.space("alice")
        tell(space, turns)
        space.enrich()
        derived = [memory for memory in space.memories(limit=10_000) if memory.derived]
        space.compact()
        texts = {line.text for line in space.overview.digest_lines()} | {
            it.text for it in space.review.drafts()
        }

        assert [m.text for m in derived if not {m.text, f"Formerly: {m.text}"} & texts] == []
        assert space.turns() == []
        assert space.ledger.verify().problems == ()
        before = kept(space)
        space.ledger.replay()
        assert kept(space) == before
        space.compact()
        assert kept(space) == before


@settings(max_examples=15)
@given(TURNS, st.lists(st.integers(1, 40), min_size=1, max_size=4), st.sampled_from(["person", "auto"]))
def test_cut_off_anywhere_it_ends_where_it_would_have(turns, cuts, confirm):
    """However often it is cut off, and wherever: the same entries, each once."""
    options = {"retention": "adr", "compact_confirm": confirm}
    with fresh_plane(**options) as plane:
        undisturbed = plane.space("alice")
        tell(undisturbed, turns)
        undisturbed.compact()
        wanted = kept(undisturbed)
    clock = FailingClock()
    with HOME.fresh() as data:
        with Memplane.open(data, embedder=None, clock=clock, settings=Settings(**options)) as plane:
            tell(plane.space("alice"), turns)
        for cut in [*cuts, -1]:
            with Memplane.open(data, embedder=None, clock=clock, settings=Settings(**options)) as plane:
                clock.left = cut
                with suppress(Broken):
                    plane.space("alice").compact()
                clock.left = -1
                space = plane.space("alice")
                ids = Counter(entry.id for entry in space.ledger.entries())
                assert ids.total() == len(ids)
                assert space.ledger.verify().problems == ()
        with Memplane.open(data, embedder=None, clock=clock, settings=Settings(**options)) as plane:
            assert kept(plane.space("alice")) == wanted


@settings(max_examples=10)
@given(TURNS, TURNS, st.booleans())
def test_machines_that_compact_the_same_day_agree(shared, own, confirm):
    """Both know what is shared, one of them more; both compact, and then take in what the other has. There is one
    result, and every line of it once."""
    with fresh_folder() as folder, fresh_plane(retention="adr") as one, fresh_plane(retention="adr") as other:
        here, there = one.space("alice"), other.space("alice")
        tell(here, shared)
        exchange(here, there, folder)
        tell(there, own, prefix="u")
        for space in (here, there):
            space.compact()
            if confirm and space.review.drafts():
                space.review.confirm(space.review.drafts()[0].id, by="kim")
        for _ in range(2):
            exchange(here, there, folder)
            exchange(there, here, folder)
            for space in (here, there):
                space.compact()
        exchange(here, there, folder)
        exchange(there, here, folder)
        lines = [(line.kind, line.text, line.sources) for line in here.overview.digest_lines()]

        assert sorted(line.id for line in here.overview.digest_lines()) == sorted(
            line.id for line in there.overview.digest_lines()
        )
        assert list(digest_files(here)) == list(digest_files(there))
        assert len(lines) == len(set(lines))
        assert [learning.ids for learning in here.review.drafts()] == [it.ids for it in there.review.drafts()]
        assert [it.standing for it in here.review.drafts()] == [it.standing for it in there.review.drafts()]
        assert here.turns() == there.turns() == []
        assert texts_of(here) == texts_of(there)
        assert [space.ledger.verify().problems for space in (here, there)] == [(), ()]


def texts_of(space):
    return sorted(memory.text for memory in space.memories(limit=10_000))


def exchange(source, target, folder):
    path = folder / "lines.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in export_lines(source, "full")))
    report = import_file(target, path)
    assert report.rejected_count == 0


@settings(max_examples=10)
@given(TURNS, st.integers(0, 13), st.booleans())
def test_what_is_forgotten_on_one_machine_is_kept_on_none(turns, which, late):
    """One machine compacts a day, another forgets something said on it: nothing of it is left on either."""
    with fresh_folder() as folder, fresh_plane(retention="adr") as one, fresh_plane(retention="adr") as other:
        here, there = one.space("alice"), other.space("alice")
        tell(here, turns)
        exchange(here, there, folder)
        gone = f"t{which % len(turns)}"
        here.compact()
        there.forget(entries=[gone], reason="asked")
        if late:
            there.compact()
        exchange(there, here, folder)
        exchange(here, there, folder)

        for space in (here, there):
            left = [*space.overview.digest_lines(), *learning_lines(space)]
            assert [line.id for line in left if gone in line.sources] == []
            assert space.ledger.verify().problems == ()
            replayed = kept(space)
            space.ledger.replay()
            assert kept(space) == replayed


def learning_lines(space):
    with space._context.read() as reader:
        return reader.compaction.lines(Layer.LEARN)


@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_words_are_judged(texts):
    """Bad input is normal input: each turn is kept or discarded, with a reason."""
    at = HandClock().moment
    entries = [
        RawEntry(id=f"e{n}", turns=(Turn(entry_id=f"e{n}", seq=n + 1, role="user", text=text, at=at),))
        for n, text in enumerate(texts)
    ]
    keep, discard = judge("2026-11-02", entries)
    items = [(it.entry, it.item) for it in keep if not it.item.startswith("pattern")]
    items += [(it.entry, it.item) for it in discard]

    assert sorted(items) == sorted((entry.id, "turn-0") for entry in entries)
    assert all(it.reason for it in (*keep, *discard))
    assert (keep, discard) == judge("2026-11-02", entries)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Good morning everyone", "a greeting"),
        ("thx", "thanks"),
        ("ok, got it", "an acknowledgement"),
        ("the backup finished", "a status ping"),
        ("any news?", "a status ping"),
        ("Where did we leave the keys to the old office?", "a question"),
        ("blue and round and somewhere over there", "nothing in it was worth keeping"),
    ],
)
def test_why_something_is_discarded(text, reason):
    turn = Turn(entry_id="e", seq=1, role="user", text=text, at=HandClock().moment)

    assert reason_against(turn) == reason
    assert is_idle(text) == (reason not in {"a question", "nothing in it was worth keeping"})


def test_long_after_the_clock_moves_on(open_plane, clock):
    """Every day of a month is compacted once, whenever it is looked at."""
    space = open_plane(retention="adr").space("alice")
    for day in range(1, 15):
        space.retain("I prefer window seats.", at=f"2026-11-{day:02}T09:00:00Z", id=f"d{day}")
    days = []
    for _ in range(10):
        days += [day.day for day in space.compact().days]
        clock.advance(timedelta(days=1))
    clock.set(to_instant(clock.moment))

    assert days == [f"2026-11-{day:02}" for day in range(1, 15)]
    assert space.review.drafts()[0].days == tuple(days)
