"""HTML: the visible text of a page, with the source position of every character.

Tags are scanned here rather than by the standard library's parser, which takes half a minute for 48 kilobytes of `<a
<a <a`. Each character is read a bounded number of times, and nothing recurses.
"""

import html
import re
from collections import Counter
from collections.abc import Collection

from memplane.documents.assembly import Assembly
from memplane.documents.parsed import BlockKind, ParseBudget, ParsedDocument, ParseLimits
from memplane.errors import DocumentUnreadable

_ATTRIBUTE = r"""([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"'][^\s>]*+))?+)?+"""
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)((?:[\s/]++|" + re.sub(r"\((?!\?)", "(?:", _ATTRIBUTE) + r")*+)>")
_SIMPLE_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)([^>]*+)>")
"""For text after a tag that never ends: quotes have no meaning there."""
_COMMENT_END = re.compile(r"--!?>")
_RUNS = re.compile(
    r"([^ \t\n\r\f\xa0&]++(?: [^ \t\n\r\f\xa0&]++)*+)|[ \t\n\r\f\xa0]++|(&(?:#[0-9]++|#[xX][0-9a-fA-F]++|[A-Za-z][A-Za-z0-9]{1,31});?|&)"
)
_VERBATIM_RUNS = re.compile(r"([^&]++)|(&(?:#[0-9]++|#[xX][0-9a-fA-F]++|[A-Za-z][A-Za-z0-9]{1,31});?|&)")
_WHITESPACE = " \t\n\r\f\xa0"
_HIDING = re.compile(r"display\s*+:\s*+none|visibility\s*+:\s*+(?:hidden|collapse)", re.IGNORECASE)

_RAW = frozenset({"script", "style", "noscript", "iframe", "noembed", "noframes", "title", "textarea"})
"""Elements whose text is not markup, up to their end tag. Only title and textarea are read."""
_UNSEEN = frozenset({"template", "svg", "math", "datalist", "object", "nav"})
"""`nav` is visible, but a menu is not part of the document."""
_VOID = frozenset(
    {
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    }
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "menu", "dir", "dl"})
_CELLS = frozenset({"td", "th"})
_BLOCKS = (
    frozenset(
        [
            "address",
            "article",
            "aside",
            "blockquote",
            "body",
            "caption",
            "center",
            "dd",
            "details",
            "dialog",
            "div",
            "dt",
            "fieldset",
            "figcaption",
            "figure",
            "footer",
            "form",
            "header",
            "hgroup",
            "html",
            "legend",
            "li",
            "main",
            "optgroup",
            "option",
            "p",
            "pre",
            "search",
            "section",
            "summary",
            "table",
            "tbody",
            "tfoot",
            "thead",
            "tr",
        ]
    )
    | frozenset(_HEADINGS)
    | _LISTS
    | _CELLS
    | _UNSEEN
)
_ENDS_WHEN = {
    "li": (frozenset({"li"}), _LISTS),
    "dt": (frozenset({"dt", "dd"}), _LISTS),
    "dd": (frozenset({"dt", "dd"}), _LISTS),
    "td": (_CELLS, frozenset({"tr", "table"})),
    "th": (_CELLS, frozenset({"tr", "table"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    "thead": (frozenset({"thead", "tbody", "tfoot"}), frozenset({"table"})),
    "tbody": (frozenset({"thead", "tbody", "tfoot"}), frozenset({"table"})),
    "tfoot": (frozenset({"thead", "tbody", "tfoot"}), frozenset({"table"})),
}
"""Elements whose end tags may be omitted: which open ones a new one closes, and where the search for them stops."""
_TABLE_PARTS = frozenset({"table", "tr", "tbody", "thead", "tfoot", "template"}) | _CELLS
"""A stray end tag inside one of these affects nothing outside."""
_INDENT_MAX = 8
_ENTITY_NUMBER_MAX = 32
_CHECK_EVERY = 4_096


def parse_html(source: str, limits: ParseLimits, budget: ParseBudget) -> ParsedDocument:
    reader = _Reader(source, limits, budget)
    reader.read()
    return reader.out.parsed(reader.title)


class _Reader:
    """Walks the tags of a page and writes the text between them."""

    def __init__(self, source: str, limits: ParseLimits, budget: ParseBudget) -> None:
        self.out = Assembly(budget)
        self.title = ""
        self._source = source
        self._depth_max = limits.depth
        self._budget = budget
        self._last_tag_end = source.rfind(">")
        self._tag = _TAG
        self._unended: set[str] = set()
        self._flow = _Flow(self.out)
        self._stack: list[str] = []
        self._count: Counter[str] = Counter()
        self._hidden_depth: int | None = None
        """The depth of the element that hides its content."""
        self._hidden_name = ""
        self._hidden_nested = 0

    def read(self) -> None:
        source, position, steps = self._source, 0, 0
        while True:
            start = source.find("<", position)
            if start < 0 or (start > self._last_tag_end and not source.startswith("<!--", start)):
                break
            if start > position:
                self._text(position, start)
            position = self._markup(start)
            steps += 1
            if not steps % _CHECK_EVERY:
                self._budget.check(self.out.chars)
        self._text(position, len(source))

    def _markup(self, start: int) -> int:
        """Read markup that begins with `<` here; return where the text continues."""
        source = self._source
        sign = source[start + 1 : start + 2]
        if sign in {"!", "?"} or (sign == "/" and not source[start + 2 : start + 3].isalpha()):
            return self._comment(start)
        if not (sign == "/" or (sign.isascii() and sign.isalpha())):
            self._text(start, start + 1)
            return start + 1
        tag = self._tag.match(source, start)
        if tag is None:
            self._tag = _SIMPLE_TAG
            tag = _SIMPLE_TAG.match(source, start)
        if tag is None:
            self._text(start, start + 1)
            return start + 1
        name = tag[2].lower()
        if tag[1]:
            self._end_tag(name)
            return tag.end()
        if name in _RAW:
            return self._raw(name, tag.end())
        self._start_tag(name, tag[3])
        return tag.end()

    def _comment(self, start: int) -> int:
        """Comments, declarations, processing instructions. An unterminated one hides the rest, as in a browser."""
        source = self._source
        if not source.startswith("<!--", start):
            return source.index(">", start) + 1
        if source.startswith(("<!-->", "<!--->"), start):
            return source.index(">", start) + 1
        end = _COMMENT_END.search(source, start + 4)
        return end.end() if end else len(source)

    def _raw(self, name: str, start: int) -> int:
        if name in self._unended:
            return start
        end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(self._source, start)
        if end is None:
            self._unended.add(name)
            return len(self._source) if name in {"script", "style"} else start
        if name == "title" and not self.title and self._hidden_depth is None:
            self.title = " ".join(
                html.unescape(self._source[start : min(end.start(), start + 2_000)]).split()
            )
        elif name == "textarea":
            self._text(start, end.start())
        return self._source.find(">", end.end()) + 1 or len(self._source)

    def _start_tag(self, name: str, attributes: str) -> None:
        if name in _BLOCKS:
            self._start_block(name, attributes)
        elif name in _VOID:
            self._void(name)
        elif self._hidden_depth is None:
            if attributes and _hides(attributes) and not attributes.endswith("/"):
                self._hidden_depth, self._hidden_name, self._hidden_nested = len(self._stack) + 1, name, 1
        elif name == self._hidden_name:
            self._hidden_nested += 1

    def _start_block(self, name: str, attributes: str) -> None:
        self._imply_ends(name)
        self._push(name)
        if self._hidden_depth is None:
            if name in _UNSEEN or _hides(attributes):
                self._hidden_depth = len(self._stack)
            else:
                self._flow.opened(name)

    def _void(self, name: str) -> None:
        if name == "hr":
            self._end_paragraph()
        if self._hidden_depth is None and name in {"br", "hr"}:
            self._flow.line_break() if name == "br" else self._flow.block()

    def _end_tag(self, name: str) -> None:
        if name not in _BLOCKS:
            if name == self._hidden_name:
                self._hidden_nested -= 1
                if not self._hidden_nested:
                    self._show()
            return
        sought = _HEADINGS.keys() if name in _HEADINGS else {name}
        if not any(self._count[each] for each in sought):
            if name == "p" and self._hidden_depth is None:
                self._flow.block()
            return
        depth = self._find(sought, frozenset({"table"}) if name in _TABLE_PARTS else _TABLE_PARTS)
        if depth is not None:
            self._pop_to(depth)

    def _imply_ends(self, name: str) -> None:
        self._end_paragraph()
        if rule := _ENDS_WHEN.get(name):
            sought, walls = rule
            if any(self._count[each] for each in sought):
                depth = self._find(sought, walls)
                if depth is not None:
                    self._pop_to(depth)
        elif name in _HEADINGS and self._stack and self._stack[-1] in _HEADINGS:
            self._pop_to(len(self._stack) - 1)

    def _end_paragraph(self) -> None:
        """A paragraph contains only inline elements, which are not tracked, so an open one is the last."""
        if self._stack and self._stack[-1] == "p":
            self._pop_to(len(self._stack) - 1)

    def _find(self, sought: Collection[str], walls: frozenset[str]) -> int | None:
        for depth in range(len(self._stack) - 1, -1, -1):
            name = self._stack[depth]
            if name in sought:
                return depth
            if name in walls:
                return None
        return None

    def _push(self, name: str) -> None:
        if len(self._stack) >= self._depth_max:
            raise DocumentUnreadable(
                f"the HTML nests more than {self._depth_max:,} elements deep; flatten it"
            )
        self._stack.append(name)
        self._count[name] += 1

    def _pop_to(self, depth: int) -> None:
        while len(self._stack) > depth:
            name = self._stack.pop()
            self._count[name] -= 1
            if self._hidden_depth is None:
                self._flow.closed(name)
            elif len(self._stack) < self._hidden_depth - bool(self._hidden_name):
                inline = bool(self._hidden_name)
                self._show()
                if inline:
                    self._flow.closed(name)

    def _show(self) -> None:
        self._hidden_depth, self._hidden_name = None, ""

    def _text(self, start: int, end: int) -> None:
        if self._hidden_depth is None and end > start:
            self._flow.text(self._source, start, end)


class _Flow:
    """What open elements mean for the text: its block, and the separators between runs."""

    def __init__(self, out: Assembly) -> None:
        self._out = out
        self._heading = 0
        self._verbatim = 0
        self._lists: list[int] = []
        """The number of items per open list; negative for lists without numbers."""
        self._tables: list[bool] = []
        """Per open table, whether it is only a layout: it contains another table."""
        self._fresh = False
        self._bars = 0
        self._row_begun = False
        self._cells = 0

    def opened(self, name: str) -> None:
        if name in _HEADINGS:
            self._heading = _HEADINGS[name]
            self._begin()
        elif name == "pre":
            self._verbatim += 1
            self._begin()
        elif name in _LISTS:
            self._open_container(self._lists, 0 if name == "ol" else -1)
        elif name == "table":
            self._open_table()
        elif name == "li":
            self._item()
        elif name == "tr" and not self._arranging():
            self._end_row()
        elif name in _CELLS and not self._arranging():
            self._cell()
        else:
            self.block()

    def closed(self, name: str) -> None:
        if name in _HEADINGS:
            self._out.end()
            self._heading = 0
            self._begin()
        elif name == "pre":
            self._verbatim = max(0, self._verbatim - 1)
            self._begin()
        elif name in _LISTS and self._lists:
            self._lists.pop()
            self._close_container()
        elif name == "table" and self._tables:
            self._end_row()
            self._tables.pop()
            self._close_container()
        elif name == "tr" and not self._arranging():
            self._end_row()
        elif name in _CELLS and not self._arranging():
            self._out.line()
            self._fresh = False
        else:
            self.block()

    def block(self) -> None:
        """A separator between paragraphs: a space in a heading, a line break in a list or table."""
        if self._heading:
            self._out.space()
        elif self._verbatim or self._contained():
            if not self._fresh:
                self._out.line()
        else:
            self._begin()

    def line_break(self) -> None:
        if self._heading:
            self._out.space()
        elif not self._fresh:
            self._out.line()

    def text(self, source: str, start: int, end: int) -> None:
        verbatim = self._verbatim and not self._heading
        out = self._out
        if verbatim and out.empty and source.startswith("\n", start):
            start += 1
        for run in (_VERBATIM_RUNS if verbatim else _RUNS).finditer(source, start, end):
            if run[1]:
                self._write(run[1], run.start())
            elif run[2]:
                told = _entity_text(run[2])
                if verbatim or told.strip(_WHITESPACE):
                    self._write(told, run.start())
                elif told:
                    out.space()
            else:
                out.space()

    def _write(self, run: str, source: int) -> None:
        if not run:
            return
        if self._bars:
            self._out.prefix(" | " * self._bars if self._row_begun else "| " * self._bars)
            self._bars = 0
        self._fresh = False
        self._row_begun = True
        self._out.write(run, source)

    def _begin(self) -> None:
        """A new block, of the kind determined by the open elements."""
        if self._heading:
            self._out.begin(BlockKind.HEADING, self._heading)
        elif self._verbatim:
            self._out.begin(BlockKind.CODE)
        elif self._tables and not self._arranging():
            self._out.begin(BlockKind.TABLE)
        else:
            self._out.begin(BlockKind.LIST if self._lists else BlockKind.PARAGRAPH)

    def _contained(self) -> bool:
        return bool(self._lists) or (bool(self._tables) and not self._arranging())

    def _arranging(self) -> bool:
        return not self._tables or self._tables[-1]

    def _open_container(self, container: list[int], first: int) -> None:
        inner = self._contained() or self._heading
        container.append(first)
        if inner:
            self._out.line()
        else:
            self._begin()

    def _open_table(self) -> None:
        """A nested table means that the outer one is a layout table."""
        self._tables = [True] * len(self._tables)
        self._tables.append(False)
        self._bars = 0
        self._begin()

    def _close_container(self) -> None:
        if self._contained():
            self._out.line()
        else:
            self._begin()

    def _item(self) -> None:
        self._out.line()
        sign = "- "
        if self._lists and self._lists[-1] >= 0:
            self._lists[-1] += 1
            sign = f"{self._lists[-1]}. "
        self._out.prefix("  " * min(max(len(self._lists) - 1, 0), _INDENT_MAX) + sign)
        self._fresh = True

    def _cell(self) -> None:
        if self._cells:
            self._bars += 1
        if self._row_begun:
            self._out.no_gap()
        self._cells += 1
        self._fresh = True

    def _end_row(self) -> None:
        self._out.line()
        self._bars = self._cells = 0
        self._row_begun = False
        self._fresh = False


def _entity_text(entity: str) -> str:
    """The characters of an entity. A number out of range is not evaluated."""
    if entity.startswith("&#") and len(entity) > _ENTITY_NUMBER_MAX:
        return "\N{REPLACEMENT CHARACTER}"
    return html.unescape(entity)


def _hides(attributes: str) -> bool:
    """Whether an element's attributes hide it."""
    if "hidden" not in (lower := attributes.lower()) and "none" not in lower and "collapse" not in lower:
        return False
    for attribute in _ATTRIBUTES.finditer(attributes):
        name = attribute[1].lower()
        if name == "hidden":
            return True
        if name == "style" and _HIDING.search(attribute[2] or attribute[3] or attribute[4] or ""):
            return True
    return False
