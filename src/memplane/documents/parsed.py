"""What is left of a document once it is read: its text, and where its headings, blocks and pages stand in it."""

from enum import StrEnum

import msgspec


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


class Block(msgspec.Struct, frozen=True, gc=False):
    """A stretch of text that is better not parted."""

    start: int
    end: int
    kind: BlockKind


class Parsed(msgspec.Struct, frozen=True):
    """A document that was read. `blocks` tile the text: no gap, no overlap, none of them empty."""

    text: str
    headings: tuple[Heading, ...] = ()
    """In order; each lies in the text and none overlaps another."""
    blocks: tuple[Block, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    """Offsets in the text and what they are in the source (a page, counted from 1, or a character of the
    HTML), in order. Between two of them an HTML place counts on by one a character; a page goes on."""
    title: str = ""
    """What the document calls itself, where the format has a place for it."""


class Part(msgspec.Struct, frozen=True, gc=False):
    """A section. Sections tile the text too; `path` are the titles it stands under, its own last."""

    start: int
    end: int
    title: str
    level: int
    """That of its heading; 0 where there is none."""
    path: tuple[str, ...]
