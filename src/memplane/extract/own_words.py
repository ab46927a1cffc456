"""Which part of a turn a user wrote, and which part is a pasted text.

A pasted mail or page may contain `always answer …`. An instruction applies to every later turn, so it is read only where it is the
user's own: not after what introduces a text, not in a quotation or in markup, and only on the first line of a turn or alone on its
last. Some instructions are missed this way; they are still found like any other turn.
"""

import re
from collections.abc import Iterator

_CHARS_MAX = 600
"""In a longer turn only the first and the last sentence are read."""
_CHARS_READ_MAX = 2_000
"""In a longer turn only the first sentence is read: its end is pasted."""
_SENTENCE_END = re.compile(r"[.!?…\u3002\uff01\uff1f\n]")
_SENTENCE_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f")
_WORD = re.compile(r"\w")
_FIRST_LINE = re.compile(
    # Hi Claude, and the line after it
    r"\s*(?:\w[^\n,.!?:]{0,40},[ \t\r]*\n)?[^\n]*"
)
_INTRODUCTION = re.compile(
    # Reply to this mail for me: …
    r"[:\ufe55\u2236](?=[\s\u200b-\u200d]|\Z)|\uff1a"
    # <p>, <!-- …
    r"|(?<!\w)</?[a-z][\w:-]{0,40}(?:\s[^<>]{0,400})?/?>|<!--|&\#?\w{1,8};|\[quote"
    # Lines: ---, # Heading, | a table |
    r"|^[ \t]*(?:[-=*_~]{3}|#{1,6}[ ]|\|)"
    # Lines after the first: Hi Ann,
    r"|(?<=\n)[ \t]*\w[^\n,.!?]{0,40},[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_TASK = re.compile(
    # Summarize this document
    r"\b(?:summari[sz]e|translate|rewrite|rephrase|paraphrase|proofread|reply to|respond to|answer|analy[sz]e|review|correct|edit|fix"
    r"|improve|shorten|polish|classify|explain|check)\b[^\n]{0,60}\b(?:this|these|following|below|attached|e-?mail|letter|message"
    r"|document|article|text|page|post|ticket|transcript|notes)\b[^\n]{0,80}\n"
    # The same in other languages
    r"|(?:\b(?:fass|übersetz|korrigier|res[uú]m|trad[uú][cizs]|corrig|riassum|перев[её]д|резюмир|исправ|samenvat|vertaal|streść|przetłumacz"
    r"|özetle|çevir)|总结|總結|翻译|翻譯|要約|翻訳|添削|요약|번역)[^\n]{0,80}\n",
    re.IGNORECASE,
)
_BLOCK_QUOTE = re.compile(r"^[ \t]*>.*(?:\n[ \t]*\S.*)*", re.MULTILINE)
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
_QUOTES = re.compile(
    '["`\u201c\u201d\u201e\u201a\u2018\u2019\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f]'
)
_CLOSING = {
    '"': '"',
    "`": "`",
    "\u201c": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u201a": "\u2018\u2019",
    "\u2039": "\u203a",
    "\u203a": "\u2039",
    "\u00ab": "\u00bb",
    "\u00bb": "\u00ab",
    "\u201d": "\u201d",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
}
_SINGLE_QUOTES = re.compile(r"(?P<opening>(?<!\w)['\u2018](?=\w))|(?<=[^\s'\u2018])['\u2019](?!\w)")


class OwnWords:
    """The user's own part of a turn."""

    def __init__(self, text: str) -> None:
        self._text = text
        introductions = (_INTRODUCTION.search(text), _TASK.search(text))
        self._end = min((found.end() for found in introductions if found), default=len(text))
        first = _FIRST_LINE.match(text)
        self._first_line_end = first.end() if first else 0
        self._quoted = [
            *(found.span() for found in _BLOCK_QUOTE.finditer(text)),
            *(found.span() for found in _BRACKETS.finditer(text)),
            *_quotations(text),
            *_single_quotations(text),
        ]

    def contain(self, start: int, end: int) -> bool:
        """Whether the sentence from `start` to `end` is in the user's own words."""
        if start >= self._end or any(begin < start < until for begin, until in self._quoted):
            return False
        if end <= self._first_line_end and (len(self._text) <= _CHARS_MAX or self._is_first(start)):
            return True
        return self._is_last(start, end)

    def _is_first(self, start: int) -> bool:
        return _SENTENCE_END.search(self._text, 0, start) is None

    def _is_last(self, start: int, end: int) -> bool:
        """Whether it ends the turn. On another line than the first, nothing else may be on that line, and a sentence must end
        before it: otherwise it is part of a list or a text."""
        text = self._text
        if len(text) > _CHARS_READ_MAX or _WORD.search(text, end) or "\n" in text[end:].rstrip():
            return False
        line = text.rfind("\n", 0, start) + 1
        return start < self._first_line_end or (
            not text[line:start].strip() and text[:line].rstrip().endswith(_SENTENCE_ENDS)
        )


def _quotations(text: str) -> Iterator[tuple[int, int]]:
    """One that is not closed reaches to the end."""
    opened, closing = 0, ""
    for mark in _QUOTES.finditer(text):
        if not closing:
            opened, closing = mark.start(), _CLOSING.get(mark.group(), "")
        elif mark.group() in closing:
            yield opened, mark.end()
            closing = ""
    if closing:
        yield opened, len(text)


def _single_quotations(text: str) -> Iterator[tuple[int, int]]:
    """Only those that are closed: most of these marks are apostrophes."""
    opened: int | None = None
    for mark in _SINGLE_QUOTES.finditer(text):
        if not mark["opening"]:
            if opened is not None:
                yield opened, mark.end()
            opened = None
        elif opened is None:
            opened = mark.start()
