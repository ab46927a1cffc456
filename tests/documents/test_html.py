"""HTML: what a reader sees of a page comes out, in order, and every character knows where it stood."""

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from document_files import assert_whole, kinds
from memplane.documents.html import parse_html
from memplane.documents.parsed import ParseBudget, ParseLimits
from memplane.documents.text import cleaned
from memplane.errors import DocumentUnreadable

LIMITS = ParseLimits()

PAGE = """<!doctype html><html><head><title>A &amp; B</title><style>p{}</style></head><body>
<h1>Hello <b>big</b>
   world</h1>
<p>First   para &lt;here&gt; &amp; there.<br>line two<p>Second&nbsp;para <span hidden>no <span>nor</span></span>end
<ul><li>one<li><p>two</p><ul><li>two a</ul><li>three</ul>
<ol><li>x</li><li>y</li></ol>
<table><tr><th>A<th>B<tr><td><p>1</p></td><td></td><td>3</td><tr><td><td></table>
<pre>
code  here
  x &lt; 1
</pre>
<div style="display: none">never<p>seen</div>after<template>nor</template> it<noscript>no</noscript>
<h2><div>Next</div></h2>a < b and c > d <!-- <p>no --> fin <script>if (a<b) {"<p>"}</script>tail"""


def read(source, limits=LIMITS):
    return parse_html(source, limits, ParseBudget(limits))


def source_of(parsed, offset):
    """The character of the source that a character of the text came from."""
    at, place = parsed.places[bisect_right(parsed.places, (offset, 1 << 60)) - 1]
    return place + offset - at


def test_a_menu_is_no_text():
    """
    It leads to other pages, and what they are called must not be found here.
    """
    parsed = read("<nav><a href=/>Home</a><ul><li>Shop</ul></nav><h1>Tea</h1>Brew it.<nav>Imprint</nav>")

    assert parsed.text == "Tea\n\nBrew it.\n"
    assert_whole(parsed)


def test_blocks_of_a_page():
    """
    Headings, paragraphs, lists, tables and code come out as a reader sees them; what is hidden does not.
    """
    parsed = read(PAGE)

    assert parsed.title == "A & B"
    assert kinds(parsed) == [
        ("heading", "Hello big world"),
        ("paragraph", "First para <here> & there.\nline two"),
        ("paragraph", "Second para end"),
        ("list", "- one\n- two\n  - two a\n- three"),
        ("list", "1. x\n2. y"),
        ("table", "A | B\n1 |  | 3"),
        ("code", "code  here\n  x < 1"),
        ("paragraph", "after it"),
        ("heading", "Next"),
        ("paragraph", "a < b and c > d fin tail"),
    ]
    assert [(heading.title, heading.level) for heading in parsed.headings] == [
        ("Hello big world", 1),
        ("Next", 2),
    ]
    assert_whole(parsed)


@pytest.mark.parametrize(
    "word", ["Hello", "big", "world", "here", "there", "line", "three", "code", "fin", "tail"]
)
def test_words_know_where_they_stood(word):
    """
    The place of a word in the source is where the source has it.
    """
    parsed = read(PAGE)
    place = source_of(parsed, parsed.text.index(word))

    assert PAGE.startswith(word, place)


INLINE = [
    "<b>",
    "</b>",
    "<a href='x>y'>",
    "</a>",
    "<br>",
    "<!-- c -->",
    "&amp;",
    "&lt;",
    "&eacute;",
    "&#8364;",
    "&nbsp;",
    "&nosuch;",
    "&",
]
BLOCK = [
    "<p>",
    "</p>",
    "<div>",
    "</div>",
    "<h1>",
    "</h1>",
    "<h3>",
    "</h3>",
    "<ul>",
    "<li>",
    "</ul>",
    "<table>",
    "<tr>",
    "<td>",
    "</table>",
    "<pre>",
    "</pre>",
    "<hr>",
    "<dl>",
    "<dt>",
    "<dd>",
    "</dl>",
    "<blockquote>",
    "</blockquote>",
]
HIDING = [
    "<div hidden>",
    "<span style='display:none'>",
    "</span>",
    "<script>",
    "</script>",
    "<template>",
    "</template>",
    "<title>",
    "</title>",
    "<svg>",
    "</svg>",
]
BROKEN = ["<", "</", "<!--", '<a b="', "<!", "&#", "<td", "'", '"', ">", "</table", "<li x=>"]


@given(st.lists(st.one_of(st.sampled_from(INLINE + BLOCK), st.text("abc \n\té€", max_size=8))))
def test_letters_stand_at_their_places(pieces):
    """
    Every letter of the text is, in the source, the letter at its place, or one that an entity tells.
    """
    source = "".join(pieces)
    parsed = read(source)

    assert_whole(parsed)
    for offset, sign in enumerate(parsed.text):
        if sign in "abc":
            assert source[source_of(parsed, offset)] == sign
        elif sign in "é€":
            assert source[source_of(parsed, offset)] in {sign, "&"}


@given(st.lists(st.one_of(st.sampled_from(INLINE + BLOCK), st.text("abc \n", max_size=8))))
def test_no_letter_is_lost_or_doubled(pieces):
    """
    With nothing hidden, the letters of the text are those between the tags, in order.
    """
    parsed = read("".join(pieces))
    said = [sign for piece in pieces if not piece.startswith(("<", "&")) for sign in piece if sign in "abc"]
    unescaped = parsed.text.replace("&nosuch;", "")

    assert [sign for sign in unescaped if sign in "abc"] == said


@given(st.lists(st.one_of(st.sampled_from(INLINE + BLOCK + HIDING + BROKEN), st.text(max_size=8))))
def test_any_markup_is_read(pieces):
    """
    However broken the markup, a whole document comes out.
    """
    assert_whole(read(cleaned("".join(pieces))))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p hidden>no<p>yes", "yes\n"),
        ("<ul><li hidden>no<li>yes</ul>", "- yes\n"),
        ("<div>a<span hidden>no</div>b", "a\n\nb\n"),
        ("<p>a<script>no", "a\n"),
        ("<p>a<title>b", "ab\n"),
        ("<p>a<!-- b", "a\n"),
        ("<p>a <b", "a <b\n"),
        ('<p title="oops>text</p><p>more', "text\n\nmore\n"),
        ("<h1>One<h2>Two</h1>x", "One\n\nTwo\n\nx\n"),
        ("<table><tr><td>in</div></td><td>b</table>", "in | b\n"),
        ("<div><table><tr><td>in</div><td>b</table>c</div>", "in | b\n\nc\n"),
        ("<table><tr><td>side<td><table><tr><td>1<td>2</table><p>text</table>", "side\n\n1 | 2\n\ntext\n"),
        ("<p>&#0;&#xD800;&notit;&#99999999999;", "\ufffd\ufffd¬it;\ufffd\n"),
        ("<textarea>a <b></textarea>", "a <b>\n"),
        ("<P>up</P><BR/>per", "up\n\nper\n"),
        ("<p>a<wbr>b<img alt=c>d", "abd\n"),
    ],
)
def test_what_browsers_make_of_it(source, text):
    """
    End tags left out, stray ones, and what never ends mean what they mean in a browser.
    """
    assert read(source).text == text


@pytest.mark.parametrize(
    "hostile",
    [
        "<a " * 100_000,
        '<a b=">" ' * 100_000,
        "<a b='" * 100_000 + ">",
        "<!--" * 100_000 + ">",
        "<" * 100_000 + ">",
        "<![CDATA[" * 100_000 + ">",
        "<title>" * 50_000,
        "<noscript>a" * 50_000,
        "<b>" * 100_000,
        "<span hidden>" * 100_000,
        "<p>" * 100_000,
        "<ul><li>" * 400 + "<li>" * 50_000,
        "<div>" * 900 + "</section>" * 50_000,
        "&" * 100_000,
        "&#" + "9" * 100_000,
        "<a" + " b" * 100_000 + ">",
        "<a b" + " " * 100_000 + ">",
        "<table>" + "<td>" * 50_000,
        " \n" * 100_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_html_takes_no_longer_than_other(hostile):
    """
    Openings that never close are read like any text; the test's time limit would notice if not.
    """
    assert_whole(read(hostile))


def test_deep_nesting_is_refused():
    """
    A page a hundred thousand elements deep is refused with the limit's value, and takes no stack.
    """
    with pytest.raises(DocumentUnreadable, match="1,000 elements deep"):
        read("<div>" * 100_000)


def test_a_heading_that_never_ends_is_a_paragraph():
    """
    What is far too long for a heading does not become a title.
    """
    parsed = read("<h1>" + "word " * 1_000)

    assert parsed.headings == ()
    assert_whole(parsed)


def test_reading_stops_when_time_is_up():
    """
    A page that takes too long is given up while it is read.
    """
    limits = ParseLimits(seconds=0)
    ticks = iter(range(1_000_000))

    with pytest.raises(DocumentUnreadable, match="seconds"):
        parse_html("<b>a</b>" * 5_000, limits, ParseBudget(limits, clock=lambda: next(ticks)))
