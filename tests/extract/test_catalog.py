"""The predicate catalog: what is shipped, what users add, which questions lead where."""

import pytest

from memplane.errors import InvalidRequest
from memplane.extract.catalog import load_catalog
from memplane.extract.rules import extract
from memplane.types import Kind

CATALOG = load_catalog()
OWN = """
[rides]
kind = "preference"
cardinality = "one"
importance = 0.9
hot = true
cues = ["dragon"]
says = ["ride: @dragon"]
examples = ["I ride a wyvern."]

[classes]
dragon = ["wyvern", "drake"]
"""


def test_every_predicate_is_complete():
    """
    Each has a kind that can be stored, an importance in bounds and an example.
    """
    assert {predicate.kind for predicate in CATALOG.predicates.values()} == set(Kind) - {Kind.EPISODE}
    assert [name for name, predicate in CATALOG.predicates.items() if not predicate.examples] == []


@pytest.mark.parametrize("name", CATALOG.predicates)
def test_examples_are_filed_where_they_stand(name):
    """
    The first example of a predicate is read as that predicate.
    """
    found = extract(CATALOG[name].examples[0], role="user", catalog=CATALOG)

    assert name in {proposition.predicate for proposition in found}


@pytest.mark.parametrize(
    ("question", "predicate"),
    [
        ("Where does she live now?", "lives_in"),
        ("What is my name?", "is_named"),
        ("Which framework do I use?", "uses"),
        ("Do I have any pets?", "has_pet"),
        ("What is my job?", "works_as"),
    ],
)
def test_questions_are_routed_by_their_words(question, predicate):
    """
    The cue words of a question name the predicates it asks for, best first.
    """
    assert predicate in CATALOG.by_question(question)[:3]


def test_users_add_their_own_predicates(tmp_path):
    """
    A file of the same shape adds predicates and classes; its patterns are tried before the shipped ones.
    """
    file = tmp_path / "mine.toml"
    file.write_text(OWN, "utf-8")
    catalog = load_catalog(file)
    (found,) = extract("I ride a wyvern", role="user", catalog=catalog)

    assert (found.predicate, found.object_text) == ("rides", "a wyvern")
    assert catalog["rides"].one
    assert catalog.by_question("which dragon?")[0] == "rides"
    assert "lives_in" in catalog.predicates
    assert "rides" not in load_catalog().predicates


@pytest.mark.parametrize(
    "text",
    [
        "not toml",
        '[x]\nkind = "wish"',
        "[x]\nimportance = 3.0",
        '[x]\ncardinality = "few"',
        "[x]\nunknown = 1",
        '[x]\nsays = ["go: ("]',
        '[x]\nsays = ["go: @nosuchclass"]',
        "x = 1",
    ],
)
def test_a_broken_file_is_refused(tmp_path, text):
    """
    What cannot be understood is an error that names it, not a predicate that never matches.
    """
    file = tmp_path / "mine.toml"
    file.write_text(text, "utf-8")

    with pytest.raises(InvalidRequest):
        load_catalog(file)


def test_a_missing_file_is_refused(tmp_path):
    """
    A path that leads nowhere is said so.
    """
    with pytest.raises(InvalidRequest):
        load_catalog(tmp_path / "none.toml")
