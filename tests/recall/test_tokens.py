"""Tokens are counted from above and without a tokenizer, so that a budget holds whoever reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.recall.tokens import tokens_of


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("   \t ", 0),
        ("tea", 1),
        ("internationalization", 3),
        ("tea, please!", 4),
        ("2026-11-15", 6),
        ("one\ntwo\n\n\nthree", 5),
        ("上海", 4),
        ("🎉", 2),
        ("café", 2),
    ],
)
def test_what_counts(text, tokens):
    """Long words are several, signs are one each, spaces none, ideographs and emoji two."""
    assert tokens_of(text) == tokens


@given(st.text(), st.text())
def test_lines_add_up(left, right):
    """What render relies on: lines counted one by one cost at least what they cost together."""
    assert tokens_of(f"{left}\n{right}") <= tokens_of(f"{left}\n") + tokens_of(right)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_is_free(text):
    """Whatever is not blank costs something, and at most three for a character."""
    count = tokens_of(text)
    assert (count > 0) == bool(text.strip(" \t\r"))
    assert count <= 3 * len(text)
