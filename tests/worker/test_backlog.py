"""A backlog: a recall spends no more than its budget on enrichment, the newest turns are embedded first, and nothing is
lost or embedded twice, wherever the work is interrupted."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.stub_embedder_enrich import BagOfWords

from engines import both_if_thorough
from memplane import Memplane
from memplane.ledger.payloads import TurnPayload, encode
from memplane.types import NewEntry, Op
from memplane.worker.pace import Pace

pytestmark = both_if_thorough

BACKLOG = 600
TEXT_S = 0.125
"""How long a text takes, on the clock that only embedding turns."""


class Timer:
    """A clock that only embedding turns."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class SlowModel(BagOfWords):
    """Every text takes its time."""

    def __init__(self, timer):
        super().__init__()
        self._timer = timer

    def embed_texts(self, texts):
        self._timer.now += TEXT_S * len(texts)
        return super().embed_texts(texts)


@pytest.fixture
def timer(monkeypatch):
    timer = Timer()
    monkeypatch.setattr("memplane.worker.pace.time_spent", lambda: timer)
    return timer


def entries(count, *, first=0, at=0):
    """Turns of conversations of ten, each with a word of its own."""
    return [
        NewEntry(
            f"t{n}",
            Op.TURN,
            encode(
                TurnPayload(
                    role="user",
                    content=f"word{n} was said",
                    at=at + n * 1_000_000,
                    conversation=f"c{n // 10}",
                )
            ),
        )
        for n in range(first, first + count)
    ]


def fill(space, count=BACKLOG):
    space.ledger.load(entries(count))
    space.ledger.catch_up()


def embedded(space, model):
    """The entries whose turns have a vector, in the ledger's order."""
    with space._context.read() as reader:
        number = reader.vectors.model(model.model_id, model.dimension)
        turns = reader.turns.between(0, 1 << 40)
        made = {} if number is None else reader.vectors.turns_at(number, [turn.seq * 256 for turn in turns])
        return [turn.entry_id for turn in turns if turn.seq * 256 in made]


def vectors(space, model):
    with space._context.read() as reader:
        number = reader.vectors.model(model.model_id, model.dimension)
        found = [vector for _, vector in reader.vectors.turns(number, after=0, limit=10_000)]
        return sorted(found, key=lambda vector: vector.n), reader.vectors.embedded(number)


def step(plane, space, **options):
    with space._context.store() as store:
        return plane._parts.worker.step(store, **options)


# ── the budget of a recall ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("budget_ms", [500, 1_000, 5_000])
def test_a_recall_keeps_its_budget(open_plane, timer, budget_ms):
    """Embedding stops before the text that would end too late, and what was embedded is stored."""
    model = SlowModel(timer)
    space = open_plane(embedder=model, recall_work_ms=budget_ms).space("alice")
    fill(space)
    for _ in range(3):
        begun, before = timer.now, len(embedded(space, model))
        told = space.recall("word7")

        assert told.blocks[0].text == "word7 was said"
        assert any(reason.startswith("vectors:") for reason in told.degraded)
        assert timer.now - begun <= budget_ms / 1_000
        assert len(embedded(space, model)) > before
    assert max(Counter(model.embedded).values()) == 1


@pytest.mark.parametrize("budget_ms", [0, 1, 5])
def test_a_budget_in_which_nothing_fits_embeds_nothing(open_plane, timer, budget_ms):
    """However often it is asked, a recall with so little time is answered by words."""
    model = SlowModel(timer)
    space = open_plane(embedder=model, recall_work_ms=budget_ms).space("alice")
    fill(space)
    for _ in range(20):
        assert space.recall("word7").blocks[0].text == "word7 was said"

    assert model.embedded == []


def test_what_a_text_takes_is_learned(open_plane, timer):
    """A text that takes twice the budget is not tried again and again."""
    model = SlowModel(timer)
    space = open_plane(embedder=model, recall_work_ms=int(TEXT_S * 500)).space("alice")
    fill(space)
    for _ in range(8):
        space.recall("word7")

    assert len(embedded(space, model)) <= 2


def test_catching_up_with_an_import_is_part_of_the_budget(open_plane, timer):
    """Without time, what an import left is not searchable yet, and the answer says so; what was stored since is."""
    space = open_plane(recall_work_ms=0).space("alice")
    space.ledger.load(entries(BACKLOG))
    space.retain("the kettle is on")
    told = space.recall("kettle")

    assert [block.text for block in told.blocks] == ["the kettle is on"]
    assert told.degraded[0] == "indexing: 601 entries cannot be searched yet"
    assert [block.id for block in space.recall_by_words("kettle").blocks] == [told.blocks[0].id]
    assert open_plane(recall_work_ms=1_000).space("alice").recall("word7").blocks[0].text == "word7 was said"


# ── newest first ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_newest_turns_are_embedded_first(open_plane):
    """With a step each, the newest turns come first, and facts and older turns get on as well."""
    model = BagOfWords()
    plane = open_plane(embedder=model)
    space = plane.space("alice")
    fill(space)
    step(plane, space, reading=False)

    assert embedded(space, model)[-8:] == [f"t{n}" for n in range(BACKLOG - 8, BACKLOG)]
    assert embedded(space, model)[:3] == ["t0", "t1", "t2"]
    space.ledger.load(entries(1, first=9_000))
    space.ledger.catch_up()
    step(plane, space, reading=False)
    assert embedded(space, model)[-1] == "t9000"


def test_newest_means_when_it_was_said(open_plane):
    """An import of an old history does not come before the conversation at hand."""
    model = BagOfWords()
    plane = open_plane(embedder=model)
    space = plane.space("alice")
    space.ledger.load(entries(BACKLOG))
    space.ledger.load(entries(BACKLOG, first=1_000, at=-10_000_000_000))
    space.ledger.catch_up()
    step(plane, space, reading=False)

    assert f"t{BACKLOG - 1}" in embedded(space, model)
    assert "t1599" not in embedded(space, model)


def test_no_turn_is_embedded_twice_and_none_is_left_out(open_plane):
    """In whatever order turns got their vectors, all have one in the end, equal to what the plain order gives."""
    models = [BagOfWords(), BagOfWords()]
    spaces = [
        open_plane(embedder=model).space(owner) for model, owner in zip(models, ("ann", "ben"), strict=True)
    ]
    fill(spaces[0])
    for first in range(0, BACKLOG, 20):  # never enough for a backlog
        spaces[1].ledger.load(entries(20, first=first))
        spaces[1].enrich()
    spaces[0].enrich()

    assert max(Counter(models[0].embedded).values()) == 1
    assert vectors(spaces[0], models[0]) == vectors(spaces[1], models[1])
    assert spaces[0].recall("word7").degraded == ()


class Killed(BaseException):
    """Nothing catches it."""


def test_nothing_is_lost_wherever_it_is_killed(open_plane, monkeypatch):
    """A worker that dies in every second write, before or after it, ends where an undisturbed one ends."""
    model, calm = BagOfWords(), BagOfWords()
    plane, other = open_plane(embedder=model), open_plane(embedder=calm)
    space = plane.space("alice")
    fill(space, 200)
    fill(other.space("bob"), 200)
    other.space("bob").enrich()
    with space._context.store() as store:
        write, writes = store.write, []

        def killing(work):
            writes.append(1)
            if len(writes) % 4 == 1:
                raise Killed
            done = write(work)
            if len(writes) % 4 == 3:
                raise Killed
            return done

        monkeypatch.setattr(store, "write", killing)
        more = True
        while more:
            try:
                more = plane._parts.worker.step(store)
            except Killed:
                continue
        monkeypatch.undo()

    assert vectors(space, model) == vectors(other.space("bob"), calm)


def test_two_workers_make_each_vector_once(open_plane):
    """What another worker wrote between reading and writing is kept, not replaced: a cache would read it again."""
    model = BagOfWords()
    plane = open_plane(embedder=model)
    space = plane.space("alice")
    fill(space, 200)
    worker, stamps = plane._parts.worker, []

    def look():
        with space._context.read() as reader:
            stamps.append(reader.state.marks().turn_stamp)

    def embed_texts(texts, embed=model.embed_texts):
        model.embed_texts = embed
        step(plane, space, reading=False)
        look()
        return embed(texts)

    model.embed_texts = embed_texts
    with space._context.store() as store:
        assert worker._embed_newest_turns(store, Pace())
    look()

    assert stamps[0] == stamps[1] > 0


def test_a_forget_in_between_leaves_no_vector(open_plane):
    """The vector of a turn that was forgotten while it was embedded is not stored."""
    model = BagOfWords()
    plane = open_plane(embedder=model)
    space = plane.space("alice")
    fill(space, 200)

    def embed_texts(texts, embed=model.embed_texts):
        model.embed_texts = embed
        space.forget(entries=["t199"])
        return embed(texts)

    model.embed_texts = embed_texts
    step(plane, space, reading=False)
    space.enrich()

    assert "t199" not in embedded(space, model)
    assert len(vectors(space, model)[0]) == 199


# ── the worker beside recalls ────────────────────────────────────────────────────────────────────────────────────


def test_words_answer_while_the_model_hangs(plane_data):
    """A worker that is stuck in the model keeps nobody from what is there."""
    hangs, go_on = threading.Event(), threading.Event()

    class Hanging(BagOfWords):
        def embed_texts(self, texts):
            hangs.set()
            go_on.wait(60)
            return super().embed_texts(texts)

    with Memplane.open(plane_data, embedder=Hanging(), background=True) as plane:
        try:
            space = plane.space("alice")
            fill(space, 50)
            space.retain("the kettle is on")
            assert hangs.wait(60)
            told = space.recall("kettle")
        finally:
            go_on.set()

    assert told.blocks[0].text == "the kettle is on"
    assert any(reason.startswith("vectors:") for reason in told.degraded)


def test_the_quick_answer_waits_for_no_index(open_plane):
    """While another recall loads the turns of the space, words are found and rendered."""
    space = open_plane(embedder=BagOfWords(), recall_work_ms=0).space("alice")
    fill(space, 50)
    turn_index, _, _ = space._context.parts.indexes.of("default", "alice")
    with ThreadPoolExecutor(1) as pool, turn_index._lock:
        told = pool.submit(space.recall_by_words, "word7").result(60)

    assert told.blocks[0].text == "word7 was said"
    assert "word7 was said" in told.text
    assert told.degraded


def test_the_worker_goes_on_with_an_import(open_plane):
    """What a killed import left becomes searchable without anyone reading the space."""
    plane = open_plane()
    space = plane.space("alice")
    space.ledger.load(entries(30))
    step(plane, space)

    with space._context.read() as reader:
        assert reader.state.cursor() == reader.ledger.head().seq
