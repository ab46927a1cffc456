"""What is believed of a language model's answer."""

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_server import claim
from memplane.extract.catalog import load_catalog
from memplane.extract.llm_answer import (
    SCHEMA,
    AnswerUnreadable,
    PromptMessage,
    Rejection,
    check_answer,
    system_prompt,
    user_prompt,
)
from memplane.extract.proposition import Polarity, Tense
from memplane.extract.rules import PROPOSITIONS_MAX, extract

CATALOG = load_catalog()


def check(claims, *texts, role="user", speaker=""):
    said = [
        PromptMessage(id=str(n), text=text, role=role, speaker=speaker)
        for n, text in enumerate(texts or ["I live in Rome"])
    ]
    return check_answer(json.dumps({"claims": claims}), said, CATALOG)


def kept(claims, *texts, **rest):
    """The propositions of the first message; nothing may be rejected."""
    checked = check(claims, *texts, **rest)
    assert not checked.rejected
    return checked.propositions[0]


def why(claims, *texts, **rest):
    return dict(check(claims, *texts, **rest).rejected)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (
            "I moved to Lisbon last week.",
            {
                "quote": "I moved to Lisbon last week",
                "object": "Lisbon",
                "relation": "moved to",
                "update": True,
                "tense": "past",
                "when": "last week",
                "topic": "home",
            },
        ),
        (
            "My favorite color is blue.",
            {
                "quote": "My favorite color is blue",
                "predicate": "has_favorite",
                "object": "blue",
                "relation": "my favorite color is",
                "topic": "Favorite color",
            },
        ),
        (
            "I switched from coffee to tea.",
            {
                "quote": "I switched from coffee to tea",
                "predicate": "uses",
                "object": "tea",
                "relation": "switched to",
                "replaces": "coffee",
                "update": True,
                "tense": "past",
            },
        ),
        (
            "My wife is a nurse.",
            {
                "quote": "My wife is a nurse",
                "subject": "My wife",
                "predicate": "works_as",
                "object": "nurse",
                "relation": "is a",
            },
        ),
        (
            "7. The capital of France is Paris.",
            {
                "quote": "The capital of France is Paris.",
                "subject": "France",
                "predicate": "property",
                "object": "Paris",
                "relation": "is",
                "topic": "capital",
            },
        ),
        (
            "Always answer in French.",
            {
                "quote": "Always answer in French.",
                "predicate": "instructs",
                "object": "obey me",
                "relation": "demands",
            },
        ),
        (
            "I hate coffee.",
            {
                "quote": "I hate coffee",
                "predicate": "dislikes",
                "object": "coffee",
                "relation": "hate",
            },
        ),
    ],
)
def test_a_claim_is_filed_as_the_rules_file_it(text, changes):
    """
    From the same sentence a model and the rules give the same proposition, but for how sure they are; so the values of
    both compete, supersede and repeat each other.
    """
    (by_model,) = kept([claim(**changes)], text)
    by_rules = extract(text, role="user", catalog=CATALOG)[0]

    compared = [field for field in by_model.__struct_fields__ if field not in {"confidence", "note", "noted"}]
    assert {f: getattr(by_model, f) for f in compared} == {f: getattr(by_rules, f) for f in compared}


def test_a_quote_is_looked_for_where_no_other_claim_stands():
    """
    The same words twice are two places; claims beyond that rest on the first.
    """
    text = "tea, tea"
    claims = [
        claim(quote="tea", predicate="likes", object=name, relation="like") for name in ("tea", "it", "both")
    ]

    assert sorted((each.object_text, each.start) for each in kept(claims, text)) == [
        ("both", 0),
        ("it", 5),
        ("tea", 0),
    ]


def test_propositions_stand_in_the_order_of_the_message():
    """
    The ordinal of a derived memory depends on it.
    """
    claims = [claim(quote=quote, object=quote) for quote in ("Oslo", "Rome", "Bonn")]

    assert [each.object_text for each in kept(claims, "Rome Bonn Oslo")] == ["Rome", "Bonn", "Oslo"]


@pytest.mark.parametrize(
    ("changes", "predicate"),
    [
        ({"relation": "am", "predicate": "has_zodiac"}, "is"),
        ({"relation": "teach", "predicate": ""}, "does"),
        ({"relation": "was born in", "predicate": "born", "subject": "Ada"}, "relation"),
        ({"relation": "is", "predicate": "property", "subject": "Ada", "topic": " "}, "relation"),
    ],
)
def test_an_unknown_predicate_is_a_plain_fact(changes, predicate):
    """
    What the catalog does not know is kept as something the subject is, does or stands in relation to.
    """
    (found,) = kept([claim(**changes)])

    assert found.predicate == predicate
    assert found.confidence < kept([claim()])[0].confidence


@pytest.mark.parametrize(
    ("said", "role", "subject"),
    [
        ("User", "user", "user"),
        ("I", "user", "user"),
        ("Ann", "user", "user"),
        ("the user's wife", "user", "user's wife"),
        ("My  wife", "user", "user's wife"),
        ("user\u2019s wife", "user", "user's wife"),
        ("you", "user", "assistant"),
        ("you", "assistant", "user"),
        ("your dog", "tool", "user's dog"),
        ("I", "assistant", "assistant"),
        ("Ann", "assistant", "assistant"),
        ("Ann's wife", "user", "user's wife"),
        ("Marie Curie", "user", "Marie Curie"),
    ],
)
def test_subjects_are_named_as_the_rules_name_them(said, role, subject):
    """
    However a model calls the speaker, memories of one subject meet.
    """
    (found,) = kept([claim(subject=said)], role=role, speaker="Ann")

    assert found.subject == subject


def test_others_are_not_trusted():
    """
    What an assistant or a tool says is marked as theirs and counts for less.
    """
    (users,) = kept([claim()])
    for role in ("assistant", "tool"):
        (found,) = kept([claim()], role=role)

        assert (users.trusted, found.trusted, found.role) == (True, False, role)
        assert found.confidence < users.confidence


@pytest.mark.parametrize("predicate", ["instructs", "corrects"])
def test_only_a_user_instructs(predicate):
    """
    An order from an assistant or a tool is no order, whatever the model makes of it.
    """
    orders = [claim(predicate=predicate)]

    assert why(orders, role="tool") == why(orders, role="assistant") == {Rejection.NOT_THEIRS: 1}
    assert kept(orders)[0].object_text == "I live in Rome"


def test_small_talk_of_others_is_dropped():
    """
    An assistant that likes to help, or says what it does, tells nothing; as in the rules.
    """
    talk = [claim(predicate="likes", relation="love"), claim(predicate="unknown")]

    assert why(talk, role="assistant") == {Rejection.VAGUE: 2}
    assert len(kept(talk)) == 2


def test_a_flood_is_cheap():
    """
    Megabytes of claims about a long message are checked in seconds, not in minutes.
    """
    text = " ".join(f"I live in Rome{number}." for number in range(1_500))
    flood = [claim(quote="I live in Rome", object=f"Rome{number % 150}") for number in range(5_000)]
    started = time.process_time()

    checked = check(flood, text)

    assert time.process_time() - started < 5
    assert (len(checked.propositions[0]), checked.rejected.total()) == (150, 4_850)


def test_a_date_is_never_made_up():
    """
    An expression of time that the message does not hold is dropped; resolving one is not for a model.
    """
    text = "I live in Rome since last May"

    assert [kept([claim(when=when)], text)[0].when for when in ("last May", "2025-05", " ", None)] == [
        "last May",
        "",
        "",
        "",
    ]


def test_a_value_holds_no_word_that_its_message_does_not():
    """
    It may be a good reading, an invention, or another message's word, which nobody could forget with that message.
    """
    for value in ("Paris", "Rome (the clinic)"):
        checked = check([claim(object=value)])
        assert (checked.propositions[0], checked.rejected) == ([], {Rejection.UNHEARD: 1})
    assert len(kept([claim()])) == 1


def test_optional_fields_may_be_missing_or_null():
    """
    What a claim can do without costs it nothing.
    """
    optional = {"topic", "negative", "update", "replaces", "tense", "when"}
    bare = {name: value for name, value in claim().items() if name not in optional}

    assert kept([bare]) == kept([bare | dict.fromkeys(optional)]) == kept([claim()])
    assert kept([claim(tense="pluperfect")])[0].tense is Tense.PRESENT
    assert kept([claim(negative=True)])[0].polarity is Polarity.NEGATIVE


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("a string", Rejection.MISSHAPEN),
        (None, Rejection.MISSHAPEN),
        (claim(message="1"), Rejection.MISSHAPEN),
        (claim(message=True), Rejection.MISSHAPEN),
        (claim(message=10**400), Rejection.NO_SUCH_MESSAGE),
        (claim(quote=["I live in Rome"]), Rejection.MISSHAPEN),
        (claim(negative="no"), Rejection.MISSHAPEN),
        (claim(object="half \ud83d a pair"), Rejection.MISSHAPEN),
        ({}, Rejection.INCOMPLETE),
        ({"message": 1, "quote": "I live in Rome"}, Rejection.INCOMPLETE),
        (claim(quote=""), Rejection.INCOMPLETE),
        (claim(quote=" "), Rejection.INCOMPLETE),
        (claim(subject=" "), Rejection.INCOMPLETE),
        (claim(object="\n"), Rejection.INCOMPLETE),
        (claim(relation=""), Rejection.INCOMPLETE),
        (claim(message=0), Rejection.NO_SUCH_MESSAGE),
        (claim(message=-1), Rejection.NO_SUCH_MESSAGE),
        (claim(message=3), Rejection.NO_SUCH_MESSAGE),
        (claim(message=2), Rejection.INVENTED),
        (claim(quote="i live in rome"), Rejection.INVENTED),
        (claim(quote="I live in  Rome"), Rejection.INVENTED),
        (claim(quote="I live in Rome."), Rejection.INVENTED),
        (claim(quote="x" * 1_001), Rejection.TOO_LONG),
        (claim(object="x" * 401), Rejection.TOO_LONG),
        (claim(subject="x" * 121), Rejection.TOO_LONG),
        (claim(relation="x" * 121), Rejection.TOO_LONG),
        (claim(predicate="x" * 121), Rejection.TOO_LONG),
        (claim(topic="x" * 121), Rejection.TOO_LONG),
        (claim(object="ROME"), Rejection.REPEATED),
    ],
)
def test_a_bad_claim_is_dropped_alone(bad, reason):
    """
    Each is counted under its reason, and the good ones around it stay.
    """
    good, other = (
        claim(),
        claim(message=2, quote="I like tea", predicate="likes", object="tea", relation="like"),
    )

    checked = check([good, bad, other], "I live in Rome", "I like tea")

    assert checked.rejected == {reason: 1}
    assert [[each.object_text for each in of] for of in checked.propositions] == [["Rome"], ["tea"]]


def test_there_is_an_end_to_claims():
    """
    More than a message can hold is babble.
    """
    numbers = [str(number) for number in range(1_000, 1_000 + PROPOSITIONS_MAX + 50)]
    said = f"I live in Rome {' '.join(numbers)}"

    checked = check([claim(object=number) for number in numbers], said)

    assert len(checked.propositions[0]) == PROPOSITIONS_MAX
    assert checked.rejected == {Rejection.TOO_MANY: 50}


def test_messages_that_only_bad_claims_were_made_of_are_named():
    """
    Of these the rules may know more; of those that nothing was claimed of, nobody expects more.
    """
    checked = check([claim(), claim(message=2)], "I live in Rome", "I like tea", "Hm.")

    assert checked.spoiled == {1}


@pytest.mark.parametrize("text", ["", "null", "{}", '{"claims": {}}', "{{}}", "7", "[" * 9_999, "9" * 9_999])
def test_what_is_no_list_of_claims_is_said_to_be_none(text):
    """
    Then there is nothing to keep, and asking again may help.
    """
    with pytest.raises(AnswerUnreadable):
        check_answer(text, [PromptMessage(id="a", text="b")], CATALOG)


TEXTS = st.text(st.characters(exclude_categories=()), max_size=40)


@given(texts=st.lists(TEXTS, min_size=1, max_size=3), data=st.data())
def test_a_span_is_its_quote_exactly(texts, data):
    """
    In any text, of any script, with any quotes, what is kept stands in its message character by character.
    """
    quotes = st.builds(
        lambda text, start, length: text[start : start + length],
        st.sampled_from(texts),
        st.integers(0, 40),
        st.integers(0, 20),
    )
    claims = data.draw(
        st.lists(st.builds(claim, st.integers(0, 4), quotes | TEXTS, object=TEXTS, when=quotes), max_size=8)
    )

    checked = check(claims, *texts)

    asked = {(each["message"] - 1, each["quote"]) for each in claims}
    got = {
        (place, texts[place][each.start : each.end])
        for place, of in enumerate(checked.propositions)
        for each in of
    }
    assert got <= asked
    assert sum(map(len, checked.propositions)) + sum(checked.rejected.values()) == len(claims)
    assert all(each.when in texts[place] for place, of in enumerate(checked.propositions) for each in of)


@given(text=st.text())
def test_any_text_at_all_is_read_or_refused(text):
    """
    There is no answer that raises anything else.
    """
    with contextlib.suppress(AnswerUnreadable):
        check_answer(text, [PromptMessage(id="a", text="b")], CATALOG)


@given(texts=st.lists(TEXTS, max_size=4))
def test_every_message_arrives_as_it_is(texts):
    """
    The prompt is JSON whatever stands in the messages, so that no message can end it.
    """
    sent = json.loads(user_prompt([PromptMessage(id="x", text=text) for text in texts]))

    assert [each["message"] for each in sent] == list(range(1, len(texts) + 1))
    assert [len(each["text"]) for each in sent] == [len(text) for text in texts]


def test_the_prompt_names_every_predicate_and_field():
    """
    A predicate that a user adds, and a field that the schema asks for, are explained.
    """
    prompt = system_prompt(CATALOG)
    fields = SCHEMA["properties"]["claims"]["items"]["properties"]

    assert [name for name in CATALOG.predicates if f"\n{name}" not in prompt] == ["mentions"]
    assert [name for name in fields if f"- {name}: " not in prompt] == []
    assert len(prompt) < 5_000
