"""Plain text: the text is what was uploaded, and its paragraphs are what empty lines part."""

import re

from memplane.documents.parsed import Block, BlockKind, Parsed

_GAP = re.compile(r"(?:(?<=\n)|(?<=\r)(?!\n)|\A)(?:[^\S\r\n]*+(?:\r\n|[\r\n]))++")
"""Empty lines, with their ends."""


def parse_plain(text: str) -> Parsed:
    return Parsed(text, blocks=tuple(paragraphs(text, 0, len(text))))


def paragraphs(text: str, start: int, end: int) -> list[Block]:
    """Blocks that tile `text[start:end]`: paragraphs, and the empty lines between them."""
    blocks = []
    for gap in _GAP.finditer(text, start, end):
        if gap.start() > start:
            blocks.append(Block(start, gap.start(), BlockKind.PARAGRAPH))
        blocks.append(Block(gap.start(), gap.end(), BlockKind.BREAK))
        start = gap.end()
    if end > start:
        blank = not text[start:end].strip()
        blocks.append(Block(start, end, BlockKind.BREAK if blank else BlockKind.PARAGRAPH))
    return blocks
