"""Documents made for tests: real PDF and DOCX files, and what must hold of every document that was read."""

import io
import zipfile

import docx
from fpdf import FPDF

from memplane.documents.chunk import sections_of
from memplane.documents.parsed import BlockKind

WORDS = "The sea is boiling hot today, and whether pigs have wings is still an open question."


def make_pdf(pages=3, *, outline=True, password=None):
    """Each page has a large line, `Chapter N`, and three paragraphs."""
    pdf = FPDF()
    pdf.set_title("A Book")
    if password is not None:
        pdf.set_encryption(owner_password="owner", user_password=password)
    for number in range(1, pages + 1):
        pdf.add_page()
        pdf.set_font("Helvetica", size=20)
        if outline:
            pdf.start_section(f"Chapter {number}")
        pdf.cell(0, 12, f"Chapter {number}", new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", size=11)
        for paragraph in range(3):
            pdf.multi_cell(0, 6, f"{number}.{paragraph} {WORDS}", new_x="LMARGIN", new_y="NEXT")
    return bytes(pdf.output())


def make_docx():
    document = docx.Document()
    document.add_heading("The Book", 0)
    document.add_heading("Beginnings", 1)
    document.add_paragraph(WORDS)
    document.add_paragraph("first", style="List Bullet")
    document.add_paragraph("second", style="List Bullet")
    table = document.add_table(2, 3)
    for place, words in {(0, 0): "a", (0, 1): "b", (0, 2): "c", (1, 0): "1", (1, 2): "3"}.items():
        table.cell(*place).text = words
    document.add_heading("Details", 2)
    document.add_paragraph("The end.")
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def make_zip(parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def word_xml(body):
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<w:body>{body}</w:body></w:document>"
    )


def make_docx_of(body):
    """A DOCX with this body and nothing else."""
    return make_zip({"[Content_Types].xml": "<Types/>", "word/document.xml": word_xml(body)})


def kinds(parsed):
    """(kind, text) of every block that says something."""
    return [
        (block.kind.value, parsed.text[block.start : block.end].rstrip("\n"))
        for block in parsed.blocks
        if block.kind is not BlockKind.BREAK
    ]


def tiles(pieces, text):
    """Whether pieces stand one after the other, none of them empty, and are together the text."""
    ends = [0, *(piece.end for piece in pieces)]
    return (
        all(piece.start == end for piece, end in zip(pieces, ends, strict=False))
        and all(piece.start < piece.end for piece in pieces)
        and ends[-1] == len(text)
    )


def assert_whole(parsed):
    """What must hold of every document that was read."""
    text = parsed.text
    sections = sections_of(parsed)

    assert tiles(parsed.blocks, text)
    assert tiles(sections, text)
    assert text.encode("utf-8").decode("utf-8") == text
    assert "\0" not in text
    assert all(0 <= heading.start < heading.end <= len(text) for heading in parsed.headings)
    assert all(
        before.end <= after.start for before, after in zip(parsed.headings, parsed.headings[1:], strict=False)
    )
    heading_blocks = {(block.start, block.end) for block in parsed.blocks if block.kind is BlockKind.HEADING}
    assert {(heading.start, heading.end) for heading in parsed.headings} == heading_blocks
    assert sum(section.level > 0 for section in sections) == len(parsed.headings)
    assert list(parsed.places) == sorted(parsed.places)
    assert all(0 <= offset < len(text) for offset, _ in parsed.places)
