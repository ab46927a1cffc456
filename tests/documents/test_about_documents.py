"""What is said of a document goes with it."""

import pytest


@pytest.fixture
def told(space):
    """Two things said of a document, in two conversations, and one that has nothing to do with it."""
    space.documents.upload("# Lease\n\nThe rent is 900.", name="Lease", id="lease")
    space.retain("I live in Lisbon", conversation="a", document="lease", document_name="Lease")
    space.retain("I work at Acme", conversation="b", project="p", document="lease")
    space.retain("I drink tea", conversation="a")
    space.enrich()
    return space


def said(space):
    return sorted(turn.text for turn in space.turns(limit=10))


def test_forgetting_a_document_forgets_what_was_said_of_it(told):
    """
    Its spans, what was said of it and the facts read out of that; also after a replay.
    """
    receipt = told.forget(document="lease")

    assert said(told) == ["I drink tea"]
    assert receipt.counts["turns"] == 2
    assert told.documents.count() == 0
    told.ledger.replay()
    assert said(told) == ["I drink tea"]


def test_deleting_a_document_does_the_same(told):
    """
    One way to get rid of it, whatever it is called.
    """
    told.documents.delete("lease")

    assert said(told) == ["I drink tea"]


@pytest.mark.parametrize(
    ("narrower", "left"),
    [
        ({"conversation": "a"}, ["I drink tea", "I work at Acme"]),
        ({"project": "p"}, ["I drink tea", "I live in Lisbon"]),
    ],
)
def test_conditions_narrow_each_other(told, narrower, left):
    """
    What was said of a document in one place alone; what is not of that place stays, the document too.
    """
    told.forget(document="lease", **narrower)

    assert said(told) == left
    assert told.documents.get("lease").spans > 0


def test_a_document_that_is_not_kept_here_can_be_spoken_of(space):
    """
    The id is enough: forgetting by it finds what was said.
    """
    space.retain("I live in Lisbon", document="elsewhere")

    assert space.forget(document="elsewhere").counts["turns"] == 1
