"""Fusion, its channels, and the measure it was tuned with."""

import gzip
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.errors import InvalidRequest
from memplane.evaluate import retrieval
from memplane.providers.embedding_local import LocalEmbedder
from memplane.recall import fusion
from memplane.recall.fusion import AskedDate, Weights

MAY_DAY = datetime(2023, 5, 1, tzinfo=UTC)


def turns_of(*rows, words=10):
    """Each row: session, speaker, text and, perhaps, days after the first of May."""
    return fusion.describe(
        sessions=[row[0] for row in rows],
        speakers=[row[1] for row in rows],
        texts=[row[2] for row in rows],
        dates=[MAY_DAY + timedelta(days=row[3] if len(row) > 3 else 0) for row in rows],
        lengths=[words] * len(rows),
    )


TALK = turns_of(
    (4, "Ann", "Hello Bob"),
    (4, "Bob", "Which car did you buy?"),
    (4, "Ann", "A red one"),
    (9, "Bob", "I moved", 40),
    (9, "Ann", "Where to?", 40),
    (9, "Bob", "Lisbon", 40),
)
NOTHING = np.zeros(6)


def asked(question, turns=TALK):
    return fusion.read_question(question, turns.speakers)


def test_sessions_and_windows_stay_apart():
    """
    Sessions are numbered as they come, and no passage reaches into another session or further than two turns.
    """
    long = turns_of(*[(1, "Ann", "x")] * 7)

    assert TALK.sessions.tolist() == [0, 0, 0, 1, 1, 1]
    assert TALK.starts.tolist() == [0, 3]
    assert TALK.window_from.tolist() == [0, 0, 0, 3, 3, 3]
    assert TALK.window_to.tolist() == [3, 3, 3, 6, 6, 6]
    assert (long.window_from.tolist(), long.window_to.tolist()) == (
        [0, 0, 0, 1, 2, 3, 4],
        [3, 4, 5, 6, 7, 7, 7],
    )


def test_long_turns_stand_alone():
    """
    A window ends where its words would be too many: long turns carry their own context.
    """
    turns = turns_of(*[(1, "user", "x")] * 3, words=fusion.WINDOW_WORDS + 1)

    assert turns.window_from.tolist() == [0, 1, 2]
    assert turns.window_to.tolist() == [1, 2, 3]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200)), max_size=30))
def test_a_window_is_within_its_session_and_budget(rows):
    """
    For any turns: a passage holds its turn, stays in the session, and keeps both limits on either side.
    """
    rows.sort()
    sessions, lengths = [row[0] for row in rows], [row[1] for row in rows]
    turns = fusion.describe(
        sessions=sessions,
        speakers=["user"] * len(rows),
        texts=["x"] * len(rows),
        dates=[MAY_DAY] * len(rows),
        lengths=lengths,
    )

    for place, (low, high) in enumerate(zip(turns.window_from, turns.window_to, strict=True)):
        assert place - fusion.WINDOW_TURNS <= low <= place < high <= place + 1 + fusion.WINDOW_TURNS
        assert len(set(sessions[low:high])) == 1
        assert max(sum(lengths[low:place]), sum(lengths[place + 1 : high])) <= fusion.WINDOW_WORDS


def test_what_is_embedded():
    """
    A name is said first, a role never; the turn before comes in front with its end, but not before an assistant's.
    """
    assert fusion.embedded_text("Ann", "hi") == "Ann: hi"
    assert fusion.embedded_text("user", "hi") == fusion.embedded_text("", "hi") == "hi"
    assert fusion.pair_text(None, "Ann", "hi") == "hi"
    assert fusion.pair_text("which?", "user", "the red one") == "which? the red one"
    assert fusion.pair_text("which?", "assistant", "the red one") == "the red one"
    assert fusion.pair_text("a" * 900 + "z", "Ann", "hi").endswith("aaz hi")
    assert len(fusion.pair_text("a" * 900, "Ann", "hi")) < 310


def test_one_vector_says_what_two_did():
    """
    The dot product with the stored vector is the weighted mean of the two dot products.
    """
    generator = np.random.default_rng(1)
    own, pair = generator.normal(size=(2, 5, 8)).astype(np.float32)
    question = generator.normal(size=8).astype(np.float32)

    both = (own @ question + 0.7 * (pair @ question)) / 1.7
    assert fusion.turn_vectors(own, pair) @ question == pytest.approx(both, abs=1e-5)


@pytest.mark.parametrize(
    ("question", "text", "named"),
    [
        ("What did Ann's car cost?", "What did I car cost?", {"Ann"}),
        ("Where does ANN live?", "Where does I live?", {"Ann"}),
        ("Did Ann meet Bob?", "Did I meet I?", {"Ann", "Bob"}),
        ("What about Annabel?", "What about Annabel?", set()),
        ("What did I buy?", "What did I buy?", set()),
    ],
)
def test_names_are_read_and_taken_out(question, text, named):
    """
    A speaker's name is recognised as a whole word in any case, and gone from what is embedded.
    """
    read = asked(question)

    assert (read.text, read.speakers) == (text, named)


def test_a_first_name_is_enough():
    """
    A speaker with a full name is found by it or by its first word; odd names are taken literally.
    """
    read = fusion.read_question("Where does Ann Lee work, and Bob?", ["Ann Lee", "Bob (he)", "C++ (.*)"])

    assert read.speakers == {"Ann Lee", "Bob (he)"}
    assert read.text == "Where does I work, and I?"


@pytest.mark.parametrize(
    ("question", "dates"),
    [
        ("What did Ann do in May?", (AskedDate(5),)),
        ("What happened on 12 June 2023?", (AskedDate(6, 2023, 12),)),
        ("Between March and June?", (AskedDate(3), AskedDate(6))),
        ("What may I eat?", ()),
        ("Which 3 cars?", ()),
    ],
)
def test_dates_are_read(question, dates):
    """
    Months with their year and day; the verb "may" is none.
    """
    assert asked(question).dates == dates


@pytest.mark.parametrize(
    ("question", "about"),
    [
        ("Which video did you recommend?", True),
        ("I wanted to follow up on our previous conversation", True),
        ("Can you remind me of the name?", True),
        ("How many bikes do I own?", False),
        ("Where did Ann live in her youth?", False),
    ],
)
def test_a_question_about_the_assistant_is_recognised(question, about):
    """
    Only then do the user's turns have no advantage.
    """
    read = asked(question)
    fused = fusion.fuse(
        turns_of((0, "user", "a"), (0, "assistant", "b")),
        read,
        meaning=None,
        words=np.zeros(2),
        passage=np.zeros(2),
    )

    assert read.of_assistant is about
    assert (fused.scores[0] > fused.scores[1]) is np.bool_(not about)


def test_speakers_dates_and_questions_shift_scores():
    """
    The one who is named, the month that is named and telling beat their opposites when all else is equal.
    """
    read = asked("What did Bob do in June?")

    fused = fusion.fuse(TALK, read, meaning=None, words=NOTHING, passage=NOTHING)

    assert fusion.speaker_match(read, TALK).tolist() == [-1, 1, -1, 1, -1, 1]
    assert fusion.speaker_match(asked("Ann or Bob?"), TALK).tolist() == [0] * 6
    assert fusion.date_match(read, TALK).tolist() == [0, 0, 0, 1, 1, 1]
    assert fusion.date_match(asked("and on 8 June 2023"), TALK).tolist() == [0, 0, 0, 2, 2, 2]
    assert fusion.date_match(asked("and in June 2020"), TALK).tolist() == [0] * 6
    assert TALK.asks.tolist() == [0, 1, 0, 0, 1, 0]
    assert fusion.ranked(fused, 2) == [5, 3]


def test_the_words_around_a_turn_count():
    """
    BM25 of the turn sees the word where it stands, that of the passage all around it, neither elsewhere.
    """
    words, passage = fusion.word_scores([(np.array([1]), np.array([1.0]))], TALK)

    assert np.flatnonzero(words).tolist() == [1]
    assert np.flatnonzero(passage).tolist() == [0, 1, 2]


def test_rare_words_count_more_and_repetition_saturates():
    """
    What few turns hold says more; the second mention adds less than the first.
    """

    def score(places, counts):
        return fusion.word_scores([(np.array(places), np.array(counts, float))], TALK)[0][0]

    assert score([0], [1]) > score([0, 1, 2, 3], [1, 1, 1, 1]) > 0
    assert score([0], [1]) < score([0], [2]) < 2 * score([0], [1])


def test_standard_ignores_what_is_missing():
    """
    Mean 0 and deviation 1 over what is known; a missing number or a flat channel has no opinion.
    """
    scaled = fusion.standard(np.array([1.0, np.nan, 3.0]))

    assert scaled.tolist() == [-1, 0, 1]
    assert fusion.standard(np.full(3, 7.0)).tolist() == [0, 0, 0]
    assert fusion.standard(np.full(3, np.nan)).tolist() == [0, 0, 0]
    assert fusion.standard(np.empty(0)).tolist() == []


def test_a_good_session_lifts_its_turns():
    """
    Beside the turn that answers, the rest of its session stands above another's.
    """
    meaning = np.array([0.1, 0.1, 0.9, 0.1, 0.1, 0.1])

    fused = fusion.fuse(TALK, asked("which?"), meaning=meaning, words=NOTHING, passage=NOTHING)

    assert fusion.best_of_session(meaning, TALK).tolist() == [0.9] * 3 + [0.1] * 3
    assert fused.scores[2] == fused.scores.max()
    assert fused.scores[0] > fused.scores[3]


numbers = st.lists(st.floats(-5, 5, width=32) | st.just(float("nan")), min_size=6, max_size=6).map(np.array)


@given(meaning=st.none() | numbers, words=numbers, passage=numbers, question=st.text(max_size=40))
def test_contributions_add_up(meaning, words, passage, question):
    """
    Whatever comes in, scores are finite and each is the sum of what its channels gave.
    """
    fused = fusion.fuse(TALK, asked(question), meaning=meaning, words=words, passage=passage)

    assert np.isfinite(fused.scores).all()
    for place in range(6):
        assert sum(fused.contributions(place).values()) == pytest.approx(fused.scores[place], abs=1e-9)


def test_explanations_begin_with_what_told_most():
    """
    Contributions are sorted by size, and a channel that is weighted out adds nothing.
    """
    weights = Weights(speaker=9.0, words=0.0)
    fused = fusion.fuse(
        TALK, asked("What did Bob say?"), meaning=None, words=np.arange(6.0), passage=NOTHING, weights=weights
    )

    assert next(iter(fused.contributions(3))) == "speaker"
    assert fused.contributions(3)["words"] == 0


@given(st.lists(st.integers(0, 5), max_size=40), st.integers(0, 45))
def test_ranked_is_a_sort(values, limit):
    """
    The best first, the later one of equals first, as many as there are and no more than asked.
    """
    fused = fusion.Fused(scores=np.array(values, float), channels={}, weights=fusion.WEIGHTS)

    expected = sorted(range(len(values)), key=lambda place: (-values[place], -place))[:limit]
    assert fusion.ranked(fused, limit) == expected


def test_no_turns_are_no_trouble():
    """
    An empty space has nothing to say and does not break.
    """
    empty = turns_of()
    words, passage = fusion.word_scores([], empty)
    fused = fusion.fuse(empty, asked("Ann in May?", empty), meaning=np.empty(0), words=words, passage=passage)

    assert fusion.ranked(fused, 5) == []


# ── the measure ──────────────────────────────────────────────────────────────────────────────────────────────────

LOCOMO = [
    {
        "sample_id": "c1",
        "conversation": {
            "speaker_a": "Ann",
            "session_10_date_time": "9:05 am on 2 June, 2023",
            "session_10": [
                {"speaker": "Bob", "dia_id": "D10:1", "text": "Look", "blip_caption": "a red car"}
            ],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "I moved to Lisbon"},
                {"speaker": "Bob", "dia_id": "D2:2", "text": "Lovely"},
            ],
            "session_3_date_time": "1:56 pm on 9 May, 2023",
        },
        "qa": [
            {"question": "Where did Ann move to?", "evidence": ["D2:1; D10:1", "D77:1"], "category": 1},
            {"question": "Which car?", "evidence": ["D10:1"], "category": 4},
            {"question": "Nothing cited", "evidence": [], "category": 2},
            {"question": "Nobody said so", "evidence": ["D2:2"], "category": 5},
        ],
    }
]


def longmemeval(id_, sessions, **rest):
    said = {
        "a": [
            {"role": "user", "content": "I bought a bike", "has_answer": True},
            {"role": "assistant", "content": "Nice"},
        ],
        "b": [{"role": "user", "content": "My cat is Luna", "has_answer": id_ != "q1"}],
    }
    return {
        "question_id": id_,
        "question_type": "multi-session",
        "question": "What did I buy?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"] * len(sessions),
        "haystack_session_ids": list(sessions),
        "haystack_sessions": [said[name] for name in sessions],
    } | rest


@pytest.mark.parametrize("packed", [True, False])
def test_locomo_is_read_in_its_own_schema(tmp_path, packed):
    """
    Sessions by number, pictures by caption, evidence by pattern; what has no answer is left out.
    """
    raw = json.dumps(LOCOMO).encode()
    path = tmp_path / "locomo"
    path.write_bytes(gzip.compress(raw) if packed else raw)

    (store,) = retrieval.load_locomo(path)

    assert [turn.text for turn in store.turns] == ["I moved to Lisbon", "Lovely", "Look [shares a red car]"]
    assert [(turn.session, turn.at.month) for turn in store.turns] == [(0, 5), (0, 5), (1, 6)]
    assert [(question.text, question.evidence) for question in store.questions] == [
        ("Where did Ann move to?", {0, 2}),
        ("Which car?", {2}),
    ]


def test_longmemeval_is_pooled(tmp_path):
    """
    A session that several questions share is there once; a question without a marked turn is left out.
    """
    path = tmp_path / "longmemeval.json"
    samples = [longmemeval("q1", "ab"), longmemeval("q2", "b"), longmemeval("q3_abs", "a")]
    path.write_text(json.dumps(samples), "utf-8")

    (store,) = retrieval.load_longmemeval(path)

    assert [(turn.session, turn.speaker) for turn in store.turns] == [
        (0, "user"),
        (0, "assistant"),
        (1, "user"),
    ]
    assert [question.evidence for question in store.questions] == [{0}, {2}]


@pytest.mark.parametrize("content", [b"", b"{}", b"\x1f\x8bnot gzip", b"\xff"])
def test_what_is_no_data_set_is_refused(tmp_path, content):
    """
    A wrong file is named in an error that the caller can mend.
    """
    path = tmp_path / "odd"
    path.write_bytes(content)

    with pytest.raises(InvalidRequest, match=str(path)):
        retrieval.load_locomo(path)


def test_recall_is_the_share_that_was_found():
    """
    By turn and by session, over all questions.
    """
    assert retrieval.recall_at([3, 1, 2], {1, 9}, 2) == 0.5
    store = retrieval._locomo_store(LOCOMO[0])

    figures = retrieval.evaluate(
        [store], lambda store: lambda question: np.array([2.0, 1.0, 0.0]), turns_at=(1, 3), sessions_at=(1, 2)
    )
    assert figures == {"turn@1": 0.25, "turn@3": 1, "session@1": 0.25, "session@2": 1}


def test_the_rankers_find_an_easy_answer():
    """
    BM25, vectors and their fusion all put the turn first that answers.
    """
    store = retrieval._locomo_store(LOCOMO[0])
    embedder = LocalEmbedder(threads=1)
    rankers = {"bm25": retrieval.bm25, "dense": retrieval.dense(embedder), "fused": retrieval.fused(embedder)}

    assert retrieval.compare([store], rankers).keys() == rankers.keys()
    assert {
        name: int(ranker(store)(store.questions[1]).argmax()) for name, ranker in rankers.items()
    } == dict.fromkeys(rankers, 2)


def test_words_alone_reach_what_is_on_record():
    """
    Without vectors, fusion stands clearly above BM25 on LoCoMo. (With them: docs/internals/recall.md.)
    """
    folder = Path(os.environ.get("MEMPLANE_EVAL_DATA", Path(__file__).parents[3] / "shared" / "data"))
    path = folder / "locomo-dev.json.gz"
    if not path.is_file():
        pytest.skip("the evaluation data is not here; MEMPLANE_EVAL_DATA names its folder")
    stores = retrieval.load_locomo(path)

    figures = retrieval.compare(stores, {"bm25": retrieval.bm25, "fused": retrieval.fused(_NoVectors())})

    assert figures["bm25"]["turn@10"] == pytest.approx(0.58, abs=0.02)
    assert figures["fused"]["turn@10"] > figures["bm25"]["turn@10"] + 0.1


class _NoVectors:
    """An `Embedder` that has no opinion."""

    model_id = "none"
    dimension = 1

    def embed_texts(self, texts):
        return np.zeros((len(texts), 1), np.float32)

    def embed_query(self, text):
        return np.zeros(1, np.float32)
