"""Documents told in a few of their own sentences."""

import re

from hypothesis import given
from hypothesis import strategies as st

from memplane.documents.distil import (
    SECTION_WORDS_MAX,
    TITLE_CHARS_MAX,
    WHOLE_WORDS_MAX,
    distil,
    on_one_line,
    passages_of,
    words_in,
)
from memplane.types import Section

TITLES_WORDS = 60
BREW = """\
# Brewing

A kettle boils water for the tea. The tea steeps in the water for
three minutes, and no longer. Green tea needs cooler water than black tea.

| tea | minutes |
|---|---|
| green | two. Never more |

```
brew(tea, minutes=3)  # This is a comment. It is no sentence.
```

- Pour the water over the leaves slowly.
- Warm the pot before the tea goes in.
"""
CLEAN = """\
## Cleaning

Rinse the pot with hot water after every tea. Never use soap on an iron pot.
"""


def sections(*parts):
    """Sections of texts that begin with a heading, or do not."""
    made = []
    for ordinal, text in enumerate(parts):
        heading = re.match(r"(#+) (.+)", text)
        made.append(
            (
                Section(
                    id=str(ordinal),
                    ordinal=ordinal,
                    title=heading[2] if heading else None,
                    level=len(heading[1]) if heading else 0,
                    start=0,
                    end=len(text),
                ),
                text,
            )
        )
    return made


def said(text, title=None):
    return [passage.text for passage in passages_of(text, title)]


def test_a_paragraph_may_be_wrapped():
    """
    A sentence goes on in the next line; an abbreviation, a number and an initial do not end it.
    """
    text = "Dr. J. Low\nsells tea at 3.50 a cup. It is good!\n\nNext one"

    assert said(text) == ["Dr. J. Low sells tea at 3.50 a cup.", "It is good!", "Next one"]


def test_rows_code_and_headings_are_no_sentences():
    """
    A table's row is never cut up and told as if somebody had said it; nor is a program.
    """
    text = (
        "Title\n=====\n\nFirst thing.\n\n| a | b. c |\n|---|---|\n| x. | y |\n\na\tb. C\td\n\n```\nx = 1. Y\n```\n"
        "~~~\nno. No\n~~~\n\n    indented = code. Yes\n\n---\n<!-- no. -->\n[ref]: http://x. y\n\nLast thing.\n"
    )

    assert said(text) == ["First thing.", "Last thing."]


def test_items_and_quotes():
    """
    Each item stands alone, without its bullet; a quotation without its marks.
    """
    text = "1. One thing\n2) Another\n   goes on.\n* Third\n\n> Somebody said\n> this."

    assert said(text) == ["One thing", "Another goes on.", "Third", "Somebody said this."]


def test_the_heading_is_no_sentence_of_its_section():
    """
    In a text without markup the first line may be the heading.
    """
    assert said("Brewing tea\nPour water.", "Brewing tea") == ["Pour water."]
    assert said("Pour water.\nBrewing tea", "Brewing tea") == ["Pour water.", "Brewing tea"]


def test_other_scripts_end_their_sentences_otherwise():
    """
    No spaces, other marks.
    """
    assert said("茶を飲みます。水を沸かす。") == ["茶を飲みます。", "水を沸かす。"]
    assert said("هل تشرب الشاي؟ نعم.") == ["هل تشرب الشاي؟", "نعم."]
    assert said("चाय पीओ। पानी लाओ।") == ["चाय पीओ।", "पानी लाओ।"]


def test_sections_and_the_whole():
    """
    A section in its own sentences and order; the whole names its parts.
    """
    done = distil(
        sections("# Tea\n\nA short book about tea and water.\n", BREW.replace("# B", "## B"), CLEAN), "book"
    )

    assert len(done.sections) == 3
    assert done.sections[0] == "A short book about tea and water."
    assert "The tea steeps in the water for three minutes, and no longer." in done.sections[1]
    assert "|" not in done.sections[1]
    assert "comment" not in done.sections[1]
    assert done.whole.startswith("A short book about tea and water.")
    assert done.whole.endswith("Sections: Brewing; Cleaning.")


def test_a_section_that_says_nothing_is_told_by_its_title():
    """
    Empty, a heading alone, a table alone; without a title it is the document that has a name.
    """
    done = distil(sections("", "# Prices\n", "# Table\n\n| a | b |\n| c | d |\n", "| a | b |\n"), "My list")

    assert done.sections == ("My list", "Prices", "Table", "My list")
    assert done.whole == "Prices Sections: Prices; Table."
    assert distil([], "My list").whole == "My list"


def test_nothing_is_said_twice():
    """
    A sentence that comes back, as it is or nearly so, is told once.
    """
    same = "The old mill grinds wheat into flour for the village."
    done = distil(
        sections(
            f"# A\n\n{same} {same}\n",
            f"# B\n\n{same.replace('old', 'tall')} {same}\n\nBread is sold on Sundays.\n",
        ),
        "mill",
    )

    assert done.sections[0] == same
    assert done.whole.count("grinds wheat") == 1
    assert "Bread is sold on Sundays." in done.whole


def test_what_is_common_is_told():
    """
    The sentences that share their words with the others stand for them.
    """
    noise = ["Zebras graze over yonder hills.", "Quantum foam puzzles many physicists."]
    topic = [f"The harbour crane lifts container {n} onto the ship." for n in ("one", "two", "three")]
    text = " ".join([noise[0], *topic, noise[1]] * 3)

    assert "harbour crane" in distil(sections(text), "x").whole


def test_a_text_without_marks_is_told_by_its_beginning():
    """
    Whatever it is that has no sentences, what is told is short.
    """
    for text in ("ไทย" * 20_000, "word " * 50_000, "x" * 100_000):
        done = distil(sections(text), "n")

        assert done.whole.endswith("…")
        assert words_in(done.whole) <= SECTION_WORDS_MAX
        assert text.startswith(done.whole[:-1])


def test_a_huge_document_is_sampled():
    """
    However many sections, and however long: each is told by something, and little of it is read.
    """
    many = distil(sections(*["# T\n\nA few words in here.\n"] * 30_000), "n")
    long = distil(sections("A sentence of some words. " * 400_000), "n")

    assert len(many.sections) == 30_000
    assert set(many.sections) == {"A few words in here.", "T"}
    assert long.whole == "A sentence of some words."


def test_a_name_and_a_title_are_short():
    """
    A heading may be a whole paragraph.
    """
    done = distil(sections("# " + "long title " * 200), "name " * 500)

    assert len(done.sections[0]) <= TITLE_CHARS_MAX
    assert len(distil(sections(""), "name " * 500).whole) <= TITLE_CHARS_MAX


_WORD = st.sampled_from(
    [
        "tea",
        "water",
        "|",
        "pot",
        "the",
        "of",
        "boils.",
        "Never!",
        "茶水。",
        "\n",
        "\n\n",
        "#",
        "```",
        "-",
        "1.",
        "a\tb",
        ">",
        "“so”",
        "ไทย",
        "...",
        "www.x.org",
        "—",
        "é",
    ]
)
_TEXT = st.one_of(st.text(max_size=300), st.lists(_WORD, max_size=120).map(" ".join))


@given(st.lists(_TEXT, max_size=6), st.text(max_size=50))
def test_distillations_quote_and_are_bounded(texts, name):
    """
    Whatever the text: each section gets one, verbatim but for white space, within bounds, and the same each time.
    """
    parts = sections(*texts)
    done = distil(parts, name)
    lines = [on_one_line(text) for text in texts]

    assert done == distil(parts, name)
    assert len(done.sections) == len(texts)
    assert words_in(done.whole) <= WHOLE_WORDS_MAX + TITLES_WORDS
    for (section, text), told in zip(parts, done.sections, strict=True):
        assert words_in(told) <= SECTION_WORDS_MAX + 1 or told in (
            on_one_line(section.title or ""),
            on_one_line(name),
        )
        for passage in passages_of(text, section.title):
            assert on_one_line(text[passage.start : passage.end]) == passage.text
    assert all(
        any(passage.text.rstrip("…") in line for line in lines)
        for (section, text) in parts
        for passage in passages_of(text, section.title)
    )
