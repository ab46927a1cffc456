"""A DOCX file before the library sees it: checked, and packed anew with nothing in it but the parts that are read.

The library opens every part that another one leads to, pictures too, fails where a link leads nowhere (Word does not mind),
and asks neither how large a part is nor whether it declares entities. So it is given a package in which none of this can happen.
"""

import zipfile
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from xml.parsers import expat

from docx.opc.constants import CONTENT_TYPE, NAMESPACE, RELATIONSHIP_TARGET_MODE, RELATIONSHIP_TYPE
from docx.opc.packuri import PACKAGE_URI, PackURI
from docx.oxml.parser import parse_xml

from memplane.documents.limits import ParseLimits
from memplane.errors import DocumentUnreadable

_ENTRIES_MAX = 10_000
_ROOM_BYTES = 16 << 20
"""A small document may always grow to this much, whatever its ratio: XML of little words compresses well."""
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
"""What is read, where it stands in the package that the library gets, and what it is called there. A macro's or a template's
body is a document's too."""
_OF_THE_PACKAGE = frozenset({RELATIONSHIP_TYPE.OFFICE_DOCUMENT, RELATIONSHIP_TYPE.CORE_PROPERTIES})
_RELATION = f"{{{NAMESPACE.OPC_RELATIONSHIPS}}}Relationship"
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_TRANSITIONAL = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def repacked(content: bytes, limits: ParseLimits) -> BytesIO:
    """The same document for the library. Raises `DocumentUnreadable` for what is too large or no document."""
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
        kept = source.kept()
        for kind, name in kept.items():
            out.writestr(_PARTS[kind][0].membername, source.part(name))
        out.writestr("[Content_Types].xml", _content_types(kept))
        out.writestr(PACKAGE_URI.rels_uri.membername, _relations(kept.keys() & _OF_THE_PACKAGE))
        out.writestr(_DOCUMENT.rels_uri.membername, _relations(kept.keys() - _OF_THE_PACKAGE))
    package.seek(0)
    return package


def _check(archive: zipfile.ZipFile, content: bytes, limits: ParseLimits) -> None:
    """Make sure that nothing in it can be a bomb. A part is never read beyond the size that it declares, so the sizes
    declared are what counts."""
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
    """The parts of the file as it came."""

    def __init__(self, archive: zipfile.ZipFile, limits: ParseLimits) -> None:
        self._archive = archive
        self._limits = limits
        self._marks = 0

    def kept(self) -> dict[str, str]:
        """What is read of it, by the kind of the part, and its name here: that which the file says, or else the usual one.
        Programs are free to name parts as they like, and some do."""
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
        """The parts that a part leads to and that are there, by their kind."""
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
    """The two editions of the standard differ in the beginning of the address only."""
    return relation_type.rpartition("/")[2]


class _RootReached(Exception):
    """All that may stand before the first element was seen."""


def _root(part: bytes) -> str:
    """The name of the first element, once it is sure that no document type comes before it, which is where entities that
    grow without end would be declared."""
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
