"""PDF and DOCX: pages, headings, lists and tables come out; bombs and loops do not get far."""

import re
import struct
import zlib
from contextlib import suppress
from itertools import count

import pytest
from fpdf import FPDF

from document_files import WORDS, assert_whole, kinds, make_docx, make_docx_of, make_pdf, make_zip, word_xml
from memplane.documents.media import DOCX, PDF
from memplane.documents.parse import parse
from memplane.documents.parsed import ParseBudget, ParseLimits
from memplane.documents.pdf import parse_pdf
from memplane.errors import DocumentUnreadable


def make_raw_pdf(objects, root=1):
    """A PDF of these objects, numbered from 1, with a table of where they are."""
    out, offsets = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Size %d/Root %d 0 R>>\nstartxref\n%d\n%%%%EOF"
        % (len(objects) + 1, table, len(objects) + 1, root, len(out))
    )


def stream(data, entries=b""):
    return b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(data), entries, data)


FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
SAYS_HELLO = b"BT /F1 12 Tf 72 700 Td (Hello) Tj ET"


def make_one_page(contents, page=b""):
    return make_raw_pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>%s>>"
            % page,
            contents,
            FONT,
        ]
    )


@pytest.mark.parametrize("outline", [True, False], ids=["by outline", "by size"])
def test_pages_and_headings_of_a_pdf(outline):
    """
    Headings come from the outline, or from the size of the letters; every page says where it begins.
    """
    parsed = parse(make_pdf(3, outline=outline), PDF)

    assert [(heading.title, heading.level) for heading in parsed.headings] == [
        ("Chapter 1", 1),
        ("Chapter 2", 1),
        ("Chapter 3", 1),
    ]
    assert [parsed.text[heading.start : heading.end].strip() for heading in parsed.headings] == [
        "Chapter 1",
        "Chapter 2",
        "Chapter 3",
    ]
    assert [(parsed.text[offset:].split("\n")[0], page) for offset, page in parsed.places] == [
        ("Chapter 1", 1),
        ("Chapter 2", 2),
        ("Chapter 3", 3),
    ]
    assert parsed.title == "A Book"
    assert " ".join(parsed.text.split()).count(WORDS) == 9
    assert_whole(parsed)


def test_headings_of_a_pdf_may_be_every_second_line():
    """
    A contract has many short sections: what counts is how much of the text is large, not how many lines.
    """
    pdf = FPDF()
    pdf.add_page()
    for number in range(1, 6):
        pdf.set_font("Helvetica", size=16)
        pdf.cell(0, 10, f"{number} Clause", new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", size=11)
        pdf.cell(0, 6, WORDS[:60], new_x="LMARGIN", new_y="NEXT")
    titles = [heading.title for heading in parse(bytes(pdf.output()), PDF).headings]

    assert titles == [f"{number} Clause" for number in range(1, 6)]


def test_a_pdf_that_anyone_may_open_is_read():
    """
    Encryption with an empty password keeps nobody out, and so not us.
    """
    assert "Chapter 1" in parse(make_pdf(1, password=""), PDF).text


def test_a_locked_pdf_is_refused():
    """
    A password keeps us out, and the message says what to do.
    """
    with pytest.raises(DocumentUnreadable, match="locked with a password"):
        parse(make_pdf(1, password="secret"), PDF)


def test_a_pdf_of_pictures_is_refused():
    """
    A scan without text is not taken for an empty document.
    """
    with pytest.raises(DocumentUnreadable, match="text recognition"):
        parse(make_one_page(stream(b"0 0 m 10 10 l S")), PDF)


def test_a_pdf_made_by_hand():
    """
    The files that the tests below break are good before they do.
    """
    assert parse(make_one_page(stream(SAYS_HELLO)), PDF).text == "Hello\n"


@pytest.mark.parametrize("honest", [True, False], ids=["declared", "undeclared"])
def test_too_many_pages_are_refused(honest):
    """
    Ten thousand pages are refused by number, also if the file declares fewer.
    """
    kids = b" ".join([b"3 0 R"] * 10_000)
    content = make_raw_pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count %d/Kids[%s]>>" % (10_000 if honest else 1, kids),
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
            stream(SAYS_HELLO),
            FONT,
        ]
    )

    with pytest.raises(DocumentUnreadable, match="2,000 is the limit" if honest else "unpacks|limit"):
        parse(content, PDF)


def test_a_stream_that_unpacks_to_very_much_is_refused():
    """
    A page of a few kilobytes that unpacks to a hundred megabytes is refused.
    """
    bomb = zlib.compress(b" " * 100_000_000, 9)

    with pytest.raises(DocumentUnreadable, match="unpacks"):
        parse(make_one_page(stream(bomb, b"/Filter/FlateDecode")), PDF)


def test_streams_packed_many_times_over_are_refused():
    """
    A bomb in a bomb is refused too.
    """
    bomb = zlib.compress(zlib.compress(zlib.compress(bytes(100_000_000), 9), 9), 9)

    with pytest.raises(DocumentUnreadable):
        parse(make_one_page(stream(bomb, b"/Filter[/FlateDecode/FlateDecode/FlateDecode]")), PDF)


LOOPS = {
    "pages in themselves": [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[2 0 R]>>"],
    "parents in a circle": [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]/Parent 3 0 R>>",
        b"<</Type/Pages/Count 1/Kids[2 0 R]/Parent 2 0 R>>",
    ],
    "an object that is itself": [b"<</Type/Catalog/Pages 2 0 R>>", b"2 0 R"],
    "contents of contents": [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/Contents[4 0 R]>>",
        b"[4 0 R]",
    ],
    "an outline in a circle": [
        b"<</Type/Catalog/Pages 2 0 R/Outlines 4 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 6 0 R/Resources<</Font<</F1 7 0 R>>>>>>",
        b"<</First 5 0 R/Last 5 0 R>>",
        b"<</Title(Round)/Next 5 0 R/First 5 0 R/Dest[3 0 R/Fit]>>",
        stream(SAYS_HELLO),
        FONT,
    ],
    "a form that shows itself": [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>>>>>",
        stream(b"/X Do"),
        stream(b"/X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 1 1]/Resources<</XObject<</X 5 0 R>>>>"),
    ],
    "a length that is the stream": [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>",
        b"<</Length 4 0 R>>\nstream\nx\nendstream",
    ],
}


@pytest.mark.parametrize("objects", LOOPS.values(), ids=LOOPS)
def test_loops_in_a_pdf_end(objects):
    """
    Objects that lead back to themselves are read once or refused.
    """
    with suppress(DocumentUnreadable):
        assert_whole(parse(make_raw_pdf(objects), PDF))


def test_deep_arrays_in_a_pdf_end():
    """
    A page of a hundred thousand brackets is refused or read, and takes no stack with it.
    """
    with suppress(DocumentUnreadable):
        parse(make_one_page(stream(b"[" * 100_000), b"/X" + b"[" * 20_000 + b"]" * 20_000), PDF)


def test_reading_a_pdf_stops_when_time_is_up():
    """
    Time is looked at between pages.
    """
    with pytest.raises(DocumentUnreadable, match="0 seconds"):
        parse(make_pdf(2), PDF, limits=ParseLimits(seconds=0))


def test_reading_a_page_stops_when_time_is_up():
    """
    Within a page and its forms, too, from where pypdf lets no usual exception out.
    """
    form = stream(b"q Q " * 100, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F1 5 0 R>>>>")
    page = b"/Resources<</Font<</F1 5 0 R>>/XObject<</X 6 0 R>>>>"
    content = make_raw_pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R%s>>" % page,
            stream(SAYS_HELLO + b" /X Do"),
            FONT,
            form,
        ]
    )
    limits, ticks = ParseLimits(seconds=50), count()

    assert "Hello" in parse(content, PDF).text
    with pytest.raises(DocumentUnreadable, match="50 seconds"):
        parse_pdf(content, limits, ParseBudget(limits, clock=lambda: next(ticks)))


@pytest.mark.parametrize("form", [False, True], ids=["on the page", "in a form"])
def test_a_font_under_many_names_is_refused(form):
    """
    Each name is read by itself, and a line of a font may stand for all signs there are.
    """
    names = b"/Font<<%s>>" % b"".join(b"/F%d 5 0 R" % number for number in range(60))
    few = b"/Font<</F1 5 0 R>>/XObject<</X 8 0 R>>"
    content = make_raw_pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<<%s>>>>"
            % (few if form else names),
            stream(SAYS_HELLO),
            b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[7 0 R]>>",
            stream(b"begincmap\n1 beginbfrange\n<0000> <FFFF> <0000>\nendbfrange\nendcmap"),
            b"<</Type/Font/Subtype/CIDFontType2/BaseFont/X/DW 1000>>",
            stream(
                b"/X Do",
                b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<<%s/XObject<</X 8 0 R>>>>" % names,
            ),
        ]
    )
    with pytest.raises(DocumentUnreadable, match="signs; print it anew"):
        parse(content, PDF)


def test_blocks_of_a_docx():
    """
    Headings by style, lists, rows of tables: as Word shows them.
    """
    parsed = parse(make_docx(), DOCX)

    assert parsed.title == "The Book"
    assert kinds(parsed) == [
        ("heading", "The Book"),
        ("heading", "Beginnings"),
        ("paragraph", WORDS),
        ("list", "- first\n- second"),
        ("table", "a | b | c\n1 |  | 3"),
        ("heading", "Details"),
        ("paragraph", "The end."),
    ]
    assert [(heading.title, heading.level) for heading in parsed.headings] == [
        ("The Book", 1),
        ("Beginnings", 1),
        ("Details", 2),
    ]
    assert_whole(parsed)


SEEN = "<w:rPr><w:vanish w:val='0'/></w:rPr>"


def run(words, properties=""):
    return f"<w:r>{properties}<w:t>{words}</w:t></w:r>"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (f"<w:p>{run('a')}<w:r><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t></w:r></w:p>", "a\tb\nc\n"),
        (f"<w:p>{run('seen')}{run('not', '<w:rPr><w:vanish/></w:rPr>')}</w:p>", "seen\n"),
        (f"<w:p>{run('a', SEEN)}</w:p>", "a\n"),
        (f"<w:p><w:del>{run('gone')}</w:del><w:ins>{run('new')}</w:ins></w:p>", "new\n"),
        (
            (
                f"<w:p><mc:AlternateContent><mc:Choice>{run('once')}</mc:Choice>"
                f"<mc:Fallback>{run('twice')}</mc:Fallback></mc:AlternateContent></w:p>"
            ),
            "once\n",
        ),
        (f"<w:p>{run('out')}<w:txbxContent><w:p>{run('box')}</w:p></w:txbxContent></w:p>", "box\n\nout\n"),
        (f"<w:p><w:pPr><w:outlineLvl w:val='1'/></w:pPr>{run('T')}</w:p>", "T\n"),
        (
            (
                f"<w:tbl><w:tr><w:tc><w:p>{run('a')}</w:p><w:tbl><w:tr><w:tc><w:p>{run('b')}</w:p></w:tc></w:tr></w:tbl>"
                f"</w:tc><w:tc><w:p>{run('c')}</w:p></w:tc></w:tr></w:tbl>"
            ),
            "a b | c\n",
        ),
        (
            (
                f"<w:tbl><w:tr><w:tc><w:p>{run('a')}</w:p></w:tc></w:tr></w:tbl>"
                f"<w:tbl><w:tr><w:tc><w:p>{run('b')}</w:p></w:tc></w:tr></w:tbl>"
            ),
            "a\n\nb\n",
        ),
        (f"<w:p>{run('&lt;a&gt; &amp; &#233;')}</w:p>", "<a> & é\n"),
    ],
)
def test_what_word_means(body, text):
    """
    Tabs, breaks, hidden and deleted text, text boxes and tables in tables come out as they are seen.
    """
    parsed = parse(make_docx_of(body), DOCX)

    assert parsed.text == text
    assert_whole(parsed)


def test_notes_follow_the_text():
    """
    Footnotes are words of the document, and come at its end.
    """
    notes = word_xml(f"<w:footnote><w:p>{run('a note')}</w:p></w:footnote>")
    content = make_zip(
        {"word/document.xml": word_xml(f"<w:p>{run('text')}</w:p>"), "word/footnotes.xml": notes}
    )

    assert parse(content, DOCX).text == "text\n\na note\n"


def test_a_zip_bomb_is_refused():
    """
    What unpacks to far more than it is, is refused before anything is unpacked.
    """
    content = make_zip({"word/document.xml": word_xml(" " * 60_000_000)})

    with pytest.raises(DocumentUnreadable, match="unpacks to more than"):
        parse(content, DOCX)


def test_a_zip_bomb_that_lies_about_its_size_is_refused():
    """
    A part that declares less than it holds is not read beyond what it declares.
    """
    content = make_zip({"word/document.xml": word_xml(" " * 60_000_000)})
    size = struct.pack("<L", len(word_xml(" " * 60_000_000)))
    lie = re.sub(re.escape(size), struct.pack("<L", 1_000), content)

    with pytest.raises(DocumentUnreadable, match="damaged"):
        parse(lie, DOCX)


def test_many_parts_are_refused():
    """
    An archive of very many parts is no document.
    """
    parts = {f"word/{number}.xml": "" for number in range(10_001)}

    with pytest.raises(DocumentUnreadable, match="10,000 parts"):
        parse(make_zip(parts), DOCX)


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>',
        '<!DOCTYPE x [<!ENTITY c SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x SYSTEM "http://example.org/x.dtd">',
    ],
    ids=["billion laughs", "a file", "an address"],
)
def test_entities_are_refused(declaration):
    """
    A document type is refused before any entity is told or fetched.
    """
    xml = word_xml(f"<w:p>{run('&c;')}</w:p>").replace("?>", f"?>{declaration}", 1)

    with pytest.raises(DocumentUnreadable, match="document type"):
        parse(make_zip({"word/document.xml": xml}), DOCX)


def test_deep_xml_is_refused():
    """
    Elements a hundred thousand deep are refused with the limit's value.
    """
    with pytest.raises(DocumentUnreadable, match="256 elements deep"):
        parse(make_docx_of("<w:p>" * 100_000), DOCX)


def test_styles_based_on_each_other_end():
    """
    Styles in a circle give what can be had of them.
    """
    styles = word_xml(
        '<w:style w:styleId="A"><w:basedOn w:val="B"/></w:style>'
        '<w:style w:styleId="B"><w:basedOn w:val="A"/><w:name w:val="heading 3"/></w:style>'
    )
    body = word_xml(f'<w:p><w:pPr><w:pStyle w:val="A"/></w:pPr>{run("T")}</w:p>')
    parsed = parse(make_zip({"word/document.xml": body, "word/styles.xml": styles}), DOCX)

    assert [(heading.title, heading.level) for heading in parsed.headings] == [("T", 3)]


def test_a_line_of_very_many_pieces_takes_room_once():
    """
    A page that says one line letter by letter is read like any other.
    """
    page = stream(zlib.compress(b"BT /F1 12 Tf (a) Tj ET " * 20_000), b"/Filter/FlateDecode")

    assert parse(make_one_page(page), PDF).text == "a" * 20_000 + "\n"
