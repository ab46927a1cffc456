"""A line of tokens: words, digits and signs, each with its place in the text."""

import re
from bisect import bisect_left
from typing import NamedTuple

_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"
_DASHES = "\N{EN DASH}\N{EM DASH}\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{MINUS SIGN}"
_TOKEN = re.compile(rf"[0-9]+|[^\W\d_]+(?:['{_APOSTROPHE}][^\W\d_]+)*|[^\s\w]")
_DIGITS_MAX = 9


class Token(NamedTuple):
    text: str
    """In lower case, with straight apostrophes and hyphens."""
    start: int
    end: int
    number: int | None


class TokenLine:
    """The text of one mention search. Reading past either end gives an empty word, so rules need no bounds checks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [_token(match) for match in _TOKEN.finditer(text)]
        self._starts = [token.start for token in self.tokens]

    def __len__(self) -> int:
        return len(self.tokens)

    def word(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def number(self, index: int) -> int | None:
        return self.tokens[index].number if 0 <= index < len(self.tokens) else None

    def digits(self, index: int) -> int:
        """How many digits were written, leading zeros included."""
        return len(self.tokens[index].text) if self.number(index) is not None else 0

    def glued(self, index: int) -> bool:
        """Whether nothing stands between this token and the one before it."""
        return 0 < index < len(self.tokens) and self.tokens[index].start == self.tokens[index - 1].end

    def breaks(self, index: int) -> bool:
        """Whether a new line starts between this token and the one before: no expression goes on behind it."""
        if not 0 < index < len(self.tokens):
            return False
        return "\n" in self.text[self.tokens[index - 1].end : self.tokens[index].start]

    def capital(self, index: int) -> bool:
        return 0 <= index < len(self.tokens) and self.text[self.tokens[index].start].isupper()

    def after(self, position: int) -> int:
        """The first token at or after a character position."""
        return bisect_left(self._starts, position)


def _token(match: re.Match[str]) -> Token:
    raw = match.group()
    if raw.isascii() and raw.isdigit():
        number = int(raw) if len(raw) <= _DIGITS_MAX else None
        return Token(raw, match.start(), match.end(), number)
    text = raw.lower().replace(_APOSTROPHE, "'")
    return Token("-" if text in _DASHES else text, match.start(), match.end(), None)
