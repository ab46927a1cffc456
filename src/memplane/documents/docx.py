"""DOCX: paragraphs, lists, tables and notes of a Word document, opened by python-docx.

The library handles parts, styles and properties. Its body iteration ignores content controls, insertions and text
boxes, and takes quadratic time, so the elements are traversed here.
"""

import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from typing import Any
from xml.parsers import expat

import docx
import msgspec
from docx.document import Document
from docx.opc.constants import CONTENT_TYPE, NAMESPACE, RELATIONSHIP_TARGET_MODE, RELATIONSHIP_TYPE
from docx.opc.packuri import PACKAGE_URI, PackURI
from docx.oxml.ns import qn
from docx.oxml.parser import parse_xml

from memplane.documents.assembly import HEADING_CHARS_MAX, Assembly
from memplane.documents.parsed import BlockKind, ParseBudget, ParsedDocument, ParseLimits
from memplane.documents.text import cleaned
from memplane.errors import DocumentUnreadable

# Preparation of a DOCX file for the library: checked, and repacked with only the parts that are read. The library
# opens every linked part, including pictures, fails on dangling links (Word does not), and checks neither sizes nor
# entity declarations. The repacked file contains none of this.

_ENTRIES_MAX = 10_000
_ROOM_BYTES = 16 << 20
"""A small document may always unpack to this size, whatever its ratio: XML compresses well."""
_COMPRESSIONS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED_FLAG = 0x1
_DOCUMENT = PackURI("/word/document.xml")
_PARTS = {
    RELATIONSHIP_TYPE.OFFICE_DOCUMENT: (_DOCUMENT, CONTENT_TYPE.WML_DOCUMENT_MAIN),
    RELATIONSHIP_TYPE.CORE_PROPERTIES: (PackURI("/docProps/core.xml"), CONTENT_TYPE.OPC_CORE_PROPERTIES),
    RELATIONSHIP_TYPE.STYLES: (PackURI("/word/styles.xml"), CONTENT_TYPE.WML_STYLES),
    RELATIONSHIP_TYPE.FOOTNOTES: (PackURI("/word/footnotes.xml"), CONTENT_TYPE.WML_FOOTNOTES),
    RELATIONSHIP_TYPE.ENDNOTES: (PackURI("/word/endnotes.xml"), CONTENT_TYPE.WML_ENDNOTES),
}
"""The parts that are read, their place in the repacked file, and their names. Macro-enabled documents and templates
have the same body."""
_OF_THE_PACKAGE = frozenset({RELATIONSHIP_TYPE.OFFICE_DOCUMENT, RELATIONSHIP_TYPE.CORE_PROPERTIES})
_RELATION = f"{{{NAMESPACE.OPC_RELATIONSHIPS}}}Relationship"
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_TRANSITIONAL = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def repacked(content: bytes, limits: ParseLimits) -> BytesIO:
    """The same document for the library. Raises `DocumentUnreadable` for a file that is too large or not a document."""
    try:
        archive = zipfile.ZipFile(BytesIO(content))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as exc:
        raise DocumentUnreadable(
            "the DOCX document is no zip archive, or a damaged one; save it again as DOCX and upload that"
        ) from exc
    package = BytesIO()
    with archive, zipfile.ZipFile(package, "w") as out:
        _check(archive, content, limits)
        source = _Source(archive, limits)
        kept = source.relevant_parts()
        for kind, name in kept.items():
            out.writestr(_PARTS[kind][0].membername, source.part(name))
        out.writestr("[Content_Types].xml", _content_types(kept))
        out.writestr(PACKAGE_URI.rels_uri.membername, _relations(kept.keys() & _OF_THE_PACKAGE))
        out.writestr(_DOCUMENT.rels_uri.membername, _relations(kept.keys() - _OF_THE_PACKAGE))
    package.seek(0)
    return package


def _check(archive: zipfile.ZipFile, content: bytes, limits: ParseLimits) -> None:
    """Reject zip bombs. A part is never read beyond its declared size, so declared sizes are checked."""
    entries = archive.infolist()
    room = min(max(limits.expansion * len(content), _ROOM_BYTES), 4 * limits.chars)
    if len(entries) > _ENTRIES_MAX:
        raise DocumentUnreadable(f"the DOCX document has more than {_ENTRIES_MAX:,} parts; save it again")
    if sum(entry.file_size for entry in entries) > room:
        raise DocumentUnreadable(
            f"the DOCX document unpacks to more than {room:,} bytes; leave out pictures or split it"
        )
    for entry in entries:
        if entry.flag_bits & _ENCRYPTED_FLAG:
            raise DocumentUnreadable(
                "the DOCX document is locked with a password; remove it and upload again"
            )


class _Source:
    """The parts of the original file."""

    def __init__(self, archive: zipfile.ZipFile, limits: ParseLimits) -> None:
        self._archive = archive
        self._limits = limits
        self._marks = 0

    def relevant_parts(self) -> dict[str, str]:
        """The parts to read, by type, with the names from the file or the usual ones. Programs may name parts freely,
        and some do."""
        said = dict(self._related(PACKAGE_URI))
        document = said.get(_kind(RELATIONSHIP_TYPE.OFFICE_DOCUMENT), _DOCUMENT.membername)
        said |= {kind: name for kind, name in self._related(PackURI("/" + document)) if kind not in said}
        names = {kind: said.get(_kind(kind), usual.membername) for kind, (usual, _) in _PARTS.items()}
        kept = {kind: name for kind, name in names.items() if name in self._archive.NameToInfo}
        if RELATIONSHIP_TYPE.OFFICE_DOCUMENT not in kept:
            raise DocumentUnreadable(
                f"the DOCX document has no {_DOCUMENT.membername}; save it again as DOCX"
            )
        return kept

    def part(self, name: str) -> bytes:
        entry = self._archive.getinfo(name)
        if entry.compress_type not in _COMPRESSIONS:
            raise DocumentUnreadable("the DOCX document is packed in a way that Word does not; save it again")
        with self._archive.open(entry) as file:
            part = file.read(entry.file_size)
        self._marks += part.count(b"<") + part.count(b"=")
        if self._marks > self._limits.marks:
            raise DocumentUnreadable(
                f"the DOCX document has more than {self._limits.marks:,} tags and attributes; split it"
            )
        if _root(part).startswith(_STRICT + " "):
            return part.replace(_STRICT.encode(), _TRANSITIONAL.encode(), 1)
        return part

    def _related(self, source: PackURI) -> Iterator[tuple[str, str]]:
        """The existing parts that a part links to, by type."""
        relations = source.rels_uri.membername
        if relations not in self._archive.NameToInfo:
            return
        for relation in parse_xml(self.part(relations)).iter(_RELATION):
            target, outside = relation.get("Target"), RELATIONSHIP_TARGET_MODE.EXTERNAL
            if target and relation.get("TargetMode") != outside:
                name = PackURI.from_rel_ref(source.baseURI, target).membername
                if name in self._archive.NameToInfo:
                    yield _kind(relation.get("Type", "")), name


def _kind(relation_type: str) -> str:
    """The two editions of the standard differ only in the beginning of the URL."""
    return relation_type.rpartition("/")[2]


class _RootReached(Exception):
    """Everything before the first element was read."""


def _root(part: bytes) -> str:
    """The name of the first element, once it is certain that no document type precedes it, which could declare
    expanding entities."""
    parser = expat.ParserCreate(namespace_separator=" ")
    root = ""

    def started(name: str, _: object) -> None:
        nonlocal root
        root = name
        raise _RootReached

    def refused(*_: object) -> None:
        raise DocumentUnreadable(
            "the DOCX document declares a document type, as Word never does; save it again"
        )

    parser.StartElementHandler = started
    parser.StartDoctypeDeclHandler = refused
    with suppress(_RootReached):
        parser.Parse(part, True)  # noqa: FBT003 - expat takes it by position
    return root


def _content_types(kinds: dict[str, str]) -> str:
    overrides = "".join(
        f'<Override PartName="{name}" ContentType="{content_type}"/>'
        for name, content_type in map(_PARTS.__getitem__, kinds)
    )
    return (
        f'<Types xmlns="{NAMESPACE.OPC_CONTENT_TYPES}">'
        f'<Default Extension="rels" ContentType="{CONTENT_TYPE.OPC_RELATIONSHIPS}"/>{overrides}</Types>'
    )


def _relations(kinds: set[str]) -> str:
    relations = "".join(
        f'<Relationship Id="r{number}" Type="{kind}" Target="{_PARTS[kind][0]}"/>'
        for number, kind in enumerate(sorted(kinds))
    )
    return f'<Relationships xmlns="{NAMESPACE.OPC_RELATIONSHIPS}">{relations}</Relationships>'


_DEPTH_MAX = 256
"""The library's XML parser supports no deeper nesting. Word uses a few dozen levels."""
_NOTES = (RELATIONSHIP_TYPE.FOOTNOTES, RELATIONSHIP_TYPE.ENDNOTES)
_PARAGRAPH, _TABLE, _ROW, _CELL = qn("w:p"), qn("w:tbl"), qn("w:tr"), qn("w:tc")
_RUN, _RUN_PROPERTIES, _TEXT = qn("w:r"), qn("w:rPr"), qn("w:t")
_PARAGRAPH_PROPERTIES, _VANISH, _VALUE = qn("w:pPr"), qn("w:vanish"), qn("w:val")
_STYLE_OF, _OUTLINE, _NUMBERING = qn("w:pStyle"), qn("w:outlineLvl"), qn("w:numPr")
_NUMBER, _INDENT = qn("w:numId"), qn("w:ilvl")
_STYLE, _STYLE_ID, _NAME, _BASED_ON = qn("w:style"), qn("w:styleId"), qn("w:name"), qn("w:basedOn")
_UNSEEN = frozenset(
    {
        qn("w:del"),
        qn("w:moveFrom"),
        _PARAGRAPH_PROPERTIES,
        "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
    }
)
"""Deleted, moved or duplicated text, and tab stops."""
_SIGNS = {
    qn("w:tab"): "\t",
    qn("w:ptab"): "\t",
    qn("w:br"): "\n",
    qn("w:cr"): "\n",
    qn("w:noBreakHyphen"): "-",
}
_OFF = frozenset({"0", "false", "off", "none"})
_HEADING_NAME = re.compile(r"heading ([1-9])\Z", re.IGNORECASE)
_LEVEL_MAX = 9
_ANCESTORS_MAX = 16
"""Styles inherit from others; a longer chain is a cycle."""

_Element = Any
"""An element of the library's tree; lxml has no types for it."""


class _Style(msgspec.Struct):
    """What a paragraph's style says about it."""

    level: int = 0
    title: bool = False
    listed: bool = False
    parent: str = ""


def parse_docx(content: bytes, limits: ParseLimits, budget: ParseBudget) -> ParsedDocument:
    depth_max = min(limits.depth, _DEPTH_MAX)
    try:
        return _parsed(docx.Document(repacked(content, limits)), depth_max, budget)
    except SyntaxError as exc:
        if exc.msg.startswith("Excessive depth"):
            raise _too_deep(depth_max) from exc
        if exc.msg.startswith("Resource limit"):
            raise DocumentUnreadable(
                "the DOCX document has more in a single run than can be read; part it into paragraphs"
            ) from exc
        raise


def _parsed(document: Document, depth_max: int, budget: ParseBudget) -> ParsedDocument:
    budget.check(0)
    parts = {relation.reltype: relation.target_part for relation in document.part.rels.values()}
    styles = _styles(parts[RELATIONSHIP_TYPE.STYLES].element) if RELATIONSHIP_TYPE.STYLES in parts else {}
    out = Assembly(budget)
    reader = _BodyReader(out, styles, depth_max)
    reader.read(document.element)
    for kind in _NOTES:
        if kind in parts:
            reader.read(parse_xml(parts[kind].blob))
    return out.parsed(reader.title or _core_title(document))


def _too_deep(depth: int) -> DocumentUnreadable:
    return DocumentUnreadable(f"the DOCX document nests more than {depth:,} elements deep")


def _core_title(document: Document) -> str:
    """The title from the properties, which is often that of the document's template. The library invents properties
    if there are none."""
    kinds = {relation.reltype for relation in document.part.package.rels.values()}
    if RELATIONSHIP_TYPE.CORE_PROPERTIES not in kinds:
        return ""
    return " ".join(cleaned(document.core_properties.title).split())[:HEADING_CHARS_MAX]


def _styles(root: _Element) -> dict[str, _Style]:
    """The styles by id, each with its inherited properties."""
    styles = {element.get(_STYLE_ID, ""): _style(element) for element in root.iter(_STYLE)}
    return {name: _inherited(style, styles) for name, style in styles.items()}


def _style(element: _Element) -> _Style:
    name = _child_value(element, _NAME)
    heading = _HEADING_NAME.match(name)
    properties = element.find(_PARAGRAPH_PROPERTIES)
    outline = 0 if properties is None else _outline_level(_child_value(properties, _OUTLINE))
    return _Style(
        level=outline or (int(heading[1]) if heading else 0),
        title=name.lower() == "title",
        listed=properties is not None and properties.find(_NUMBERING) is not None,
        parent=_child_value(element, _BASED_ON),
    )


def _child_value(element: _Element, tag: str) -> str:
    child = element.find(tag)
    return "" if child is None else str(child.get(_VALUE, ""))


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
    """Word counts levels from 0; 9 is body text."""
    level = int(value) + 1 if value.isdecimal() and len(value) == 1 else 0
    return level if level <= _LEVEL_MAX else 0


class _Paragraph:
    """What makes a paragraph a heading or a list item: its own properties, else its style."""

    def __init__(self, element: _Element, styles: dict[str, _Style]) -> None:
        self.style = _Style()
        self.indent = 0
        level = 0
        listed: bool | None = None
        properties = element.find(_PARAGRAPH_PROPERTIES)
        for child in () if properties is None else properties:
            if child.tag == _STYLE_OF:
                self.style = styles.get(child.get(_VALUE, ""), self.style)
            elif child.tag == _OUTLINE:
                level = _outline_level(child.get(_VALUE, ""))
            elif child.tag == _NUMBERING:
                number, indent = _child_value(child, _NUMBER), _child_value(child, _INDENT)
                listed = number != "0" if number else listed
                self.indent = int(indent) if indent.isdecimal() and len(indent) == 1 else 0
        self.level = 1 if self.style.title else level or self.style.level
        self.listed = self.style.listed if listed is None else listed


class _BodyReader:
    """Traverses the elements of a document's parts. Paragraphs can be nested (a text box in a paragraph), and so can
    tables: the outermost table defines the rows."""

    def __init__(self, out: Assembly, styles: dict[str, _Style], depth_max: int) -> None:
        self.title = ""
        self._out = out
        self._styles = styles
        self._depth_max = depth_max
        self._kind: BlockKind | None = None
        self._cell: list[str] | None = None
        """The text of the open table cell so far."""

    def read(self, root: _Element) -> None:
        self._words(root, 1)
        self._out.end()
        self._kind = None

    def _words(self, element: _Element, depth: int) -> str:
        """The text of an element, outside of nested paragraphs and tables, which are read on the way."""
        words: list[str] = []
        hidden = False
        todo = [element.iterchildren()]
        while todo:
            for child in todo[-1]:
                tag = child.tag
                if tag == _TEXT:
                    words.append("" if hidden else _text(child))
                elif tag in _SIGNS:
                    words.append("" if hidden else _SIGNS[tag])
                elif tag == _RUN_PROPERTIES:
                    vanish = child.find(_VANISH)
                    hidden = vanish is not None and vanish.get(_VALUE) not in _OFF
                elif tag == _PARAGRAPH:
                    self._paragraph(child, self._deeper(depth, todo))
                elif tag == _TABLE:
                    self._table(child, self._deeper(depth, todo))
                elif tag not in _UNSEEN and len(child):
                    hidden = hidden and tag != _RUN
                    self._deeper(depth, todo)
                    todo.append(child.iterchildren())
                    break
            else:
                todo.pop()
        return "".join(words)

    def _deeper(self, depth: int, todo: list[_Element]) -> int:
        if depth + len(todo) > self._depth_max:
            raise _too_deep(self._depth_max)
        return depth + len(todo)

    def _paragraph(self, element: _Element, depth: int) -> None:
        words = cleaned(self._words(element, depth)).strip()
        if not words:
            return
        if self._cell is not None:
            self._cell.append(" ".join(words.split()))
            return
        paragraph = _Paragraph(element, self._styles)
        if paragraph.style.title:
            self.title = self.title or " ".join(words.split())
        if paragraph.level:
            self._begin(BlockKind.HEADING, paragraph.level)
        elif paragraph.listed:
            if self._kind is not BlockKind.LIST:
                self._begin(BlockKind.LIST)
            self._out.line()
            self._out.prefix("  " * paragraph.indent + "- ")
        else:
            self._begin(BlockKind.PARAGRAPH)
        self._out.write(words)

    def _table(self, table: _Element, depth: int) -> None:
        """A merged cell appears once, where it begins, not at every grid position it covers."""
        if self._cell is not None:
            self._words(table, depth)
            return
        self._kind = None
        for row in _outermost(table, _ROW):
            cells = []
            for cell in _outermost(row, _CELL):
                self._cell = []
                self._words(cell, depth + 2)
                cells.append(" ".join(self._cell))
            self._cell = None
            self._end_row(" | ".join(cells))

    def _end_row(self, row: str) -> None:
        if not row.strip(" |"):
            return
        if self._kind is not BlockKind.TABLE:
            self._begin(BlockKind.TABLE)
        self._out.line()
        self._out.write(row)

    def _begin(self, kind: BlockKind, level: int = 0) -> None:
        self._kind = kind
        self._out.begin(kind, level)


def _outermost(element: _Element, wanted: str) -> Iterator[_Element]:
    """The rows of a table or cells of a row, including those in content controls, without nested tables."""
    todo = [element.iterchildren()]
    while todo:
        for child in todo[-1]:
            if child.tag == wanted:
                yield child
            elif child.tag not in _UNSEEN and child.tag != _TABLE and len(child):
                todo.append(child.iterchildren())
                break
        else:
            todo.pop()


def _text(element: _Element) -> str:
    """A comment splits a text node and is not part of it."""
    return "".join([element.text or "", *(child.tail or "" for child in element)])
