"""A space at a glance: what is told is so, and what was counted is counted anew once something is written."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.conftest import HandClock, costly, fresh_plane

from memplane.space.summary import BEHIND_ENTRIES, DAYS, EnrichmentHealth, ReviewNeed, health_of
from memplane.storage.compaction import LearningStatus


def test_what_needs_a_person_is_counted(space, clock):
    """Conflicts, drafts, documents that failed, and entries nothing can be read from; nothing where there is nothing."""
    assert space.overview.summary().needs == {}
    space.retain("I live in Lisbon.", at=clock.moment)
    space.retain("I live in Rome.", at=clock.moment)
    space.retain("Always answer me in French, please.", at=clock.moment)
    day = f"{clock.moment:%Y-%m-%d}"
    space.enrich()
    clock.advance(days=1)
    space.compact(day=day)
    document = space.documents.upload("text", name="book.txt")
    with space._context.store() as store:
        store.write(lambda writer: writer.documents.fail(document.id, seq=document.seq, error="no"))
        store.write(lambda writer: writer.state.set_note("poisoned", "2"))
        store.write(lambda writer: writer.state.set_note("unreadable", "1"))

    assert space.overview.summary().needs == {
        ReviewNeed.CONFLICTS: 1,
        ReviewNeed.DRAFTS: 1,
        ReviewNeed.DOCUMENTS: 1,
        ReviewNeed.DEAD_LETTERS: 3,
    }


@pytest.mark.parametrize(
    ("waiting", "whole", "failing", "health"),
    [
        (0, True, False, EnrichmentHealth.WELL),
        (0, False, False, EnrichmentHealth.DEGRADED),
        (BEHIND_ENTRIES - 1, False, False, EnrichmentHealth.DEGRADED),
        (BEHIND_ENTRIES, False, False, EnrichmentHealth.BEHIND),
        (BEHIND_ENTRIES, False, True, EnrichmentHealth.FAILING),
    ],
)
def test_health_is_the_worst_there_is(waiting, whole, failing, health):
    """Whoever reads one word reads the one that matters."""
    assert health_of(waiting=waiting, whole=whole, failing=failing) is health


def test_two_spaces_are_not_taken_for_each_other(plane):
    """Neither under the same name of two tenants."""
    plane.space("alice").store("fact", "one")
    plane.space("alice", tenant="other").store("fact", "one")
    plane.space("alice", tenant="other").store("fact", "two")

    assert plane.space("alice").overview.summary().memories == 1
    assert plane.space("alice", tenant="other").overview.summary().memories == 2


class Glancing(RuleBasedStateMachine):
    """Somebody looks after every step: what is kept from the look before never shows."""

    def __init__(self):
        super().__init__()
        self._clock = HandClock()
        self._opened = fresh_plane(self._clock)
        self._space = self._opened.__enter__().space("alice")
        self._ids = []

    @rule(text=st.sampled_from(["I live in Lisbon.", "I live in Rome.", "I like tea.", "Hello."]))
    def retain(self, text):
        self._ids.append(self._space.retain(text, at=self._clock.moment).id)

    @rule()
    def store(self):
        self._ids.append(self._space.store("fact", "something").id)

    @rule(hours=st.sampled_from([None, 1, 48]))
    def put(self, hours):
        self._space.put("k", "v", ttl=None if hours is None else hours * 3_600)

    @rule()
    def enrich(self):
        self._space.enrich()

    @rule()
    def forget(self):
        if self._ids:
            self._space.forget(entries=[self._ids.pop()])

    @rule(hours=st.sampled_from([2, 30, 800]))
    def wait(self, hours):
        self._clock.advance(hours=hours)

    @rule()
    def compact(self):
        days = self._space.overview.days()
        if days:
            self._space.compact(day=days[0])

    @rule()
    def sweep(self):
        self._space.facts.sweep()

    @invariant()
    def what_is_told_is_so(self):
        seen, sizes = self._space.overview.summary(), self._space.overview.stats()
        today = self._clock() // 86_400_000_000
        turns = self._space.turns(limit=1_000)
        said = [turn for turn in turns if turn.at.timestamp() // 86_400 > today - DAYS]

        assert (seen.entries, seen.memories) == (sizes.entries, sizes.active)
        assert sum(seen.days) >= len(said)
        assert len(seen.days) == DAYS
        assert seen.needs.get(ReviewNeed.CONFLICTS, 0) == len(self._conflicts())
        assert seen.needs.get(ReviewNeed.DRAFTS, 0) == sum(
            learning.standing is LearningStatus.OPEN for learning in self._space.review.drafts()
        )

    def _conflicts(self):
        with self._space._context.read() as reader:
            return reader.claims.conflicts(())

    def teardown(self):
        self._opened.__exit__(None, None, None)


TestGlancing = Glancing.TestCase
TestGlancing.settings = costly(8, steps=12, thorough=100)
