"""Plain text: the text is what was uploaded, and its paragraphs are what empty lines part."""

import re

from memplane.documents.limits import Budget, ParseLimits
from memplane.documents.parsed import Block, BlockKind, Parsed

_EMPTY_LINES = r"(?:[^\S\r\n]*+(?:\r\n|[\r\n]))++"
_GAP = re.compile(rf"(?:\n|\r\n?+)({_EMPTY_LINES})")
"""Empty lines behind a line's end. It is found by its first sign, which is quicker than looking back from everywhere."""
_GAP_FIRST = re.compile(_EMPTY_LINES)
_CHECK_EVERY = 4_096


def parse_plain(text: str, budget: Budget | None = None) -> Parsed:
    blocks = paragraphs(text, 0, len(text), budget or Budget(ParseLimits()))
    return Parsed(text, blocks=tuple(blocks))


def paragraphs(text: str, start: int, end: int, budget: Budget) -> list[Block]:
    """Blocks that tile `text[start:end]`: paragraphs, and the empty lines between them."""
    blocks = []
    if first := _GAP_FIRST.match(text, start, end):
        blocks.append(Block(start, first.end(), BlockKind.BREAK))
        start = first.end()
    for count, gap in enumerate(_GAP.finditer(text, start, end), start=1):
        begin, stop = gap.span(1)
        blocks.append(Block(start, begin, BlockKind.PARAGRAPH))
        blocks.append(Block(begin, stop, BlockKind.BREAK))
        start = stop
        if not count % _CHECK_EVERY:
            budget.check(stop, blocks=len(blocks))
    if end > start:
        blank = not text[start:end].strip()
        blocks.append(Block(start, end, BlockKind.BREAK if blank else BlockKind.PARAGRAPH))
    budget.check(end, blocks=len(blocks))
    return blocks
