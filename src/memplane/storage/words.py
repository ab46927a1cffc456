"""Text as an index sees it, for every script and both database engines.

Full-text engines split on spaces, so scripts that do not write them would be one long word. Runs of
such a script become overlapping pairs of characters, plus the last one alone, so that every character
begins a token and a single one can be looked up as a prefix.
"""

import re
import threading
import unicodedata
from collections.abc import Sequence
from typing import Any

import apsw

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u0f00-\u0fff"  # Tibetan
    "\u1000-\u109f"  # Myanmar
    "\u1100-\u11ff"  # Hangul Jamo
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u3100-\u31ff"  # Kana, Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # CJK ideographs
    "\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\U00020000-\U0003ffff"  # CJK extensions
)
_RUN = re.compile(f"[{_UNSPACED}]+")

# A pair is the shortest run that is looked up whole; one character alone is looked up as a prefix.
_PAIR = 2

TOKENIZER_OPTIONS = ("remove_diacritics", "2", "categories", "L* N* M* Co So")
"""What the schema's indexes are made with; marks belong to words, symbols such as emoji are words."""

_local = threading.local()


def index_text(text: str) -> str:
    """What is handed to the index; the same text always gives the same result, so it can be deleted again."""
    if text.isascii():
        return text
    return _RUN.sub(_pairs, unicodedata.normalize("NFKC", text))


def query_text(text: str) -> str:
    """A question, prepared the same way."""
    if text.isascii():
        return text
    return _RUN.sub(_query_pairs, unicodedata.normalize("NFKC", text))


def is_prefix(word: str) -> bool:
    """Whether a query word stands for every token that begins with it."""
    return len(word) < _PAIR and _RUN.fullmatch(word) is not None


def words_of(text: str) -> list[str]:
    """The words of a question as the index splits them, folded but not stemmed."""
    return _tokens(query_text(text), "unicode61")


def stems_of(text: str) -> list[str]:
    """The tokens the index holds for a text."""
    return _tokens(index_text(text), "porter", "unicode61")


def holds_any(text: str, words: Sequence[str]) -> bool:
    """Whether the index would find the text by any of these words."""
    stems = frozenset(stems_of(text))
    return any(
        any(stem.startswith(word) for stem in stems) if is_prefix(word) else stems.issuperset(stems_of(word))
        for word in words
    )


def _tokens(text: str, *tokenizer: str) -> list[str]:
    found = _tokenizer(tokenizer)(
        text.encode("utf-8"), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False
    )
    return [token for tokens in found for token in tokens]


def _tokenizer(names: tuple[str, ...]) -> Any:
    """One per thread: a tokenizer belongs to a connection and a connection to one thread at a time."""
    kept: dict[tuple[str, ...], Any] | None = getattr(_local, "tokenizers", None)
    if kept is None:
        kept = _local.tokenizers = {}
        _local.connection = apsw.Connection(":memory:")
    if names not in kept:
        kept[names] = _local.connection.fts5_tokenizer(names[0], [*names[1:], *TOKENIZER_OPTIONS])
    return kept[names]


def _pairs(match: re.Match[str]) -> str:
    run = match.group()
    return " " + " ".join(run[i : i + _PAIR] for i in range(len(run))) + " "


def _query_pairs(match: re.Match[str]) -> str:
    run = match.group()
    pairs = [run[i : i + _PAIR] for i in range(max(1, len(run) - 1))]
    return " " + " ".join(pairs) + " "
