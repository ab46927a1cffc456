"""Whether memory helps with a turn: greetings and general questions get nothing, what is known is returned."""

from datetime import UTC, datetime

import pytest

from memplane.models.local import LocalEmbedder
from memplane.recall.selection import MAYBE_BLOCKS, MAYBE_TOKENS


@pytest.fixture
def known(space):
    for text in (
        "Works as a nurse at St Mary hospital",
        "Prefers tea",
        "Her sister Ines lives in Braga",
        "Allergic to walnuts",
    ):
        space.store("fact", text)
    space.retain("I bought a green bicycle in Faro", at=datetime(2026, 10, 6, tzinfo=UTC))
    space.enrich()
    return space


@pytest.mark.parametrize("turn", ["hi", "thanks!", "ok, go on"])
def test_a_turn_without_need_gets_nothing(known, turn):
    told = known.recall(turn)

    assert told.routing.helps == "unlikely"
    assert (told.text, told.blocks) == ("", ())


@pytest.mark.parametrize(
    "turn", ["Write a haiku about autumn", "What is 7 times 8?", "Who painted the Mona Lisa?"]
)
def test_a_general_question_gets_little_at_most(known, turn):
    told = known.recall(turn)

    assert told.routing.helps != "likely"
    assert told.tokens <= MAYBE_TOKENS
    assert len(told.blocks) <= MAYBE_BLOCKS


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("does she prefer tea?", "Prefers tea"),
        ("Am I allergic to walnuts?", "Allergic to walnuts"),
        ("where does my sister live?", "Ines"),
        ("did I buy a green bicycle?", "green bicycle"),
    ],
)
def test_a_turn_about_what_is_known_gets_it(known, question, answer):
    told = known.recall(question)

    assert told.routing.helps == "likely"
    assert answer in told.text


def test_an_empty_query_needs_no_reason(known):
    """
    It asks for what is new.
    """
    assert known.recall("").routing.need == 1.0


def test_a_past_time_from_which_something_is_known(known):
    """
    A question about it may be about that; one about another time, or about today, is not.
    """
    assert known.recall("What happened in October?").routing.signals["then"] == 1.0
    assert "bicycle" in known.recall("What happened in October?").text
    assert known.recall("What happened in March 1999?").routing.signals["then"] == 0.0
    assert known.recall("What is the weather today?").routing.signals["then"] == 0.0


def test_the_need_is_a_probability(known):
    for query in ("", "hi", "tea", "walnuts walnuts walnuts", "?" * 500, "她住在哪里?"):
        assert 0.0 <= known.recall(query).routing.need <= 1.0


@pytest.mark.parametrize("greeting", ["hi", "hi there", "ha"])
def test_a_greeting_does_not_find_a_pronoun(open_plane, greeting):
    """
    The index holds `his` as `hi`, and `has` as `ha`.
    """
    space = open_plane(embedder=LocalEmbedder()).space("alice")
    space.store("fact", "Speaks Polish with his parents and has a cat")
    space.retain("He speaks Polish with his parents and has a cat")
    space.enrich()
    told = space.recall(greeting)

    assert told.routing.signals["words"] == 0
    assert told.text == ""
    assert space.search(greeting, words_only=True) == []


def test_a_word_with_the_stem_of_a_stop_word_is_found(space):
    """
    Only where the text has the word.
    """
    space.store("fact", "John Doe owns the house")
    space.store("fact", "He does the garden")

    assert [hit.text for hit in space.search("doe", words_only=True)] == ["John Doe owns the house"]
