"""Reading any upload: which format it is, how bytes become text, and that nothing but our own error comes out."""

import codecs
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from document_files import WORDS, assert_whole, make_docx, make_docx_of, make_pdf, make_zip
from memplane.documents.media import DOCX, HTML, MARKDOWN, MEDIA_TYPES, PDF, PLAIN, media_type_of
from memplane.documents.parse import parse
from memplane.documents.parsed import ParseLimits
from memplane.documents.text import decoded, is_text
from memplane.errors import DocumentUnreadable, InvalidRequest

PDF_FILE = make_pdf(2)
DOCX_FILE = make_docx()


@given(st.binary(), st.sampled_from(MEDIA_TYPES))
def test_any_bytes_are_read_or_refused(content, media_type):
    """
    Random bytes under any type give a whole document or `DocumentUnreadable`, never anything else.
    """
    with suppress(DocumentUnreadable):
        assert_whole(parse(content, media_type))


def mutations(file):
    """A file with some bytes changed, cut out, or doubled."""
    cut = st.tuples(st.integers(0, len(file) - 1), st.integers(0, 60), st.binary(max_size=8))
    return st.lists(cut, min_size=1, max_size=4).map(lambda cuts: mutated(file, cuts))


def mutated(file, cuts):
    for at, length, instead in cuts:
        file = file[:at] + instead + file[at + length :]
    return file


@given(mutations(PDF_FILE))
def test_damaged_pdfs_are_read_or_refused(content):
    """
    A real PDF with bytes changed gives a whole document or `DocumentUnreadable`.
    """
    with suppress(DocumentUnreadable):
        assert_whole(parse(content, PDF))


@given(mutations(DOCX_FILE))
def test_damaged_docx_files_are_read_or_refused(content):
    """
    A real DOCX with bytes changed gives a whole document or `DocumentUnreadable`.
    """
    with suppress(DocumentUnreadable):
        assert_whole(parse(content, DOCX))


@given(st.text(), st.sampled_from([PLAIN, MARKDOWN]))
def test_text_is_what_was_uploaded(text, media_type):
    """
    Text comes out as it went in, line endings and all, also by way of UTF-8 with and without a mark.
    """
    told = text.removeprefix("\ufeff").replace("\0", "\ufffd")
    if told.strip():
        assert parse(text, media_type).text == told
        assert decoded(text.encode()) == told
        assert decoded(codecs.BOM_UTF8 + told.encode()) == told


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks_name_the_encoding(encoding):
    """
    A text with a byte order mark is read as the mark says, and the mark is no part of it.
    """
    assert parse("Größe\r\n日本".encode(encoding), PLAIN).text == "Größe\r\n日本"


def test_other_encodings():
    """
    What is not UTF-8 is Windows' Western European, unless an HTML page says otherwise in words that mean something.
    """
    assert decoded("naïve – “quoted”".encode("cp1252")) == "naïve – “quoted”"
    assert "Привет" in decoded("<meta charset='windows-1251'>Привет".encode("cp1251"), html=True)
    assert "é" in decoded(b"<meta charset=rot13>\xe9", html=True)
    assert "é" in decoded(b"<meta charset=nonsense>\xe9", html=True)
    assert decoded(b"a\x00b \xed\xa0\x80") == "a\ufffdb í\xa0€"


def test_lone_surrogates_and_nul_are_replaced_in_place():
    """
    What no store can hold becomes the replacement character, one for one, so that offsets stay.
    """
    assert parse("a\ud800b\0c", PLAIN).text == "a\ufffdb\ufffdc"


@pytest.mark.parametrize(
    ("content", "name", "media_type"),
    [
        (PDF_FILE, "", PDF),
        (b"junk\n" + PDF_FILE, "x.txt", PDF),
        (DOCX_FILE, "", DOCX),
        ("Just words.", "", PLAIN),
        ("Just words.", "notes.MD", MARKDOWN),
        ("# Heading\n\ntext", "", MARKDOWN),
        ("# Heading\n\ntext", "notes.txt", MARKDOWN),
        ("# comment\n\nx = 1", "script.py", PLAIN),
        ("<html>", "data.csv", PLAIN),
        ("```\ncode\n```", "", MARKDOWN),
        ("See [this](http://example.org) and **that**.", "", MARKDOWN),
        ("- one\n- two\n", "", PLAIN),
        ("#hashtag and # sign - a dash", "", PLAIN),
        ("<!DOCTYPE html><p>x", "", HTML),
        ("\n<!-- c --><html><p>x", "", HTML),
        ("<p>x", "page.htm", HTML),
        ("<p>x", "", PLAIN),
        (b"plain \xe9", "", PLAIN),
        ("# Über\n".encode("utf-16"), "", MARKDOWN),
    ],
)
def test_formats_are_told_by_looking(content, name, media_type):
    """
    Without a type the first bytes, the name's ending and the words decide, in this order.
    """
    assert media_type_of(content, name=name) == media_type


@pytest.mark.parametrize(
    ("given_type", "media_type"),
    [
        ("text/markdown; charset=utf-8", MARKDOWN),
        ("TEXT/HTML", HTML),
        ("application/xhtml+xml", HTML),
        ("text/csv", PLAIN),
        ("application/octet-stream", PLAIN),
        ("", PLAIN),
    ],
)
def test_what_the_sender_says_counts(given_type, media_type):
    """
    A type that is known is believed; one that says nothing is as good as none.
    """
    assert media_type_of("words", given=given_type) == media_type


@pytest.mark.parametrize(
    ("content", "given_type", "message"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(100), None, "no format that is known"),
        (b"x", "image/png", "'image/png' cannot be read"),
        (make_zip({"a.txt": "x"}), None, "not a DOCX"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), None, "save it as DOCX"),
    ],
)
def test_other_formats_are_refused(content, given_type, message):
    """
    What cannot be read is refused in words that say what can.
    """
    with pytest.raises(DocumentUnreadable, match=message):
        media_type_of(content, given=given_type)


@pytest.mark.parametrize(
    ("content", "media_type", "message"),
    [
        (bytes(range(256)) * 4, PLAIN, "is no text"),
        (" \n\t", PLAIN, "no text in it"),
        ("<script>1</script>", HTML, "no text in it"),
        (b"", DOCX, "no zip archive"),
        (b"", PDF, "damaged"),
        ("text", PDF, "as bytes"),
        (make_docx_of(""), DOCX, "no text in it"),
    ],
)
def test_what_has_no_text_is_refused(content, media_type, message):
    """
    A document that nothing can be read out of is refused, and the message says so.
    """
    with pytest.raises(DocumentUnreadable, match=message):
        parse(content, media_type)


@pytest.mark.parametrize("size_limit", [{"bytes": 10}, {"chars": 10}])
def test_documents_beyond_the_limits_are_refused(size_limit):
    """
    The refusal names the limit.
    """
    with pytest.raises(DocumentUnreadable, match=" 10 "):
        parse(WORDS, PLAIN, limits=ParseLimits(**size_limit))


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        ("# a\n" * 11, MARKDOWN),
        ("a\n\n" * 11, MARKDOWN),
        ("a\n\n" * 11, PLAIN),
        ("<h1>a</h1>" * 11, HTML),
        ("<p>a" * 11, HTML),
        (make_docx_of("<w:p><w:r><w:t>a</w:t></w:r></w:p>" * 11), DOCX),
    ],
)
def test_documents_in_too_many_pieces_are_refused(content, media_type):
    """
    Two bytes may be a section, and a section is kept with its span and its titles.
    """
    with pytest.raises(DocumentUnreadable, match=r"more than 10 (headings|paragraphs); split it"):
        parse(content, media_type, limits=ParseLimits(blocks=10, headings=10))


def test_reading_markdown_stops_when_time_is_up():
    """
    However fast a line is read, there may be millions.
    """
    with pytest.raises(DocumentUnreadable, match="more than 0 seconds"):
        parse("a\n" * 5_000, MARKDOWN, limits=ParseLimits(seconds=0))


@pytest.mark.parametrize(
    "failure", [MemoryError, RecursionError, KeyError, AssertionError, zlib.error, UnicodeError]
)
def test_no_failure_of_a_parser_gets_out(monkeypatch, failure):
    """
    Whatever a parser fails with, the caller sees an `InvalidRequest`, and the cause is kept for whoever looks.
    """

    def fail(*_):
        raise failure

    monkeypatch.setattr("memplane.documents.pdf.parse_pdf", fail)
    with pytest.raises(InvalidRequest) as caught:
        parse(PDF_FILE, PDF)

    assert isinstance(caught.value.__cause__, failure)


def test_text_and_noise():
    """
    Text is told from other bytes by the control characters it does not have.
    """
    assert is_text("Größe\r\n\t\f\x1b[0m".encode() * 20)
    assert is_text(b"")
    assert not is_text(b"a\0b")
    assert not is_text(bytes(range(1, 32)) * 10)
