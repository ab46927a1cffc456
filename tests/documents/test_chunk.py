"""Where a document is cut: pieces tile the text, keep what belongs together, and are never too long."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memplane.documents.chunk import CHARS_MAX, SIZES, chunks_of
from memplane.documents.parsed import BlockKind, DocumentBlock, ParsedDocument, ParsedSection

PARTS = st.lists(
    st.tuples(
        st.sampled_from(list(BlockKind)),
        st.one_of(
            st.text(min_size=1, max_size=300),
            st.lists(st.sampled_from(["word", "Then.", "\n", "Dr.", "…", "第一章。", "| a | b |", "x" * 700]))
            .map(" ".join)
            .filter(bool),
            st.integers(1, 6_000).map("y".__mul__),
            st.integers(1, 600).map("A sentence of six short words. ".__mul__),
        ),
    ),
    max_size=12,
)


def document(*blocks, sections=()):
    """Blocks as they are, one after the other; `sections` are the blocks that open one."""
    text, found, starts = "", [], {0}
    for place, (kind, piece) in enumerate(blocks):
        if place in sections:
            starts.add(len(text))
        found.append(DocumentBlock(len(text), len(text) + len(piece), BlockKind(kind)))
        text += piece
    borders = [*sorted(starts), len(text)]
    parts = [ParsedSection(a, b, "", 0, ()) for a, b in pairwise(borders) if a < b]
    return ParsedDocument(text=text, blocks=tuple(found)), parts


def texts(*blocks, sections=()):
    parsed, parts = document(*blocks, sections=sections)
    return [parsed.text[piece.start : piece.end] for piece in chunks_of(parsed, parts)]


def sentences(count):
    return " ".join(f"This is sentence number {place} of them." for place in range(count))


@given(PARTS, st.sets(st.integers(0, 11)))
def test_pieces_tile_the_text_inside_their_sections(blocks, opening):
    """Nothing is left out or told twice, no piece is empty or too long, and each lies in the section it names."""
    parsed, parts = document(*blocks, sections=opening)
    pieces = chunks_of(parsed, parts)

    assert "".join(parsed.text[piece.start : piece.end] for piece in pieces) == parsed.text
    assert all(0 < piece.end - piece.start <= CHARS_MAX for piece in pieces)
    assert all(
        parts[piece.section].start <= piece.start and piece.end <= parts[piece.section].end
        for piece in pieces
    )


def test_prose_is_cut_between_sentences():
    """Every piece of a long paragraph begins with a sentence, and none holds more words than one may."""
    pieces = texts(("paragraph", sentences(100)))

    assert len(pieces) > 3
    assert all(piece.startswith("This is sentence") and piece.strip().endswith("them.") for piece in pieces)
    assert all(len(piece.split()) <= SIZES.most for piece in pieces[:-1])


def test_a_paragraph_closes_a_piece_that_is_long_enough():
    """Paragraphs stay whole where they have about the right size."""
    paragraph = sentences(SIZES.enough // 7 + 1)

    assert texts(("paragraph", paragraph), ("break", "\n\n"), ("paragraph", paragraph)) == [
        paragraph,
        "\n\n" + paragraph,
    ]


def test_a_table_a_list_and_code_stay_whole():
    """What fits is not parted, however much of it there is already; what does not is parted between its lines."""
    table = "".join(f"| row {place} | value |\n" for place in range(20))
    assert SIZES.most < len(table.split()) <= SIZES.whole
    for kind in ("table", "list", "code"):
        assert table in texts(("paragraph", sentences(8)), ("break", "\n\n"), (kind, table))[-1]

    assert all(piece.startswith("| row") for piece in texts(("table", table * 10)))


def test_a_heading_goes_with_what_follows():
    """A heading, and a line that ends with a colon, are never the last thing in a piece that is full."""
    long = "These are the steps " * 10
    for kind, line in (("heading", f"## {long}\n"), ("paragraph", f"{long}:\n")):
        pieces = texts(("paragraph", sentences(8)), (kind, line), ("paragraph", sentences(12)))

        assert pieces[0] == sentences(8)
        assert pieces[1].startswith(line + "This is")


def test_few_words_do_not_stand_alone():
    """What is left over at a section's end goes with the piece before it; empty lines are no piece."""
    paragraph = sentences(10)

    assert texts(("paragraph", paragraph), ("break", "\n\n"), ("paragraph", "The end.")) == [
        paragraph + "\n\nThe end."
    ]
    assert texts(("break", "\n\n"), ("paragraph", paragraph), ("break", "\n\n")) == [
        "\n\n" + paragraph + "\n\n"
    ]


def test_a_dot_in_an_abbreviation_ends_no_sentence():
    """`Dr. Smith` is not parted, and a sentence is one although it has no space between its words."""
    pieces = texts(("paragraph", "We met Dr. Smith and J. Doe of the U.S. Navy at No. 5. " * 40))
    assert all(piece.startswith("We met") for piece in pieces)

    unspaced = "".join(f"これは{place}番目の文です。" for place in range(300))
    assert all(re.fullmatch(r"(これは\d+番目の文です。)+", piece) for piece in texts(("paragraph", unspaced)))


def test_what_never_ends_is_cut():
    """Between words where there are words; and the cost is that of its length, also for a wall of dots."""
    assert all(piece.startswith("word ") for piece in texts(("paragraph", "word " * 5_000)))
    assert all(
        len(piece) <= CHARS_MAX for piece in texts(("code", "x" * 1_000_000), ("paragraph", "." * 1_000_000))
    )


def test_an_empty_text_has_no_pieces():
    """Nothing is cut into nothing."""
    assert chunks_of(ParsedDocument(text=""), []) == []
