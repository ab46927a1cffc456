"""A line of tokens: words, digits and signs, each with its place in the text."""

import re
from bisect import bisect_left
from typing import NamedTuple

from memplane.extract.time.words import CARDINAL, ORDINAL, ORDINAL_SUFFIX, TENS, VAGUE

_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"
_DASHES = "\N{EN DASH}\N{EM DASH}\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{MINUS SIGN}"
_PLAIN = str.maketrans({_APOSTROPHE: "'"} | dict.fromkeys(_DASHES, "-"))
"""One character for one, so that places in the text stay the same."""
_TOKEN = re.compile(r"[0-9]+|[^\W\d_]+(?:'[^\W\d_]+)*|[^\s\w]")
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
        plain = text if text.isascii() else text.translate(_PLAIN)
        self.tokens = [_token(match) for match in _TOKEN.finditer(plain)]
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
    start, end = match.span()
    if "0" <= raw[0] <= "9":
        return Token(raw, start, end, int(raw) if len(raw) <= _DIGITS_MAX else None)
    return Token(raw.lower(), start, end, None)


# Numbers in digits and words: cardinals, ordinals, fractions and vague small amounts.


Found = tuple[int, float]
_UNITS_MAX = 9
_DENOMINATORS = frozenset({2, 4})


def cardinal(line: TokenLine, at: int) -> tuple[int, int] | None:
    """`12`, `twelve`, `twenty-three`, `two hundred and ten`: the next index and the number."""
    number = line.number(at)
    if number is not None:
        return at + 1, number
    found = small(line, at)
    if found is None or line.word(found[0]) != "hundred":
        return found
    end, hundreds = found[0] + 1, found[1] * 100
    rest = small(line, end + (line.word(end) == "and"))
    return (rest[0], hundreds + rest[1]) if rest else (end, hundreds)


def small(line: TokenLine, at: int) -> tuple[int, int] | None:
    """A number below a hundred in words."""
    word = line.word(at)
    if word in TENS:
        following = at + 2 if line.word(at + 1) == "-" else at + 1
        unit = CARDINAL.get(line.word(following), 0)
        return (following + 1, TENS[word] + unit) if 0 < unit <= _UNITS_MAX else (at + 1, TENS[word])
    return (at + 1, CARDINAL[word]) if word in CARDINAL else None


def ordinal(line: TokenLine, at: int) -> tuple[int, int] | None:
    """`5th`, `7 th`, `fifth`, `twenty-first`."""
    number = line.number(at)
    if number is not None:
        return (at + 2, number) if line.word(at + 1) in ORDINAL_SUFFIX else None
    word = line.word(at)
    if word in ORDINAL:
        return at + 1, ORDINAL[word]
    if word in TENS:
        following = at + 2 if line.word(at + 1) == "-" else at + 1
        unit = ORDINAL.get(line.word(following), 0)
        if 0 < unit <= _UNITS_MAX:
            return following + 1, TENS[word] + unit
    return None


def amount(line: TokenLine, at: int) -> Found | None:
    """How many units: `2`, `2.5`, `1/2`, `a`, `half an`, `a couple of`, `a few`, `two and a half`."""
    if line.word(at) in {"about", "around", "roughly", "approximately", "just", "over", "almost", "nearly"}:
        at += 1
    word = line.word(at)
    if word == "another":
        return _vague(line, at + 1) or (at + 1, 1)
    if word in {"half", "quarter", "three"}:
        found = _fraction_words(line, at)
        if found is not None:
            return found
    if word in {"a", "an"} and line.word(at + 1) == "hundred":
        return at + 2, 100
    if word in {"a", "an", "the"}:
        return (
            _fraction_words(line, at + 1) or _vague(line, at + 1) or ((at + 1, 1) if word != "the" else None)
        )
    return _vague(line, at) or _fraction_digits(line, at) or _counted(line, at)


def _vague(line: TokenLine, at: int) -> Found | None:
    word = line.word(at)
    if word not in VAGUE:
        return None
    return (at + 2 if line.word(at + 1) == "of" else at + 1), 2 if word in {"couple", "pair"} else 3


def _fraction_words(line: TokenLine, at: int) -> Found | None:
    """`half an hour`, `quarter of an hour`, `three quarters of an hour`."""
    value = {"half": 0.5, "quarter": 0.25}.get(line.word(at))
    end = at + 1
    if line.word(at) == "three":
        end = at + 2 if line.word(at + 1) == "-" else at + 1
        value, end = (0.75, end + 1) if line.word(end) == "quarters" else (None, end)
    if value is None:
        return None
    if line.word(end) == "of":
        end += 1
    return (end + 1, value) if line.word(end) in {"a", "an"} else None


def _fraction_digits(line: TokenLine, at: int) -> Found | None:
    """`2.5` and `1/2`, written without spaces."""
    whole, part = line.number(at), line.number(at + 2)
    if whole is None or part is None or not (line.glued(at + 1) and line.glued(at + 2)):
        return None
    if line.word(at + 1) == ".":
        return at + 3, float(f"{whole}.{line.word(at + 2)}")
    if line.word(at + 1) == "/" and part in _DENOMINATORS:
        return at + 3, whole / part
    return None


def _counted(line: TokenLine, at: int) -> Found | None:
    found = cardinal(line, at)
    if found is None:
        return None
    end, number = found
    if line.word(end) == "and" and line.word(end + 1) in {"a", "an"} and line.word(end + 2) == "half":
        return end + 3, number + 0.5
    return end, number
