"""What an answer says once the question is known."""

import pytest

from memplane.extract.catalog import load_catalog
from memplane.extract.claims import render
from memplane.extract.rules import extract

CATALOG = load_catalog()


def read(text, before):
    return [found for found in extract(text, role="user", catalog=CATALOG, before=before) if found.completed]


@pytest.mark.parametrize(
    ("before", "text", "expected"),
    [
        ("Do you have a dog?", "Yes, from the shelter", "I have a dog."),
        ("Nice. Do you like jazz?", "Nope", "I don't like jazz."),
        ("Are you married?", "Yeah!", "I am married."),
        ("Have you ever been to Peru?", "No, never", "I have never been to peru."),
        ("What do you do for a living?", "A nurse", "I am a nurse."),
        ("How old are you?", "43", "I am 43 years old."),
        ("Where do you live?", "In Ghent", "I live in Ghent."),
        ("How many cats do you have?", "Three", "I have Three cats."),
        ("What is your favorite color?", "Teal", "My favorite color is Teal."),
        ("I love old maps.", "Me too!", "I love old maps."),
    ],
)
def test_answers_are_completed(before, text, expected):
    """
    With the message before it, a bare answer is a statement; it quotes the answer and says that it was completed.
    """
    (found,) = read(text, before)

    assert render(found) == expected
    assert text.startswith(text[found.start : found.end])


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("Do you have a dog?", "What a question!"),
        ("Do you like it?", "Yes"),
        ("Shall we go?", "Yes"),
        ("The weather is nice.", "Yes"),
        ("Do you think that is true?", "No"),
        ("Do you have a dog?", "No problem"),
        ("", "Yes"),
    ],
)
def test_what_is_unclear_stays_open(before, text):
    """
    Nothing is made of an answer whose question points elsewhere, is none, or is not there.
    """
    assert read(text, before) == []


def test_who_was_asked_after_is_meant():
    """
    `He` after `How is your son?` is the user's son.
    """
    (found, *_) = extract("He works as a welder", role="user", catalog=CATALOG, before="How is your son?")

    assert (found.subject, found.predicate) == ("user's son", "works_as")


def test_only_users_answer():
    """
    An assistant's `yes` says nothing about anyone.
    """
    assert extract("Yes", role="assistant", catalog=CATALOG, before="Do you have a dog?") == []
