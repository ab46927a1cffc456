"""How much reading a document may take. What does not fit is refused, with the limit's name in the message."""

import time
from collections.abc import Callable

import msgspec

from memplane.errors import DocumentUnreadable


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


class Budget:
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
