"""Spans: the index says what a plain look at the store would say, and ranking keeps to what it was asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import fresh_folder
from tests.support.stub_embedder import DIMENSION, StubEmbedder

from memplane import Memplane
from memplane.documents.span_index import SpanIndex
from memplane.documents.span_ranking import PARTS_MAX, REACH_MIN, parts_of, rank_spans
from memplane.errors import StorageUnreachable
from memplane.extract.relevance import Question
from memplane.models.vectors import VectorTable
from memplane.storage.words import stems_of

MODEL = ("stub", DIMENSION)
FERRY = "The ferry to Odda leaves at nine. It takes ninety minutes and carries forty cars."
BREAD = "Knead the dough for ten minutes. Let the bread rise for an hour before you bake it."
TAX = "The tax office wants the form by the end of April. Late forms cost fifty euros."


def read(space, work):
    with space._context.read() as reader:
        return work(reader)


def ranked(space, index, text, *, embedder=None, **how):
    query = None if embedder is None else embedder.embed_query(text)
    return read(space, lambda reader: rank_spans(reader, index, text, lambda: query, **{"limit": 5, **how}))


def columns(space, index):
    """What the index says, in words anyone can check."""

    def look(reader):
        spans = index.refresh(reader)
        held = index.occurrences(reader, spans, ["ferri", "bread", "tax", "nine"])
        return (
            [spans.documents[place].id for place in spans.document],
            spans.n.tolist(),
            {
                stem: dict(zip(places.tolist(), counts.tolist(), strict=True))
                for stem, (places, counts) in held.items()
            },
        )

    return read(space, look)


@pytest.fixture
def shelf(space):
    for name, text in (("ferry", FERRY), ("bread", BREAD), ("tax", TAX)):
        space.documents.upload(text, name=name, id=name)
    return space


# ── the index ────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("upload"), st.sampled_from("abc"), st.sampled_from([FERRY, BREAD, TAX, FERRY * 20])
            ),
            st.tuples(st.just("delete"), st.sampled_from("abc"), st.just("")),
            st.tuples(st.just("look"), st.just(""), st.just("")),
        ),
        max_size=12,
    )
)
def test_a_used_index_says_what_a_new_one_says(steps):
    """Whatever was uploaded, replaced and deleted in between, and however often it was looked at."""
    with fresh_folder() as folder, Memplane.open(folder, embedder=None) as plane:
        space, used = plane.space("alice"), SpanIndex(MODEL)
        for step, name, text in steps:
            if step == "upload":
                space.documents.upload(text, name=name, id=name)
            elif step == "delete" and any(document.id == name for document in space.documents.list()):
                space.documents.delete(name)
            elif step == "look":
                columns(space, used)

        assert columns(space, used) == columns(space, SpanIndex(MODEL))


class Lost:
    """Something whose connection is lost as soon as it asks for this, which may be an attribute of an attribute."""

    def __init__(self, reader, asked):
        self._reader = reader
        self._asked, _, self._rest = asked.partition(".")

    def __getattr__(self, name):
        if name != self._asked:
            return getattr(self._reader, name)
        if not self._rest:
            raise StorageUnreachable("gone")
        return Lost(getattr(self._reader, name), self._rest)


@pytest.mark.parametrize("asked", ["documents.span_heads", "documents.heads", "vectors.model"])
def test_a_load_that_failed_is_done_again(shelf, asked):
    """
    Whoever asks next finds all there is, whichever time they see.
    """
    index = SpanIndex(MODEL)
    with shelf._context.read() as older:
        before = index.refresh(older).count
        shelf.documents.delete("ferry")
        with shelf._context.read() as newer, pytest.raises(StorageUnreachable):
            index.refresh(Lost(newer, asked))
        assert index.refresh(older).count == before == 3
    columns(shelf, index)
    shelf.documents.upload(FERRY, name="boat", id="boat")
    with shelf._context.read() as newer, pytest.raises(StorageUnreachable):
        index.refresh(Lost(newer, asked))

    assert columns(shelf, index) == columns(shelf, SpanIndex(MODEL))


def test_occurrences_are_those_of_the_text(shelf):
    """Every span holds a stem as often as its titles and its text do."""
    documents, _, held = columns(shelf, SpanIndex(MODEL))

    assert documents == ["ferry", "bread", "tax"]
    assert held["ferri"] == {0: stems_of(f"ferry {FERRY}").count("ferri")}
    assert held["nine"] == {0: 1.0}


def test_vectors_come_with_the_worker(open_plane):
    """A span whose vector is still to come is found by its words; then by both, in an index that was there before."""
    embedder = StubEmbedder()
    space = open_plane(embedder=embedder).space("alice")
    index = SpanIndex(MODEL)
    space.documents.upload(FERRY, name="ferry")
    before = ranked(space, index, "ferry nine", embedder=embedder)
    space.enrich()
    after = ranked(space, index, "ferry nine", embedder=embedder)

    assert "meaning" not in before[0].contributions
    assert "meaning" in after[0].ranks
    assert before[0].span == after[0].span


# ── ranking ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_score_is_the_sum_of_what_is_told(shelf):
    """Every channel's contribution is shown, and ranks count from 1."""
    found = ranked(shelf, SpanIndex(MODEL), "When does the ferry leave?")

    assert found[0].span.document == "ferry"
    assert found[0].score == pytest.approx(sum(found[0].contributions.values()), abs=0.005)
    assert set(found[0].ranks) == {"words", "document", "part"}
    assert found[0].ranks["words"] == 1
    assert found[0].relevant


def test_only_the_documents_asked_for(shelf):
    """The restriction comes before the limit: the best of one document is found however good others are."""
    seqs = {document.id: document.seq for document in shelf.documents.list()}
    index = SpanIndex(MODEL)

    assert [
        one.span.document
        for one in ranked(shelf, index, "ferry to Odda", among={seqs["bread"], seqs["tax"]}, limit=1)
    ] in (["bread"], ["tax"])
    assert ranked(shelf, index, "ferry", among=set()) == []
    assert ranked(shelf, index, "ferry", limit=0) == []


def test_a_restriction_holds_where_codes_choose(open_plane, monkeypatch):
    """Also among so many spans that not all of them are compared."""
    monkeypatch.setattr("memplane.documents.span_ranking._EXACT_MAX", 1)
    monkeypatch.setattr("memplane.documents.span_ranking._MOST", 2)
    monkeypatch.setattr("memplane.documents.span_index.VectorTable", _small_table)
    embedder = StubEmbedder()
    space = open_plane(embedder=embedder).space("alice")
    for place in range(30):
        space.documents.upload(f"{FERRY} Number {place}.", name=f"ferry {place}", id=f"d{place}")
    space.enrich()
    seqs = {document.id: document.seq for document in space.documents.list(limit=100)}
    wanted = {seqs[f"d{place}"] for place in range(5)}
    found = ranked(space, SpanIndex(MODEL), "ferry number seven", embedder=embedder, among=wanted, limit=10)

    assert {one.span.document for one in found} <= {f"d{place}" for place in range(5)}
    assert found


def _small_table(dimension):
    return VectorTable(dimension, exact_max=1)


def test_a_second_span_of_a_document_is_put_back(space, monkeypatch):
    """A document that says the same in every span does not keep another one out, and it is told what that cost."""
    space.documents.upload(" ".join([FERRY] * 40), name="long", id="long")
    space.documents.upload(FERRY, name="short", id="short")

    def place_of_the_other():
        found = ranked(space, SpanIndex(MODEL), "ferry to Odda", limit=50)
        return [one.span.document for one in found].index("short"), found

    place, found = place_of_the_other()
    assert found[1].contributions["repeated"] == -1.0
    monkeypatch.setattr("memplane.documents.span_ranking._REPEATED", 0.0)

    assert place < place_of_the_other()[0]


def test_what_nothing_answers_is_told_as_such(shelf):
    """No span is relevant for a question of which nothing is held; one is where its words are."""
    index = SpanIndex(MODEL)

    assert not any(one.relevant for one in ranked(shelf, index, "Which opera sold submarines to Peru?"))
    assert any(one.relevant for one in ranked(shelf, index, "How long does the bread rise?"))


def test_the_nearness_that_counts_is_known_by_model(open_plane, monkeypatch):
    """With a model that is known, near or not decides together with the words."""
    embedder = StubEmbedder()
    space = open_plane(embedder=embedder).space("alice")
    space.documents.upload(FERRY, name="ferry")
    space.enrich()
    index = SpanIndex(MODEL)
    for least, relevant in ((0.0, True), (2.0, False)):
        monkeypatch.setitem(REACH_MIN, "stub", (least, least))

        assert ranked(space, index, "ferry", embedder=embedder)[0].relevant is relevant


def test_what_follows_an_answer_must_be_near_too(open_plane, monkeypatch):
    """One span that answers does not bring in others that are neither near nor hold a word of the question."""
    embedder = StubEmbedder()
    space = open_plane(embedder=embedder).space("alice")
    space.documents.upload(FERRY, name="ferry")
    space.documents.upload("Bread rises for an hour.", name="bread")
    space.enrich()
    monkeypatch.setitem(REACH_MIN, "stub", (0.9, 0.9))
    found = ranked(space, SpanIndex(MODEL), FERRY, embedder=embedder)

    assert [one.relevant for one in found] == [True, False]


def test_an_empty_space_has_no_spans(space):
    """Nothing is ranked, and nothing goes wrong."""
    assert ranked(space, SpanIndex(MODEL), "anything", embedder=StubEmbedder()) == []


# ── the parts of a question ──────────────────────────────────────────────────────────────────────────────────────


def test_a_question_for_two_things_has_two_parts():
    """Each part has the words it is about; a plain question has none."""
    two = parts_of(
        "Does the Times article praise the new bridge, while the Post article blames the ferry company?"
    )

    assert ["bridge" in part.words for part in two] == [True, False]
    assert ["ferry" in part.words for part in two] == [False, True]
    assert parts_of("When does the ferry leave?") == []
    assert parts_of("") == []


@given(st.text(max_size=300))
def test_parts_hold_the_words_of_the_question(text):
    """None is lost, and there are never too many."""
    parts = parts_of(text)

    assert len(parts) <= PARTS_MAX
    assert not parts or {word for part in parts for word in part.words} >= set(Question(text).words[:5])


def test_standard_scores_do_not_depend_on_the_order_of_uploads(open_plane):
    """The same documents in another order give the same scores."""
    found = []
    for name, texts in (("one", (FERRY, BREAD, TAX)), ("other", (TAX, BREAD, FERRY))):
        space = open_plane().space(name)
        for text in texts:
            space.documents.upload(text, name="notes", id=str(hash(text)))
        found.append({one.span.text: one.score for one in ranked(space, SpanIndex(MODEL), "bread and ferry")})

    assert found[0] == pytest.approx(found[1])
    assert np.isfinite(list(found[0].values())).all()
