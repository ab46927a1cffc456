"""Which documents a question names."""

import pytest

from memplane.documents.naming import NameParts

NAMES = [
    "One year later (TechCrunch)",
    "Best deals | The Verge",
    "coffee-manual.md",
    "2023",
    "It (is)",
    "Résumé: Ana",
]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did techcrunch say, and what the verge?", {0, 1}),
        ("What happened one year later?", {0}),
        ("What happened a year later?", set()),
        ("What does the coffee-manual say of milk?", {2}),
        ("What does the manual say?", set()),
        ("What was it in 2023?", set()),
        ("Whose resume is this?", {5}),
        ("", set()),
    ],
)
def test_a_part_of_a_name_is_said_word_for_word(question, named):
    """
    Between brackets, bars and colons; not single words of it, nor what says nothing.
    """
    assert NameParts(NAMES).named_in(question) == named


def test_documents_that_are_named_come_first(space):
    """
    Two say the same; the one that the question names is told first.
    """
    for maker in ("Acme", "Borealis", "Corvid"):
        space.documents.upload(
            f"The kettle of {maker} boils a litre in three minutes.", name=f"Kettle ({maker})"
        )

    told = space.recall("According to Borealis, how long does the kettle take to boil?").spans

    assert told[0].document_name == "Kettle (Borealis)"
    assert "named" in told[0].channels
