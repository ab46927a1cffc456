"""Plain text: the text is what was uploaded, and its paragraphs are what empty lines part."""

import re

from memplane.documents.parsed import Block, BlockKind, Parsed

_EMPTY_LINES = r"(?:[^\S\r\n]*+(?:\r\n|[\r\n]))++"
_GAP = re.compile(rf"(?:\n|\r\n?+)({_EMPTY_LINES})")
"""Empty lines behind a line's end. It is found by its first sign, which is quicker than looking back from everywhere."""
_GAP_FIRST = re.compile(_EMPTY_LINES)


def parse_plain(text: str) -> Parsed:
    return Parsed(text, blocks=tuple(paragraphs(text, 0, len(text))))


def paragraphs(text: str, start: int, end: int) -> list[Block]:
    """Blocks that tile `text[start:end]`: paragraphs, and the empty lines between them."""
    blocks = []
    if first := _GAP_FIRST.match(text, start, end):
        blocks.append(Block(start, first.end(), BlockKind.BREAK))
        start = first.end()
    for gap in _GAP.finditer(text, start, end):
        begin, stop = gap.span(1)
        blocks.append(Block(start, begin, BlockKind.PARAGRAPH))
        blocks.append(Block(begin, stop, BlockKind.BREAK))
        start = stop
    if end > start:
        blank = not text[start:end].strip()
        blocks.append(Block(start, end, BlockKind.BREAK if blank else BlockKind.PARAGRAPH))
    return blocks
