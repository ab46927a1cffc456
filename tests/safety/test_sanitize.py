"""Content is data: what could break out of a line, steer a terminal or hide from a reader is made harmless."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.safety.sanitize import one_line, printable

NEWLINES = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
HARMFUL = [
    *map(chr, range(9)),
    *map(chr, range(0x0E, 0x1C)),
    "\x1f",
    "\x7f",
    *map(chr, range(0x80, 0x85)),
    *map(chr, range(0x86, 0xA0)),
    *"\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\ufff9\ufffb",
    "\U000e0001",
    "\U000e0041",
    "\U000e007f",
]
# Letters, marks and signs that draw nothing: a message can hide in them.
INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0" + "".join(
    map(chr, (*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0)))
)
ANY = st.lists(
    st.characters() | st.sampled_from([*NEWLINES, *HARMFUL, "\t", "\u200d", "\u200c"]), max_size=60
).map("".join)


@pytest.mark.parametrize("newline", NEWLINES, ids=ascii)
def test_strips_every_newline(newline):
    """Whatever ends a line becomes one space, and a run of it too."""
    assert one_line(f"a{newline}b") == "a b"
    assert one_line(f"a{newline * 3}b") == "a b"


def test_strips_multiple_mixed_newline_types():
    """Runs of different kinds are one run."""
    assert one_line("a\r\n\u2028\n\x0bb\x85c") == "a b c"


@pytest.mark.parametrize("text", ["", "plain", "tabs\tand  spaces"])
def test_returns_unchanged_string_when_no_newlines_present(text):
    """Nothing to do, but for tabs."""
    assert one_line(text) == text.replace("\t", " ")


@pytest.mark.parametrize("character", HARMFUL, ids=ascii)
def test_removes_what_steers(character):
    """Controls, direction overrides, invisible tags, the byte-order mark."""
    assert one_line(f"a{character}b") == "ab"
    assert printable(f"a{character}b") == "ab"


def test_removes_what_nobody_sees():
    """Fillers and variation selectors can carry a message past a reader."""
    for character in INVISIBLE:
        assert one_line(f"a{character}b") == "ab", ascii(character)


@pytest.mark.parametrize(
    "text", ["👩\u200d👩\u200d👧", "می\u200cخواهم", "क्\u200dष", "e\u0301", "❤\ufe0f", "שלום", "日本"]
)
def test_keeps_what_scripts_need(text):
    """Joiners, marks and right-to-left letters are not tricks."""
    assert one_line(text) == text
    assert printable(text) == text


@given(ANY)
def test_one_line_is_one_line(text):
    """For any text at all: one line, no controls, and doing it again changes nothing."""
    line = one_line(text)

    assert len(line.splitlines()) <= 1
    assert not any(unicodedata.category(character) == "Cc" for character in line)
    assert one_line(line) == line


@given(ANY)
def test_printable_keeps_only_plain_line_breaks(text):
    """Lines stay lines, parted by a newline and nothing else, and each is as harmless as one line alone."""
    lines = printable(text).split("\n")

    assert lines == ([one_line(line) for line in text.splitlines()] or [""])
    assert all(one_line(line) == line for line in lines)


@given(
    st.text(
        st.characters(categories=["L", "N", "P", "S", "Zs", "Mn", "Mc"], exclude_characters=INVISIBLE),
        max_size=60,
    )
)
def test_ordinary_text_is_untouched(text):
    """Letters, digits, marks and signs of every script pass as they are, if they can be seen."""
    assert one_line(text) == text
