"""DOCX as programs really write it, and as nobody but an attacker does."""

import io
import zipfile
from contextlib import suppress

import docx
import pytest

from document_files import assert_whole, kinds, make_docx, make_docx_of, make_zip, word_xml
from memplane.documents.media import DOCX
from memplane.documents.parse import parse
from memplane.documents.parsed import ParseLimits
from memplane.errors import DocumentUnreadable

WORD = "word/document.xml"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def paragraph(words, properties=""):
    return f"<w:p>{properties}<w:r><w:t>{words}</w:t></w:r></w:p>"


def controlled(content):
    """The same in a content control, as forms and citations are."""
    return f'<w:sdt><w:sdtPr><w:alias w:val="name"/></w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>'


def table(*rows):
    return f"<w:tbl><w:tblPr/><w:tblGrid/>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"


def cell(words, properties=""):
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(words)}</w:tc>"


def related(*relations):
    """A part of relationships: kind and target of each."""
    inner = "".join(
        f'<Relationship Id="r{number}" Type="{RELATIONS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(relations)
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{inner}</Relationships>'


def saved(document):
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (controlled(paragraph("a") + controlled(paragraph("b"))), "a\n\nb\n"),
        (f"<w:p>{controlled('<w:r><w:t>in</w:t></w:r>')}<w:r><w:t> out</w:t></w:r></w:p>", "in out\n"),
        (f"<w:ins>{paragraph('a')}</w:ins><w:customXml>{paragraph('b')}</w:customXml>", "a\n\nb\n"),
        (f"{paragraph('a')}<w:del>{paragraph('b')}</w:del><w:moveFrom>{paragraph('c')}</w:moveFrom>", "a\n"),
        (
            "<w:p><w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink><w:r><w:t>.</w:t></w:r></w:p>",
            "link.\n",
        ),
        ("<w:p><w:smartTag><w:ins><w:r><w:t>new</w:t></w:r></w:ins></w:smartTag></w:p>", "new\n"),
        ('<w:p><w:r><w:t>a</w:t><w:br w:type="page"/><w:t>b</w:t></w:r></w:p>', "a\nb\n"),
        ("<w:p><w:r><w:noBreakHyphen/><w:t>3</w:t></w:r></w:p>", "-3\n"),
        ("<w:p><w:r><w:t>a<!-- c -->b</w:t><!-- d --><?e f?></w:r></w:p>", "ab\n"),
        (
            "<w:p><w:r><w:instrText>PAGE</w:instrText><w:delText>gone</w:delText><w:t>a</w:t></w:r></w:p>",
            "a\n",
        ),
        (
            paragraph(
                "a", '<w:pPr><w:pPrChange><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:pPrChange></w:pPr>'
            ),
            "a\n",
        ),
    ],
)
def test_nothing_that_word_shows_is_lost(body, text):
    """
    Content controls, insertions, links and breaks come out, in place; what is deleted or only a field's code does not.
    """
    parsed = parse(make_docx_of(body), DOCX)

    assert parsed.text == text
    assert not parsed.headings
    assert_whole(parsed)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            table(cell("wide", '<w:gridSpan w:val="2"/>') + cell("c"), cell("1") + cell("2")),
            "wide | c\n1 | 2\n",
        ),
        (
            table(
                cell("tall", '<w:vMerge w:val="restart"/>') + cell("b"),
                f"<w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc>{cell('d')}",
            ),
            "tall | b\n | d\n",
        ),
        (table(cell("a", '<w:gridSpan w:val="2147483647"/>')), "a\n"),
        (table(controlled(cell("a")) + cell("b")), "a | b\n"),
        (f"<w:tbl>{controlled('<w:tr>' + cell('a') + '</w:tr>')}<w:tr>{cell('b')}</w:tr></w:tbl>", "a\nb\n"),
        (table(cell("a") + f"<w:tc>{controlled(table(cell('b') + cell('c')))}<w:p/></w:tc>"), "a | b c\n"),
        (table(*["<w:tc><w:tcPr><w:vMerge/></w:tcPr><w:p/></w:tc>"] * 5_000, cell("end")), "end\n"),
    ],
    ids=["across", "down", "beyond", "controlled cell", "controlled row", "nested", "without beginning"],
)
def test_cells_stand_once(body, text):
    """
    A merged cell stands where it begins, whatever it says about its size; tables in cells are the cell's words.
    """
    parsed = parse(make_docx_of(body), DOCX)

    assert kinds(parsed) == [("table", text.rstrip("\n"))]
    assert_whole(parsed)


def test_many_tables_among_many_paragraphs():
    """
    The way through a body is as long as the body.
    """
    count = 2_000
    parsed = parse(make_docx_of((paragraph("p") * count) + table(cell("t")) * count), DOCX)

    assert parsed.text == "\n".join(["p\n"] * count + ["t\n"] * count)


@pytest.mark.parametrize(
    "styles",
    [
        '<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>',
        (
            '<w:style w:type="paragraph" w:styleId="H"><w:name w:val="heading 2"/></w:style>'
            '<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="Überschrift 2"/><w:basedOn w:val="H"/>'
            "</w:style>"
        ),
        (
            '<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="見出し"/>'
            '<w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>'
        ),
    ],
    ids=["by name", "by what it is based on", "by outline level"],
)
def test_headings_in_any_language(styles):
    """
    A heading is told by what its style is, not by what a Word in some language calls it.
    """
    body = word_xml(paragraph("T", '<w:pPr><w:pStyle w:val="berschrift2"/></w:pPr>'))
    parsed = parse(make_zip({WORD: body, "word/styles.xml": word_xml(styles)}), DOCX)

    assert [(heading.title, heading.level) for heading in parsed.headings] == [("T", 2)]


def test_lists_by_style_and_by_number():
    """
    Items are one block, with their depth; a number of 0 takes a paragraph out of its style's list.
    """
    document = docx.Document()
    document.add_paragraph("one", style="List Number")
    deeper = document.add_paragraph("two")
    numbering = deeper._p.get_or_add_pPr().get_or_add_numPr()
    numbering.get_or_add_ilvl().val, numbering.get_or_add_numId().val = 1, 1
    plain = document.add_paragraph("three", style="List Number")
    plain._p.get_or_add_pPr().get_or_add_numPr().get_or_add_numId().val = 0

    assert kinds(parse(saved(document), DOCX)) == [("list", "- one\n  - two"), ("paragraph", "three")]


def test_the_title_of_the_properties():
    """
    The properties name a document that does not name itself, and nothing is made up where there are none.
    """
    document = docx.Document()
    document.core_properties.title = "From \n the properties"
    document.add_paragraph("text")
    untitled = saved(document)
    document.add_paragraph("Written", style="Title")

    assert parse(untitled, DOCX).title == "From the properties"
    assert parse(saved(document), DOCX).title == "Written"
    assert parse(make_docx_of(paragraph("text")), DOCX).title == ""


def test_parts_are_where_the_package_says():
    """
    The body, the styles and the notes may have any names; links that lead nowhere or outside do no harm.
    """
    content = make_zip(
        {
            "_rels/.rels": related(("officeDocument", "/content/body7.xml"), ("image", "missing.png")),
            "content/body7.xml": word_xml(paragraph("T", '<w:pPr><w:pStyle w:val="A"/></w:pPr>')),
            "content/_rels/body7.xml.rels": related(
                ("styles", "../s.xml"),
                ("footnotes", "notes.xml"),
                ("image", "NULL"),
                ("x", "http://example.org/"),
            ),
            "s.xml": word_xml('<w:style w:styleId="A"><w:name w:val="heading 4"/></w:style>'),
            "content/notes.xml": word_xml(paragraph("a note")),
        }
    )
    parsed = parse(content, DOCX)

    assert parsed.text == "T\n\na note\n"
    assert [heading.level for heading in parsed.headings] == [4]


def changed(content, change):
    """The same file with each part as `change` gives it back from its name and bytes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return make_zip({name: change(name, archive.read(name)) for name in archive.namelist()})


def test_other_kinds_of_word_documents():
    """
    Documents with macros and those of the strict edition of the standard say the same as others.
    """
    macros = changed(
        make_docx(),
        lambda _, part: part.replace(
            b"openxmlformats-officedocument.wordprocessingml.document.main",
            b"ms-word.document.macroEnabled.main",
        ),
    )
    strict = changed(
        make_docx(),
        lambda _, part: part.replace(
            b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
            b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        ).replace(RELATIONS.encode(), b"http://purl.oclc.org/ooxml/officeDocument/relationships"),
    )

    assert parse(macros, DOCX) == parse(make_docx(), DOCX)
    assert parse(strict, DOCX) == parse(make_docx(), DOCX)


@pytest.mark.parametrize(
    "name",
    [
        "word/styles.xml",
        "word/footnotes.xml",
        "docProps/core.xml",
        "_rels/.rels",
        "word/_rels/document.xml.rels",
    ],
)
def test_entities_are_refused_in_every_part(name):
    """
    No part that is read may declare a document type, in whichever encoding.
    """
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><x>&b;</x>'
    for part in (laughs.encode(), laughs.encode("utf-16")):
        with pytest.raises(DocumentUnreadable, match="document type"):
            parse(make_zip({WORD: word_xml(paragraph("a")), name: part}), DOCX)


def test_depth():
    """
    What the limit allows is read, whatever it is; one element more is refused, in the notes too.
    """
    deep = "<w:p>" * 252 + "<w:r><w:t>a</w:t></w:r>" + "</w:p>" * 252
    assert parse(make_docx_of(deep), DOCX).text == "a\n"
    for parts in (
        {WORD: word_xml(f"<w:p>{deep}</w:p>")},
        {WORD: word_xml(paragraph("a")), "word/footnotes.xml": word_xml(f"<w:p>{deep}</w:p>")},
    ):
        with pytest.raises(DocumentUnreadable, match="256 elements deep"):
            parse(make_zip(parts), DOCX)
    with pytest.raises(DocumentUnreadable, match="100 elements deep"):
        parse(make_docx_of(deep), DOCX, limits=ParseLimits(depth=100))


@pytest.mark.parametrize(
    ("body", "limits", "message"),
    [
        ("<w:p/>" * 1_000, {"marks": 1_000}, "1,000 tags and attributes"),
        (
            "<w:p " + " ".join(f"a{number}=''" for number in range(1_000)) + "/>",
            {"marks": 1_000},
            "attributes",
        ),
        (paragraph("a" * 10_000), {"chars": 1_000}, "unpacks"),
        (paragraph("a"), {"seconds": 0}, "0 seconds"),
        (paragraph("a" * 11_000_000), {}, "single run"),
    ],
)
def test_limits_are_named(body, limits, message):
    """
    A document that is too much is refused before it has been read, and the limit is told.
    """
    with pytest.raises(DocumentUnreadable, match=message):
        parse(make_docx_of(body), DOCX, limits=ParseLimits(**limits))


def test_a_locked_archive_is_refused():
    """
    Encrypted parts are told before they are opened.
    """
    content = bytearray(make_docx_of(paragraph("a")))
    content[content.index(b"PK\x01\x02") + 8] |= 1

    with pytest.raises(DocumentUnreadable, match="locked with a password"):
        parse(bytes(content), DOCX)


def test_truncated_files_are_refused():
    """
    Whatever is missing at its end, a file that broke off is told to be damaged.
    """
    content = make_docx()
    for length in range(0, len(content), len(content) // 60):
        with pytest.raises(DocumentUnreadable, match="damaged"):
            parse(content[:length], DOCX)


def test_xml_that_breaks_off_is_refused():
    """
    A good archive of a broken document is damaged too, wherever the document breaks off.
    """
    whole = word_xml(paragraph("a")).encode()
    for length in range(len(whole)):
        with pytest.raises(DocumentUnreadable, match="damaged"):
            parse(make_zip({WORD: whole[:length]}), DOCX)


@pytest.mark.parametrize(
    "name", ["word/styles.xml", "word/footnotes.xml", "docProps/core.xml", "_rels/.rels"]
)
@pytest.mark.parametrize("part", [b"", b"<x/>", b"words", b"<w:p>", bytes(100), b'<x xmlns="y" Target=""/>'])
def test_any_other_part_may_be_anything(name, part):
    """
    What is in the smaller parts is read or refused, and nothing of the library's comes through.
    """
    with suppress(DocumentUnreadable):
        assert parse(make_zip({WORD: word_xml(paragraph("a")), name: part}), DOCX).text == "a\n"
