"""A question taken apart: one that asks for several things is asked for each of them, too."""

import re
from itertools import pairwise

from memplane.recall.relevance import Question

PARTS_MAX = 6
_TELLING_MIN = 3
"""A part with fewer words that mean something goes with its neighbour."""
_CHARS_READ_MAX = 2_000
"""What follows is pasted."""

_BORDER = re.compile(
    r"[,;:]\s+(?=(?:and|but|or|while|whereas|which|who|whose|that|as)\b)"
    r"|\s(?=(?:while|whereas|before|after|compared\s+(?:to|with)|versus)\b)"
    r"|\s(?=and\s+(?:also|is|was|are|were|has|have|had|does|did|do|that|the|another|whose|who|which|what|how|when)\b)"
    r"|[;?!.]\s",
    re.IGNORECASE,
)


def parts_of(text: str) -> list[Question]:
    """The parts of a question that asks for several things; none of one that asks for one."""
    beginning = text[:_CHARS_READ_MAX]
    cuts = [0, *(border.end() for border in _BORDER.finditer(beginning)), len(beginning)]
    begins: list[int] = []
    parts: list[Question] = []
    for start, end in pairwise(cuts):
        begins.append(start)
        parts.append(Question(beginning[start:end]))
        if len(parts) > 1 and (
            min(len(part.words) for part in parts[-2:]) < _TELLING_MIN or len(parts) > PARTS_MAX
        ):
            begins.pop()
            parts[-2:] = [Question(beginning[begins[-1] : end])]
    return parts if len(parts) > 1 else []
