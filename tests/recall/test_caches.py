"""A cached index is never wrong: whatever anybody did to the space meanwhile, a plane that has been open all along
recalls what one would that was opened just now."""

import os
import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.conftest import HandClock, costly, fresh_folder
from tests.support.stub_embedder import StubEmbedder

from memplane import Memplane, Settings
from memplane.ledger.payloads import TurnPayload, encode
from memplane.models.vectors import VectorTable
from memplane.recall.caches import AccessCounts, Indexes
from memplane.types import NewEntry, Op

ROOT = Path(__file__).parents[2]
QUESTIONS = ["tea", "Where do I live?", "What did Ann say about coffee last week?", ""]
SAID = [
    "I live in Lisbon.",
    "I live in Porto now.",
    "Actually I live in Faro.",
    "I love green tea.",
    "Do you like coffee?",
    "The coffee was cold, and so was the tea.",
    "My sister's name is Eve.",
    "上海的茶很好",
    "ok",
]


def recalled(plane, question, **asked):
    """Everything of a recall but how long it took."""
    told = plane.space("alice").recall(question, **asked)
    hits = [
        (hit.id, hit.score, dict(hit.channels), dict(hit.ranks), hit.turn, hit.memory) for hit in told.hits
    ]
    return (
        hits,
        told.text,
        told.blocks,
        told.conflicts,
        told.episodes,
        told.conversation_history,
        told.degraded,
    )


def open_plane(folder, clock, *, embedder=None, work_ms=60_000) -> Memplane:
    return Memplane.open(folder, embedder=embedder, clock=clock, settings=Settings(recall_work_ms=work_ms))


def assert_as_fresh(plane, folder, clock, *, embedder=None, work_ms=60_000, questions=QUESTIONS) -> None:
    """The plane first: opening another one must not do its work for it."""
    for question in questions:
        told = recalled(plane, question, conversation="a")
        with open_plane(folder, clock, embedder=embedder, work_ms=work_ms) as fresh:
            assert told == recalled(fresh, question, conversation="a")


class CacheMachine(RuleBasedStateMachine):
    """Two planes on one directory do whatever they like; the first one's recall is compared after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.folder = self.opened.enter_context(fresh_folder())
        self.clock = HandClock()
        self.said = 0
        self.entries: list[str] = []
        self.memories: list[str] = []

    @initialize(model=st.sampled_from([None, "stub"]), works=st.booleans())
    def open(self, model, works):
        """With and without a model; where recalls work things off and where only a worker does."""
        self.embedder = None if model is None else StubEmbedder(model)
        self.work_ms = 60_000 if works else 0
        self.first, self.second = (self.another() for _ in range(2))

    def another(self) -> Memplane:
        plane = open_plane(self.folder, self.clock, embedder=self.embedder, work_ms=self.work_ms)
        return self.opened.enter_context(plane)

    def teardown(self) -> None:
        self.opened.close()

    def spaces(self, which):
        return (self.first if which else self.second).space("alice")

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────

    @rule(
        which=st.booleans(),
        text=st.sampled_from(SAID),
        conversation=st.sampled_from([None, "a", "b"]),
        role=st.sampled_from(["user", "user", "assistant", "system"]),
        speaker=st.sampled_from([None, None, "Ann"]),
        back=st.sampled_from([0, 0, 3_600, 10 * 86_400]),
    )
    def retain(self, which, text, conversation, role, speaker, back):
        self.said += 1
        at = self.clock.moment - timedelta(seconds=back)
        kept = self.spaces(which).retain(
            f"{text} Word{self.said}x.", role=role, speaker=speaker, conversation=conversation, at=at
        )
        self.entries.append(kept.id)

    @rule(which=st.booleans(), supersedes=st.booleans(), pick=st.integers(0, 99))
    def store(self, which, supersedes, pick):
        self.said += 1
        old = self.memories[pick % len(self.memories)] if supersedes and self.memories else None
        memory = self.spaces(which).store("fact", f"Tea and coffee, word{self.said}x", supersedes=old)
        self.memories.append(memory.id)

    @rule(which=st.booleans(), key=st.sampled_from(["k", "city"]))
    def put(self, which, key):
        self.said += 1
        self.spaces(which).put(key, f"tea number {self.said}", ttl=timedelta(days=2))

    @rule(which=st.booleans(), count=st.integers(1, 5))
    def load(self, which, count):
        drafts = []
        for _ in range(count):
            self.said += 1
            said = TurnPayload(
                role="user", content=f"tea loaded{self.said}x", at=self.clock(), conversation="a"
            )
            drafts.append(NewEntry(f"load{self.said}", Op.TURN, encode(said)))
        self.spaces(which).ledger.load(drafts)
        self.entries += [draft.id for draft in drafts]
        if (
            self.work_ms
        ):  # a recall reads what it finds caught up, so that the second one would have done more
            self.spaces(which).ledger.catch_up()

    @precondition(lambda self: self.entries)
    @rule(which=st.booleans(), pick=st.integers(0, 99))
    def forget(self, which, pick):
        self.spaces(which).forget(entries=[self.entries[pick % len(self.entries)]])

    @precondition(lambda self: self.memories)
    @rule(which=st.booleans(), pick=st.integers(0, 99))
    def delete(self, which, pick):
        gone = self.memories.pop(pick % len(self.memories))
        self.spaces(which).delete(gone)

    @rule(which=st.booleans())
    def forget_a_conversation(self, which):
        self.spaces(which).forget(conversation="b")

    @rule(which=st.booleans())
    def purge(self, which):
        self.spaces(which).purge(0)
        there = {memory.id for memory in self.spaces(which).overview.newest_memories(1_000)}
        self.memories = [id_ for id_ in self.memories if id_ in there]

    @rule(which=st.booleans())
    def sweep(self, which):
        self.spaces(which).facts.sweep()

    @rule(which=st.booleans())
    def replay(self, which):
        self.spaces(which).ledger.replay()

    @rule(which=st.booleans())
    def enrich(self, which):
        self.spaces(which).enrich()

    @rule(which=st.booleans(), question=st.sampled_from(QUESTIONS))
    def recall(self, which, question):
        """The other one may have looked at any time, too."""
        self.spaces(which).recall(question)

    @rule(hours=st.sampled_from([1, 3, 60]))
    def time_passes(self, hours):
        self.clock.advance(hours=hours)

    @rule(model=st.sampled_from([None, "stub", "other"]))
    def another_model_and_back(self, model):
        """Somebody opens the space with another model and works it off; then it is this one's again."""
        embedder = None if model is None else StubEmbedder(model, dimension=24)
        with open_plane(self.folder, self.clock, embedder=embedder) as other:
            other.space("alice").enrich()
        self.first.space("alice").enrich()

    # ── what must hold ───────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def the_first_recalls_as_a_fresh_one(self):
        question = QUESTIONS[self.said % len(QUESTIONS)]
        assert_as_fresh(
            self.first,
            self.folder,
            self.clock,
            embedder=self.embedder,
            work_ms=self.work_ms,
            questions=[question],
        )


TestCaches = CacheMachine.TestCase
TestCaches.settings = costly(15, steps=14, thorough=300)


# ── what the machine would meet too rarely ───────────────────────────────────────────────────────────────────────


@pytest.fixture
def embedder() -> StubEmbedder:
    return StubEmbedder()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


@pytest.fixture
def plane(folder, clock, embedder):
    with open_plane(folder, clock, embedder=embedder) as plane:
        yield plane


def test_words_that_were_guessed_are_counted_later(folder, clock):
    """Without a worker the length of a turn is a guess. A recall that saw the guess does not keep it."""
    with open_plane(folder, clock, work_ms=0) as plane:
        space = plane.space("alice")
        for number in range(6):
            space.retain(f"tea {'a b ' * number * 9}?")
        space.recall("tea")
        space.enrich()

        assert_as_fresh(plane, folder, clock, work_ms=0)


def test_what_is_purged_counts_no_more(plane, folder, clock, embedder):
    """A purged memory is not told anyway; it must not shape what is usual, either."""
    space = plane.space("alice")
    old = space.store("fact", "an old thing about coffee")
    space.store("fact", "tea is fine", supersedes=old.id)
    space.store("fact", "tea for two, with sugar")
    clock.advance(days=1)
    space.recall("tea")
    space.purge(0)

    assert_as_fresh(plane, folder, clock, embedder=embedder)


def test_a_look_in_the_middle_of_a_replay(plane, folder, clock, embedder):
    """A replay derives memories again, some entries at a time, and their vectors are theirs again some at a time. Who
    looks in between sees the rest later, although vectors of the rest are older than those that were seen."""
    space = plane.space("alice")
    for _ in range(70):
        space.retain("nothing")
    space.retain("I live in Lisbon.")
    space.enrich()
    for number in range(40):
        space.store("fact", f"tea number {number} is fine")
    space.enrich()
    steps = []
    with open_plane(folder, clock, embedder=embedder, work_ms=0) as other:

        def look(step: int) -> None:
            steps.append(step)
            if len(steps) > 1:  # the first time, the replay is still one transaction
                other.space("alice").recall("Lisbon")

        space.ledger.replay(progress=look)
        space.enrich(progress=look)

        assert len(steps) > 4
        assert_as_fresh(other, folder, clock, embedder=embedder, work_ms=0, questions=["Lisbon"])


def test_another_model_is_used_even_for_memories_alone(plane, folder, clock):
    """Promise 14: with another model, memories are embedded anew although no turn is there; until then recall says that
    it goes by words."""
    plane.space("alice").store("fact", "tea is fine")
    plane.space("alice").store("fact", "coffee is not")
    plane.space("alice").recall("tea")
    other = StubEmbedder("other", dimension=24)

    with open_plane(folder, clock, embedder=other, work_ms=0) as changed:
        (reason,) = changed.space("alice").recall("tea").degraded
        assert reason.startswith("vectors: ")
        assert changed.space("alice").overview.enrichment().waiting.memories == 2
        changed.space("alice").enrich()
        told = changed.space("alice").recall("tea is fine")
        assert told.degraded == ()
        assert "meaning" in told.hits[0].channels
    assert plane.space("alice").overview.enrichment().waiting.memories == 2
    plane.space("alice").enrich()
    assert "meaning" in plane.space("alice").recall("tea is fine").hits[0].channels


def test_going_back_to_an_earlier_model(plane, folder, clock, embedder):
    """Promise 14: vectors are made again, because the model in between replaced them; and until they are, it is said."""
    space = plane.space("alice")
    for text in ("tea is fine", "coffee", "water is dull"):
        space.retain(text)
    before = recalled(plane, "tea")
    with open_plane(folder, clock, embedder=embedder, work_ms=0) as watching:
        assert recalled(watching, "tea") == before
        with open_plane(folder, clock, embedder=StubEmbedder("other")) as other:
            other.space("alice").enrich()
        assert_as_fresh(watching, folder, clock, embedder=embedder, work_ms=0)

    with open_plane(folder, clock, embedder=embedder, work_ms=0) as back:
        assert [reason.split(":")[0] for reason in back.space("alice").recall("tea").degraded] == ["vectors"]
    assert recalled(plane, "tea") == before
    with open_plane(folder, clock, embedder=embedder, work_ms=0) as back:
        assert recalled(back, "tea") == before


WRITER = """
import sys
from tests.support.stub_embedder import StubEmbedder
from memplane import Memplane

with Memplane.open(sys.argv[1], embedder=StubEmbedder(), clock=lambda: int(sys.argv[2])) as plane:
    space = plane.space("alice")
    if sys.argv[3] == "forget":
        space.forget(entries=[sys.argv[4]])
    else:
        space.retain("green tea from another process", conversation="a")
        space.store("fact", "tea is sold by another process")
    space.enrich()
"""


def test_another_process_writes_and_forgets(plane, folder, clock, embedder):
    """Promise 15: what another program does to the directory is seen by the next recall here."""
    space = plane.space("alice")
    kept = space.retain("black tea", conversation="a")
    space.retain("coffee", conversation="a")
    space.recall("tea")

    for arguments in (["write"], ["forget", kept.id]):
        subprocess.run(
            [sys.executable, "-c", WRITER, str(folder), str(clock()), *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            timeout=120,
        )
        assert_as_fresh(plane, folder, clock, embedder=embedder)
    told = space.recall("tea")
    assert "another process" in told.text
    assert "black tea" not in told.text


@pytest.mark.parametrize("kept_max", [0, 1_000])
def test_a_large_space_forgets_too(folder, clock, embedder, monkeypatch, kept_max):
    """With codes in place of vectors: what is forgotten is not told, what is said later is."""
    monkeypatch.setattr(VectorTable.__init__, "__kwdefaults__", {"exact_max": 20, "kept_max": kept_max})
    with open_plane(folder, clock, embedder=embedder) as plane:
        space = plane.space("alice")
        kept = [space.retain(f"tea word{n}x and coffee") for n in range(40)]
        assert "word7x" in space.recall("word7x").text
        space.forget(entries=[kept[7].id])
        assert "word7x" not in space.recall("word7x").text
        space.retain("tea word99x at last")

        assert "word99x" in space.recall("word99x").text
        assert_as_fresh(plane, folder, clock, embedder=embedder, questions=["word99x", "tea"])


def test_a_forget_empties_the_caches_at_once(plane):
    """Not only with the next question: what is forgotten is gone from memory, too."""
    space = plane.space("alice")
    kept = space.retain("tea")
    space.recall("tea")
    before = plane._parts.indexes.of("default", "alice")
    space.forget(entries=[kept.id])

    after = plane._parts.indexes.of("default", "alice")
    assert after[0] is not before[0]
    assert after[1] is not before[1]


def test_indexes_of_many_spaces_fit_into_memory(plane):
    """
    However many spaces are recalled from, the indexes together stay below a bound; the last one used always stays.
    """
    for number in range(6):
        space = plane.space(f"owner-{number}")
        for turn in range(40):
            space.retain(f"The lamp number {turn} of owner {number} is green")
    indexes = Indexes(("stub", 64), bytes_max=250_000)
    for number in (*range(6), *[5] * 16):
        turns, *_ = indexes.of("default", f"owner-{number}")
        with plane.space(f"owner-{number}")._context.read() as reader:
            turns.refresh(reader)

    assert 6 * turns.nbytes > 250_000
    assert turns is indexes.of("default", "owner-5")[0]
    assert sum(index.nbytes for kept in indexes._kept.values() for index in kept) <= 250_000


def test_pending_access_counts_are_bounded():
    """
    Spaces that are recalled from once and never again leave nothing behind for ever.
    """
    counts = AccessCounts(pending_max=10)
    for number in range(100):
        assert counts.add("default", f"owner-{number}", ["a", "b"]) == []
        counts.add("default", "silent", [])

    pending = counts.take_all()
    assert sum(map(len, pending.values())) == 10
    assert "owner-99" in {owner for _, owner in pending}
    assert counts.add("default", "owner-1", ["a"] * 256) == ["a"] * 256
