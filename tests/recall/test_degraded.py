"""An incomplete answer says so and why (promise 25), and no outage ever fails a recall."""

import pytest
from tests.support.stub_embedder import StubEmbedder

from memplane import Memplane, Settings
from memplane.ledger.payloads import TurnPayload, encode
from memplane.memory import projection
from memplane.models.embedding import EmbeddingFailed
from memplane.models.llm import LLMFailed, LLMUnavailable
from memplane.models.local import LocalEmbedder
from memplane.recall.result import Limits
from memplane.types import NewEntry, Op
from memplane.worker.background import BackgroundRunner


@pytest.fixture
def embedder() -> StubEmbedder:
    return StubEmbedder()


def reasons(told) -> list[str]:
    return [reason.partition(":")[0] for reason in told.degraded]


def test_a_whole_answer_says_nothing(open_plane, embedder):
    """With a model and without, once everything is worked off there is nothing to complain about."""
    for owner, chosen in (("alice", embedder), ("bob", None)):
        space = open_plane(embedder=chosen).space(owner)
        space.retain("I live in Lisbon.")
        space.store("fact", "tea is fine")
        told = space.recall("tea in Lisbon")

        assert told.degraded == ()
        assert len(told.blocks) == 2
        assert ("vector" in told.routing.channels) is (chosen is not None)


def test_a_question_that_cannot_be_embedded_is_answered_by_its_words(open_plane, embedder):
    """The answer comes, names the trouble, and is whole again when the trouble is over."""
    space = open_plane(embedder=embedder).space("alice")
    space.retain("I live in Lisbon.")
    space.store("fact", "Lisbon is warm")
    whole = space.recall("Lisbon")
    embedder.queries_fail = True
    told = space.recall("Lisbon")

    assert told.degraded == ("embedding: the stub is down",)
    assert {block.text for block in told.blocks} == {block.text for block in whole.blocks}
    assert "vector" not in told.routing.channels
    assert all("meaning" not in hit.channels for hit in told.hits)
    embedder.queries_fail = False
    again = space.recall("Lisbon")
    assert (again.degraded, again.hits) == ((), whole.hits)


def test_turns_that_cannot_be_embedded_are_found_by_their_words(open_plane, embedder):
    """What came in during the outage is told at once; its vectors are made later, without anyone asking twice."""
    space = open_plane(embedder=embedder).space("alice")
    space.retain("I live in Lisbon.")
    space.recall("Lisbon")
    embedder.texts_fail = True
    space.retain("Porto is windy, they say.")
    told = space.recall("Porto")

    assert reasons(told) == ["vectors"]
    assert told.blocks[0].text == "Porto is windy, they say."
    with pytest.raises(EmbeddingFailed):
        space.enrich()
    embedder.texts_fail = False
    told = space.recall("Porto")
    assert told.degraded == ()
    (turn,) = [hit for hit in told.hits if hit.turn is not None and "Porto" in hit.turn.text]
    assert turn.channels["meaning"] > 0


class AbsentLLM:
    """A language model that is always away, or always refuses."""

    model_id = "absent"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def complete(self, *arguments: object, **options: object) -> None:
        raise self.error


@pytest.mark.parametrize("error", [LLMUnavailable("away"), LLMFailed("the key is wrong")])
def test_a_language_model_that_is_away_fails_no_recall(tmp_path, clock, embedder, error):
    """Facts wait for it and the answer says so; vectors do not wait."""
    options = Settings(recall_work_ms=60_000)
    with Memplane.open(
        tmp_path / "data", embedder=embedder, llm=AbsentLLM(error), clock=clock, settings=options
    ) as plane:
        space = plane.space("alice")
        space.retain("I live in Lisbon, and I love tea.")
        space.retain("The weather was fine in Porto.")
        told = space.recall("Lisbon")

        assert [block.text for block in told.blocks][:1] == ["I live in Lisbon, and I love tea."]
        assert told.hits[0].channels["meaning"] > 0
        if isinstance(error, LLMUnavailable):
            assert reasons(told) == ["enrichment"]


def test_without_a_model_words_alone_decide(open_plane):
    """No vectors are missed where none were ever wanted."""
    space = open_plane(embedder=None).space("alice")
    space.retain("I live in Lisbon.")
    told = space.recall("Lisbon")

    assert told.degraded == ()
    assert all("meaning" not in hit.channels for hit in told.hits)
    assert set(told.timings) >= {"embed", "turns", "facts", "render", "total"}


def test_an_import_is_told_about_until_it_is_read(open_plane, clock):
    """So many entries are not read yet; the number falls to nothing."""
    space = open_plane(recall_work_ms=0).space("alice")
    said = [
        NewEntry(f"t{n}", Op.TURN, encode(TurnPayload(role="user", content=f"tea {n}", at=clock())))
        for n in range(9)
    ]
    space.ledger.load(said)

    assert space.recall("tea").degraded == (
        "indexing: 9 entries cannot be searched yet",
        "enrichment: 9 entries are not read for facts yet",
    )
    space.ledger.catch_up()
    assert space.recall("tea").degraded == ("enrichment: 9 entries are not read for facts yet",)
    space.enrich()
    assert space.recall("tea").degraded == ()
    space.ledger.load(
        [NewEntry("last", Op.TURN, encode(TurnPayload(role="user", content="tea", at=clock())))]
    )
    space.ledger.catch_up()
    assert space.recall("tea").degraded == ("enrichment: 1 entry is not read for facts yet",)


def test_turns_of_an_import_under_way_are_told_once(open_plane, clock):
    """A turn that overtakes an import stands in the history of its conversation, and not again among the hits."""
    space = open_plane(recall_work_ms=0).space("alice")
    space.ledger.load(a_long_import(clock))
    space.retain("tea now", conversation="c")
    space.retain("tea elsewhere", conversation="d")
    told = space.recall("what did I say about tea?", conversation="c")

    assert [turn.text for turn in told.conversation_history] == ["tea now"]
    assert [block.text for block in told.blocks] == ["tea elsewhere"]
    assert reasons(told)[0] == "indexing"


def test_a_turn_that_overtakes_an_import_finds_a_place(open_plane, clock):
    """Turns that have nothing to do with the question leave it room, and those that do leave it half."""
    plane = open_plane(recall_work_ms=0)

    def first_words(owner, question, **limits):
        """Each in a space of its own, with a part of the import searchable."""
        space = plane.space(owner)
        space.ledger.load(a_long_import(clock))
        with space._context.store() as store:
            store.write(projection.catch_up)
        space.retain("tea is good")
        told = space.recall(question, limits=Limits(**limits))
        return [hit.turn.text.split()[0] for hit in told.hits if hit.turn is not None]

    assert first_words("a", "tea", turns=12)[0] == "tea"
    assert sorted(first_words("b", "bulk or tea", turns=2)) == ["bulk", "tea"]
    assert first_words("c", "tea", turns=0) == []


def a_long_import(clock) -> list[NewEntry]:
    """More than one recall catches up with."""
    texts = [f"bulk {n}" for n in range(2_100)]
    return [
        NewEntry(text, Op.TURN, encode(TurnPayload(role="user", content=text, at=clock(), conversation="i")))
        for text in texts
    ]


@pytest.mark.parametrize("question", ["What is her pet called?", "Has she got a cat?"])
def test_the_real_model_finds_what_shares_no_word(open_plane, question):
    """The model in the package, end to end: found by meaning, and said to be."""
    space = open_plane(embedder=LocalEmbedder()).space("alice")
    for text in (
        "My sister adopted a kitten named Whiskers.",
        "The quarterly report is due on Friday.",
        "We are out of printer paper again.",
        "The train to Berlin was late.",
    ):
        space.retain(text)
    told = space.recall(question)

    first = next(hit for hit in told.hits if hit.turn is not None)
    assert first.turn.text == "My sister adopted a kitten named Whiskers."
    assert first.ranks["meaning"] == 1
    assert told.degraded == ()


def test_a_background_makes_vectors_while_the_language_model_is_away(tmp_path, clock, embedder):
    """Facts wait for the model, vectors do not, and that the space fails is noted all the same."""
    llm = AbsentLLM(LLMUnavailable("away"))
    with Memplane.open(tmp_path / "data", embedder=embedder, llm=llm, clock=clock) as plane:
        space = plane.space("alice")
        space.retain("I live in Lisbon, and I love tea.")
        with BackgroundRunner(plane._parts.stores, plane._parts.worker, list) as background:
            background._work("default", "alice")
            failing = background.failing()

        lag = space.overview.enrichment().waiting
        assert (lag.entries, lag.turns) == (1, False)
        assert failing == {("default", "alice"): 1}
