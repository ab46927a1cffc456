"""How much a query asks for: a direct question ends where it gets improbable, a summary takes everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.models.local import LocalEmbedder
from memplane.recall.breadth import BEST_ITEMS, Breadth, breadth_of, floor_of
from memplane.recall.copies import acknowledges
from memplane.recall.selection import _probable

NOTES = [
    *["Prefers tea", "Lives in Lisbon", "Works as a nurse", "Has a dog called Rex", "Allergic to peanuts"],
    *["Drives a grey Nissan", "Reads e-books on a Kobo", "Plays bass in a band", "Sister lives in Dubai"],
    *["Mortgage ends in October", "Runs the half marathon in May", "Afraid of flying", "Edits in Neovim"],
    *["Hates coriander", "Is learning Danish", "Broke a wrist in January", "Likes lists grouped by aisle"],
    *[
        "Cat Biscuit is on a renal diet",
        "Wi-Fi is called Treehouse",
        "Reports to Henrik",
        "No meetings before ten",
    ],
    *[
        "Loves teal and mustard",
        "Pays into a pension",
        "Theo has piano on Tuesdays",
        "Boiler is serviced by Dave",
    ],
    *[
        "Wants short answers about code",
        "Cannot stand true crime",
        "Uses an ErgoDox",
        "Parents come in December",
    ],
]


@pytest.mark.parametrize(
    ("query", "breadth"),
    [
        ("what is my blood type?", Breadth.DIRECT),
        ("Where do I live?", Breadth.DIRECT),
        ("how old is Maisie?", Breadth.DIRECT),
        ("which bank do I use", Breadth.DIRECT),
        ("what should I cook for her?", Breadth.OPEN),
        ("What can I grab at the bakery?", Breadth.OPEN),
        ("Find us somewhere to stay in Cornwall in August.", Breadth.OPEN),
        ("where did I say that we could meet Anna's parents on the first day?", Breadth.OPEN),
        ("", Breadth.OPEN),
        ("tell me everything you know about me", Breadth.SUMMARY),
        ("What do you know about me?", Breadth.SUMMARY),
        ("what do you remember about us", Breadth.SUMMARY),
        ("Summarize what you know about me, please", Breadth.SUMMARY),
        ("list all you\u2019ve learned about me", Breadth.SUMMARY),
        ("what have I told you so far?", Breadth.SUMMARY),
        ("who am I?", Breadth.SUMMARY),
        ("give me an overview of my preferences", Breadth.SUMMARY),
        ("what have I told you about Rex?", Breadth.DIRECT),
        ("what do you know about quantum physics?", Breadth.DIRECT),
        ("summarize this article for me", Breadth.OPEN),
        ("write a summary of the meeting", Breadth.OPEN),
    ],
)
def test_what_kind_of_turn_it_is(query, breadth):
    assert breadth_of(query) is breadth


ITEMS = st.text(max_size=3) | st.tuples(st.integers(), st.integers())
"""Ids of memories, and places of turns."""


@given(st.dictionaries(ITEMS, st.floats(0.0, 1.0), max_size=40), st.sampled_from(Breadth))
def test_improbable_items_are_left_out(items, breadth):
    """
    But never the best few, and of a summary nothing.
    """
    kept = _probable(items, breadth)
    best = max(items.values(), default=0.0)
    floors = {item: floor_of(breadth, best, turn=isinstance(item, tuple)) for item in items}

    assert len(kept) >= min(BEST_ITEMS, len(items))
    assert {item for item in items if items[item] >= floors[item]} <= kept
    assert len({item for item in kept if items[item] < floors[item]}) <= BEST_ITEMS
    if breadth is Breadth.SUMMARY:
        assert kept == set(items)


@pytest.fixture(scope="module")
def embedder():
    return LocalEmbedder()


@pytest.fixture
def notes(open_plane, embedder):
    space = open_plane(embedder=embedder).space("alice")
    for text in NOTES:
        space.store("fact", text)
    space.enrich()
    return space


def test_a_direct_question_without_an_answer_returns_little(notes):
    """
    With the bundled model. A direct question with an answer has it, and a summary has everything.
    """
    lines = {query: len(notes.recall(query).lines) for query in ("what is my blood type?", "how tall am I?")}

    assert max(lines.values()) <= len(NOTES) // 2
    for query, answer in [("what car do I drive?", "Nissan"), ("what am I allergic to?", "peanuts")]:
        assert answer in notes.recall(query).text
    assert len(notes.recall("tell me everything you know about me").lines) == len(NOTES)
    assert len(notes.recall("describe me").lines) == len(NOTES)


def test_why_something_improbable_is_left_out(notes):
    result = notes.recall("what is my blood type?")
    last = result.hits[-1]

    assert not last.selected
    assert "items below" in notes.why_not("what is my blood type?", last.id)


@pytest.mark.parametrize(
    "text", ["Noted.", "OK, got it!", "thanks \U0001f600", "You\u2019re welcome!", "Verstanden."]
)
def test_an_acknowledgement_is_no_memory(space, text):
    """
    Neither in the text nor in the blocks, also where only words are compared; `why_not` says so.
    """
    space.retain("I live in Berlin", conversation="c")
    turn = space.retain(text, role="assistant", conversation="c")
    result = space.recall(f"where do I live? {text}")

    assert "Berlin" in result.text
    assert turn.id not in {block.id for block in result.blocks}
    assert turn.id not in {id_ for line in result.lines for id_ in line.ids}
    assert "acknowledges" in space.why_not("where do I live?", turn.id)


@pytest.mark.parametrize(
    "text", ["No.", "Yes, at noon", "OK, on Friday then", "Done: 42", "", "ok " * 200, "Good question"]
)
def test_what_says_something_is_no_acknowledgement(text):
    assert not acknowledges(text)


def test_a_turn_without_need_lists_no_facts(notes):
    """
    The lists of facts are gated like the text.
    """
    notes.store("instruction", "Always answer in French")
    notes.enrich()
    result = notes.recall("tell me a joke")

    assert result.routing.helps == "unlikely"
    assert result.hits
    assert {hit.memory.text for hit in result.facts} <= {"Always answer in French"}
