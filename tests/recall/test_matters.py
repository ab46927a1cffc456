"""Standing instructions that were changed or withdrawn."""

from datetime import UTC, datetime, timedelta

import pytest

from memplane.recall.matters import Relation, read_wish, relation

BEFORE = datetime(2026, 3, 2, tzinfo=UTC)
MONTH = timedelta(days=30)

CHANGED = [
    ("always answer in French", "actually, answer in English from now on"),
    ("Always answer in French", "Always answer in English"),
    ("Always answer in French", "Antworte ab jetzt immer auf Englisch"),
    ("以后都用英语回答", "always answer in Japanese"),
    ("Call me Captain", "call me Steve"),
    ("Call me Captain", "Never call me Captain"),
    ("keep answers under 100 words from now on", "keep answers under 50 words from now on"),
    ("Always be brief", "From now on give long, detailed answers"),
    ("Always use tabs", "always use spaces"),
    ("Always indent code with tabs", "From now on use spaces for indentation"),
    ("Never use emojis", "Always use emojis"),
    ("Always use emojis", "Stop using emojis"),
    ("Never push to main", "Always push to main"),
    ("Always use bullet points", "From now on write in prose"),
    ("Always be formal", "From now on be casual"),
]
WITHDRAWN = [
    ("Always answer in French", "you don't need to answer in French any more"),
    ("Always answer in French", "You no longer have to answer in French."),
    ("Always answer in French", "stop answering in French"),
    ("Always answer in French", "you can answer in English again"),
    ("Always answer in French", "hör auf, auf Französisch zu antworten"),
    ("Always answer in French", "Ne réponds plus en français."),
    ("Always answer in French", "Deja de responder en francés"),
    ("Always answer in French", "перестань отвечать по-французски"),
    ("Always answer in French", "不用再用法语回答"),
    ("Never use emojis", "emojis are fine again"),
    ("Stop using emojis", "you can use emojis again"),
    ("No emojis", "You don\u2019t need to avoid emojis anymore"),
    ("keep answers under 100 words from now on", "you can write longer answers again"),
    ("Always be brief", "no need to be brief any more"),
    ("Call me Captain", "stop calling me Captain"),
    ("Never push to main", "you may push to main now"),
]
OTHER = [
    ("Always answer in French", "Always be brief"),
    ("Always answer in French", "Never answer in German"),
    ("Never answer in German", "Always answer in French"),
    ("Always answer in French", "stop answering in German"),
    ("Always answer in French", "Call me Captain"),
    ("Call me Captain", "Never call me Steve"),
    ("Never push to main", "Never push to release branches"),
    ("Never push to main", "Never commit to main"),
    ("Never push to main", "you may deploy on Fridays now"),
    ("Use metric units in recipes", "Use tabs"),
    ("Use tabs in Python", "Use spaces in JavaScript"),
    ("Always use emojis", "emojis are fine again"),
    ("Never use emojis", "Always use bullet points"),
    ("Keep answers under 100 words", "Keep commit messages on a technical level"),
    ("When I write in German, answer in German", "When I write in French, answer in French"),
    ("Write emails to Anna in Polish", "Write emails to Jan in English"),
    ("Always cite sources", "Always add a summary"),
]
UNCLEAR = [
    ("Use tabs in Python", "use spaces from now on"),
    ("Always answer in French, with bullet points", "Always answer in English"),
    ("When I ask about flights, prefer aisle seats", "When I ask about flights, prefer window seats"),
    ("Always answer in French", "Always answer emails in English"),
    ("No emojis or bullet points", "emojis are fine again"),
]


@pytest.mark.parametrize(("old", "new"), CHANGED + WITHDRAWN)
def test_a_newer_instruction_about_the_same_matter_replaces(old, new):
    assert relation(read_wish(new), read_wish(old)) is Relation.REPLACES


@pytest.mark.parametrize(("old", "new"), OTHER)
def test_an_instruction_about_another_matter_does_not(old, new):
    assert relation(read_wish(new), read_wish(old)) is Relation.OTHER


@pytest.mark.parametrize(("old", "new"), UNCLEAR)
def test_instructions_that_overlap_may_both_hold(old, new):
    assert relation(read_wish(new), read_wish(old)) is Relation.UNCLEAR


def _said(space, *texts):
    """Each a month after the one before."""
    for number, text in enumerate(texts):
        space.retain(text, at=BEFORE + number * MONTH)


@pytest.mark.parametrize(("old", "new"), [CHANGED[0], CHANGED[4], CHANGED[6], CHANGED[11]])
def test_only_the_newest_is_returned(space, old, new):
    _said(space, old, new)
    text = space.recall("hello").text.lower()

    assert f"- {new.lower()}" in text
    assert f"- {old.lower()}" not in text


@pytest.mark.parametrize(
    "old_new", [WITHDRAWN[0], WITHDRAWN[2], WITHDRAWN[3], WITHDRAWN[5], WITHDRAWN[9], WITHDRAWN[12]]
)
def test_a_withdrawal_is_no_instruction(space, old_new):
    _said(space, *old_new)

    assert space.recall("hello").text == ""


def test_what_may_be_pushed_is_not_forbidden(space):
    _said(space, "Never push to main", "you may push to main now")
    text = space.recall("Commit this and push it to main").text

    assert "- Never push to main\n" not in text


def test_stored_instructions_are_compared_too(space):
    """
    Also at the start of a session, and in a brief.
    """
    space.store("instruction", "Always answer in French")
    space.store("instruction", "Always answer in English")

    for text in (space.recall("hello").text, space.recall("").text, space.brief().markdown):
        assert "French" not in text
        assert "English" in text


def test_an_instruction_that_is_said_again_holds_again(space):
    _said(space, "always answer in French", "always answer in English", "always answer in French")
    text = space.recall("hello").text

    assert "- Always answer in French" in text
    assert "English" not in text


def test_what_was_withdrawn_held_before(space):
    _said(space, "always answer in French", "stop answering in French")

    assert "French" in space.recall("hello", as_of=BEFORE + MONTH / 2).text


def test_nothing_to_withdraw(space):
    """
    `Stop answering in German` is then an instruction, a permission is none.
    """
    _said(space, "stop answering in German", "emojis are fine again")
    text = space.recall("hello").text

    assert "- Stop answering in German" in text
    assert "emojis" not in text.lower()


def test_unclear_instructions_are_shown_with_their_days(space):
    """
    The newest first.
    """
    _said(space, "Always answer in French, with bullet points", "Always answer in English")
    lines = [line for line in space.recall("hello").text.splitlines() if line.startswith("- ")]

    assert lines == [
        "- Always answer in English. (said 2026-04-01)",
        "- Always answer in French, with bullet points. (said 2026-03-02)",
    ]


def test_a_pinned_instruction_is_kept(space):
    space.review.pin(space.store("instruction", "Always answer in French").id)
    space.store("instruction", "Always answer in English")
    text = space.recall("hello").text

    assert "French" in text
    assert "English" in text


def test_what_replaced_an_instruction_is_explained(space):
    """
    For a stored one, and for a turn that it was read from.
    """
    told = space.retain("always answer in French", at=BEFORE).id
    old = space.store("instruction", "Always reply in German").id
    new = space.store("instruction", "Always answer in English").id

    for id_ in (told, old):
        why = space.why_not("hello", id_)
        assert why.startswith("A newer instruction about the same matter replaced it")
        assert f"'Always answer in English' ({new})" in why


def test_a_withdrawal_is_explained(space):
    told = space.retain("emojis are fine again").id

    assert "withdraws" in space.why_not("hello", told)
