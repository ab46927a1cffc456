"""Sentences of a document, as they stand in it. A paragraph may be wrapped over lines and a list has its items; rows
of a table, code, headings and rules are no sentences and never become part of one."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memplane.enrich.sentences import is_inside

SENTENCE_CHARS_MAX = 500
"""What is longer is not told as one sentence."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FENCE = re.compile(r"\s*(```|~~~)")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*$")
_RULE = re.compile(r"\W*$")
_APART = re.compile(r"\s*(?:<!--|<[/a-zA-Z][^>]*>\s*$|\[[^\]]+\]:\s)")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦]|\(?\d{1,6}[.)])\s+(?=\S)")
_QUOTED = re.compile(r"\s*>+\s?")
# A run of marks is only tried from its first one, so that a wall of dots costs no more than its length. Marks of
# scripts that write no spaces end a sentence whatever follows.
_END = re.compile(
    "(?<![.!?…])[.!?…]++[\"'”\u2019)\\]]*+(?=\\s|\\Z)|[。！？｡؟۔।॥።፧།༎។៕။]++[\"'”\u2019)\\]」』）】]*+"  # noqa: RUF001  # the marks of other scripts
)
_BROKEN = re.compile(r"\s*\n[\s>]*|\s+")
_UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u2e80-\ud7ff\U00020000-\U0003ffff]")
_LETTERS = re.compile(r"[^\W\d_]")
_LETTERS_SHARE_MIN = 0.5
_WORDS_MIN = 4
_HEADING_CHARS_MAX = 200


class Passage(NamedTuple):
    """A sentence: what `text[start:end]` says, on one line."""

    start: int
    end: int
    said: str

    @property
    def tells(self) -> bool:
        """Whether it can stand for more than itself: a statement of some length, in words."""
        letters = len(_LETTERS.findall(self.said))
        return (
            len(self.said) <= SENTENCE_CHARS_MAX
            and words_in(self.said) >= _WORDS_MIN
            and not self.said.endswith((":", "："))  # noqa: RUF001  # it leads to what follows and says nothing
            and letters >= _LETTERS_SHARE_MIN * len(self.said.replace(" ", ""))
        )


def words_in(text: str) -> int:
    """How many words a text has; where a script writes no spaces, two characters are one."""
    return len(text.split()) + (0 if text.isascii() else len(_UNSPACED.findall(text)) // 2)


def on_one_line(text: str) -> str:
    """The words as they stand, without the breaks of lines and the marks of a quotation at their beginning."""
    return _BROKEN.sub(" ", text).strip()


def passages_of(text: str, title: str | None = None, *, cut: bool = False) -> Iterator[Passage]:
    """The sentences of a section in order; its heading, `title`, is none of them. Of a text that was `cut`, the last
    sentence is not whole and left out."""
    for start, end in _paragraphs(text, title):
        yield from _sentences(text, start, end, cut=cut and end >= len(text.rstrip()))


def _paragraphs(text: str, title: str | None) -> Iterator[tuple[int, int]]:
    begun: int | None = None
    end = 0
    fence = ""
    heading = on_one_line(title or "")
    for found in _LINE.finditer(text):
        line = found.group()
        kind = _kind(line, fence, begun is not None)
        is_title = bool(heading) and kind in {"text", "item"} and _is_heading(line, heading)
        heading = "" if line.strip() else heading
        if is_title:
            continue
        if kind == "fence":
            fence = "" if fence else line.strip()[:3]
        elif kind == "underline" and begun is not None and end - begun <= _HEADING_CHARS_MAX:
            begun = None  # what stands over it is a heading
        elif kind == "text":
            if begun is None:
                quoted = _QUOTED.match(line)
                begun = found.start() + (quoted.end() if quoted else 0)
            end = found.end()
            continue
        if begun is not None:
            yield begun, end
            begun = None
        if kind == "item":
            item = _ITEM.match(line)
            assert item is not None
            begun, end = found.start() + item.end(), found.end()
    if begun is not None:
        yield begun, end


def _kind(line: str, fence: str, inside: bool) -> str:  # noqa: FBT001
    """What a line is, after what stands before it: `inside` a paragraph, or inside a fence of code."""
    opens = _FENCE.match(line)
    if fence:
        return "fence" if opens and opens[1] == fence else "code"
    if opens:
        return "fence"
    if inside and _UNDERLINE.match(line) and line.strip():
        return "underline"
    if _RULE.match(line) or _HEADING.match(line) or _APART.match(line) or _is_row(line):
        return "apart"
    if _ITEM.match(line):
        return "item"
    return "code" if not inside and _INDENTED.match(line) else "text"


def _is_row(line: str) -> bool:
    """Whether a line is one of a table: cells with bars or tabs between them."""
    inner = line.strip()
    return inner.startswith("|") or " | " in inner or inner.count("|") > 1 or "\t" in inner


def _is_heading(line: str, heading: str) -> bool:
    return on_one_line(line).strip("#* _").casefold() == heading.strip("#* _").casefold()


def _sentences(text: str, start: int, end: int, *, cut: bool) -> Iterator[Passage]:
    at = start
    for mark in _END.finditer(text, start, end):
        if mark.group() == "." and is_inside(text, at, mark.start()):
            continue
        if passage := _passage(text, at, mark.end()):
            yield passage
        at = mark.end()
    if not cut and (passage := _passage(text, at, end)):
        yield passage


def _passage(text: str, start: int, end: int) -> Passage | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Passage(start, end, on_one_line(text[start:end])) if start < end else None
