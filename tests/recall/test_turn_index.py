"""The index of turns: what it says about every turn is what a plain walk over the store would say, however it got there."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import HandClock, Scribe, SqliteEngine, costly, fresh_folder
from tests.recall.test_fusion import HOUR, JULY, asked, slow_passages, spoken, turns_of
from tests.support.stub_embedder import StubEmbedder

from memplane.extract.relevance import Question
from memplane.models.vectors import VectorTable
from memplane.recall.query_context import PreparedQuery
from memplane.recall.turn_index import TurnColumns, TurnColumnsBuilder, TurnIndex
from memplane.recall.turn_ranking import holders, rank_turns
from memplane.storage.filter import Filter
from memplane.storage.numbers import turn_number
from memplane.storage.turns import TurnHead
from memplane.storage.vectors import TurnVector
from memplane.storage.words import stems_of

MODEL = ("stub", 40)


def asking_of(reader, index, text, *, embedder=None) -> PreparedQuery:
    """What a recall would ask for these words."""
    turns = index.refresh(reader)
    question = Question(text)
    return PreparedQuery(
        text=text,
        analysis=asked(text=text),
        question=question,
        turns=turns,
        holders=holders(reader, index, turns, question),
        query=None if embedder is None else embedder.embed_query(text),
        model=reader.vectors.model(*MODEL),
        near=(),
        where=Filter(now=0),
    )


def scores_of(turns, query):
    return turns.vectors.scores(query, np.arange(turns.count))


def embed(store, turns, embedder, words=None) -> None:
    rows = embedder.embed_texts([turn.text for turn in turns]).astype(np.float16)
    made = [
        TurnVector(
            turn_number(turn.seq, turn.ordinal),
            len(stems_of(turn.text)) if words is None else words,
            turn.text.endswith("?"),
            b"",
            row.tobytes(),
        )
        for turn, row in zip(turns, rows, strict=True)
    ]

    def work(writer):
        writer.vectors.add_turns(writer.vectors.use_model(*MODEL), made, until=made[-1].n)

    store.write(work)


# ── windows, passages, sittings ──────────────────────────────────────────────────────────────────────────────────


@given(spoken())
def test_passages_and_sittings_are_as_defined(heads):
    """Passages, neighbours and sittings of every turn, against the definition taken literally."""
    turns = turns_of(*heads)

    for place, passage in enumerate(slow_passages(heads)):
        assert turns.passage_words[place] == sum(heads[other].words for other in passage)
        assert turns.window_before[place] == sum(other < place for other in passage)
        assert turns.window_after[place] == sum(other > place for other in passage)
        for other in passage:
            assert turns.session[other] == turns.session[place]
        before = [other for other in range(place) if turns.session[other] == turns.session[place]]
        assert turns.before[place] == max(before, default=-1)
        assert turns.after[place] == -1 or turns.before[turns.after[place]] == place
    assert turns.sessions == len(set(turns.session.tolist()))


@given(spoken(), st.data())
def test_a_guess_is_corrected_as_if_it_had_never_been(heads, data):
    """Words are guessed until the worker has counted them. Whenever it does, everything that follows from the count is
    what it would be had it been known from the start."""
    columns = TurnColumnsBuilder()
    for head in heads:
        columns.add(
            TurnHead(
                head.n, head.conversation, None, head.role, None, head.at, data.draw(st.integers(1, 130)), 1
            )
        )
    order = data.draw(st.permutations(range(len(heads))))
    cut = data.draw(st.integers(0, len(heads)))
    for places in (order[:cut], order[cut:]):
        columns.correct([(place, heads[place].words, False) for place in places])

    told, expected = TurnColumns(columns, VectorTable(0)), turns_of(*heads)
    for name in (
        "words",
        "asks",
        "window_before",
        "window_after",
        "passage_words",
        "before",
        "after",
        "session",
    ):
        assert getattr(told, name).tolist() == getattr(expected, name).tolist(), name
    assert told.words_usual == pytest.approx(expected.words_usual)
    assert not columns.correct([(place, head.words, False) for place, head in enumerate(heads)])


def test_a_sitting_ends_with_a_pause():
    """Two hours apart is another sitting; a microsecond less is not, and conversations do not mix."""
    times = [(1, "a", 0), (2, "b", 1), (3, "a", 2 * HOUR - 1), (4, "a", 4 * HOUR - 1), (5, None, 4 * HOUR)]
    turns = turns_of(
        *(TurnHead(n, conversation, None, "user", None, JULY + at, 3, 0) for n, conversation, at in times)
    )

    assert turns.session.tolist() == [0, 1, 0, 2, 3]
    assert turns.before.tolist() == [-1, -1, 0, -1, -1]


def test_roles_are_no_speakers():
    """Who is called `user` or `assistant` has no name; others are known by theirs."""
    names = ["Ann", None, "user", "Bob", "Ann", "assistant"]
    turns = turns_of(
        *(TurnHead(n, None, None, "user", name, JULY, 3, 0) for n, name in enumerate(names, start=1))
    )

    assert turns.speakers == ("Ann", "Bob")
    assert turns.speaker.tolist() == [0, -1, -1, 1, 0, -1]


def test_what_was_handed_out_stays():
    """A recall that is still ranking does not see turns that are added later."""
    columns = TurnColumnsBuilder()
    columns.add(TurnHead(1, "c", None, "user", None, JULY, 3, 0))
    earlier = TurnColumns(columns, VectorTable(0))
    for n in range(2, 1_000):
        columns.add(TurnHead(n, "c", None, "user", None, JULY, 3, 0))

    assert (earlier.count, len(earlier.n), earlier.words_usual) == (1, 1, 3)
    assert earlier.find(np.array([1, 2]))[1].tolist() == [True, False]


# ── against the store ────────────────────────────────────────────────────────────────────────────────────────────

WORDS = ["tea", "teas", "Lisbon", "run", "running", "上海", "海", "茶", "🎉"]
TEXT = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


@costly(30)
@given(st.lists(st.tuples(TEXT, st.booleans()), min_size=1, max_size=12), st.sampled_from(WORDS))
def test_occurrences_are_those_of_a_plain_count(said, word):
    """Where a word occurs and how often, whether a turn is in the word index yet or not, and again after a look."""
    with fresh_folder() as folder:
        engine = SqliteEngine(folder)
        stores = engine.stores()
        with stores.open("default", "alice", create=True) as store:
            scribe, index = Scribe(store, HandClock()), TurnIndex(("none", 0))
            texts = []
            for text, indexed in said:
                scribe.turn(text)
                texts.append(text)
                if indexed:
                    engine.index(store)
                with store.read() as reader:
                    turns = index.refresh(reader)
                    found = holders(reader, index, turns, Question(word))
                    ((places, counts),) = found.values()
                stem = Question(word).stems[Question(word).words[0]]
                alone = len(stem) == 1 and stem > "\u3000"
                expected = {
                    place: count
                    for place, text in enumerate(texts)
                    if (
                        count := sum(
                            number
                            for other, number in Counter(stems_of(text)).items()
                            if other == stem or (alone and stem != "🎉" and other.startswith(stem))
                        )
                    )
                }
                assert dict(zip(places.tolist(), counts.tolist(), strict=True)) == expected
        stores.close()


def test_one_character_of_a_script_without_spaces_is_found(scribe):
    """Such scripts are indexed in pairs; one character stands for every pair that begins with it."""
    scribe.turn("她住在上海的公寓里")
    scribe.turn("nothing")
    index = TurnIndex(("none", 0))
    for step in (lambda: None, scribe.index):
        step()
        with scribe.store.read() as reader:
            (places, _) = holders(reader, index, index.refresh(reader), Question("海"))["海"]
            assert places.tolist() == [0]


def test_a_forget_empties_the_index(scribe):
    """After a forget, places are counted again and nothing of the forgotten turn is left in words or vectors."""
    embedder, index = StubEmbedder(), TurnIndex(MODEL)
    turns = scribe.turns(["tea one", "tea two", "tea three"])
    embed(scribe.store, turns, embedder)
    with scribe.store.read() as reader:
        assert index.refresh(reader).count == 3
    gone = turns[1]
    forget = scribe.entry()
    scribe.store.write(
        lambda writer: writer.ledger.erase([(gone.seq, gone.entry_id)], position=forget.seq, at=0, reason="")
    )
    with scribe.store.read() as reader:
        asking = asking_of(reader, index, "two", embedder=embedder)
        ranked = rank_turns(reader, asking, limit=9)

    assert asking.turns.count == 2
    assert asking.holders["two"][0].tolist() == []
    assert {hit.turn.text for hit in ranked} == {"tea one", "tea three"}
    assert np.isfinite(scores_of(asking.turns, asking.query)).all()


def test_who_ranks_while_another_forgets_ranks_what_it_saw(scribe):
    """Two recalls share an index. One of them sees a forget and reloads everything; the other goes on with turns and
    vectors that belong together."""
    embedder, index = StubEmbedder(), TurnIndex(MODEL)
    turns = scribe.turns(["tea one", "coffee two", "water three", "milk four"])
    embed(scribe.store, turns, embedder)
    with scribe.store.read() as slow:
        asking = asking_of(slow, index, "milk", embedder=embedder)
        forget = scribe.entry()
        victims = [(turn.seq, turn.entry_id) for turn in turns[:2]]
        scribe.store.write(lambda writer: writer.ledger.erase(victims, position=forget.seq, at=0, reason=""))
        with scribe.store.read() as quick:
            assert index.refresh(quick).count == 2
        ranked = rank_turns(slow, asking, limit=4)

    assert ranked[0].turn.text == "milk four"
    assert len(ranked) == 4
    nearness = {hit.turn.text: hit.signals["nearness"] for hit in ranked}
    assert nearness["milk four"] > 0.6 > max(nearness["tea one"], nearness["water three"])


def test_an_earlier_reader_does_not_turn_the_index_back(scribe):
    """Whoever still reads an old state gets the later turns; what it must not see, its own reader leaves out."""
    index = TurnIndex(("none", 0))
    first = scribe.turn("tea one")
    with scribe.store.read() as earlier:
        assert earlier.state.marks().cursor == first.seq
        scribe.turn("tea two")
        with scribe.store.read() as later:
            assert index.refresh(later).count == 2
        asking = asking_of(earlier, index, "tea")
        assert [hit.turn.text for hit in rank_turns(earlier, asking, limit=5)] == ["tea one"]
    with scribe.store.read() as later:
        assert len(rank_turns(later, asking_of(later, index, "tea"), limit=5)) == 2


def test_vectors_that_come_later_are_seen(scribe):
    """A vector that is made or replaced after a look counts at the next one, and so does the count of words."""
    embedder, index = StubEmbedder(), TurnIndex(MODEL)
    turns = scribe.turns(["tea one?", "coffee two"])
    with scribe.store.read() as reader:
        assert np.isnan(scores_of(index.refresh(reader), embedder.embed_query("tea"))).all()
    embed(scribe.store, turns, embedder, words=77)
    with scribe.store.read() as reader:
        seen = index.refresh(reader)
        scores = scores_of(seen, embedder.embed_query("tea one"))
    assert seen.words.tolist() == [77, 77]
    assert scores[0] > 0.9 > scores[1]
    embed(scribe.store, [turns[1]], StubEmbedder("other"))
    with scribe.store.read() as reader:
        assert scores_of(index.refresh(reader), embedder.embed_query("coffee two"))[1] < 0.9


@pytest.mark.parametrize("kept_max", [0, 10_000])
def test_a_large_space_is_ranked_as_a_small_one(scribe, monkeypatch, kept_max):
    """Where vectors are too many to compare one by one, codes and words choose whom to look at, and nearly the same
    turns come out on top, with about the same nearness, whether vectors are kept or read from the store."""
    embedder = StubEmbedder(dimension=40)
    chance = np.random.default_rng(3)
    vocabulary = [f"word{n}x" for n in range(400)]
    texts = [" ".join(chance.choice(vocabulary, 6)) for _ in range(2_600)]
    turns = scribe.turns(texts)
    scribe.index()
    embed(scribe.store, turns, embedder)
    exact = TurnIndex(MODEL)
    with scribe.store.read() as reader:
        exact.refresh(reader)
    monkeypatch.setattr(VectorTable.__init__, "__kwdefaults__", {"exact_max": 500, "kept_max": kept_max})
    coded = TurnIndex(MODEL)
    shared = total = firsts = 0
    with scribe.store.read() as reader:
        for place in range(0, 2_600, 130):
            query = " ".join(texts[place].split()[:4])
            small = rank_turns(reader, asking_of(reader, exact, query, embedder=embedder), limit=10)
            large = rank_turns(reader, asking_of(reader, coded, query, embedder=embedder), limit=10)
            nearness = {hit.turn.entry_id: hit.signals["nearness"] for hit in small}
            for hit in large:
                if hit.turn.entry_id in nearness:
                    shared += 1
                    assert hit.signals["nearness"] == pytest.approx(nearness[hit.turn.entry_id], abs=1e-2)
            total += len(small)
            firsts += small[0].turn == large[0].turn
        assert exact.refresh(reader).vectors.exact
        assert not coded.refresh(reader).vectors.exact

    assert firsts == 20
    assert shared / total >= 0.85


def test_a_large_space_without_a_model_is_ranked_by_words(scribe, monkeypatch):
    """No vectors at all, and more turns than are judged one by one."""
    monkeypatch.setattr(VectorTable.__init__, "__kwdefaults__", {"exact_max": 10, "kept_max": 10})
    scribe.turns([f"tea word{n}x" for n in range(60)])
    index = TurnIndex(("none", 0))
    with scribe.store.read() as reader:
        (first, *_) = rank_turns(reader, asking_of(reader, index, "word42x"), limit=3)

    assert first.turn.text == "tea word42x"
    assert first.relevant


@pytest.mark.parametrize("exact_max", [10, 10_000])
def test_turns_of_another_place_take_no_places_in_a_large_space(scribe, monkeypatch, exact_max):
    """Not by their words, not by their codes, and not in the sample that says what is usual."""
    monkeypatch.setattr(VectorTable.__init__, "__kwdefaults__", {"exact_max": exact_max, "kept_max": 10_000})
    embedder = StubEmbedder(dimension=40)
    hidden = scribe.turns(["tea tea tea"] * 900, within="project:p")
    (seen,) = scribe.turns(["a cup of tea and something else"])
    scribe.index()
    embed(scribe.store, [*hidden, seen], embedder)
    index = TurnIndex(MODEL)
    with scribe.store.read() as reader:
        asking = asking_of(reader, index, "tea tea tea", embedder=embedder)
        ranked = rank_turns(reader, asking, limit=5)

    assert [hit.turn for hit in ranked] == [seen]
    assert ranked[0].ranks["words"] == 1
