"""Another embedding model: everything is embedded again in the background, recall answers all the while, and the status
says what is left."""

import threading

import pytest
from tests.support.stub_embedder_enrich import BagOfWords
from tests.support.two_encoders import two_encoders

from engines import both_engines, only_files
from memplane.ledger.payloads import TurnPayload, encode
from memplane.models.local import ARCTIC_EMBED_S, LocalEmbedder
from memplane.space.doctor import examine
from memplane.types import NewEntry, Op
from memplane.worker.background import BackgroundRunner

pytestmark = both_engines

KITTEN = "My sister adopted a kitten named Whiskers."
WEATHER = "Das Wetter in Hamburg war gestern schlecht."
TURNS = 70


def fill(space, turns=TURNS):
    """More turns than one step embeds, a memory, and a document."""
    said = [KITTEN, WEATHER, *(f"Remark {n} about the garden" for n in range(turns - 2))]
    space.ledger.load(
        [
            NewEntry(
                f"t{n}",
                Op.TURN,
                encode(TurnPayload(role="user", content=text, at=n * 1_000_000, conversation=f"c{n // 10}")),
            )
            for n, text in enumerate(said)
        ]
    )
    space.store("fact", "The lighthouse is red")
    space.documents.upload(b"# Boats\n\nThe ferry leaves at noon.\n", name="boats.md")
    space.enrich()


def models_of(space):
    """The ids of all models that have a vector in the space."""
    with space._context.read() as reader:
        numbers = {n: id_ for id_, _, n in reader.vectors._session.all("models")}
        read = (reader.vectors.turns, reader.vectors.memories, reader.vectors.spans)
        return {numbers[n] for n in numbers for rows in read if rows(n, after=0, limit=1)}


def step(plane, space):
    with space._context.store() as store:
        return plane._parts.worker.step(store)


@pytest.fixture
def models():
    """Two models with vectors of the same length, which nothing but their ids keeps apart."""
    return BagOfWords("first"), BagOfWords("second")


def test_vectors_of_the_model_before_are_replaced_step_by_step(open_plane, models):
    """
    After each step fewer are left; the status names both models until none is. Every recall finds the turn by its words.
    """
    fill(open_plane(embedder=models[0]).space("alice"))
    plane = open_plane(embedder=models[1], recall_work_ms=0)
    space = plane.space("alice")
    before = space.overview.embedding()
    left = [before.pending]
    found = []
    while step(plane, space):
        status = space.overview.embedding()
        left.append(status.pending)
        answer = space.recall("Whiskers")
        found.append("Whiskers" in answer.text)
        changed = "vectors: the embedding model changed (it was first)"
        assert any(reason.startswith(changed) for reason in answer.degraded) is (status.pending > 0)
        assert status.replaces == ("first" if status.pending else status.replaces)
    after = space.overview.embedding()

    assert (before.model, before.replaces, before.turns) == ("second", "first", TURNS)
    assert before.memories > 0
    assert before.spans > 0
    assert left == sorted(left, reverse=True)
    assert len(left) > 4
    assert all(found)
    assert (after.model, after.replaces, after.pending) == ("second", None, 0)
    assert models_of(space) == {"second"}
    assert space.recall("Whiskers").degraded == ()


def test_vectors_of_two_models_are_never_compared(open_plane, models):
    """
    Before the first new vector, nothing is near by meaning, though the vectors of the model before are of the same length.
    """
    fill(open_plane(embedder=models[0]).space("alice"))
    space = open_plane(embedder=models[1], recall_work_ms=0).space("alice")
    answer = space.recall("Remark about the garden")

    assert answer.hits
    assert all(not hit.channels.get("meaning") for hit in answer.hits)


def test_a_search_says_that_the_model_changed(open_plane, models):
    """
    A search finds words at once, and says why meaning is incomplete.
    """
    fill(open_plane(embedder=models[0]).space("alice"))
    plane = open_plane(embedder=models[1], recall_work_ms=0)
    space = plane.space("alice")
    step(plane, space)
    found = space.search("Whiskers")

    assert KITTEN in [hit.turn.text for hit in found if hit.turn is not None]
    assert found.degraded[0].startswith("vectors: the embedding model changed (it was first)")


def test_the_doctor_counts_what_is_left(open_plane, models):
    """
    Pending vectors are no damage, and the check names the models and the numbers.
    """
    fill(open_plane(embedder=models[0]).space("alice"))
    space = open_plane(embedder=models[1], recall_work_ms=0).space("alice")

    def vectors():
        return next(check for check in examine(space).checks if check.name == "vectors")

    before = vectors()
    space.enrich()
    after = vectors()

    assert (before.ok, after.ok) == (True, True)
    assert before.detail.startswith(f"{TURNS} turns, ")
    assert "with second yet, which replaces first" in before.detail
    assert after.detail == "every vector is of second"
    assert (before.figures["pending"] > TURNS, after.figures["pending"]) == (True, 0)


def test_the_first_model_and_none_replace_nothing(open_plane, models):
    """
    A space without vectors has none to replace: not when the first model comes, nor for a process without one.
    """
    space = open_plane(embedder=None, recall_work_ms=0).space("alice")
    fill(space)
    assert space.overview.embedding().model is None
    space = open_plane(embedder=models[0], recall_work_ms=0).space("alice")
    assert (space.overview.embedding().replaces, space.overview.embedding().turns) == (None, TURNS)
    space.enrich()
    space = open_plane(embedder=None, recall_work_ms=0).space("alice")
    space.enrich()

    assert models_of(space) == {"first"}
    assert space.recall("Whiskers").degraded == ()


def test_turning_back_halfway_is_a_change_too(open_plane, models):
    """
    The model before, chosen again in the middle, replaces the new one's vectors to the end.
    """
    fill(open_plane(embedder=models[0]).space("alice"))
    plane = open_plane(embedder=models[1], recall_work_ms=0)
    step(plane, plane.space("alice"))
    space = open_plane(embedder=models[0], recall_work_ms=0).space("alice")
    during = space.overview.embedding()
    space.enrich()

    assert during.replaces == "second"
    assert models_of(space) == {"first"}
    assert space.overview.embedding().replaces is None


@only_files
def test_a_space_of_the_english_model_gets_vectors_of_two_encoders(open_plane, tmp_path):
    """
    Written with arctic-embed-s, opened with a model of two encoders: a thread embeds everything again while recalls find the
    turn by its words, and in the end by its meaning.
    """
    fill(open_plane(embedder=LocalEmbedder(ARCTIC_EMBED_S, threads=1)).space("alice"))
    model = two_encoders(tmp_path / "two")
    plane = open_plane(embedder=LocalEmbedder(model, threads=1), recall_work_ms=0)
    space = plane.space("alice")
    assert space.overview.embedding().replaces == ARCTIC_EMBED_S.id
    idle = threading.Event()

    def wait(bell, seconds):
        idle.set()
        return bell.wait(seconds)

    answers = []
    with BackgroundRunner(
        plane._parts.stores, plane._parts.worker, lambda: [("default", "alice")], wait=wait
    ):
        while not idle.is_set():
            answers.append(space.recall("Whiskers, the kitten"))
    status = space.overview.embedding()
    last = space.recall("Whiskers, the kitten")

    assert (status.model, status.replaces, status.pending) == (model.id, None, 0)
    assert models_of(space) == {model.id}
    for answer in (*answers, last):
        assert KITTEN in [hit.turn.text for hit in answer.hits if hit.turn is not None]
    assert last.degraded == ()
    assert last.hits[0].turn is not None
    assert "meaning" in last.hits[0].channels
