"""DOCX: the paragraphs, lists and tables of a Word document, read as a stream of XML events.

No tree is built, so a document costs what its text costs. A document type, which Word never writes, is refused: it is
where entities that grow without end would be declared.
"""

import re
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from xml.parsers import expat

import msgspec

from memplane.documents.assembly import Assembly
from memplane.documents.decode import cleaned
from memplane.documents.limits import Budget, ParseLimits
from memplane.documents.parsed import BlockKind, Parsed
from memplane.errors import DocumentUnreadable

_ENTRIES_MAX = 10_000
_ROOM_BYTES = 16 << 20
"""A small document may always grow to this much, whatever its ratio: XML of little words compresses well."""
_COMPRESSIONS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED_FLAG = 0x1
_BODY = "word/document.xml"
_STYLES = "word/styles.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_NAMESPACES = frozenset(
    {
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "http://purl.oclc.org/ooxml/wordprocessingml/main",
    }
)
_OFF = frozenset({"0", "false", "off", "none"})
_SIGNS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_HEADING_NAME = re.compile(r"heading ([1-9])\Z", re.IGNORECASE)
_LEVEL_MAX = 9
_ANCESTORS_MAX = 16
"""Styles are based on others; beyond this many they go in a circle."""

_Start = Callable[[str, dict[str, str]], None]
_End = Callable[[str], None]


class _Style(msgspec.Struct):
    """What a paragraph's style says about it."""

    level: int = 0
    title: bool = False
    listed: bool = False
    parent: str = ""


def parse_docx(content: bytes, limits: ParseLimits, budget: Budget) -> Parsed:
    try:
        archive = zipfile.ZipFile(BytesIO(content))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as exc:
        raise DocumentUnreadable(
            "the DOCX document is no zip archive, or a damaged one; save it again as DOCX and upload that"
        ) from exc
    with archive:
        sizes = _checked(archive, content, limits)
        styles = _styles(_part(archive, _STYLES), limits) if _STYLES in sizes else {}
        out = Assembly(budget)
        reader = _BodyReader(out, styles)
        for name in (_BODY, *_NOTES):
            if name in sizes:
                _feed(_part(archive, name), reader.start, reader.end, reader.text, limits)
                out.end()
    return out.parsed(reader.title)


def _checked(archive: zipfile.ZipFile, content: bytes, limits: ParseLimits) -> dict[str, int]:
    """The sizes of the parts, once it is sure that none of them can be a bomb. A part is never read beyond the size
    that it declares, so the sizes declared are what counts."""
    entries = archive.infolist()
    room = min(max(limits.expansion * len(content), _ROOM_BYTES), 4 * limits.chars)
    if len(entries) > _ENTRIES_MAX:
        raise DocumentUnreadable(f"the DOCX document has more than {_ENTRIES_MAX:,} parts; save it again")
    if sum(entry.file_size for entry in entries) > room:
        raise DocumentUnreadable(
            f"the DOCX document unpacks to more than {room:,} bytes; leave out pictures or split it"
        )
    sizes = {entry.filename: entry.file_size for entry in entries}
    if _BODY not in sizes:
        raise DocumentUnreadable(f"the DOCX document has no {_BODY}; save it again as DOCX")
    for entry in entries:
        if entry.flag_bits & _ENCRYPTED_FLAG:
            raise DocumentUnreadable(
                "the DOCX document is locked with a password; remove it and upload again"
            )
    return sizes


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    entry = archive.getinfo(name)
    if entry.compress_type not in _COMPRESSIONS:
        raise DocumentUnreadable("the DOCX document is packed in a way that Word does not; save it again")
    with archive.open(entry) as part:
        return part.read(entry.file_size)


def _feed(part: bytes, start: _Start, end: _End, text: _End, limits: ParseLimits) -> None:
    """Read a part, telling its elements by their local names; those of other vocabularies keep their namespace."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    names: dict[str, str] = {}
    depth = 0

    def local(name: str) -> str:
        if name not in names:
            space, _, bare = name.rpartition(" ")
            names[name] = bare if space in _NAMESPACES or bare == "Fallback" else name
        return names[name]

    def started(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > limits.depth:
            raise DocumentUnreadable(f"the DOCX document nests more than {limits.depth:,} elements deep")
        start(local(name), {key.rpartition(" ")[2]: value for key, value in attributes.items()})

    def ended(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(local(name))

    def refused(*_: object) -> None:
        raise DocumentUnreadable(
            "the DOCX document declares a document type, as Word never does; save it again"
        )

    parser.StartElementHandler = started
    parser.EndElementHandler = ended
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refused
    parser.Parse(part, True)  # noqa: FBT003 - expat takes it by position


def _styles(part: bytes, limits: ParseLimits) -> dict[str, _Style]:
    """The styles by id, each with what it takes from those it is based on."""
    styles: dict[str, _Style] = {}
    current = _Style()

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal current
        value = attributes.get("val", "")
        match name:
            case "style":
                current = styles.setdefault(attributes.get("styleId", ""), _Style())
            case "name":
                heading = _HEADING_NAME.match(value)
                current.level = int(heading[1]) if heading else current.level
                current.title = value.lower() == "title"
            case "basedOn":
                current.parent = value
            case "outlineLvl":
                current.level = _outline_level(value)
            case "numPr":
                current.listed = True

    _feed(part, start, lambda _: None, lambda _: None, limits)
    return {name: _inherited(style, styles) for name, style in styles.items()}


def _inherited(style: _Style, styles: dict[str, _Style]) -> _Style:
    found = _Style(level=style.level, title=style.title, listed=style.listed)
    for above in _ancestors(style, styles):
        found.level = found.level or above.level
        found.listed = found.listed or above.listed
    return found


def _ancestors(style: _Style, styles: dict[str, _Style]) -> Iterator[_Style]:
    for _ in range(_ANCESTORS_MAX):
        above = styles.get(style.parent)
        if above is None:
            return
        yield above
        style = above


def _outline_level(value: str) -> int:
    """Word counts levels from 0, and 9 is the text's."""
    level = int(value) + 1 if value.isdecimal() and len(value) == 1 else 0
    return level if level <= _LEVEL_MAX else 0


class _Paragraph:
    """A paragraph while it is read: its words, and what makes it a heading or an item."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.style = _Style()
        self.level = 0
        self.listed: bool | None = None
        self.indent = 0
        self.hidden = False
        """Whether the run that is read is not to be seen."""


class _BodyReader:
    """Follows the elements of a document's body. Paragraphs may stand in each other (a text box in a paragraph), and
    tables in tables: the outermost table makes the rows."""

    def __init__(self, out: Assembly, styles: dict[str, _Style]) -> None:
        self.title = ""
        self._out = out
        self._styles = styles
        self._paragraphs: list[_Paragraph] = []
        self._skipped = 0
        self._in_text = False
        self._in_run_properties = False
        self._tables = 0
        self._cells: list[list[str]] = []
        self._kind: BlockKind | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self._skipped or name in {"Fallback", "del", "moveFrom"}:
            self._skipped += 1
            return
        match name:
            case "p":
                self._paragraphs.append(_Paragraph())
            case "tbl":
                self._tables += 1
                self._kind = self._kind if self._tables > 1 else None
            case "tr" if self._tables == 1:
                self._cells = []
            case "tc" if self._tables == 1:
                self._cells.append([])
            case _ if self._paragraphs:
                self._start_in_paragraph(name, attributes)

    def _start_in_paragraph(self, name: str, attributes: dict[str, str]) -> None:
        paragraph = self._paragraphs[-1]
        if name in _SIGNS:
            self._append(_SIGNS[name])
        elif name == "t":
            self._in_text = not paragraph.hidden
        elif name == "r":
            paragraph.hidden = False
        elif name == "rPr":
            self._in_run_properties = True
        elif name == "vanish":
            paragraph.hidden = self._in_run_properties and attributes.get("val") not in _OFF
        elif "val" in attributes:
            self._property(paragraph, name, attributes["val"])

    def _property(self, paragraph: _Paragraph, name: str, value: str) -> None:
        match name:
            case "pStyle":
                paragraph.style = self._styles.get(value, paragraph.style)
            case "outlineLvl":
                paragraph.level = _outline_level(value)
            case "numId":
                paragraph.listed = value != "0"
            case "ilvl":
                paragraph.indent = int(value) if value.isdecimal() and len(value) == 1 else 0

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
            return
        match name:
            case "t":
                self._in_text = False
            case "rPr":
                self._in_run_properties = False
            case "p" if self._paragraphs:
                self._end_paragraph(self._paragraphs.pop())
            case "tr" if self._tables == 1:
                self._end_row()
            case "tbl" if self._tables:
                self._tables -= 1

    def text(self, words: str) -> None:
        if self._in_text and not self._skipped and self._paragraphs:
            self._paragraphs[-1].words.append(words)

    def _append(self, sign: str) -> None:
        """Tabs and breaks also stand in a paragraph's properties, where they are no words."""
        paragraph = self._paragraphs[-1]
        if paragraph.words and not paragraph.hidden:
            paragraph.words.append(sign)

    def _end_paragraph(self, paragraph: _Paragraph) -> None:
        words = cleaned("".join(paragraph.words)).strip()
        if not words:
            return
        if self._tables:
            if self._cells:
                self._cells[-1].append(" ".join(words.split()))
            return
        level = paragraph.level or paragraph.style.level
        listed = paragraph.style.listed if paragraph.listed is None else paragraph.listed
        if paragraph.style.title:
            self.title = self.title or " ".join(words.split())
            level = 1
        if level:
            self._begin(BlockKind.HEADING, level)
        elif listed:
            if self._kind is not BlockKind.LIST:
                self._begin(BlockKind.LIST)
            self._out.line()
            self._out.prefix("  " * paragraph.indent + "- ")
        else:
            self._begin(BlockKind.PARAGRAPH)
        self._out.write(words)

    def _end_row(self) -> None:
        row = " | ".join(" ".join(cell) for cell in self._cells)
        self._cells = []
        if not row.strip(" |"):
            return
        if self._kind is not BlockKind.TABLE:
            self._begin(BlockKind.TABLE)
        self._out.line()
        self._out.write(row)

    def _begin(self, kind: BlockKind, level: int = 0) -> None:
        self._kind = kind
        self._out.begin(kind, level)
