"""What a new statement does to what is known."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.extract.catalog import load_catalog
from memplane.extract.conflict import ConflictOutcome, KnownMemory, decide_conflict
from memplane.extract.rules import extract

CATALOG = load_catalog()
THEN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def known(text, *, role="user", at=THEN, id="old", contested=False):
    found, *_ = extract(text, role=role, catalog=CATALOG)
    return KnownMemory(id=id, proposition=found, text=text, at=at, contested=contested)


def decide(text, *existing, role="user", at=THEN + MINUTE):
    new, *_ = extract(text, role=role, catalog=CATALOG)
    return decide_conflict(new, existing, catalog=CATALOG, text=text, at=at)


def test_two_values_of_a_one_valued_predicate_are_contested():
    """
    From equally trusted sources and without a word of change, neither wins.
    """
    decision = decide("I live in Rome", known("I live in Lisbon"))

    assert (decision.outcome, decision.targets) == (ConflictOutcome.CONTEST, ("old",))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Lisbon", "Actually, I live in Rome"),
        ("I live in Lisbon", "I moved to Rome"),
        ("I prefer dark mode", "Actually I switched to light mode"),
        ("I drink coffee every day", "I switched from coffee to tea"),
        ("I use React", "We migrated to Svelte"),
        ("I use Linux as my main machine", "I switched to Windows"),
        ("I like jazz", "I no longer like jazz"),
        ("I enjoy wine", "I quit alcohol"),
        ("I bake cakes on Sundays", "I gave up baking"),
        ("I am allergic to nuts", "Turns out I'm not allergic to nuts"),
        ("I eat steak", "I went vegan"),
        ("I drive a Honda Civic", "I just bought a BMW"),
        ("I weigh 90 kg", "I weigh 82 kg now"),
        ("My manager is Carol", "My new manager is Dave"),
        ("My son is 4 years old", "My son just turned 5"),
        ("I am single", "I got married"),
        ("The meeting is on Monday", "The meeting moved to Thursday"),
    ],
)
def test_an_update_supersedes(old, new):
    """
    A user's statement that says something changed replaces what it changes.
    """
    decision = decide(new, known(old))

    assert (decision.outcome, decision.targets) == (ConflictOutcome.SUPERSEDE, ("old",))


def test_a_later_day_supersedes():
    """
    Another value on another day is a change, not a contradiction.
    """
    decision = decide("I live in Rome", known("I live in Lisbon"), at=THEN + timedelta(days=40))

    assert decision.outcome is ConflictOutcome.SUPERSEDE


def test_an_earlier_day_does_not():
    """
    What was said before cannot replace what was said after, in whatever order it arrives.
    """
    decision = decide("I live in Rome", known("I live in Lisbon"), at=THEN - timedelta(days=40))

    assert decision.outcome is ConflictOutcome.CONTEST


def test_a_higher_number_in_a_list_supersedes():
    """
    Numbered facts are in the order of their numbers.
    """
    old = known("3. The capital of Elbonia is Mudville.")

    assert decide("7. The capital of Elbonia is Swampton.", old).outcome is ConflictOutcome.SUPERSEDE
    assert decide("1. The capital of Elbonia is Swampton.", old).outcome is ConflictOutcome.CONTEST


@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_nobody_overrules_a_user(role):
    """
    An assistant or a tool that says otherwise is ignored, even when it says it is an update.
    """
    assert (
        decide("Actually, you live in Rome", known("I live in Lisbon"), role=role).outcome
        is ConflictOutcome.IGNORE
    )


def test_a_user_overrules_an_assistant():
    """
    What the user says replaces what an assistant had said.
    """
    assert (
        decide("I live in Rome", known("You live in Lisbon", role="assistant")).outcome
        is ConflictOutcome.SUPERSEDE
    )


@pytest.mark.parametrize("new", ["I live in Lisbon", "i live in lisbon!", "I live in Lisbon, Portugal"])
def test_the_same_again_is_a_duplicate(new):
    """
    Said again, a thing gains evidence and no copy.
    """
    decision = decide(new, known("I live in Lisbon"))

    assert (decision.outcome, decision.targets) == (ConflictOutcome.DUPLICATE, ("old",))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I like jazz", "I like opera"),
        ("I have a dog", "I have a brother"),
        ("I live in Lisbon", "I moved to a new team"),
        ("I live in Lisbon", "My sister lives in Rome"),
        ("I speak Spanish", "I speak German"),
        ("I like tea", "I hate jazz"),
        ("I like hot tea", "I don't like hot weather"),
        ("I enjoy wine", "I don't like beer"),
        ("I have a dog", "I just adopted a cat"),
        ("I like coffee", "I just bought a coffee machine"),
        ("I play tennis", "I started yoga"),
        ("I use Python", "I started learning Rust"),
        ("I have two kids", "I just had a baby girl"),
        ("I love my job", "I now have a garden"),
    ],
)
def test_values_that_can_stand_side_by_side_are_added(old, new):
    """
    Many-valued predicates and other subjects do not compete.
    """
    assert decide(new, known(old), at=THEN + timedelta(days=40)).outcome is ConflictOutcome.ADD


def test_an_end_without_a_successor_retires():
    """
    `I left Globex` ends the employment, and nothing takes its place.
    """
    decision = decide("I left Globex", known("I work at Globex"))

    assert (decision.outcome, decision.targets) == (ConflictOutcome.RETIRE, ("old",))


def test_a_clarification_resolves_a_contest():
    """
    When the user repeats one of two contested values, the other one loses.
    """
    decision = decide(
        "I live in Rome",
        known("I live in Lisbon", id="lisbon", contested=True),
        known("I live in Rome", id="rome", contested=True),
    )

    assert decision.outcome is ConflictOutcome.SUPERSEDE
    assert "lisbon" in decision.targets


SAID_BY_ASSISTANT = ["You live in Rome", "You moved to Oslo", "You hate tea", "The user quit alcohol"]
TEXTS = [
    "I live in Rome",
    "I moved to Oslo",
    "I like tea",
    "I hate tea",
    "I quit alcohol",
    "I use vim",
    "I left Globex",
]


@given(
    st.lists(st.sampled_from(TEXTS), max_size=6), st.sampled_from(TEXTS), st.sampled_from(SAID_BY_ASSISTANT)
)
def test_targets_are_among_what_is_known(told, new, doubtful):
    """
    A decision names only what it was given, and an assistant never touches what a user said.
    """
    existing = [known(text, id=str(place)) for place, text in enumerate(told)]

    assert set(decide(new, *existing).targets) <= {one.id for one in existing}
    assert decide(doubtful, *existing, role="assistant").outcome in {
        ConflictOutcome.ADD,
        ConflictOutcome.DUPLICATE,
        ConflictOutcome.IGNORE,
    }
