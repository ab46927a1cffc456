"""Editing what is shown changes what is kept, and nothing that could not be seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.safety.redact import redact
from memplane.safety.sanitize import SanitizedText, Splice, visible

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
TEXTS = st.text("ab \n\u200b\u202e\U000e0041é", max_size=30)


@given(TEXTS, st.data())
def test_a_splice_on_the_shown_text_is_that_splice(text, data):
    """
    Whatever is invisible around it, the reader finds exactly the edit that was asked for.
    """
    veil = SanitizedText(text)
    start = data.draw(st.integers(0, len(veil.text)))
    end = data.draw(st.integers(start, len(veil.text)))
    kept = veil.spliced([Splice(start, end, "X")])

    assert veil.text == visible(text)
    assert SanitizedText(kept).text == f"{veil.text[:start]}X{veil.text[end:]}"


@given(TEXTS)
def test_no_splice_changes_nothing(text):
    """
    What is kept stays byte for byte, also what is never shown.
    """
    assert SanitizedText(text).spliced([]) == text


def test_a_secret_stays_where_an_edit_does_not_touch_it():
    """
    Before, between and behind secrets, several edits at once.
    """
    kept = f"one\nkey = {TOKEN}\ntwo\nkey = {TOKEN}x1\nthree"
    veil = SanitizedText(kept)
    splices = [
        Splice(at := veil.text.index(word), at + len(word), word.upper()) for word in ("one", "two", "three")
    ]

    assert veil.text == redact(kept).text
    assert TOKEN not in veil.text
    assert veil.spliced(splices) == kept.replace("one", "ONE").replace("two", "TWO").replace("three", "THREE")


@pytest.mark.parametrize("inside", [0, 3, -1])
def test_touching_a_placeholder_takes_all_of_it(inside):
    """
    Half a secret never remains.
    """
    veil = SanitizedText(f"a {TOKEN} b")
    begin, end = veil.text.index("["), veil.text.index("]") + 1
    start = begin + inside if inside >= 0 else end - 1

    assert veil.spliced([Splice(start, end, "gone")]) == "a gone b"


def test_a_secret_in_disguise_is_seen():
    """
    An invisible character in a secret hides it from nobody.
    """
    veil = SanitizedText(f"key = {TOKEN[:10]}\u200b{TOKEN[10:]} end")

    assert TOKEN[:10] not in veil.text
    at = veil.text.index("end")
    assert veil.spliced([Splice(at, at + 3, "END")]) == f"key = {TOKEN[:10]}\u200b{TOKEN[10:]} END"
