"""Whether a text is English, which selects the encoder that embeds it.

Letters of other scripts count against English. In Latin script, a linear function of words and their n-grams decides;
`training/language.py` fits it. The evidence of all tokens is added up, so the larger part of a mixed text decides. Capitalised words count
half, because they may be names; numbers, code and addresses count nothing. A text without evidence counts as English.
"""

import re
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from zlib import crc32

import msgspec
import numpy as np

SIZE = 1 << 16
"""The number of buckets that features are hashed to."""
_NGRAMS = (2, 3, 4)
_CHARS_MAX = 2_000
"""About what an encoder reads of a text."""
_TOKEN_CHARS_MAX = 48
_TOKENS_CACHED = 16_384
_WORD_MAX = 4.0
"""The most that one word counts, so that no single word decides about a sentence."""
_CAPITALISED = 0.5
"""The weight of a word that may be a name."""
_ACRONYM_MAX = 5
_NOT_PROSE = re.compile(r"[\d_@\\/{}<>=`|$#~^*+]|\w[.:(\[]\w|^[-.]\w")
"""Numbers, addresses, paths and code."""
_WORD = re.compile(r"[^\W\d_]+")
_LATIN_LAST = "\u024f"
_LATIN_MORE = ("\u1e00", "\u1eff")
_DENSE_FIRST = "\u2e80"
"""From here on, most letters are syllables or whole words."""
_DENSE_LETTER = -3.0
_LETTER = -1.0
"""The evidence of a letter of another script."""


def is_english(text: str) -> bool:
    """Whether a text is mostly English; True without evidence."""
    return evidence(text) > 0.0


def evidence(text: str) -> float:
    """The evidence for English; for Latin script, a logit."""
    return _table().bias + sum(map(_token_evidence, text[:_CHARS_MAX].split()))


def words_of(token: str) -> list[str]:
    """The words in a piece of text between spaces; none in a number, an address or code."""
    return [] if len(token) > _TOKEN_CHARS_MAX or _NOT_PROSE.search(token) else _WORD.findall(token)


def features_of(word: str) -> list[int]:
    """The buckets of a word's features: the word itself and its n-grams."""
    first = b"^" if word[0].isupper() and not word.isupper() else b"<"
    padded = first + word.lower().encode("utf-8", "replace") + b">"
    parts = [
        padded[start : start + length] for length in _NGRAMS for start in range(len(padded) - length + 1)
    ]
    return [crc32(part) % SIZE for part in (b"=" + padded, *parts)]


@lru_cache(_TOKENS_CACHED)
def _token_evidence(token: str) -> float:
    """An address counts nothing in any script; in other scripts, numbers and words share a token."""
    if not token.isascii() and "://" not in token and (other := sum(map(_letter_evidence, token))):
        return other
    return sum(map(_word_evidence, words_of(token)))


def _letter_evidence(letter: str) -> float:
    if letter <= _LATIN_LAST or _LATIN_MORE[0] <= letter <= _LATIN_MORE[1] or not letter.isalpha():
        return 0.0
    return _DENSE_LETTER if letter >= _DENSE_FIRST else _LETTER


def _word_evidence(word: str) -> float:
    if word.isupper() and 1 < len(word) <= _ACRONYM_MAX:
        return 0.0
    table = _table()
    found = sum(map(table.steps.__getitem__, features_of(word))) * table.scale
    found = max(-_WORD_MAX, min(_WORD_MAX, found))
    return found * _CAPITALISED if word[0].isupper() and len(word) > 1 else found


class _Table(msgspec.Struct, frozen=True):
    steps: memoryview
    """One signed byte per bucket."""
    scale: float
    bias: float


def language_weights() -> Path:
    """The file with the fitted weights."""
    return Path(str(resources.files("memplane.models").joinpath("weights", "memplane-embed", "language.npz")))


@cache
def _table() -> _Table:
    with np.load(language_weights()) as found:
        steps = memoryview(found["steps"].astype(np.int8).tobytes()).cast("b")
        return _Table(steps, float(found["scale"]), float(found["bias"]))
