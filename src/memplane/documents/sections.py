"""Sections: a document's text by its headings, or by size where it has none. They leave nothing out."""

from bisect import bisect_left
from collections.abc import Sequence

from memplane.documents.parsed import Block, BlockKind, Parsed, Part

UNTITLED_CHARS = 6_000
"""How long a stretch without headings grows before the next one begins: about two pages."""


def sections_of(parsed: Parsed) -> list[Part]:
    """The sections of a document, in order, tiling its text. A heading begins one; what stands before the first
    heading is parted at paragraphs."""
    headings = parsed.headings
    if not headings:
        end = len(parsed.text)
        return _untitled(parsed.blocks, end) or ([Part(0, end, "", 0, ())] if end else [])
    before = parsed.blocks[: bisect_left(parsed.blocks, headings[0].start, key=_start)]
    parts = _untitled(before, headings[0].start)
    above: list[tuple[int, str]] = []
    for index, heading in enumerate(headings):
        while above and above[-1][0] >= heading.level:
            above.pop()
        above.append((heading.level, heading.title))
        start = heading.start if parts else 0
        end = headings[index + 1].start if index + 1 < len(headings) else len(parsed.text)
        path = tuple(title for _, title in above if title)
        parts.append(Part(start, end, heading.title, heading.level, path))
    return parts


def _untitled(blocks: Sequence[Block], end: int) -> list[Part]:
    """The stretch that these blocks tile, parted where a paragraph begins; nothing if it is blank, for then the
    section that follows takes it in."""
    if all(block.kind is BlockKind.BREAK for block in blocks):
        return []
    begins = [0]
    for block in blocks:
        if block.kind is not BlockKind.BREAK and block.start - begins[-1] >= UNTITLED_CHARS:
            begins.append(block.start)
    return [Part(begin, stop, "", 0, ()) for begin, stop in zip(begins, [*begins[1:], end], strict=True)]


def _start(block: Block) -> int:
    return block.start
