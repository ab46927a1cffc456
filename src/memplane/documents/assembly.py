"""Assemble text from formats that are not plain text, with its blocks, headings and source positions."""

from memplane.documents.parsed import BlockKind, DocumentBlock, Heading, ParseBudget, ParsedDocument

HEADING_CHARS_MAX = 1_000
"""Longer text was never closed, or is a style rather than a heading."""


class Assembly:
    """A text that grows by runs. Whitespace between runs is held back until something follows, so no line or block
    begins or ends with it; blocks are separated by an empty line."""

    def __init__(self, budget: ParseBudget) -> None:
        self._budget = budget
        self._pieces: list[str] = []
        self._chars = 0
        self._blocks: list[DocumentBlock] = []
        self._headings: list[Heading] = []
        self._places: list[tuple[int, int]] = []
        self._shift: int | None = None
        """How far the source is ahead of the text at the start of the last run."""
        self._begun: int | None = None
        """Where the open block begins, and at which piece."""
        self._begun_piece = 0
        self._kind = BlockKind.PARAGRAPH
        self._level = 0
        self._gap = ""
        self._prefix = ""
        self._line_ended = False

    @property
    def empty(self) -> bool:
        """Whether nothing was written since the last block ended."""
        return self._begun is None

    @property
    def chars(self) -> int:
        return self._chars

    def begin(self, kind: BlockKind, level: int = 0) -> None:
        """Begin a block of this kind with the next text."""
        self.end()
        self._kind, self._level = kind, level

    def space(self) -> None:
        if self._begun is not None and not self._gap and not self._line_ended:
            self._gap = " "

    def line(self) -> None:
        """Put the following text on its own line."""
        self._gap = "" if self._begun is None or self._line_ended else "\n"

    def no_gap(self) -> None:
        self._gap = ""

    def prefix(self, sign: str) -> None:
        """A prefix for the next run, if there is one: a bullet, or cell separators."""
        self._prefix = sign

    def write(self, run: str, source: int | None = None) -> None:
        """Append a run of text found at this character of the source."""
        if self._begun is None:
            if self._chars:
                self._append("\n")
                self._blocks.append(DocumentBlock(self._chars - 1, self._chars, BlockKind.BREAK))
            self._begun, self._begun_piece = self._chars, len(self._pieces)
            self._gap = ""
        if self._gap or self._prefix:
            self._append(self._gap + self._prefix)
            self._gap = self._prefix = ""
        if source is not None and source - self._chars != self._shift:
            self._shift = source - self._chars
            self._places.append((self._chars, source))
        self._append(run)
        self._line_ended = run.endswith("\n")

    def end(self) -> None:
        """Close the block, if anything was written to it."""
        if self._begun is not None:
            if not self._line_ended:
                self._append("\n")
            self._blocks.append(DocumentBlock(self._begun, self._chars, self._finished_kind(self._begun)))
            self._budget.check(self._chars, blocks=len(self._blocks), headings=len(self._headings))
        self._begun = None
        self._gap = self._prefix = ""
        self._line_ended = False

    def parsed(self, title: str = "") -> ParsedDocument:
        self.end()
        return ParsedDocument(
            "".join(self._pieces),
            headings=tuple(self._headings),
            blocks=tuple(self._blocks),
            places=tuple(self._places),
            title=title,
        )

    def _finished_kind(self, begun: int) -> BlockKind:
        if self._kind is not BlockKind.HEADING:
            return self._kind
        if self._chars - begun > HEADING_CHARS_MAX:
            return BlockKind.PARAGRAPH
        title = " ".join("".join(self._pieces[self._begun_piece :]).split())
        self._headings.append(Heading(begun, self._chars, title, self._level))
        return BlockKind.HEADING

    def _append(self, piece: str) -> None:
        self._pieces.append(piece)
        self._chars += len(piece)
