"""Markdown, parsed only for its outermost blocks: the text stays as uploaded, and nothing is rendered.

One pass over the lines: CommonMark's block rules with GitHub's tables, as far as they determine the outermost blocks.
A full parser takes twice as long for two kilobytes, and seconds for sixteen with deep quotes; a test compares both.
"""

import re
from typing import NamedTuple

from memplane.documents.parsed import (
    BlockKind,
    DocumentBlock,
    Heading,
    ParseBudget,
    ParsedDocument,
    ParseLimits,
)

TITLE_CHARS_MAX = 300
"""A setext underline turns all lines above it into a heading; longer ones are not titles."""

_TAB = 4
_CODE_INDENT = 4
_NESTING_MAX = 16
"""How many nested quotes and lists are followed on one line; anything deeper counts as text."""

_CHECK_EVERY = 4_096

_LINE = re.compile(r"([ \t]*+)([^\r\n]*+)(?:\r\n|[\r\n]|\Z)")
_SPECIAL = frozenset("`~#-*+_=>|<:0123456789")
"""Line beginnings that are more than a paragraph."""
_RECASTING = frozenset("=-:|")
"""Line beginnings that may change what the paragraph above it is."""
_FENCE = re.compile(r"(`{3,}+)[^`]*+\Z|(~{3,}+)")
_ATX = re.compile(r"(#{1,6}+)(?:[ \t]|\Z)")
_ATX_CLOSE = re.compile(r"(?:\A|[ \t])#++\Z")
_SETEXT = re.compile(r"(?:=++|-++)\Z")
_RULE_SIGNS = frozenset("-*_")
_RULE_LENGTH = 3
_BULLET = re.compile(r"([-*+])(?:([ \t]++)(?=\S)|[ \t]*+\Z)")
_NUMBER = re.compile(r"([0-9]{1,9})([.)])(?:([ \t]++)(?=\S)|[ \t]*+\Z)")
_DELIMITERS = re.compile(r"[-:|][-:| \t]*+\Z")
_DELIMITER = re.compile(r":?-++:?\Z")
_ESCAPED_BAR = re.compile(r"\\.", re.DOTALL)
_FRONT_MATTER_END = re.compile(r"^(?:---|\.\.\.)[ \t]*+(?:\r\n|[\r\n]|\Z)", re.MULTILINE)
_FRONT_MATTER_TITLE = re.compile(r"^title:[ \t]*+([^\r\n]++)", re.MULTILINE)

_HTML_BLOCKS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    "menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|"
    "track|ul"
)
_HTML_KINDS = (
    (
        re.compile(r"<(?:script|pre|style|textarea)(?=[\s>]|\Z)", re.IGNORECASE),
        re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    ),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
)
_HTML_BLOCK = re.compile(rf"</?(?:{_HTML_BLOCKS})(?=[\s>]|/>|\Z)", re.IGNORECASE)
_HTML_ATTRIBUTE = r"""\s++[A-Za-z_:][\w:.-]*+(?:\s*+=\s*+(?:[^\s"'=<>`]++|'[^']*+'|"[^"]*+"))?"""
_HTML_LONE_TAG = re.compile(
    rf"(?:<[A-Za-z][A-Za-z0-9-]*+(?:{_HTML_ATTRIBUTE})*+\s*+/?>|</[A-Za-z][A-Za-z0-9-]*+\s*+>)\s*+\Z"
)

_INLINE_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_INLINE_MARKS = re.compile(r"(?<!\\)(?:\*{1,3}+|`++|~~|(?<!\w)_{1,3}+|_{1,3}+(?!\w))")
_INLINE_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_WHITESPACE = re.compile(r"\s++")


class _Line(NamedTuple):
    start: int
    end: int
    indent: int
    body: str


class _Item(NamedTuple):
    """How a list item begins: the marker that defines the list, the start of its text, and the text."""

    sign: str
    content: int
    body: str
    ordinal: int


def parse_markdown(text: str, budget: ParseBudget | None = None) -> ParsedDocument:
    budget = budget or ParseBudget(ParseLimits())
    start, title = _front_matter(text)
    blocks = [DocumentBlock(0, start, BlockKind.CODE)] if start else []
    scanner = _Scanner(text, start, blocks)
    for count, match in enumerate(_LINE.finditer(text, start), start=1):
        if match.end() == match.start():
            break
        scanner.read(_line(match))
        if not count % _CHECK_EVERY:
            budget.check(match.end(), blocks=len(blocks), headings=len(scanner.headings))
    scanner.finish(len(text))
    budget.check(len(text), blocks=len(blocks), headings=len(scanner.headings))
    return ParsedDocument(text, headings=tuple(scanner.headings), blocks=tuple(scanner.blocks), title=title)


def plain_title(source: str) -> str:
    """The text of a heading without its markup."""
    title = source[:TITLE_CHARS_MAX]
    title = _INLINE_LINK.sub(r"\1", title)
    title = _INLINE_MARKS.sub("", title)
    title = _INLINE_ESCAPE.sub(r"\1", title)
    return _WHITESPACE.sub(" ", title).strip()


def _front_matter(text: str) -> tuple[int, str]:
    """Where the text begins after YAML front matter, and its title."""
    opening = _LINE.match(text)
    if opening is None or opening[1] or opening[2].rstrip() != "---":
        return 0, ""
    closing = _FRONT_MATTER_END.search(text, opening.end())
    if closing is None or not text[opening.end() : closing.start()].strip():
        return 0, ""
    title = _FRONT_MATTER_TITLE.search(text, opening.end(), closing.start())
    return closing.end(), title[1].strip().strip("\"'")[:TITLE_CHARS_MAX] if title else ""


def _line(match: re.Match[str]) -> _Line:
    space, body = match.groups()
    indent = len(space.expandtabs(_TAB)) if "\t" in space else len(space)
    return _Line(match.start(), match.end(), indent, body.rstrip(" \t"))


class _Scanner:
    """The open outermost block, and the closed ones. A blank line is undecided until it is known whether the block
    continues."""

    def __init__(self, text: str, start: int, blocks: list[DocumentBlock]) -> None:
        self.headings: list[Heading] = []
        self.blocks = blocks
        self._text = text
        self._start = start
        """Where the open block begins; `_end` is the end of its last non-blank line."""
        self._end = start
        self._last = _Line(start, start, 0, "")
        self._open: _Open | None = None

    def read(self, line: _Line) -> None:
        if self._open is not None:
            if (
                isinstance(self._open, _Paragraph)
                and line.body
                and line.body[0] in _RECASTING
                and self._recast(line)
            ):
                return
            if self._open.continues(line):
                if line.body:
                    self._end = line.end
                self._last = line
                return
            self._close(line.start)
        if line.body:
            self._begin(line)

    def finish(self, end: int) -> None:
        self._close(end)

    def _begin(self, line: _Line) -> None:
        if line.indent < _CODE_INDENT and (heading := _atx(line)) is not None:
            level, source = heading
            self._gap(line.start)
            self._put(line.start, line.end, BlockKind.HEADING)
            self.headings.append(Heading(line.start, line.end, plain_title(source), level))
            self._start = self._end = line.end
            return
        self._gap(line.start)
        self._open = _opening(line)
        self._start, self._end, self._last = line.start, line.end, line
        if self._open.done:
            self._close(line.end)

    def _recast(self, line: _Line) -> bool:
        """A line under a paragraph may turn it into a heading or the first row of a table."""
        if line.indent >= _CODE_INDENT:
            return False
        if _is_delimiter_row(line, self._last):
            if self._last.start > self._start:
                self._put(self._start, self._last.start, BlockKind.PARAGRAPH)
            self._start, self._end, self._open = self._last.start, line.end, _Table()
            return True
        if _SETEXT.match(line.body):
            level = 1 if line.body[0] == "=" else 2
            title = plain_title(
                self._text[self._start : min(self._end, self._start + 2 * TITLE_CHARS_MAX)].strip()
            )
            self._put(self._start, line.end, BlockKind.HEADING)
            self.headings.append(Heading(self._start, line.end, title, level))
            self._start = self._end = line.end
            self._open = None
            return True
        return False

    def _close(self, until: int) -> None:
        """Close the open block, if any; the text up to `until` becomes a gap."""
        if self._open is not None:
            self._put(self._start, self._end, self._open.kind)
            self._open = None
            self._start = self._end
        if until == len(self._text):
            self._gap(until)

    def _gap(self, until: int) -> None:
        if until > self._start:
            self._put(self._start, until, BlockKind.BREAK)
        self._start = self._end = until

    def _put(self, start: int, end: int, kind: BlockKind) -> None:
        self.blocks.append(DocumentBlock(start, end, kind))


class _Open:
    """An open block: `continues` says whether a line belongs to it; by default, a block is one line."""

    kind = BlockKind.PARAGRAPH
    done = False
    """Whether its first line was all of it."""

    def continues(self, line: _Line) -> bool:  # noqa: ARG002
        return False


class _Rule(_Open):
    kind = BlockKind.BREAK
    done = True


class _Paragraph(_Open):
    def continues(self, line: _Line) -> bool:
        return bool(line.body) and not _interrupts(line)


class _Fence(_Open):
    kind = BlockKind.CODE

    def __init__(self, sign: str) -> None:
        self._sign = sign
        self._closed = False

    def continues(self, line: _Line) -> bool:
        if self._closed:
            return False
        self._closed = line.indent < _CODE_INDENT and _closes_fence(line.body, self._sign)
        return True


class _Code(_Open):
    kind = BlockKind.CODE

    def continues(self, line: _Line) -> bool:
        return not line.body or line.indent >= _CODE_INDENT


class _Table(_Open):
    kind = BlockKind.TABLE

    def continues(self, line: _Line) -> bool:
        return bool(line.body) and line.indent < _CODE_INDENT and not _interrupts(line, listed=True)


class _Html(_Open):
    """Raw HTML: to the line with its end, or to an empty line if it has no end."""

    def __init__(self, end: re.Pattern[str] | None, first: str) -> None:
        self._end = end
        self.done = end is not None and end.search(first) is not None
        self._closed = False

    def continues(self, line: _Line) -> bool:
        if self._end is None:
            return bool(line.body)
        if self._closed:
            return False
        self._closed = self._end.search(line.body) is not None
        return True


class _Inside:
    """The state inside a list item or quote: whether a paragraph is open that an unindented line would continue, or a
    code fence."""

    def __init__(self) -> None:
        self.paragraph = False
        self._fence = ""
        self._fence_indent = 0

    def read(self, indent: int, body: str) -> None:
        if self._fence and (not body or indent >= self._fence_indent):
            if _closes_fence(body, self._fence):
                self._fence = ""
            self.paragraph = False
            return
        self._fence = ""
        for _ in range(_NESTING_MAX):
            if body.startswith(">"):
                indent, body = indent + 1, body[1:].lstrip(" \t")
            elif (item := _item(indent, body)) is not None and not _is_rule(body):
                indent, body = item.content, item.body
            else:
                break
        if fence := _FENCE.match(body):
            self._fence, self._fence_indent = fence[1] or fence[2], indent
            self.paragraph = False
        else:
            self.paragraph = bool(body) and not _ATX.match(body) and not _is_rule(body)


class _Quote(_Open):
    def __init__(self, line: _Line) -> None:
        self._inside = _Inside()
        self._read(line)

    def continues(self, line: _Line) -> bool:
        if not line.body:
            return False
        if line.indent < _CODE_INDENT and line.body[0] == ">":
            self._read(line)
            return True
        return self._inside.paragraph and not _interrupts(line, listed=True)

    def _read(self, line: _Line) -> None:
        body = line.body[1:]
        stripped = body.lstrip(" \t")
        self._inside.read(len(body) - len(stripped), stripped)


class _List(_Open):
    kind = BlockKind.LIST

    def __init__(self, item: _Item) -> None:
        self._sign = item.sign
        self._inside = _Inside()
        self._blank = False
        self._empty = False
        self._content = 0
        self._add(item)

    def continues(self, line: _Line) -> bool:
        if not line.body:
            if self._empty:
                self._content = 1 << 30
            self._inside.read(0, "")
            self._blank = True
            return True
        if line.indent >= self._content:
            self._inside.read(line.indent - self._content, line.body)
            self._blank = self._empty = False
            return True
        if line.indent < _CODE_INDENT and not _is_rule(line.body) and (item := _item(line.indent, line.body)):
            if item.sign != self._sign:
                return False
            self._add(item)
            return True
        return self._inside.paragraph and not self._blank and not _interrupts(line, listed=True)

    def _add(self, item: _Item) -> None:
        self._content = item.content
        self._empty = not item.body
        self._blank = False
        self._inside = _Inside()
        self._inside.read(0, item.body)


def _opening(line: _Line) -> _Open:
    """The block begun by a line that continues none."""
    body = line.body
    if line.indent >= _CODE_INDENT:
        return _Code()
    found: _Open | None = None
    if body[0] in _SPECIAL:
        if fence := _FENCE.match(body):
            found = _Fence(fence[1] or fence[2])
        elif body[0] == ">":
            found = _Quote(line)
        elif _is_rule(body):
            found = _Rule()
        elif item := _item(line.indent, body):
            found = _List(item)
        else:
            found = _html(body, alone=True)
    return found or _Paragraph()


def _interrupts(line: _Line, *, listed: bool = False) -> bool:
    """Whether a line begins a new block although a paragraph is open. In a list or table any item does; in a
    paragraph only a non-empty one and, if numbered, the first."""
    body = line.body
    if line.indent >= _CODE_INDENT or body[0] not in _SPECIAL:
        return False
    if body[0] == ">" or _ATX.match(body) or _FENCE.match(body) or _is_rule(body):
        return not (body[0] == "-" and not listed and _SETEXT.match(body))
    if item := _item(line.indent, body):
        return listed or (bool(item.body) and item.ordinal == 1)
    return _html(body, alone=False) is not None


def _atx(line: _Line) -> tuple[int, str] | None:
    match = _ATX.match(line.body) if line.body[0] == "#" else None
    if match is None:
        return None
    return len(match[1]), _ATX_CLOSE.sub("", line.body[match.end() :].strip())


def _is_rule(body: str) -> bool:
    if not body or body[0] not in _RULE_SIGNS:
        return False
    signs = body.replace(" ", "").replace("\t", "")
    return len(signs) >= _RULE_LENGTH and signs.count(body[0]) == len(signs)


def _closes_fence(body: str, sign: str) -> bool:
    return len(body) >= len(sign) and body.count(sign[0]) == len(body)


def _item(indent: int, body: str) -> _Item | None:
    if bullet := _BULLET.match(body):
        sign, space, ordinal = bullet[1], bullet[2], 1
        length = 1
        rest = body[bullet.end() :]
    elif number := _NUMBER.match(body):
        sign, space, ordinal = number[2], number[3], int(number[1])
        length = len(number[1]) + 1
        rest = body[number.end() :]
    else:
        return None
    width = _width(space, indent + length) if space else 1
    return _Item(sign, indent + length + (width if width <= _TAB else 1), rest, ordinal)


def _width(space: str, column: int) -> int:
    """The number of columns of whitespace at this position."""
    if "\t" not in space:
        return len(space)
    at = column
    for sign in space:
        at += _TAB - at % _TAB if sign == "\t" else 1
    return at - column


def _html(body: str, *, alone: bool) -> _Html | None:
    """A raw HTML block; an inline tag counts only if no paragraph is open."""
    if body[0] != "<":
        return None
    for begin, end in _HTML_KINDS:
        if begin.match(body):
            return _Html(end, body)
    if _HTML_BLOCK.match(body) or (alone and _HTML_LONE_TAG.match(body)):
        return _Html(None, body)
    return None


def _is_delimiter_row(line: _Line, header: _Line) -> bool:
    """Whether this is the `---|---` line under a table's first row, with as many cells."""
    if "|" not in header.body or header.indent >= _CODE_INDENT or not _DELIMITERS.match(line.body):
        return False
    if line.body[0] == "-" and line.body[1:2] in {" ", "\t", ""}:
        return False
    cells = [cell.strip() for cell in line.body.split("|")]
    inner = [cell for place, cell in enumerate(cells) if cell or 0 < place < len(cells) - 1]
    return bool(inner) and all(map(_DELIMITER.match, inner)) and len(inner) == _cells(header.body)


def _cells(row: str) -> int:
    bare = _ESCAPED_BAR.sub("", row.strip()) if "\\" in row else row.strip()
    return bare.count("|") + 1 - bare.startswith("|") - (bare.endswith("|") and len(bare) > 1)
