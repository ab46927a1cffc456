"""Plain text: decoding, and paragraphs separated by empty lines."""

import codecs
import re

from memplane.documents.parsed import BlockKind, DocumentBlock, ParseBudget, ParsedDocument, ParseLimits

# Bytes to text, for the formats that are text.


_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META_WITHIN = 4_096
_META = re.compile(rb"""<meta\b[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)
_FALLBACK = "cp1252"
"""The most common encoding of text that is not Unicode, and what browsers assume."""
_CONTROL = bytes({*range(9), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F})
_CONTROL_SHARE_MAX = 0.02
_SNIFFED_BYTES = 8_192


def decoded(content: bytes, *, html: bool = False) -> str:
    """Decode bytes: by byte order mark, as UTF-8, as declared in the HTML, else as Windows-1252. The mark is dropped.
    Undecodable bytes and NUL become U+FFFD."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return cleaned(content[len(mark) :].decode(encoding, "replace"))
    try:
        return cleaned(content.decode("utf-8"))
    except UnicodeDecodeError:
        return cleaned(content.decode(_declared_encoding(content) if html else _FALLBACK, "replace"))


def cleaned(text: str) -> str:
    """Text that every store and wire format accepts: NUL and lone surrogates are replaced in place, so offsets stay."""
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)
    return text


def is_text(content: bytes) -> bool:
    """Whether bytes look like text in a known encoding rather than like an image or a program."""
    if any(content.startswith(mark) for mark, _ in _MARKS):
        return True
    head = content[:_SNIFFED_BYTES]
    control = len(head) - len(head.translate(None, _CONTROL))
    return b"\0" not in head and control <= _CONTROL_SHARE_MAX * len(head)


def _declared_encoding(content: bytes) -> str:
    """The encoding declared in an HTML page, if it is known."""
    told = _META.search(content[:_META_WITHIN])
    if told is None:
        return _FALLBACK
    try:
        codec = codecs.lookup(told[1].decode("ascii"))
    except (LookupError, UnicodeDecodeError, ValueError):
        return _FALLBACK
    if codec.name == "iso8859-1" or not codec._is_text_encoding:  # noqa: SLF001 - str.decode asks the same
        return _FALLBACK
    return codec.name


_EMPTY_LINES = r"(?:[^\S\r\n]*+(?:\r\n|[\r\n]))++"
_GAP = re.compile(rf"(?:\n|\r\n?+)({_EMPTY_LINES})")
"""Empty lines after a line end. The pattern begins with a fixed character, which is faster than a look-behind."""
_GAP_FIRST = re.compile(_EMPTY_LINES)
_CHECK_EVERY = 4_096


def parse_plain(text: str, budget: ParseBudget | None = None) -> ParsedDocument:
    blocks = paragraphs(text, 0, len(text), budget or ParseBudget(ParseLimits()))
    return ParsedDocument(text, blocks=tuple(blocks))


def paragraphs(text: str, start: int, end: int, budget: ParseBudget) -> list[DocumentBlock]:
    """Blocks that tile `text[start:end]`: paragraphs, and the empty lines between them."""
    blocks = []
    if first := _GAP_FIRST.match(text, start, end):
        blocks.append(DocumentBlock(start, first.end(), BlockKind.BREAK))
        start = first.end()
    for count, gap in enumerate(_GAP.finditer(text, start, end), start=1):
        begin, stop = gap.span(1)
        blocks.append(DocumentBlock(start, begin, BlockKind.PARAGRAPH))
        blocks.append(DocumentBlock(begin, stop, BlockKind.BREAK))
        start = stop
        if not count % _CHECK_EVERY:
            budget.check(stop, blocks=len(blocks))
    if end > start:
        blank = not text[start:end].strip()
        blocks.append(DocumentBlock(start, end, BlockKind.BREAK if blank else BlockKind.PARAGRAPH))
    budget.check(end, blocks=len(blocks))
    return blocks
