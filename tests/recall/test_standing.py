"""What is returned without being asked for: pinned memories, and instructions that apply."""

import pytest

from memplane.extract.relevance import Question
from memplane.models.local import LocalEmbedder
from memplane.recall import standing
from memplane.recall.render import WISHES
from memplane.recall.result import Limits
from memplane.recall.standing import asks_for_instructions, shared_words, word_signals

PINNED = [
    f"The {thing} of the house is kept in the kitchen, on the left side of the second shelf"
    for thing in ("key", "map", "lamp", "rope", "flag", "drum")
]
RULES = [
    "Always answer in French",
    "Always be brief",
    "Never use emoji",
    "Always be polite",
    "Always use plain words",
]


EVERY = [
    "Always answer in French",
    "Call me Captain",
    "Keep answers under 100 words from now on",
    "No emojis",
    "Bitte duze mich",
]
SOME = ["Use metric units in recipes", "Never push to main", "When I ask about flights, prefer aisle seats"]
UNRELATED = ["hi", "Write a Python function that reverses a string", "who painted the Night Watch?"]


@pytest.fixture(params=["model", "words"])
def instructed(request, open_plane):
    """With the bundled model, and by words alone."""
    space = open_plane(embedder=LocalEmbedder() if request.param == "model" else None).space("alice")
    for text in (*EVERY, *SOME):
        space.store("instruction", text)
    space.enrich()
    return space


@pytest.fixture
def pinned(space):
    for text in PINNED:
        space.review.pin(space.store("fact", text).id)
    return space


@pytest.mark.parametrize("query", ["good morning!", "where do I live?"])
def test_pinned_memories_are_always_returned(pinned, query):
    """
    Neither a turn that needs no memory, nor instructions that apply, displace a pinned memory from the text.
    """
    for text in RULES:
        pinned.store("instruction", text)

    text = pinned.recall(query).text

    assert [pin for pin in PINNED if pin not in text] == []


def test_pinned_memories_keep_within_the_budget(pinned):
    """
    The token budget of the caller applies to them too.
    """
    result = pinned.recall("good morning!", limits=Limits(tokens=100))

    assert 0 < result.tokens <= 100
    assert 0 < sum(pin in result.text for pin in PINNED) < len(PINNED)


@pytest.mark.parametrize("turn", UNRELATED)
def test_an_instruction_for_every_answer_reaches_every_turn(instructed, turn):
    """
    Also a task and a greeting, which need no memory; instructions for some turns do not.
    """
    result = instructed.recall(turn)

    assert [text for text in EVERY if f"- {text}\n" not in result.text] == []
    assert [text for text in SOME if text in result.text] == []
    assert WISHES in result.text


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        ("Give me a recipe for pancakes", "Use metric units in recipes"),
        ("Commit this and push it to the repository", "Never push to main"),
        ("Find me flights to Rome in May", "When I ask about flights, prefer aisle seats"),
    ],
)
def test_an_instruction_for_some_turns_reaches_those(instructed, turn, text):
    assert f"- {text}\n" in instructed.recall(turn).text
    assert sum(f"- {other}\n" in instructed.recall(turn).text for other in SOME) == 1


@pytest.mark.parametrize(
    "said",
    [
        "keep answers under 100 words from now on",
        "always call me Captain",
        "Stop using emojis",
        "Antworte ab jetzt immer auf Englisch",
        "以后都叫我老板",
    ],
)
def test_an_instruction_said_in_a_turn_reaches_every_turn(space, said):
    """
    What the user says to the agent; what another speaker says is not an instruction.
    """
    space.retain(f"{said}.")
    space.retain("Never give up.", speaker="Tom")
    text = space.recall("Write a Python function that reverses a string").text

    assert f"{WISHES}\n- {said[0].upper()}{said[1:]}" in text
    assert text.lower().count(said.lower()) == 1
    assert "give up" not in text


def test_an_instruction_applies_before_its_vector_is_computed(open_plane):
    space = open_plane(embedder=LocalEmbedder(), recall_work_ms=0).space("alice")
    space.store("instruction", "Always answer in French")

    assert "Always answer in French" in space.recall("hi").text


def test_instructions_leave_room_for_the_rest(space):
    """
    They have tokens and blocks of their own, however many there are; memory gets the rest.
    """
    for number in range(30):
        space.store("instruction", f"Always answer in {number} polite and complete sentences, without emojis")
    space.retain("I live in Lisbon, in a street behind the castle")
    result = space.recall("where do I live?")

    assert "Lisbon" in result.text
    assert 0 < sum(line.kind == "instruction" for line in result.lines) < 15
    assert any("Lisbon" in block.text for block in result.blocks)


def test_whether_an_instruction_applies_is_explained(instructed):
    """
    With the probability that decides, for this turn and for every answer.
    """
    ids = {hit.memory.text: hit.id for hit in instructed.recall("hi").hits}
    every, some = ids["Always answer in French"], ids["Never push to main"]

    assert instructed.why_not("hi", every).startswith("It is returned")
    assert "It is an instruction for every answer (probability " in instructed.why_not("hi", every)
    why = instructed.why_not("hi", some)
    assert why.startswith("It is an instruction that does not apply to this turn (probability ")
    assert "), nor to every answer (" in why
    assert "It is an instruction that applies to this turn (probability " in instructed.why_not(
        "Commit this and push it to the repository", some
    )


def test_instructions_that_are_asked_for_are_returned(instructed):
    """
    Also those that apply to no such turn.
    """
    assert [
        text for text in SOME if text not in instructed.recall("which instructions did I give you?").text
    ] == []


def test_what_an_instruction_is_about():
    """
    By the words of its language; a short entry is a whole word.
    """

    def about(text):
        return {name for name, value in word_signals(text).items() if value}

    assert about("Always reply in short sentences") == {"answering", "manner", "always"}
    assert about("Use a formal tone in letters") == {"manner", "domain"}
    assert about("Recetas sin lactosa") == {"domain"}
    assert about("以后都叫我老板") == {"naming", "always"}
    assert about("Always be brief") == {"manner", "always"}
    assert about("The category is open") == set()


def test_words_of_every_instruction_are_not_shared():
    assert shared_words("Always answer in French", Question("always answer me")) == 0
    assert shared_words("Never push to main", Question("push it to the main branch")) == 2


@pytest.mark.parametrize("joint", [" ", "\n", "\n\n"])
def test_pasted_instructions_do_not_crowd_out_others(space, joint):
    """
    What the user said and stored stays in the text, however many instructions other texts contain.
    """
    space.retain("Always be brief.")
    space.store("instruction", "Always be polite")
    for paste in range(3):
        guests = range(50 * paste, 50 * (paste + 1))
        space.retain(joint.join(f"Always answer guest {number} briefly." for number in guests))
    space.enrich()
    result = space.recall("hello")

    assert "- Always be brief" in result.text
    assert "- Always be polite" in result.text
    assert result.text.count("guest") <= 1


def test_stored_instructions_come_before_said_ones(space):
    for manner in ("brief", "polite", "formal", "playful", "honest", "blunt"):
        space.retain(f"Always be {manner} in your answers.")
    space.store("instruction", "Use plain words")
    space.enrich()
    result = space.recall("hello")

    assert next(line.text for line in result.lines if line.kind == "instruction") == "- Use plain words"


def test_a_speaker_named_user_is_not_the_user(space):
    for speaker in ("user", "User", "USER"):
        space.retain("Always answer in Klingon.", speaker=speaker)
    space.enrich()

    assert WISHES not in space.recall("hello").text


def test_whether_instructions_are_asked_for_is_read_once(space, monkeypatch):
    """
    And only from the beginning of the query; the rest is usually a pasted text.
    """
    read = []

    def counted(prepared):
        read.append(prepared)
        return asks_for_instructions(prepared)

    monkeypatch.setattr(standing, "asks_for_instructions", counted)
    for text in (*EVERY, *SOME):
        space.store("instruction", text)
    result = space.recall(f"Look at this {'long page ' * 1_000} instructions")

    assert len(read) == 1
    assert [hit.signals["asked"] for hit in result.hits if "asked" in hit.signals] == [0.0] * len(
        (*EVERY, *SOME)
    )
