"""What is left of a document once it is read: its text, and where its headings, blocks and pages stand in it."""

import time
from collections.abc import Callable
from enum import StrEnum

import msgspec

from memplane.errors import DocumentUnreadable

# How much reading a document may take. What does not fit is refused, with the limit's name in the message.


class ParseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a document may cost before it is refused. Each guards against a file that is small and expensive."""

    bytes: int = 50 << 20
    """Of what was uploaded."""
    chars: int = 50_000_000
    """Of the text that is read out of it."""
    blocks: int = 1_000_000
    """Paragraphs, tables and what stands between them: of a document that is nothing but `a` and empty lines, each costs
    a hundred times the memory that it has characters."""
    headings: int = 50_000
    """Each begins a section, with a span of its own and the titles above it, however little it says."""
    pages: int = 2_000
    depth: int = 1_000
    """How deep the elements of HTML and DOCX may nest; those of DOCX never more than its library can."""
    marks: int = 3_000_000
    """How many tags and attributes a DOCX may have: each of them takes memory, however short it is."""
    seconds: float = 60.0
    """Looked at between pages and parts, so what is under way is finished first."""
    expansion: int = 100
    """How many times larger than a DOCX file its parts may be, together."""


class ParseBudget:
    """The time and the characters that are left while one document is read."""

    def __init__(self, limits: ParseLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._until = clock() + limits.seconds

    def check(self, chars: int, *, blocks: int = 0, headings: int = 0) -> None:
        """Refuse to go on once the text is too long, is in too many pieces, or reading it took too long."""
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
    """What a stretch of a document is, as far as cutting it up is concerned."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    LIST = "list"
    TABLE = "table"
    CODE = "code"
    BREAK = "break"
    """What stands between the others: empty lines, rules, a page's end."""


class Heading(msgspec.Struct, frozen=True, gc=False):
    """A heading: `text[start:end]` is the line or lines it takes, `title` what it says."""

    start: int
    end: int
    title: str
    level: int
    """1 is the outermost; a level may be passed over, as authors do."""


class DocumentBlock(msgspec.Struct, frozen=True, gc=False):
    """A stretch of text that is better not parted."""

    start: int
    end: int
    kind: BlockKind


class ParsedDocument(msgspec.Struct, frozen=True):
    """A document that was read. `blocks` tile the text: no gap, no overlap, none of them empty."""

    text: str
    headings: tuple[Heading, ...] = ()
    """In order; each lies in the text and none overlaps another."""
    blocks: tuple[DocumentBlock, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    """Offsets in the text and what they are in the source (a page, counted from 1, or a character of the
    HTML), in order. Between two of them an HTML place counts on by one a character; a page goes on."""
    title: str = ""
    """What the document calls itself, where the format has a place for it."""


class ParsedSection(msgspec.Struct, frozen=True, gc=False):
    """A section. Sections tile the text too; `path` are the titles it stands under, its own last."""

    start: int
    end: int
    title: str
    level: int
    """That of its heading; 0 where there is none."""
    path: tuple[str, ...]
