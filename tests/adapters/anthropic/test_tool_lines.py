"""Lines and listings of the memory tool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.adapters.anthropic.commands import (
    inserted,
    line_count,
    listing,
    numbered,
    occurrences,
    size_text,
)
from memplane.safety.sanitize import SanitizedText
from memplane.space.files import FileEntry


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (1, "1B"),
        (1023, "1023B"),
        (1024, "1.0K"),
        (1536, "1.5K"),
        (1024**2, "1.0M"),
        (5 * 1024**3, "5.0G"),
        (5 * 1024**4, "5120.0G"),
    ],
)
def test_sizes_are_for_people(size, text):
    """
    A number and a unit, as `du -h` has it.
    """
    assert size_text(size) == text


def test_line_numbers_have_six_places():
    """
    Right-aligned, a tab behind; a large one is not cut.
    """
    assert numbered(["a", ""], 9) == "     9\ta\n    10\t"
    assert numbered(["z"], 999_999) == "999999\tz"


@given(st.text("ab\n", max_size=20), st.text("ab\n", min_size=1, max_size=2))
def test_occurrences_are_the_lines_they_begin_in(text, part):
    """
    One number for each place, in order.
    """
    places = [at for at in range(len(text)) if text.startswith(part, at)]

    assert occurrences(text, part) == [text.count("\n", 0, at) + 1 for at in places]


@given(st.text("a\n", max_size=12), st.text("b\n", max_size=4), st.data())
def test_inserting_adds_whole_lines(text, new, data):
    """
    The lines before and after stay; the file ends with a line end, and an empty last line is dropped, as the SDK's tool does.
    """
    after = data.draw(st.integers(0, line_count(text)))
    lines = text.split("\n")[: line_count(text)]
    made = SanitizedText(text).spliced(inserted(text, after, new))

    whole = "\n".join([*lines[:after], new.rstrip("\n"), *lines[after:]])
    assert made == (whole if whole.endswith("\n") else whole + "\n")


def test_a_file_and_a_folder_of_one_name_are_both_listed():
    """
    Other doors may put such keys; nothing is lost from sight.
    """
    entries = [FileEntry(path="/memories/a", bytes=1), FileEntry(path="/memories/a/b", bytes=2)]

    assert listing("/memories", entries).splitlines()[1:] == [
        "3B\t/memories",
        "3B\t/memories/a/",
        "2B\t/memories/a/b",
    ]
