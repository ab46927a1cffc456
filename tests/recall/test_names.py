"""Names of speakers: how queries write them, what is learned from turns, and what an operator decides."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import both_engines
from memplane.errors import InvalidRequest
from memplane.recall.names import fold, learned_speaker, resembling, unknown_names
from memplane.recall.query import replace_speakers
from memplane.types import Op, Turn

TWO = ("Melanie", "Caroline")
MANY = ("Melanie", "Caroline", "John", "Tim")


def said(speaker: str | None, text: str) -> Turn:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Turn(entry_id="e", seq=1, role="user", text=text, at=at, speaker=speaker)


@pytest.mark.parametrize(
    ("question", "speakers", "named"),
    [
        ("Where does José live?", ("Jose",), {"Jose"}),
        ("where does jose live?", ("José",), {"José"}),
        ("What did Garcia say?", ("Ana García", "Bob"), {"Ana García"}),
        ("What did Ana say?", ("Ana García", "Ana Lee", "Bob"), {"Ana García", "Ana Lee"}),
        ("What did Ana Lee say?", ("Ana García", "Ana Lee", "Bob"), {"Ana Lee"}),
        ("What did Ana say?", ("Ana", "Ana Lee"), {"Ana"}),
        ("What will he say?", ("Will", "Bob"), set()),
        ("What did Will say?", ("Will", "Bob"), {"Will"}),
        ("Is Annabel home?", ("Ann",), set()),
    ],
)
def test_forms_of_a_name(question, speakers, named):
    """
    Case and accents do not matter, nor whether the first, the last or the whole name is used; an ambiguous one names both.
    """
    assert replace_speakers(question, speakers)[1] == named


def test_other_names_are_replaced_too():
    """
    They stand for the speaker, and a removed one for nobody. No decision takes a speaker's own name away.
    """
    assert replace_speakers("Is Mel's dog fine?", TWO, {"mel": "melanie"}) == ("Is I dog fine?", {"Melanie"})
    assert replace_speakers("Is Mel fine?", TWO, {"mel": "Somebody else"})[1] == set()
    assert replace_speakers("Is Lee fine?", ("Ann Lee",), {"lee": None})[1] == set()
    assert replace_speakers("Is Mel fine?", ("Mel", "Melanie"), {"mel": "Melanie"})[1] == {"Mel", "Melanie"}
    assert replace_speakers("Is Mel fine?", ("Mel", "Melanie"), {"mel": None})[1] == {"Mel"}


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("mel", ["Melanie"]),
        ("melany", ["Melanie"]),
        ("carolyn", ["Caroline"]),
        ("karoline", ["Caroline"]),
        ("jon", ["John"]),
        ("jhon", ["John"]),
        ("johnny", ["John"]),
        ("timmy", ["Tim"]),
        ("tom", []),
        ("kim", []),
        ("jack", []),
        ("melbourne", []),
        ("carpet", []),
        ("m", []),
    ],
)
def test_which_names_resemble(name, alike):
    """
    Short forms, diminutives and a few wrong letters; a short name with another letter is another name.
    """
    assert resembling(name, MANY) == alike


@pytest.mark.parametrize(
    ("name", "turns", "speakers", "expected"),
    [
        ("mel", [("Caroline", "Hey Mel! Long time no see.")], MANY, "Melanie"),
        ("mel", [("Caroline", "That's great, Mel!")], MANY, "Melanie"),
        ("mel", [("Melanie", "See you tomorrow.\n— Mel")], MANY, "Melanie"),
        ("mel", [("Caroline", "hey mel, how are you")], TWO, "Melanie"),
        ("mel", [], TWO, "Melanie"),
        ("mel", [("Caroline", "I met Mel from the choir.")], TWO, None),
        ("me", [], TWO, None),
        ("catherine", [], ("Katherine", "Bob"), "Katherine"),
        ("jon", [], ("John", "Jonas"), None),
        ("time", [("John", "What a time, Tim!"), ("Tim", "It takes time.")], MANY, None),
        ("doc", [("Bob", "Hey Doc!"), ("Bob", "Thanks, Doc.")], ("Emmett", "Bob"), "Emmett"),
        ("doc", [("Emmett", "Everybody calls me Doc."), ("Emmett", "Bye,\nDoc")], ("Emmett", "A", "B"), "Emmett"),
        ("doc", [("Bob", "Hey Doc!")], ("Emmett", "Bob"), None),
        ("doc", [("Bob", "Hey Doc!"), ("Bob", "Thanks, Doc.")], ("Emmett", "Bob", "Eve"), None),
        ("rome", [("Bob", "I love Paris, Rome!"), ("Bob", "Wow, Rome!")], ("Emmett", "Bob"), None),
        ("swedish", [("Bob", "I'm Swedish."), ("Bob", "I am Swedish!")], ("Emmett", "Bob"), None),
    ],
)  # fmt: skip
def test_what_is_learned(name, turns, speakers, expected):
    """
    From greetings, signatures and introductions. A name that is used for somebody else is not a speaker's, nor is a word.
    """
    assert learned_speaker(name, [said(*turn) for turn in turns], speakers) == expected


@given(st.text(max_size=40), st.lists(st.text(max_size=10), max_size=4), st.text(max_size=40))
def test_any_text(question, speakers, text):
    """
    Nothing fails, whatever is asked or said, and nobody is found who does not speak.
    """
    assert len(fold(question)) == len(question)
    for name in unknown_names(question, speakers):
        assert learned_speaker(name, [said(speakers[0] if speakers else None, text)], speakers) in {
            None,
            *speakers,
        }
    assert replace_speakers(question, speakers, {fold(text): None})[1] <= set(speakers)


@pytest.fixture
def friends(space):
    for speaker, text in (
        ("Caroline", "Hey Mel! How was the pottery class?"),
        ("Melanie", "The pottery class was lovely, we made bowls."),
        ("Caroline", "I made pottery bowls in a class once, too."),
    ):
        space.retain(text, speaker=speaker, conversation="c")
    return space


def named(space, question: str) -> tuple[str, ...]:
    return space.recall(question).routing.speakers


@both_engines
def test_recall_knows_a_speaker_by_other_names(friends):
    """
    A nickname that is used, another spelling, any case; a name that matches nobody changes nothing.
    """
    assert named(friends, "What did Mel make in the class?") == ("Melanie",)
    assert named(friends, "what did melany make in the class?") == ("Melanie",)
    first = friends.recall("What did Mel make in the pottery class?").hits[0]
    assert first.turn is not None
    assert first.turn.speaker == "Melanie"
    stranger = friends.recall("What did Zebulon make in the class?")
    assert stranger.routing.speakers == ()
    assert all("speaker" not in hit.channels for hit in stranger.hits)


@both_engines
def test_an_operator_decides(friends, open_plane):
    """
    A decision wins over what is learned, is an entry of the ledger, and survives a replay.
    """
    friends.review.add_name("Potter", "melanie")
    friends.review.remove_name("Mel")

    for space in (friends, open_plane().space("alice")):
        assert named(space, "What did potter make?") == ("Melanie",)
        assert named(space, "What did Mel make?") == ()
    assert [entry.op for entry in friends.ledger.entries()][-2:] == [Op.PUT, Op.PUT]
    friends.ledger.replay()
    assert named(friends, "What did Potter make?") == ("Melanie",)
    friends.review.add_name("MEL", "Caroline")
    assert named(friends, "What did Mel make?") == ("Caroline",)
    assert friends.search("potter") == [hit for hit in friends.search("potter") if hit.turn is not None]


@both_engines
def test_names_are_listed(friends):
    """
    What was decided, and what was learned, but no speaker's own name.
    """
    assert [(name.name, name.speaker, name.source) for name in friends.review.names()] == [
        ("Mel", "Melanie", "learned")
    ]
    friends.review.remove_name("mel")
    friends.review.add_name("Potter", "Melanie")
    assert [(name.name, name.speaker, name.source) for name in friends.review.names()] == [
        ("mel", None, "removed"),
        ("Potter", "Melanie", "added"),
    ]


def test_forgetting_everything_forgets_names(friends):
    """
    A name is personal data.
    """
    friends.review.add_name("Potter", "Melanie")
    friends.forget(everything=True)

    assert friends.review.names() == []


@pytest.mark.parametrize("name", ["", " ", "x" * 81])
def test_invalid_names(friends, name):
    """
    A name has text, and not too much of it.
    """
    with pytest.raises(InvalidRequest):
        friends.review.add_name(name, "Melanie")
    with pytest.raises(InvalidRequest):
        friends.review.add_name("Mel", name)
