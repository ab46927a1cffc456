"""How a question is understood, said so that one can see it."""

import pytest

from memplane.extract.catalog import load_catalog
from memplane.recall.query import read_nameless, replace_speakers, route

CATALOG = load_catalog(None)


def routed(question, *, speakers=(), has_vectors=True):
    return route(
        question,
        read_nameless(question, replace_speakers(question, speakers), 0),
        CATALOG,
        has_vectors=has_vectors,
    )


@pytest.mark.parametrize(
    ("question", "mode"),
    [
        ("Where do I live?", "single"),
        ("When did I move?", "temporal"),
        ("What year did I graduate?", "temporal"),
        ("Where did I live before?", "history"),
        ("How has my diet changed?", "history"),
        ("List my pets", "list"),
        ("How many cities have I seen?", "list"),
        ("", "single"),
    ],
)
def test_what_sort_of_answer_it_wants(question, mode):
    """One value, all of them, a time, or how it came about."""
    assert routed(question).mode == mode


def test_what_it_asks_for():
    """The predicate that files the answer comes first, with its kind; at most three are tried."""
    asked = routed("Where do I live?")

    assert asked.predicates[0] == "lives_in"
    assert asked.kinds[0] == "fact"
    assert len(asked.predicates) <= 3
    assert routed("Hm?").predicates == ()


def test_channels_that_were_asked():
    """Only those that had something to go by, and no vectors where there are none."""
    everything = routed("Where did I live last week?")

    assert everything.channels == ("predicate", "vector", "keyword", "temporal", "hot", "recent")
    assert routed("Hm?", has_vectors=False).channels == ("keyword", "hot", "recent")


def test_whom_and_when():
    """The speakers by name in order, and whether a time is asked for or given."""
    asked = routed("When did Bob and Ann meet last week?", speakers=("Bob", "Ann", "Eve"))

    assert asked.speakers == ("Ann", "Bob")
    assert asked.temporal_intent == "when"
    assert len(asked.ranges) == 1
    assert routed("What happened last week?").temporal_intent == "range"
    assert routed("What happened?").temporal_intent is None
