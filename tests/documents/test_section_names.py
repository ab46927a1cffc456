"""Which section a question names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.documents.naming import (
    asks_for_document,
    asks_for_summary,
    best_sections,
    named_in,
    of_the_kind_in,
    phrases_of,
)
from memplane.types import Section

TITLES = [
    "Introduction",
    "1. Installation",
    "1.1 Requirements",
    "1.2 Installing on Windows",
    "2. Configuration and settings",
    "Chapter IV",
    "Frequently asked questions",
    "安装",
    "Appendix A",
    "Tea",
]
SECTIONS = [
    Section(id=str(ordinal), ordinal=ordinal, title=title, level=1, start=0, end=0)
    for ordinal, title in enumerate(TITLES)
]


def named(question):
    return [section.title for section in best_sections(phrases_of(question), SECTIONS)[1]]


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("show me the installation section", "1. Installation"),
        ("Show me the Introduction", "Introduction"),
        ("What does the Introduction say?", "Introduction"),
        ("what does the introduction say about tea", "Introduction"),
        ("what does section 1.2 say?", "1.2 Installing on Windows"),
        ("Summarize section 2", "2. Configuration and settings"),
        ("read §1.1 to me", "1.1 Requirements"),
        ("chapter iv please", "Chapter IV"),
        ("what is in the instalation section?", "1. Installation"),
        ("the configuration section of the manual", "2. Configuration and settings"),
        ('please quote the "Frequently Asked Questions" section', "Frequently asked questions"),
        ("section about requirements", "1.1 Requirements"),
        ("Zeig mir das Kapitel Installation", "1. Installation"),
        ("What's in appendix A?", "Appendix A"),
    ],
)
def test_a_section_that_is_named_is_found(question, title):
    """
    By its title, its number, or nearly so.
    """
    assert named(question) == [title]


@pytest.mark.parametrize(
    "question",
    [
        "How do I install this?",
        "tea",
        "What is tea?",
        "Tell me about the introduction of taxes in 1909",
        "Which section of the river is deepest?",
        "show me the money",
        "What did she say about the new chapter of her life?",
        "What does the configuration file say about ports?",
        "Show me tea houses in Lisbon",
        "section 9",
        "",
        "the section",
    ],
)
def test_other_questions_name_none(question):
    """
    A word of a title in a question is not its name.
    """
    assert named(question) == []


def test_a_summary_of_a_document_is_asked_for():
    """
    In the usual words, and only with a document in them.
    """
    assert asks_for_document("Summarise this document")
    assert asks_for_document("what is this report about?")
    assert asks_for_document("give me an overview of the tea handbook")
    assert not asks_for_document("summarise our conversation")
    assert not asks_for_document("Where is the document?")
    assert asks_for_summary("sum up the lease")
    assert not asks_for_summary("what is the lease about?")
    names = ["...", "tea-handbook.pdf", "lease.txt"]
    assert named_in("summarise the Tea Handbook please", names) == [1]
    assert named_in("summarise the handbook", names) == []
    assert of_the_kind_in("summarise the handbook", names) == [1]
    assert of_the_kind_in("summarise the document", names) == []


@given(st.text(max_size=400))
def test_any_question_can_be_read(question):
    """
    Whatever is asked, patterns take what stands there, or nothing.
    """
    words = set(" ".join(question.split()))

    assert all(set(phrase.text) <= words for phrase in phrases_of(question))
    assert best_sections(phrases_of(question), SECTIONS)[0] <= 1.0
