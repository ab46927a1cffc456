"""Cut a document into spans that can be found, quoted and read on their own.

Pieces tile the text and each is in one section. Whole sentences, list items, table rows and lines of code are packed
until a piece is full; the end of a paragraph closes it early once it is long enough. What fits as a whole is not
split. docs/internals/documents.md compares this with other chunkers and explains the sizes.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from memplane.documents.parsed import BlockKind, DocumentBlock, ParsedDocument, ParsedSection

# Sections: a document's text by its headings, or by size if it has none. They cover the whole text.


UNTITLED_CHARS = 6_000
"""The length of a stretch without headings: about two pages."""


def sections_of(parsed: ParsedDocument) -> list[ParsedSection]:
    """The sections of a document, in order, covering its text. A heading begins one; text before the first heading is
    split at paragraphs."""
    headings = parsed.headings
    if not headings:
        end = len(parsed.text)
        return _untitled(parsed.blocks, end) or ([ParsedSection(0, end, "", 0, ())] if end else [])
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
        parts.append(ParsedSection(start, end, heading.title, heading.level, path))
    return parts


def _untitled(blocks: Sequence[DocumentBlock], end: int) -> list[ParsedSection]:
    """The stretch these blocks cover, split where a paragraph begins; empty if it is blank, because the next section
    then includes it."""
    if all(block.kind is BlockKind.BREAK for block in blocks):
        return []
    begins = [0]
    for block in blocks:
        if block.kind is not BlockKind.BREAK and block.start - begins[-1] >= UNTITLED_CHARS:
            begins.append(block.start)
    return [
        ParsedSection(begin, stop, "", 0, ()) for begin, stop in zip(begins, [*begins[1:], end], strict=True)
    ]


def _start(block: DocumentBlock) -> int:
    return block.start


CHARS_MAX = 2_000
"""Maximum size of a piece: an endless sentence is cut between words, a word between characters."""

_WORDS_FEW = 20
"""A smaller remainder is joined to the previous piece."""
_CHARS_PER_WORD_MAX = 18
"""Scripts without spaces, and lines without words, are measured in characters."""
_CHARS_CUT = 600
"""The share of an overlong unit that goes into one piece."""

# A run of marks is only tried from its first character, so a wall of dots stays linear.
_SENTENCE = re.compile(
    r"(?<![.!?\u2026])[.!?\u2026]++[\"'\u201d\u2019)\]]*+\s++(?=[\"'\u201c\u2018(\[]*+[^\sa-z])"
    r"|(?<![\u3002\uff01\uff1f])[\u3002\uff01\uff1f]++[\u300d\u300f\u201d\u2019)]*+\s*+"
    r"|\n\s*+"
)
_LINE = re.compile(r"\n\s*+")
_SPACES = re.compile(r"\s++")
_ABBREVIATED = re.compile(
    r"(?:\b(?:[A-Za-z]|[A-Z][a-z]{0,2}\.[A-Z]|Mrs?|Ms|Dr|Prof|St|Jr|Sr|Gen|Sen|Rep|Gov|Lt|Col|Sgt|Capt|Rev|Hon"
    r"|vs|No|Nos|Fig|Figs|Eq|Sec|Ch|Vol|pp?|al|cf|ca|approx|e\.g|i\.e|Inc|Ltd|Corp|Co|Bros"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec))\Z"
)
_ABBREVIATION_CHARS_MAX = 8
_WHOLE = frozenset({BlockKind.LIST, BlockKind.TABLE, BlockKind.CODE})


class ChunkSizes(msgspec.Struct, frozen=True, kw_only=True):
    """The sizes of pieces, in words."""

    enough: int = 60
    """From this size on, the end of a paragraph closes a piece."""
    most: int = 100
    """The limit for prose. A sentence that would exceed it begins a new piece."""
    whole: int = 150
    """A list, table, code block or sentence up to this size stays whole."""


SIZES = ChunkSizes()


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A future span: `text[start:end]`, and the index of its section."""

    start: int
    end: int
    section: int


class _Atom(msgspec.Struct, frozen=True, gc=False):
    """A unit that is not split further."""

    start: int
    end: int
    words: int
    closes: bool = False
    """The last unit of a paragraph, list, table or code block."""
    opens: bool = False
    """It belongs to the next unit, like a heading."""


def chunks_of(
    parsed: ParsedDocument, sections: Sequence[ParsedSection], sizes: ChunkSizes = SIZES
) -> list[Piece]:
    """In order; an empty text has none."""
    pieces: list[Piece] = []
    starts = [block.start for block in parsed.blocks]
    for place, section in enumerate(sections):
        first = max(bisect_right(starts, section.start) - 1, 0)
        atoms = _atoms(parsed.text, _blocks_of(parsed, section, first), sizes)
        packed = list(_packed(atoms, sizes))
        pieces += [Piece(start, end, place) for start, end in _rests_joined(packed, sizes)]
    return pieces


def _blocks_of(parsed: ParsedDocument, section: ParsedSection, first: int) -> Iterator[DocumentBlock]:
    """The parts of the blocks that are in a section."""
    for at in range(first, len(parsed.blocks)):
        block = parsed.blocks[at]
        if block.start >= section.end:
            return
        start, end = max(block.start, section.start), min(block.end, section.end)
        if start < end:
            yield block if end - start == block.end - block.start else DocumentBlock(start, end, block.kind)


def _packed(atoms: Iterator[_Atom], sizes: ChunkSizes) -> Iterator[_Atom]:
    """Units packed together. Headings at the end of a full piece move to the next one."""
    taken: list[_Atom] = []
    words = 0
    for atom in atoms:
        if taken and words and words + atom.words > sizes.most:
            opening = _opening(taken)
            if opening:
                yield _joined(taken[:opening])
                taken = taken[opening:]
                words = sum(one.words for one in taken)
        if taken and atom.end - taken[0].start > CHARS_MAX:
            yield _joined(taken)
            taken, words = [], 0
        taken.append(atom)
        words += atom.words
        if atom.closes and words >= sizes.enough:
            yield _joined(taken)
            taken, words = [], 0
    if taken:
        yield _joined(taken)


def _opening(taken: Sequence[_Atom]) -> int:
    """Where the trailing headings begin that belong to the next piece."""
    at = len(taken)
    for place in range(len(taken) - 1, -1, -1):
        if taken[place].opens:
            at = place
        elif taken[place].words:
            break
    return at


def _joined(atoms: Sequence[_Atom]) -> _Atom:
    return _Atom(atoms[0].start, atoms[-1].end, sum(atom.words for atom in atoms))


def _rests_joined(pieces: list[_Atom], sizes: ChunkSizes) -> list[tuple[int, int]]:
    """Empty lines, and the few remaining words of a section, join the previous piece."""
    joined: list[_Atom] = []
    for place, piece in enumerate(pieces):
        before = joined[-1] if joined else None
        few = piece.words <= (_WORDS_FEW if place == len(pieces) - 1 else 0)
        if (
            before is not None
            and (few or not before.words)
            and piece.end - before.start <= CHARS_MAX
            and piece.words + before.words <= sizes.whole
        ):
            joined[-1] = _joined([before, piece])
        else:
            joined.append(piece)
    return [(piece.start, piece.end) for piece in joined]


def _atoms(text: str, blocks: Iterator[DocumentBlock], sizes: ChunkSizes) -> Iterator[_Atom]:
    for block in blocks:
        kind, words = block.kind, _words(text, block.start, block.end)
        if kind is BlockKind.HEADING:
            yield from _bounded(text, _Atom(block.start, block.end, words, opens=True), sizes)
        elif kind is BlockKind.BREAK:
            yield from _bounded(text, _Atom(block.start, block.end, words), sizes)
        elif kind in _WHOLE and words <= sizes.whole:
            yield from _bounded(text, _Atom(block.start, block.end, words, closes=True), sizes)
        else:
            for atom in _split(text, block):
                yield from _bounded(text, atom, sizes)


def _split(text: str, block: DocumentBlock) -> Iterator[_Atom]:
    """Sentences or lines, each with its trailing whitespace. A paragraph that ends with a colon belongs to the next."""
    whole = block.kind in _WHOLE
    borders = (_LINE if whole else _SENTENCE).finditer(text, block.start, block.end)
    ends = [border.end() for border in borders if not _is_abbreviated(text, border)]
    cuts = [block.start, *(end for end in ends if end < block.end), block.end]
    leads = not whole and text[max(block.start, block.end - 4) : block.end].rstrip().endswith((":", "\uff1a"))
    for start, end in pairwise(cuts):
        last = end == block.end
        yield _Atom(start, end, _words(text, start, end), closes=last and not leads, opens=last and leads)


def _is_abbreviated(text: str, border: re.Match[str]) -> bool:
    """Whether a dot ends an abbreviation rather than a sentence: `Dr. Smith`, `J. Doe`, `No. 5`."""
    dot = border.start()
    if text[dot] != "." or "\n" in border.group():
        return False
    return _ABBREVIATED.search(text[max(0, dot - _ABBREVIATION_CHARS_MAX) : dot]) is not None


def _bounded(text: str, atom: _Atom, sizes: ChunkSizes) -> Iterator[_Atom]:
    """The unit, or parts of it if it is too long, cut between words if possible."""
    if atom.words <= sizes.whole and atom.end - atom.start <= CHARS_MAX:
        yield atom
        return
    start = atom.start
    while atom.end - start > _CHARS_CUT:
        cut = start + _CHARS_CUT
        for border in _SPACES.finditer(text, start + 1, start + _CHARS_CUT):
            cut = border.end()
        yield _Atom(start, cut, _words(text, start, cut))
        start = cut
    yield _Atom(start, atom.end, _words(text, start, atom.end), closes=atom.closes, opens=atom.opens)


def _words(text: str, start: int, end: int) -> int:
    """By spaces, or by length if there are few."""
    piece = text[start:end]
    return max(len(piece.split()), len(piece.strip()) // _CHARS_PER_WORD_MAX)
