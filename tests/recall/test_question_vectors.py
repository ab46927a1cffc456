"""Questions are embedded beside everything else, and nobody can tell from the answer."""

import threading

import numpy as np
import pytest
from tests.support.stub_embedder import StubEmbedder

from memplane import Memplane
from memplane.models.embedding import EmbeddingUnavailable
from memplane.recall.caches import Cores, Questions


class Watched(StubEmbedder):
    """Knows which threads asked it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, bool]] = []

    def embed_query(self, text):
        self.asked.append((text, threading.current_thread() is threading.main_thread()))
        return super().embed_query(text)


class Unreachable(StubEmbedder):
    def embed_query(self, text):
        raise EmbeddingUnavailable("nobody answers")


@pytest.mark.parametrize("beside", [True, False])
def test_embedded_once_beside_or_when_it_is_asked_for(beside):
    """
    With a core to spare in another thread, without one in this; either way once, however often it is waited for.
    """
    embedder = Watched()
    questions = Questions(embedder, beside=lambda: beside)
    waiting = questions.begin("tea")
    (first, failed), (again, _) = waiting(), waiting()
    questions.close()

    assert embedder.asked == [("tea", not beside)]
    assert failed == ()
    assert first is again
    assert np.array_equal(first, StubEmbedder().embed_query("tea"))


@pytest.mark.parametrize("beside", [True, False])
def test_without_a_vector_it_says_why(beside):
    """
    A model that cannot be reached fails no recall, and neither does a question that says nothing.
    """
    questions = Questions(Unreachable(), beside=lambda: beside)
    vector, failed = questions.begin("tea")()

    assert vector is None
    assert failed == ("embedding: nobody answers",)
    assert questions.begin("  ")() == (None, ())
    assert Questions(None).begin("tea")() == (None, ())
    questions.close()


@pytest.mark.parametrize("beside", [True, False])
def test_the_answer_is_the_same(tmp_path, monkeypatch, beside):
    """
    What is told does not depend on where the question was embedded.
    """
    monkeypatch.setattr(Cores, "spare", lambda _: beside)
    with Memplane.open(tmp_path, embedder=StubEmbedder()) as plane:
        space = plane.space("alice")
        for said in ("I live in Lisbon.", "I love green tea.", "The weather is fine."):
            space.retain(said)
        space.documents.upload("Tea is brewed with hot water.", name="tea.md")
        space.enrich()
        told = space.recall("Where do I drink tea?")

    assert next(hit.turn.text for hit in told.hits if hit.turn) == "I love green tea."
    assert told.spans
    assert "vector" in told.routing.channels
    assert {"read", "words", "documents", "embed", "near", "turns", "facts", "render"} <= set(told.timings)


def test_a_core_is_looked_for_now_and_then(monkeypatch):
    """
    One core is never enough, and of two none is free where more than two want to run.
    """
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("os.getloadavg", lambda: (0.5, 0, 0))
    cores = Cores()
    assert cores.spare()

    monkeypatch.setattr("os.getloadavg", lambda: (2.5, 0, 0))
    assert cores.spare()  # it has just looked
    assert not Cores().spare()
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    monkeypatch.setattr("os.getloadavg", lambda: (0.0, 0, 0))
    assert not Cores().spare()
