"""Numbers in digits and words: cardinals, ordinals, fractions and vague small amounts."""

from memplane.extract.time.tokens import TokenLine
from memplane.extract.time.words import CARDINAL, ORDINAL, ORDINAL_SUFFIX, TENS

Found = tuple[int, float]
_UNITS_MAX = 9
_DENOMINATORS = frozenset({2, 4})


def cardinal(line: TokenLine, at: int) -> tuple[int, int] | None:
    """`12`, `twelve`, `twenty-three`, `two hundred`: the next index and the number."""
    number = line.number(at)
    if number is not None:
        return at + 1, number
    word = line.word(at)
    if word in TENS:
        following = at + 2 if line.word(at + 1) == "-" else at + 1
        unit = CARDINAL.get(line.word(following), 0)
        return (following + 1, TENS[word] + unit) if 0 < unit <= _UNITS_MAX else (at + 1, TENS[word])
    if word not in CARDINAL:
        return None
    if line.word(at + 1) == "hundred":
        return at + 2, CARDINAL[word] * 100
    return at + 1, CARDINAL[word]


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
    if word in {"a", "an", "the"}:
        return (
            _fraction_words(line, at + 1) or _vague(line, at + 1) or ((at + 1, 1) if word != "the" else None)
        )
    return _vague(line, at) or _fraction_digits(line, at) or _counted(line, at)


def _vague(line: TokenLine, at: int) -> Found | None:
    word = line.word(at)
    if word in {"couple", "pair"}:
        return (at + 2 if line.word(at + 1) == "of" else at + 1), 2
    if word == "few":
        return at + 1, 3
    return None


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
