"""The local embedding model: the right files, used the way they want to be used."""

import hashlib
import json
import shutil
import threading

import numpy as np
import pytest

from memplane.errors import SettingsInvalid
from memplane.models.local import ARCTIC_EMBED_S, LocalEmbedder, LocalModel, Pooling, model_in

HASHES = {
    "model.onnx": "f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
    "tokenizer.json": "87eb7217e03ca66a173ac8430e41d2b2edc5fd38ef2a0e01f86213e02c897a1b",
}
QUESTION = "what is my cat called?"
ANSWER = "I adopted a cat and named her Luna"
OTHERS = [
    "The stock market fell three percent today",
    "We went hiking in the Alps last weekend",
    "My sister moved to Lisbon for a new job",
]
TEXTS = [ANSWER, *OTHERS, "", "short", "a longer one, " * 40]


@pytest.fixture(scope="module")
def embedder():
    return LocalEmbedder(ARCTIC_EMBED_S, threads=1)


@pytest.mark.parametrize("name", HASHES)
def test_the_vendored_files_are_those_we_measured(name):
    """
    Weights and vocabulary are byte for byte the ones whose quality is on record, with their licence beside them.
    """
    assert hashlib.sha256((ARCTIC_EMBED_S.folder / name).read_bytes()).hexdigest() == HASHES[name]
    assert "Apache License" in (ARCTIC_EMBED_S.folder / "LICENSE").read_text("utf-8")
    assert "Snowflake" in (ARCTIC_EMBED_S.folder / "NOTICE").read_text("utf-8")


def test_vectors_have_the_promised_shape(embedder):
    """
    One float32 row of length one for each text, in order; a question is one such row.
    """
    vectors = embedder.embed_texts(TEXTS)
    question = embedder.embed_query(QUESTION)

    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), embedder.dimension), np.float32)
    assert (question.shape, question.dtype) == ((384,), np.float32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.linalg.norm(question) == pytest.approx(1, abs=1e-5)


def test_no_texts_give_no_rows(embedder):
    """
    An empty batch is legal and keeps its second dimension.
    """
    assert embedder.embed_texts([]).shape == (0, 384)


def test_similarities_are_those_we_measured(embedder):
    """
    Known texts have the known similarities, the answer first. The mean of all states gives .58 for the answer, no
    prefix gives .85; processors round 8-bit sums differently, by less than that.
    """
    scores = embedder.embed_texts([ANSWER, *OTHERS]) @ embedder.embed_query(QUESTION)

    assert scores == pytest.approx([0.639, 0.407, 0.436, 0.503], abs=0.03)
    assert scores.argmax() == 0


def test_the_first_token_is_the_text(embedder):
    """
    The vector is the first token's state: the mean of all states is another vector.
    """
    mean = LocalEmbedder(LocalModel(folder=ARCTIC_EMBED_S.folder, pooling=Pooling.MEAN), threads=1)
    ours, theirs = embedder.embed_texts([ANSWER])[0], mean.embed_texts([ANSWER])[0]
    cls = LocalEmbedder(LocalModel(folder=ARCTIC_EMBED_S.folder, pooling=Pooling.CLS), threads=1)

    assert ours @ theirs < 0.97
    assert np.array_equal(ours, cls.embed_texts([ANSWER])[0])


def test_a_question_carries_the_prefix(embedder):
    """
    A question is the text with the model's prefix before it, and that is not the text alone.
    """
    prefixed, bare = embedder.embed_texts([ARCTIC_EMBED_S.query_prefix + QUESTION, QUESTION])
    question = embedder.embed_query(QUESTION)

    assert ARCTIC_EMBED_S.query_prefix == "Represent this sentence for searching relevant passages: "
    assert np.array_equal(question, prefixed)
    assert question @ bare < 0.97


def test_a_text_has_one_vector_whatever_stands_beside_it(embedder):
    """
    Alone, in a batch, in another order: the same bytes, so that a replay changes nothing.
    """
    together = embedder.embed_texts(TEXTS)
    backwards = embedder.embed_texts(TEXTS[::-1])[::-1]
    alone = np.stack([embedder.embed_texts([text])[0] for text in TEXTS])

    assert np.array_equal(together, alone)
    assert np.array_equal(together, backwards)


def test_batches_agree_up_to_rounding():
    """
    A model that is given batches gets them sorted by length and padded, and answers in the order asked.
    """
    batched = LocalEmbedder(LocalModel(folder=ARCTIC_EMBED_S.folder, batch_texts_max=3), threads=1)
    alone = LocalEmbedder(LocalModel(folder=ARCTIC_EMBED_S.folder, batch_texts_max=1), threads=1)

    cosines = (batched.embed_texts(TEXTS) * alone.embed_texts(TEXTS)).sum(axis=1)

    assert cosines.min() > 0.99


def test_text_beyond_the_window_is_cut(embedder):
    """
    What lies beyond 512 tokens changes nothing, and a text of megabytes is no trouble.
    """
    long = "word " * 600
    first, second, huge = embedder.embed_texts([long, long + "and quite another matter", long * 1_000])

    assert np.array_equal(first, second)
    assert np.array_equal(first, huge)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "我喜欢猫",
        "أحب القطط",
        "मुझे बिल्लियाँ पसंद हैं",
        "😀🐈",
        "\x00\x07",
        "half \ud83d a pair",
        "ﬁ" * 900,
    ],
)
def test_any_string_is_legal(embedder, text):
    """
    Every script, nothing at all, control characters and broken surrogates have a finite vector of length one.
    """
    vector = embedder.embed_texts([text])[0]

    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_questions_are_remembered_and_cannot_be_spoilt(embedder):
    """
    The second time costs nothing, and the cached vector is read-only.
    """
    first = embedder.embed_query("asked twice")

    assert embedder.embed_query("asked twice") is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0


def test_threads_share_a_model(embedder):
    """
    Many threads, one fresh embedder: it loads once and each gets its own answer.
    """
    fresh = LocalEmbedder(ARCTIC_EMBED_S, threads=1)
    found = {}

    def ask(text):
        found[text] = (fresh.embed_texts([text])[0], fresh.embed_query(text))

    threads = [threading.Thread(target=ask, args=(f"text {number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(np.array_equal(vectors[0], embedder.embed_texts([text])[0]) for text, vectors in found.items())
    assert all(np.array_equal(vectors[1], embedder.embed_query(text)) for text, vectors in found.items())


@pytest.mark.parametrize("words", [5, 300])
def test_several_threads_say_what_one_says(embedder, words):
    """
    How many threads embed a text, short or long, is not to be seen in its vector.
    """
    text = " ".join(f"word{number}" for number in range(words))

    assert np.array_equal(
        LocalEmbedder(ARCTIC_EMBED_S, threads=2).embed_texts([text]), embedder.embed_texts([text])
    )


def test_a_folder_of_ones_own_works(tmp_path, embedder):
    """
    A sentence-transformers export is used as its own files say, and has another model ID.
    """
    folder = tmp_path / "mine"
    (folder / "onnx").mkdir(parents=True)
    shutil.copy(ARCTIC_EMBED_S.folder / "model.onnx", folder / "onnx")
    shutil.copy(ARCTIC_EMBED_S.folder / "tokenizer.json", folder)
    as_cls = model_in(folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}), "utf-8")
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "query: "}}', "utf-8")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 128}', "utf-8")
    as_mean = model_in(folder)
    mine = LocalEmbedder(as_mean, threads=1)

    assert (as_cls.pooling, as_cls.query_prefix, as_cls.tokens_max) == (Pooling.CLS, "", 512)
    assert (as_mean.pooling, as_mean.query_prefix, as_mean.tokens_max) == (Pooling.MEAN, "query: ", 128)
    assert mine.dimension == 384
    assert mine.model_id.startswith("mine-")
    assert len({mine.model_id, LocalEmbedder(as_cls).model_id, embedder.model_id}) == 3


SENTENCES, PROMPTS = "sentence_bert_config.json", "config_sentence_transformers.json"


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [
        (SENTENCES, '{"max_seq_length": "abc"}', "max_seq_length"),
        (SENTENCES, '{"max_seq_length": -5}', "max_seq_length"),
        (SENTENCES, '{"max_seq_length": 0}', "max_seq_length"),
        (SENTENCES, '{"max_seq_length": 1e400}', "max_seq_length"),
        (SENTENCES, '{"max_seq_length": NaN}', "max_seq_length"),
        (SENTENCES, '{"max_seq_length": 12.5}', "max_seq_length"),
        (SENTENCES, '{"max_seq_length": true}', "max_seq_length"),
        (SENTENCES, '{"max_seq_length": 99999999999999999999}', "max_seq_length"),
        (SENTENCES, '{"max_seq_length": [128]}', "max_seq_length"),
        (SENTENCES, "[1]", "object"),
        (PROMPTS, '{"prompts": [1]}', "prompts"),
        (PROMPTS, '{"prompts": "query: "}', "prompts"),
        (PROMPTS, '{"prompts": {"query": 1}}', "prompts"),
        ("1_Pooling/config.json", '{"pooling_mode_mean_tokens": "no"}', "pooling_mode_mean_tokens"),
    ],
)
def test_a_wrong_value_in_the_files_of_a_model_is_named(tmp_path, name, content, field):
    """
    File and field are named when the settings are read.
    """
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / name).write_text(content, "utf-8")

    with pytest.raises(SettingsInvalid) as caught:
        model_in(tmp_path)
    assert str(tmp_path / name) in str(caught.value)
    assert field in str(caught.value)


def test_values_that_a_model_may_leave_open(tmp_path):
    """
    `null` means the default, like a missing file, and fields that are not used may be anything.
    """
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text('{"word_embedding_dimension": 384}', "utf-8")
    (tmp_path / PROMPTS).write_text('{"prompts": null, "__version__": {}}', "utf-8")
    (tmp_path / SENTENCES).write_text('{"max_seq_length": null, "do_lower_case": 1}', "utf-8")

    assert model_in(tmp_path) == LocalModel(folder=tmp_path)


@pytest.mark.parametrize("spoil", ["model.onnx", "tokenizer.json"])
def test_a_folder_without_a_model_says_so(tmp_path, spoil):
    """
    A missing or damaged file is named as a setting that is off, when the model is first used.
    """
    for name in HASHES:
        shutil.copy(ARCTIC_EMBED_S.folder / name, tmp_path)
    (tmp_path / spoil).write_bytes(b"not this")
    embedder = LocalEmbedder(model_in(tmp_path), threads=1)

    with pytest.raises(SettingsInvalid, match=str(tmp_path)):
        embedder.embed_texts(["x"])
    (tmp_path / spoil).unlink()
    with pytest.raises(SettingsInvalid, match=str(tmp_path)):
        embedder.embed_texts(["x"])
