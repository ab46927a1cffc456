"""A model with two encoders: the language of a text decides, and one vector space holds both."""

import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest
from tests.support.two_encoders import two_encoders

from memplane import Settings
from memplane.errors import SettingsInvalid
from memplane.main import embedder_of
from memplane.models import local
from memplane.models.language import is_english
from memplane.models.local import (
    ARCTIC_EMBED_S,
    DEFAULT,
    SHIPPED,
    LocalEmbedder,
    local_model,
    model_in,
)

ENGLISH = ["I adopted a cat and named her Luna", "hi", "", "Kubernetes v1.29"]
OTHER = ["Ich habe eine Katze und sie heißt Luna", "我喜欢猫", "¿Dónde trabajo?"]
MIXED = [ENGLISH[0], OTHER[0], ENGLISH[1], OTHER[1], ENGLISH[2], OTHER[2], ENGLISH[3]]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return two_encoders(tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def embedder(model):
    return LocalEmbedder(model, threads=1)


@pytest.fixture(scope="module")
def alone(model):
    """The two encoders, each as a model of its own: for English, and for other languages."""
    return {
        english: LocalEmbedder(model.encoder(folder), threads=1)
        for english, folder in ((True, model.folder), (False, model.multilingual))
    }


@pytest.fixture
def loads(monkeypatch):
    """How often each folder was loaded."""
    counts = Counter()
    lock, read = threading.Lock(), local._read

    def counted(encoder, threads):
        with lock:
            counts[encoder.folder.name] += 1
        return read(encoder, threads)

    monkeypatch.setattr(local, "_read", counted)
    return counts


def test_the_language_decides_on_the_encoder(embedder, alone):
    """
    A text has the vector of the encoder for its language, in the order of the texts; so has a question, by its own language and
    with the prefix before it.
    """
    vectors = embedder.embed_texts(MIXED)

    for text, vector in zip(MIXED, vectors, strict=True):
        assert is_english(text) is (text in ENGLISH)
        assert np.array_equal(vector, alone[text in ENGLISH].embed_texts([text])[0])
        assert np.array_equal(
            embedder.embed_query(text), alone[text in ENGLISH].embed_texts([f"? {text}"])[0]
        )
    assert not np.array_equal(alone[True].embed_texts(OTHER[:1]), alone[False].embed_texts(OTHER[:1]))


def test_a_text_has_one_vector_in_any_company(embedder):
    """
    Alone, among texts of other languages, in another order: the same bytes.
    """
    together = embedder.embed_texts(MIXED)

    assert np.array_equal(together, embedder.embed_texts(MIXED[::-1])[::-1])
    assert np.array_equal(together, np.stack([embedder.embed_texts([text])[0] for text in MIXED]))


def test_the_second_encoder_is_loaded_for_the_first_text_that_needs_it(model, loads):
    """
    English alone loads one encoder: the other costs neither memory nor start-up time.
    """
    embedder = LocalEmbedder(model, threads=1)
    embedder.embed_texts(ENGLISH)
    embedder.embed_query(ENGLISH[0])

    assert loads == {model.folder.name: 1}
    embedder.embed_query(OTHER[0])
    embedder.embed_texts(OTHER)
    assert loads == {model.folder.name: 1, "multilingual": 1}


def test_texts_of_other_languages_alone_load_the_second_encoder_alone(model, loads):
    """
    A space in German needs no English encoder.
    """
    LocalEmbedder(model, threads=1).embed_texts(OTHER)

    assert loads == {"multilingual": 1}


def test_many_threads_load_each_encoder_once(model, embedder, loads):
    """
    Threads that ask at the same time, in both languages, get their vectors from two encoders loaded once.
    """
    fresh = LocalEmbedder(model, threads=1)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: fresh.embed_texts([text])[0], MIXED * 2))

    assert loads == {model.folder.name: 1, "multilingual": 1}
    assert np.array_equal(np.stack(found), embedder.embed_texts(MIXED * 2))


def test_embedders_of_a_shipped_model_share_its_encoders(model, loads, monkeypatch):
    """
    A process loads each encoder of a shipped model once, however many planes it opens.
    """
    monkeypatch.setitem(SHIPPED, "two", model)
    first, second = LocalEmbedder(model, threads=1), LocalEmbedder(model, threads=1)
    vectors = first.embed_texts(MIXED), second.embed_texts(MIXED)

    assert loads == {model.folder.name: 1, "multilingual": 1}
    assert np.array_equal(*vectors)


def test_a_folder_may_hold_a_second_encoder(model, tmp_path):
    """
    `multilingual/` in the folder of a model is its second encoder, and a part of its identity.
    """
    folder = model.folder
    plain = tmp_path / folder.name
    shutil.copytree(folder, plain, ignore=lambda *_: ["multilingual"])
    two, one = model_in(folder), model_in(plain)

    assert (two.multilingual, one.multilingual) == (folder / "multilingual", None)
    assert LocalEmbedder(two).model_id != LocalEmbedder(one).model_id


def test_encoders_of_different_sizes_are_refused(model):
    """
    Vectors of different lengths cannot share a space, and the message names the folder.
    """
    embedder = LocalEmbedder(msgspec.structs.replace(model, dimension=100), threads=1)

    with pytest.raises(SettingsInvalid, match=r"multilingual: vectors have 384 numbers"):
        embedder.embed_texts(OTHER)


def test_a_setting_selects_a_shipped_model_by_name(model):
    """
    `embedding_model` is the name of a shipped model or a directory; without it, the default is used.
    """
    assert local_model(None) is DEFAULT
    assert local_model("arctic-embed-s") is ARCTIC_EMBED_S
    assert local_model(str(model.folder)) == model_in(model.folder)
    ids = [embedder_of(Settings(embedding_model=name)).model_id for name in (None, "arctic-embed-s")]
    assert ids == [DEFAULT.id, "snowflake-arctic-embed-s-int8"]
