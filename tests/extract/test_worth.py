"""Facts that a person would keep, and how they are told."""

import pytest

from memplane.extract.narrate import narrated
from memplane.extract.standalone import stands_alone


@pytest.mark.parametrize(
    "note",
    [
        "I love it.",
        "I painted this.",
        "I have thought a lot about how",
        "I am here.",
        "I love to",
        "I love me.",
        "I enjoy each other's company",
        "She gave them to her",
    ],
)
def test_what_points_outside_does_not_stand_alone(note):
    assert not stands_alone(note)


@pytest.mark.parametrize(
    "note",
    [
        "I swim.",
        "I live in Lisbon.",
        "I have a job that pays well.",
        "My sister visits her kids",
        "I want to help those who struggle.",
        "I have one son.",
        "I live in the US.",
        "I work in IT.",
    ],
)
def test_what_says_all_of_it_stands_alone(note):
    assert stands_alone(note)


def test_small_talk_is_not_shown_but_compared(space):
    """
    It is cold from the beginning: no list, search, recall or brief has it, and whoever asks for cold memories gets it.
    """
    space.retain("Wow, thanks! I love the colors so much. I live in Lisbon, by the way.", role="user")
    space.enrich()
    shown = {memory.text for memory in space.memories()}
    cold = {memory.text for memory in space.memories(tier="cold")}

    assert shown == {"I live in Lisbon."}
    assert any("colors" in text for text in cold)
    assert "colors" not in space.brief().markdown
    assert not any(hit.memory and hit.memory.text in cold for hit in space.search("colors"))


@pytest.mark.parametrize(
    ("speaker", "said", "told"),
    [
        (None, "I live in Lisbon", "User lives in Lisbon."),
        ("Ana", "I have two kids", "Ana has two kids."),
        ("Ana", "My sister lives in Porto", "Ana's sister lives in Porto."),
        (None, "I no longer work at Siemens", "User no longer works at Siemens."),
        (None, "I moved to Berlin last month", "User moved to Berlin last month."),
        (None, "I work for the US Navy", "User works for the US Navy."),
        (None, "I quit smoking two years ago", "User quit smoking two years ago."),
    ],
)
def test_a_fact_names_its_subject(space, speaker, said, told):
    space.retain(said, speaker=speaker)
    space.enrich()

    assert told in {narrated(memory) for memory in space.memories() if memory.derived}


def test_what_happened_once_is_no_preference(space):
    space.retain("I went hiking in the Alps last week")
    space.retain("I hike every Sunday")
    space.enrich()
    kinds = {memory.text: str(memory.kind) for memory in [*space.memories(), *space.memories(tier="cold")]}

    assert kinds["I went hiking in the Alps last week."] == "fact"
    assert kinds["I hike every Sunday."] == "preference"
