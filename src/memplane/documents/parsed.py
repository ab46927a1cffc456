"""A parsed document: its text, with the positions of headings, blocks and pages; and the limits of parsing."""

import time
from collections.abc import Callable
from enum import StrEnum

import msgspec

from memplane.errors import DocumentUnreadable

# Parsing limits. A document that exceeds one is rejected, and the message names the limit.


class ParseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of parsing. Each guards against a small but expensive file."""

    bytes: int = 50 << 20
    """Bytes of the upload."""
    chars: int = 50_000_000
    """Characters of the extracted text."""
    blocks: int = 1_000_000
    """Paragraphs, tables and gaps: in a document of single letters and empty lines, each block takes a hundred times
    the memory of its characters."""
    headings: int = 50_000
    """Each begins a section with its own span and titles, however short."""
    pages: int = 2_000
    depth: int = 1_000
    """Maximum nesting of HTML and DOCX elements; for DOCX never more than its library supports."""
    marks: int = 3_000_000
    """Maximum tags and attributes of a DOCX: each takes memory, however short."""
    seconds: float = 60.0
    """Checked between pages and parts, so the current one is finished first."""
    expansion: int = 100
    """Maximum ratio of unpacked to packed size of a DOCX."""


class ParseBudget:
    """The remaining time and characters while one document is parsed."""

    def __init__(self, limits: ParseLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._until = clock() + limits.seconds

    def check(self, chars: int, *, blocks: int = 0, headings: int = 0) -> None:
        """Raise if the text is too long, has too many pieces, or parsing took too long."""
        limits = self._limits
        for count, count_max, what in (
            (blocks, limits.blocks, "paragraphs"),
            (headings, limits.headings, "headings"),
        ):
            if count > count_max:
                raise DocumentUnreadable(f"the document has more than {count_max:,} {what}; split it")
        if chars > limits.chars:
            raise DocumentUnreadable(
                f"the document has more than {limits.chars:,} characters of text; split it"
            )
        if self._clock() > self._until:
            raise DocumentUnreadable(
                f"reading the document takes more than {limits.seconds:g} seconds; split it"
            )


class BlockKind(StrEnum):
    """The type of a stretch of text, as far as chunking is concerned."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    LIST = "list"
    TABLE = "table"
    CODE = "code"
    BREAK = "break"
    """Separators: empty lines, rules, page ends."""


class Heading(msgspec.Struct, frozen=True, gc=False):
    """A heading: `text[start:end]` are its lines, `title` its text."""

    start: int
    end: int
    title: str
    level: int
    """1 is the outermost; levels may be skipped."""


class DocumentBlock(msgspec.Struct, frozen=True, gc=False):
    """A stretch of text that is better not split."""

    start: int
    end: int
    kind: BlockKind


class ParsedDocument(msgspec.Struct, frozen=True):
    """A parsed document. `blocks` tile the text: no gap, no overlap, none empty."""

    text: str
    headings: tuple[Heading, ...] = ()
    """In order, within the text, without overlaps."""
    blocks: tuple[DocumentBlock, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    """Offsets in the text and their source positions (a page from 1, or a character of the HTML), in order. Between
    two offsets an HTML position advances by one per character; a page stays."""
    title: str = ""
    """The document's own title, if the format has one."""


class ParsedSection(msgspec.Struct, frozen=True, gc=False):
    """A section. Sections tile the text too; `path` are the titles above it and its own."""

    start: int
    end: int
    title: str
    level: int
    """The level of its heading; 0 if there is none."""
    path: tuple[str, ...]
