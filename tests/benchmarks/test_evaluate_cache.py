"""The cache of vectors that evaluations share."""

from pathlib import Path

import numpy as np
import pytest

from memplane.errors import InvalidRequest
from memplane.models.embedding import normalised
from memplane_eval.cache import CachedEmbedder, Stopwatch


class Counting:
    """A model whose vectors say which model made them, and which keeps count of its work."""

    def __init__(self, model_id, number, dimension=4):
        self.model_id = model_id
        self.dimension = dimension
        self.number = number
        self.asked = []

    def embed_texts(self, texts):
        self.asked += texts
        rows = [[self.number, len(text), 1, *[0] * (self.dimension - 3)] for text in texts]
        return normalised(np.array(rows, np.float32).reshape(-1, self.dimension))

    def embed_query(self, text):
        self.asked.append(f"? {text}")
        return normalised(np.array([-self.number, len(text), 1, *[0] * (self.dimension - 3)], np.float32))


def test_a_second_run_asks_for_nothing(tmp_path):
    """
    What one process embedded, the next one finds, in the order it asks and with repetitions.
    """
    with CachedEmbedder(Counting("m", 1), tmp_path) as first:
        made = first.embed_texts(["a", "bb", "a", ""])
        asked = first.embed_query("a")
    model = Counting("m", 1)

    with CachedEmbedder(model, tmp_path) as second:
        assert np.array_equal(second.embed_texts(["", "a", "bb"]), made[[3, 0, 1]])
        assert np.array_equal(second.embed_query("a"), asked)
    assert model.asked == []


def test_models_are_never_mixed(tmp_path):
    """
    Another model id, or another dimension under the same id, gets vectors of its own.
    """
    models = [Counting("m", 1), Counting("n", 2), Counting("m", 3, dimension=6)]
    for _ in range(2):
        for model in models:
            with CachedEmbedder(model, tmp_path) as cached:
                assert np.array_equal(cached.embed_texts(["same"]), model.embed_texts(["same"]))
                assert np.array_equal(cached.embed_query("same"), model.embed_query("same"))


def test_a_question_is_not_a_text(tmp_path):
    """
    The same words as a question and as a text are two vectors.
    """
    with CachedEmbedder(Counting("m", 1), tmp_path) as cached:
        assert not np.array_equal(cached.embed_texts(["same"])[0], cached.embed_query("same"))


def test_only_what_is_new_is_embedded(tmp_path):
    """
    Each new text goes to the model once, however often it is asked for; nothing asked is nothing done.
    """
    model = Counting("m", 1)
    with CachedEmbedder(model, tmp_path) as cached:
        cached.embed_texts(["a", "b", "a"])
        cached.embed_texts(["b", "c"])

        assert model.asked == ["a", "b", "c"]
        assert cached.embed_texts([]).shape == (0, 4)


def test_any_string_can_be_kept(tmp_path):
    """
    Half a surrogate pair is a text too, and no other one.
    """
    with CachedEmbedder(Counting("m", 1), tmp_path) as cached:
        cached.embed_texts(["\ud800", "?"])

        assert len(cached.embed_texts(["\ud800"])) == 1


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    """
    A file where the folder should be is the user's to mend.
    """
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidRequest, match="cannot keep vectors"):
        CachedEmbedder(Counting("m", 1), Path(tmp_path / "file"))


def test_the_stopwatch_counts_questions_only():
    """
    It passes everything on and times what a question costs.
    """
    watch = Stopwatch(Counting("m", 1))
    watch.embed_texts(["a"])

    assert (watch.model_id, watch.dimension, watch.queries_s) == ("m", 4, 0)
    assert len(watch.embed_query("a")) == 4
    assert watch.queries_s > 0
