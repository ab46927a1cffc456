"""What the rules read out of a message, and what they leave alone."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.extract.catalog import load_catalog
from memplane.extract.claims import render
from memplane.extract.gate import is_useful
from memplane.extract.proposition import Polarity, Tense
from memplane.extract.rules import PROPOSITIONS_MAX, extract

CATALOG = load_catalog()
PIECES = [
    "I", "I'm", "I\u2019ve", "my", "we", "like", "not", "no longer", "and", "but", "if", "when", "because", "said",
    "the capital of", "is", "was", "Paris", "two dogs", "from", "to", "switched", "?", ".", "!", ",", ";", '"', "\n",
    "1.", "23.", "```", "...", "always", "never", "Mr.", "\u00e9t\u00e9", "\u6771\u4eac", "\U0001f436", "'", "  ",
]  # fmt: skip
ADVERSARIAL = {
    "dots": "." * 200_000,
    "dots before a letter": "." * 100_000 + "a",
    "quotes": '"' * 200_000,
    "spaces": " " * 200_000,
    "newlines": "\n" * 200_000,
    "commas": ", " * 100_000,
    "one word": "a" * 200_000,
    "think": "I think " * 25_000,
    "and": "I like a and " * 15_000,
    "of": "The a of " * 20_000,
    "numbers": "1. " * 60_000,
    "fences": "```" * 60_000,
    "from to": "I switched from " * 12_000,
    "my": "my " * 60_000,
    "sentences": "I like tea. " * 15_000,
}


def read(text, role="user"):
    return extract(text, role=role, catalog=CATALOG)


def triples(text):
    return [(found.subject, found.predicate, found.object_text) for found in read(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My name is Ada.", [("user", "is_named", "Ada")]),
        ("I'm 34 years old", [("user", "has_age", "34 years old")]),
        ("I live in Lisbon.", [("user", "lives_in", "Lisbon")]),
        ("Actually I live in Turin now", [("user", "lives_in", "Turin")]),
        ("I work at Acme these days", [("user", "works_at", "Acme")]),
        ("I moved to Turin last spring", [("user", "lives_in", "Turin")]),
        ("I'm originally from Ohio", [("user", "is_from", "Ohio")]),
        ("I\u2019m a nurse", [("user", "works_as", "nurse")]),
        ("I work at Globex as a designer", [("user", "works_at", "Globex as a designer")]),
        ("I have two dogs named Rex and Fido", [("user", "has_pet", "two dogs named Rex and Fido")]),
        ("I have a brother.", [("user", "has_family", "a brother")]),
        ("I am allergic to peanuts", [("user", "has_condition", "allergic to peanuts")]),
        ("I speak Spanish", [("user", "speaks", "Spanish")]),
        ("My favorite color is blue", [("user", "has_favorite", "blue")]),
        ("I prefer dark mode", [("user", "wants_style", "dark mode")]),
        ("I use emacs as my editor", [("user", "uses", "emacs as my editor")]),
        ("I plan to visit Japan", [("user", "plans", "to visit Japan")]),
        ("We rebranded the company as Hooli", [("user", "company_is", "Hooli")]),
        ("My wife works as a teacher", [
            ("user's wife", "works_as", "a teacher"), ("user", "has_family", "a wife"),
        ]),
        ("My deadline is April 1", [("user", "has_deadline", "April 1")]),
        ("The meeting moved to Thursday", [("user", "has_deadline", "Thursday")]),
        ("The project deadline is 15 April 2027", [("user", "has_deadline", "15 April 2027")]),
        ("The launch is on the 21st of June", [("user", "has_deadline", "the 21st of June")]),
        ("The exam is the first Monday of June", [("user", "has_deadline", "the first Monday of June")]),
        ("The meeting is 15 minutes long", []),
        ("The party was for 30 people", []),
        ("I have a son. He is five years old.", [
            ("user", "has_family", "a son"), ("user's son", "has_age", "five years old"),
        ]),
        ("Always answer in French.", [("user", "instructs", "Always answer in French")]),
        ("Don't use tabs.", [("user", "instructs", "Don't use tabs")]),
        ("No, I meant the blue one.", [("user", "corrects", "No, I meant the blue one")]),
        ("The author of The Art of War is Sun Tzu.", [("The Art of War", "property", "Sun Tzu")]),
        ("Paris is the capital of France", [("France", "property", "Paris")]),
        ("Marie Curie was born in the city of Warsaw.", [("Marie Curie", "relation", "Warsaw")]),
    ],
)  # fmt: skip
def test_statements_are_filed_under_their_predicate(text, expected):
    """
    What people say about themselves, theirs and the world becomes subject, predicate and object.
    """
    assert triples(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "What do you do for a living?",
        "Do you like my hat?",
        "If I were rich I would buy a boat.",
        "She said I am lazy.",
        'He shouted "I am the king" and ran.',
        "Hello there!",
        "Thanks a lot!",
        "```\nI like = 1\n```",
        "Is it true that I have to pay?",
        "",
        "   \n  ",
        "?!",
    ],
)
def test_what_nobody_asserts_is_not_read(text):
    """
    Questions, conditions, reported speech, quotes, greetings and code claim nothing.
    """
    assert [found for found in read(text) if is_useful(found, CATALOG)] == []


def test_coordination_is_taken_apart():
    """
    `I like tea and hate coffee` is two statements, the second of them a denial.
    """
    likes, hates = read("I like tea and hate coffee")

    assert (likes.object_text, likes.polarity) == ("tea", Polarity.POSITIVE)
    assert (hates.object_text, hates.polarity) == ("coffee", Polarity.NEGATIVE)


def test_a_question_may_end_a_statement():
    """
    What stands before the question is still said.
    """
    assert triples("I love pizza, what about you?") == [("user", "likes", "pizza")]


@pytest.mark.parametrize(
    ("text", "polarity"),
    [
        ("I don't like jazz", Polarity.NEGATIVE),
        ("I no longer like jazz", Polarity.NEGATIVE),
        ("I never eat meat", Polarity.NEGATIVE),
        ("I don't think I like jazz", Polarity.NEGATIVE),
        ("I used to smoke", Polarity.NEGATIVE),
        ("I quit smoking", Polarity.NEGATIVE),
        ("I gave up bread", Polarity.NEGATIVE),
        ("I like jazz", Polarity.POSITIVE),
        ("I think I like jazz", Polarity.POSITIVE),
    ],
)
def test_denials_are_told_from_claims(text, polarity):
    """
    Negation is seen in the verb, around it, and in verbs that end something.
    """
    (found,) = read(text)

    assert found.polarity is polarity


@pytest.mark.parametrize(
    "text",
    [
        "Actually, I live in Rome",
        "I switched to Vim",
        "I no longer work at Globex",
        "I now live in Rome",
        "I moved to Rome",
        "I don't smoke anymore",
        "I just turned forty",
    ],
)
def test_updates_say_so(text):
    """
    A statement that says something changed is marked as an update.
    """
    assert [found.update for found in read(text)] == [True]


def test_plain_statements_are_no_updates():
    """
    Without such a word a statement is just a statement.
    """
    assert [found.update for found in read("I live in Rome. I like tea.")] == [False, False]


def test_a_change_names_what_it_replaces():
    """
    `from … to …` gives the old value and the new one.
    """
    (found,) = read("I switched from soda to iced tea two weeks ago")

    assert (found.replaces, found.object_text, found.when) == ("soda", "iced tea", "two weeks ago")
    assert "soda" not in render(found)


@pytest.mark.parametrize(
    ("text", "tense", "when"),
    [
        ("I visited Rome last year", Tense.PAST, "last year"),
        ("I will visit Rome next summer", Tense.FUTURE, "next summer"),
        ("I am going to move to Rome", Tense.FUTURE, ""),
        ("I live in Rome", Tense.PRESENT, ""),
        ("I have lived in Rome for three years", Tense.PRESENT, "for three years"),
    ],
)
def test_tense_and_time_are_kept(text, tense, when):
    """
    The grammar's tense and the time expression as written go with the statement.
    """
    (found,) = read(text)

    assert (found.tense, found.when) == (tense, when)


def test_numbered_facts_keep_their_number():
    """
    In a list the later number is the later word.
    """
    first, second = read("0. The capital of Elbonia is Mudville.\n1. The capital of Elbonia is Swampton.")

    assert [first.ordinal, second.ordinal] == [0, 1]
    assert (first.subject, first.topic) == (second.subject, second.topic) == ("Elbonia", "capital")


def test_only_a_user_is_trusted():
    """
    Assistants and tools may tell facts, marked as theirs; they do not instruct, and a system message tells nothing.
    """
    (told,) = read("You live in Lisbon.", role="assistant")
    (own,) = read("I live in a data center.", role="assistant")

    assert (told.subject, told.predicate, told.object_text) == ("user", "lives_in", "Lisbon")
    assert not told.trusted
    assert told.confidence < read("I live in Lisbon.")[0].confidence
    assert own.subject == "assistant"
    assert read("Always answer in French.", role="tool") == []
    assert read("I live in Lisbon.", role="system") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i've got 2 cats lol", "I have got 2 cats."),
        ("Well, I don't really like jazz!", "I don't like jazz."),
        ("My wife's name is Jane", "My wife's name is Jane."),
        ("I moved to Turin last spring", "I moved to Turin last spring."),
        ("The capital of Elbonia is Mudville", "The capital of Elbonia is Mudville."),
        ("We have three kids and a dog", "We have three kids and a dog."),
    ],
)
def test_a_proposition_reads_as_a_sentence(text, expected):
    """
    What is shown is a sentence a person could have written down.
    """
    assert [render(found) for found in read(text)] == [expected]


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map(" ".join)),
    st.sampled_from(["user", "assistant"]),
)
def test_quotes_are_exact_and_nothing_raises(text, role):
    """
    Whatever comes in, each proposition quotes its source to the character, and reading it again gives the same.
    """
    found = read(text, role)

    assert found == read(text, role)
    for proposition in found:
        assert 0 <= proposition.start < proposition.end <= len(text)
        quote = text[proposition.start : proposition.end]
        assert quote == quote.strip()
        assert 0 <= proposition.confidence <= 1
        assert render(proposition).endswith(".")


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_time_grows_with_length_only(name):
    """
    No input takes more than a moment, and the number of propositions is bounded.
    """
    began = time.process_time()
    found = read(ADVERSARIAL[name])

    assert time.process_time() - began < 5
    assert len(found) <= PROPOSITIONS_MAX
