"""Why something is returned or not: about the selection that an agent gets, in plain words."""

from datetime import timedelta

import pytest

from memplane.recall.explain import need_explained, probability_text, returned_as
from memplane.recall.opening import OPENING_TOKENS
from memplane.recall.result import Limits
from stub_embedder import StubEmbedder

GARDEN = "What did the garden report say about tomatoes?"


@pytest.fixture
def reports(space):
    """Thirty reports that differ in two numbers."""
    said = [
        space.retain(f"The report number {number} about the garden says tomatoes grew {number} cm")
        for number in range(30)
    ]
    space.enrich()
    return said


@pytest.fixture
def likely(monkeypatch):
    """Memory helps with every turn: for tests of what comes after that decision."""
    monkeypatch.setattr("memplane.recall.calibration.Calibration.helps", lambda *_: "likely")


def text_ids(result):
    return {id_ for line in result.lines for id_ in line.ids}


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(tokens=200), Limits(tokens=40), Limits(blocks=2), Limits(tokens=0)]
)
@pytest.mark.parametrize("query", [GARDEN, "report number 7?", "hi", "where does she live?", ""])
def test_the_selection_of_the_agent_is_explained(space, reports, query, limits):
    """
    With the same request, `It is returned` is said about what is in the text or the blocks, and about nothing else.
    """
    space.retain("I live in Porto")
    space.store("preference", "Prefers tea")
    space.enrich()
    result = space.recall(query, limits=limits)
    given = text_ids(result) | {block.id for block in result.blocks}

    most = OPENING_TOKENS if not query else 2_000
    assert result.tokens <= result.tokens_max == (most if limits.tokens is None else limits.tokens)
    for hit in result.hits:
        why = space.why_not(query, hit.id, limits=limits)
        assert why.startswith("It is returned") == (hit.id in given)
        assert bool(returned_as(result, hit)) == (
            hit.id in given or why.startswith("The turn it was read from")
        )
        assert hit.selected or not {"text", "blocks"} & {*returned_as(result, hit)}


def test_everything_given_is_marked_as_selected(space, reports, likely):
    """
    A hit in the text or in the blocks was selected, and both come from the ranking.
    """
    result = space.recall(GARDEN)
    selected = {hit.id for hit in result.hits if hit.selected}

    assert text_ids(result) == selected
    assert {block.id for block in result.blocks} < selected
    assert {hit.id for hit in result.hits} > selected


def test_a_turn_that_needs_no_memory(open_plane):
    """
    The probability that memory helps decides first; the rank follows.
    """
    space = open_plane(embedder=StubEmbedder()).space("alice")
    told = space.retain("The parrot is green")
    reason = "Memory is not likely to help with this turn (probability 0."
    result = space.recall("hi")

    assert (result.text, result.routing.helps) == ("", "unlikely")
    assert need_explained(result).startswith(reason)
    why = space.why_not("hi", told.id)
    assert why.startswith(reason)
    assert ", so nothing is returned. It ranks 1 with probability 0." in why


def test_what_applies_anyway_is_not_denied(space):
    """
    A pinned memory is returned with every turn, so `nothing` would be wrong.
    """
    told = space.retain("The parrot is green")
    pinned = space.store("fact", "Speaks Portuguese")
    space.review.pin(pinned.id)

    assert "nothing is returned but pinned memories and instructions that apply." in space.why_not(
        "hi", told.id
    )
    assert space.why_not("hi", pinned.id) == "It is returned."


def test_a_turn_that_may_need_memory(space, reports, monkeypatch):
    """
    The small share of the budget is named, not the whole one.
    """
    monkeypatch.setattr("memplane.recall.calibration.Calibration.helps", lambda *_: "maybe")
    result = space.recall(GARDEN)
    selected = [hit for hit in result.hits if hit.selected]
    why = space.why_not(GARDEN, selected[-1].id)

    assert (len(result.blocks), result.tokens <= 80) == (2, True)
    assert why.startswith("Memory may help with this turn, but probably does not (probability 0.")
    assert "), so at most 80 tokens and 2 blocks are returned. It ranks " in why


def test_too_improbable(space, reports, likely):
    """
    Its rank, its probability, and what the selected ones hold.
    """
    result = space.recall(GARDEN)
    selected = [hit for hit in result.hits if hit.selected]
    last = result.hits[-1]

    why = space.why_not(GARDEN, last.id)
    assert not last.selected
    assert why.startswith(
        f"It ranks {len(result.hits)} with probability {probability_text(last.probability)}; "
    )
    assert f"; the {len(selected)} selected items hold 97 % of the probability" in why
    assert ". Its score is " in why
    assert "words +" in why


def test_over_the_budget(space, reports, likely):
    """
    Selected, but the tokens were used up.
    """
    limits = Limits(tokens=200)
    result = space.recall(GARDEN, limits=limits)
    last = [hit for hit in result.hits if hit.selected][-1]

    assert f"; the {len(result.lines)} items before it filled the budget of 200 tokens." in space.why_not(
        GARDEN, last.id, limits=limits
    )
    assert "; it does not fit the budget of 0 tokens." in space.why_not(
        GARDEN, last.id, limits=Limits(tokens=0, blocks=0)
    )


def test_in_one_of_the_two(space, reports, likely):
    """
    Text and blocks have limits of their own.
    """
    result = space.recall(GARDEN)
    (best, *_, last) = [hit for hit in result.hits if hit.selected]

    assert (returned_as(result, best), returned_as(result, last)) == (("text", "blocks"), ("text",))
    assert space.why_not(GARDEN, last.id) == "It is returned in the text; it is not among the 8 blocks."
    assert (
        space.why_not(GARDEN, best.id, limits=Limits(tokens=0))
        == "It is returned as a block; it does not fit the text of at most 0 tokens."
    )


def test_the_turn_instead_of_the_fact(space, likely):
    """
    A fact and the turn it was read from are one item.
    """
    told = space.retain("I moved to Lisbon")
    space.enrich()
    (memory,) = space.overview.newest_memories(9)
    query = "where did I move to?"
    result = space.recall(query)
    (fact,) = [hit for hit in result.hits if hit.id == memory.id]

    assert space.why_not(query, told.id) == "It is returned."
    assert space.why_not(query, memory.id) == f"The turn it was read from, {told.id}, is returned instead."
    assert returned_as(result, fact) == ("turn",)


def test_the_turn_of_a_fact_decides(space, reports, likely):
    """
    If the turn is not selected, its rank is the reason, whatever the rank of the fact.
    """
    told = space.retain("I moved to Lisbon")
    space.enrich()
    (memory,) = [memory for memory in space.overview.newest_memories(40) if "Lisbon" in memory.text]
    query = "Lisbon? garden report tomatoes 7 grew cm says number about"
    limits = Limits(tokens=40, blocks=0)
    why = space.why_not(query, memory.id, limits=limits)

    assert why.startswith(f"It is one item with the turn it was read from, {told.id}, which ranks ")


def test_the_newest_copy_instead(space, clock, likely):
    """
    Of equal turns the newest is returned.
    """
    old = space.retain("The parrot is called Rio", conversation="c1")
    clock.advance(timedelta(days=1))
    new = space.retain("the parrot is called Rio!", conversation="c2")

    assert space.why_not("how is the parrot called?", new.id) == "It is returned."
    assert (
        space.why_not("how is the parrot called?", old.id)
        == f"The same was said again later; the newest copy, {new.id}, is returned."
    )


def test_a_fact_of_an_older_copy(space, clock, likely):
    """
    Its turn is not returned, but the newest copy of it is.
    """
    old = space.retain("I moved to Lisbon", conversation="c1")
    space.enrich()
    (memory,) = space.overview.newest_memories(9)
    clock.advance(timedelta(days=1))
    new = space.retain("I moved to Lisbon", conversation="c2")
    query = "where did I move to?"
    result = space.recall(query)
    (fact,) = [hit for hit in result.hits if hit.memory is not None]

    assert (memory.entry_id, {*text_ids(result)}) == (old.id, {new.id})
    assert returned_as(result, fact) == ("turn",)
    assert (
        space.why_not(query, memory.id)
        == f"The turn it was read from was said again later; the newest copy, {new.id}, is returned instead."
    )


def test_a_memory_that_says_the_same(space, likely):
    """
    Stored and said: one of them is returned.
    """
    told = space.retain("The parrot is called Rio")
    stored = space.store("fact", "The parrot is called Rio")
    whys = {space.why_not("how is the parrot called?", id_) for id_ in (told.id, stored.id)}

    assert "It is returned." in whys
    assert whys & {f"{id_} says the same and is returned." for id_ in (told.id, stored.id)}


def test_the_question_itself(space, likely):
    """
    A question asked before is no answer.
    """
    asked = space.retain("How is the parrot called?")
    space.retain("It is called Rio", role="assistant")

    assert (
        space.why_not("how is the parrot called?", asked.id)
        == "It equals the question, which is never returned as its own answer."
    )


def test_not_among_the_candidates(space, likely):
    """
    A wider ranking finds its rank; the number considered is that of the agent's recall.
    """
    first = space.retain("The parrot is called Rio")
    for number in range(60):
        space.retain(f"parrot parrot called {number} parrot")
    space.enrich()

    assert "among turns; only the best 48 are considered. Its score is" in space.why_not(
        "how is the parrot called? parrot", first.id
    )


@pytest.mark.parametrize(
    ("embedder", "meaning"),
    [(None, "meanings are not compared"), (StubEmbedder(), "is not similar in meaning")],
)
def test_not_found(open_plane, embedder, meaning, likely, monkeypatch):
    """
    No word in common, and no similar meaning.
    """
    space = open_plane(embedder=embedder).space("alice")
    monkeypatch.setattr("memplane.space.space._WIDER", Limits(turns=30, facts=30))
    memory = space.store("fact", "zebra")
    for number in range(40):
        space.store("fact", f"The parrot is called {number}")
    space.enrich()

    why = space.why_not("how is the parrot called?", memory.id)
    assert why == f"It was not found: it shares no word with the query, and {meaning}."


def test_what_holds_no_more(space, clock, likely):
    """
    Superseded and expired, unless the request includes them.
    """
    old = space.store("fact", "The parrot is green")
    clock.advance(timedelta(days=1))
    new = space.store("fact", "The parrot is blue", supersedes=old.id)
    brief = space.put("parrot/cage", "the parrot cage is open", ttl=timedelta(hours=1))
    clock.advance(timedelta(days=1))
    query = "which colour is the parrot?"

    assert space.why_not(query, old.id).startswith(f"It was superseded by {new.id}; ")
    assert space.why_not(query, old.id, include_superseded=True).startswith("It is returned")
    assert space.why_not(query, old.id, as_of="2026-11-15T12:00:00Z") == "It is returned."
    assert space.why_not(query, new.id, as_of="2026-11-15T12:00:00Z").startswith("It is newer than the time ")
    assert space.why_not(query, brief.id) == "It expired on 2026-11-16."


def test_what_is_never_returned(space):
    """
    Forgotten, unknown, a system turn, the current conversation.
    """
    gone = space.retain("The parrot is called Rio")
    space.forget(entries=[gone.id])
    here = space.retain("My parrot is hungry", conversation="c1")
    rule = space.retain("You like parrots", role="system")

    assert space.why_not("parrot", gone.id) == "It was forgotten; forgotten memories are never returned."
    assert space.why_not("parrot", "turn-x") == "Nothing with this id was ever stored in this space."
    assert space.why_not("parrot", rule.id) == "It is a system turn; those are never returned."
    assert (
        space.why_not("parrot", here.id, conversation="c1")
        == "It is returned as part of the current conversation."
    )


@pytest.mark.parametrize(
    ("probability", "text"),
    [(1.0, "1.00"), (0.973, "0.97"), (0.06, "0.06"), (0.0041, "0.004"), (0.0002, "below 0.001")],
)
def test_probabilities_are_short(probability, text):
    """
    Two digits, three if it is small.
    """
    assert probability_text(probability) == text


def test_every_line_has_a_source(space, likely):
    """
    In the order of the text: memories, turns, and what documents say; only headings and the fence have none.
    """
    kept = space.store("fact", "The parrot eats seeds")
    told = space.retain("The parrot is called Rio")
    uploaded = space.documents.upload(
        "# Parrots\n\nA parrot lives for sixty years.", name="parrots.md", media_type="text/markdown"
    )
    space.enrich()
    result = space.recall("What about the parrot?")
    rest = [line for line in result.text.split("\n") if line.startswith("- ")]
    asked = space.recall("What is it about?", document=uploaded.id)

    assert [line.text for line in result.lines] == rest
    assert [line.ids for line in result.lines[:2]] == [(kept.id,), (told.id,)]
    assert [(line.kind, line.ids) for line in result.lines[2:]] == [("span", (result.spans[0].span.id,))]
    assert returned_as(result, result.spans[0]) == ("text", "blocks")
    assert space.why_not("What about the parrot?", result.spans[0].span.id) == "It is returned."
    assert [line.text for line in asked.lines] == [
        line for line in asked.text.split("\n") if line.startswith("- ")
    ]
    assert asked.lines[0].ids[0] in {uploaded.id, result.spans[0].span.id}


def test_documents_are_not_memory(space):
    """
    A turn that needs no memory may still get a document passage, and the explanation says so.
    """
    told = space.retain("The parrot is called Rio")
    space.documents.upload("hi is a greeting", name="words.md", media_type="text/markdown")
    space.enrich()

    assert space.recall("hi").spans
    assert "so nothing is returned but document passages. It " in space.why_not("hi", told.id)
