"""Markdown and plain text: the text stays what it was, and its blocks and headings are where CommonMark has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from document_files import assert_whole, kinds
from memplane.documents.chunk import UNTITLED_CHARS, sections_of
from memplane.documents.markdown import parse_markdown, plain_title
from memplane.documents.text import parse_plain

LINES = [
    "# h",
    "## h ##",
    "###",
    "#no",
    "text",
    "more text",
    "- a",
    "- b",
    "* c",
    "+ d",
    "1. one",
    "2. two",
    "7) x",
    "  cont",
    "    code",
    "\tcode",
    "```",
    "```py",
    "~~~",
    "````",
    "---",
    "***",
    "===",
    "- - -",
    "> q",
    "> > qq",
    ">",
    "<div>",
    "</div>",
    "<!-- c",
    "-->",
    "<b>",
    "<pre>",
    "</pre>",
    "",
    "",
    "",
    "  - n",
    "   - n3",
    "  ```",
    "  # x",
    "- ```",
    "- # h",
    "> # h",
    "> ```",
    "> - a",
    " text",
    "   text",
    "-\ta",
    "\\# x",
    "<?x",
    "?>",
    "10. z",
    "> text",
    "|a|b|",
    "|-|-|",
    "a | b",
    "--|--",
    "| x | y |",
]

PAGE = """\
---
title: "On Whales"
---
Intro.

# One *and* `only`

A paragraph
of two lines.

- item
  - inner

  still the item
- next

| a | b |
|---|---|
| 1 | 2 |

Under
lined
-----

```python
# no heading
```

    # code, no heading

> # quoted, no heading

***
### [Link](http://example.org) and \\# sign ###
end"""


def test_blocks_of_a_page():
    """
    Every outermost block is told by its kind; headings in code and quotes are none.
    """
    parsed = parse_markdown(PAGE)

    assert parsed.text == PAGE
    assert parsed.title == "On Whales"
    assert kinds(parsed) == [
        ("code", '---\ntitle: "On Whales"\n---'),
        ("paragraph", "Intro."),
        ("heading", "# One *and* `only`"),
        ("paragraph", "A paragraph\nof two lines."),
        ("list", "- item\n  - inner\n\n  still the item\n- next"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("heading", "Under\nlined\n-----"),
        ("code", "```python\n# no heading\n```"),
        ("code", "    # code, no heading"),
        ("paragraph", "> # quoted, no heading"),
        ("heading", "### [Link](http://example.org) and \\# sign ###"),
        ("paragraph", "end"),
    ]
    assert [(heading.title, heading.level) for heading in parsed.headings] == [
        ("One and only", 1),
        ("Under lined", 2),
        ("Link and # sign", 3),
    ]


@given(st.lists(st.sampled_from(LINES), max_size=12), st.sampled_from(["\n", "\r\n", "\r"]))
def test_blocks_are_those_of_a_whole_parser(lines, line_end):
    """
    A parser that builds the whole tree sees the same outermost blocks, on the same lines.
    """
    text = line_end.join(lines) + line_end
    parsed = parse_markdown(text)

    assert_whole(parsed)
    if not text.startswith("---"):
        assert blocks_by_line(parsed, line_end) == blocks_of_library(text, line_end)


def blocks_by_line(parsed, line_end):
    lines = parsed.text.split(line_end)
    levels = {heading.start: heading.level for heading in parsed.headings}
    found = []
    for block in parsed.blocks:
        first = parsed.text.count(line_end, 0, block.start)
        last = parsed.text.count(line_end, 0, block.end)
        if any(line.strip() for line in lines[first:last]):
            found.append((first, shrunk(lines, first, last), block.kind.value, levels.get(block.start, 0)))
    return found


def blocks_of_library(text, line_end):
    kinds_by_token = {
        "heading_open": "heading",
        "bullet_list_open": "list",
        "ordered_list_open": "list",
        "table_open": "table",
        "fence": "code",
        "code_block": "code",
        "hr": "break",
    }
    library = MarkdownIt("commonmark").enable("table").disable("reference")
    library.core.ruler.enableOnly(["normalize", "block"])
    lines = text.split(line_end)
    return [
        (
            token.map[0],
            shrunk(lines, *token.map),
            kinds_by_token.get(token.type, "paragraph"),
            int(token.tag[1]) if token.type == "heading_open" else 0,
        )
        for token in library.parse(text)
        if token.level == 0 and token.map and token.nesting >= 0
    ]


def shrunk(lines, first, last):
    while last > first + 1 and not lines[last - 1].strip():
        last -= 1
    return last


@given(st.text())
def test_any_text_is_kept_as_it_is(text):
    """
    Whatever the text, it comes out unchanged and its blocks tile it.
    """
    for parsed in (parse_markdown(text), parse_plain(text)):
        assert parsed.text == text
        assert "".join(text[block.start : block.end] for block in parsed.blocks) == text


@pytest.mark.parametrize(
    "hostile",
    [
        ">" * 100_000,
        "> " * 100_000,
        "- " * 100_000 + "a",
        "* " * 100_000 + "a",
        "- > " * 50_000,
        ">" * 50 + "a\n" * 20_000,
        "".join("  " * depth + "- a\n" for depth in range(600)),
        "[" * 100_000,
        "[a]: b\n" * 20_000,
        "|" * 100_000 + "\n" + "|-" * 100_000 + "|\n",
        "a|b\n-|-\n" * 20_000,
        "<!--\n\n" * 20_000,
        "`" * 100_000,
        "# a" + " #" * 100_000,
        "#" * 100_000,
        "a\n" * 50_000 + "===\n",
        " " * 100_000 + "\n" * 100_000,
        "---\n" + "a: b\n" * 50_000,
        "# " + "[" * 100_000 + "*_`" * 10_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_markdown_takes_no_longer_than_other(hostile):
    """
    Deep nesting and openings that never close are read like any text; the test's time limit would notice if not.
    """
    assert_whole(parse_markdown(hostile))


def test_a_title_says_what_the_heading_says():
    """
    Marks go, words stay, also those with underscores; nobody gets a page for a title.
    """
    assert plain_title("**Bold** `code_name` snake_case _so_ ~~gone~~ \\*kept\\*") == (
        "Bold code_name snake_case so gone *kept*"
    )
    assert plain_title("![alt](x.png) [ref][1]") == "alt ref"
    assert len(plain_title("word " * 1_000)) <= 300


def test_paragraphs_of_plain_text():
    """
    Empty lines part paragraphs, with any line ending; blanks at either end belong to nobody.
    """
    parsed = parse_plain("\n \r\none\r\ntwo\r\n\t\r\n\r\nthree\r\rfour\n  ")

    assert kinds(parsed) == [
        ("paragraph", "one\r\ntwo\r"),
        ("paragraph", "three\r"),
        ("paragraph", "four\n  "),
    ]
    assert_whole(parsed)


def test_sections_follow_headings():
    """
    A section goes to the next heading; its path names the headings above it, and blanks before the first are its.
    """
    parsed = parse_markdown("\n\n# A\na\n### C\nc\n## B\nb\n# D\n")

    assert [(part.title, part.level, part.path) for part in sections_of(parsed)] == [
        ("A", 1, ("A",)),
        ("C", 3, ("A", "C")),
        ("B", 2, ("A", "B")),
        ("D", 1, ("D",)),
    ]
    assert_whole(parsed)


def test_long_text_without_headings_is_parted_at_paragraphs():
    """
    Without headings sections are about as long as two pages, and begin with a paragraph.
    """
    paragraph = "word " * 100 + "\n\n"
    parsed = parse_plain(paragraph * 100 + "x" * 20_000)
    parts = sections_of(parsed)

    assert all(part.start % len(paragraph) == 0 for part in parts)
    assert all(part.end - part.start <= UNTITLED_CHARS + len(paragraph) for part in parts[:-1])
    assert {(part.title, part.level, part.path) for part in parts} == {("", 0, ())}
    assert_whole(parsed)


def test_text_before_the_first_heading_is_a_section_without_a_title():
    """
    What stands before the first heading is not lost and not put under it.
    """
    parts = sections_of(parse_markdown("lead\n\n# A\na"))

    assert [(part.start, part.end, part.title) for part in parts] == [(0, 6, ""), (6, 11, "A")]
    assert sections_of(parse_plain("")) == []
    assert [(part.start, part.end) for part in sections_of(parse_plain(" \n"))] == [(0, 2)]
