"""Text as the word index sees it, for every script and both engines.

Full-text engines split on spaces, so a text in a script without spaces would be one long word. Runs of such a
script become overlapping pairs of characters, plus the last one alone, so that every character begins a token
and a single one can be found as a prefix. A symbol is a word of its own: `party🎉` is two words.
"""

import re
import threading
import unicodedata
from collections.abc import Sequence
from hashlib import sha256
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
# Written out rather than taken from `unicodedata`, which changes with Python: what was indexed under one version
# must come out the same under the next, or it cannot be deleted again.
_SYMBOL = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}"  # a flag is two letters
    "|[\u00a6\u00a9\u00ae\u00b0\u2103\u2109\u2116\u2117\u2120-\u2122"  # © ® ° ℃ № ™ and the like
    "\u2190-\u2bff"  # arrows, technical, enclosed letters, shapes, dingbats
    "\u3200-\u33ff"  # enclosed CJK, units
    "\U0001f000-\U0001faff]"  # emoji
)
_VARIATION = re.compile("[\ufe00-\ufe0f]")  # how a symbol is drawn, not which

INDEXED_CHARS_MAX = 1_000_000
"""Text after this many characters is stored, but not indexed."""

_STEM_CHARS_MAX = 200
_LONG_WORD = re.compile(r"\S{257}")
_PIECE = re.compile(r"\s+|\S{1,256}")

_BEGUN = "\uffff"
"""Marks a query word as a prefix. It is not a valid character and so in no text, and no input can contain the
operator."""

# A pair is the shortest run that is looked up whole; one character alone is looked up as a prefix.
_PAIR = 2

TOKENIZER_OPTIONS = ("remove_diacritics", "2", "categories", "L* N* M* Co So")
"""The options of the schema's indexes: marks belong to words, symbols such as emoji are words."""

_local = threading.local()


def index_text(text: str) -> str:
    """The text that is indexed; the same input always gives the same result, so that it can be deleted again."""
    return text[:INDEXED_CHARS_MAX] if text.isascii() else _RUN.sub(_pairs, _normalized(text))


def query_text(text: str) -> str:
    """A query, prepared the same way."""
    return text if text.isascii() else _RUN.sub(_query_pairs, _normalized(text))


def prefix_term(word: str) -> str:
    """A query word that matches every token that begins with it, such as a word that is still being typed."""
    return word + _BEGUN


def is_prefix(word: str) -> bool:
    """Whether a query word matches every token that begins with it."""
    return word.endswith(_BEGUN) or (len(word) < _PAIR and _RUN.fullmatch(word) is not None)


def prefix_of(word: str) -> str:
    """The prefix of a query word for which `is_prefix` holds."""
    return word.removesuffix(_BEGUN)


def words_of(text: str) -> list[str]:
    """The words of a query as the index splits them, folded but not stemmed."""
    return _tokens(query_text(text), "unicode61")


def stems_of(text: str) -> list[str]:
    """The tokens of a text in the index."""
    return _tokens(index_text(text), "porter", "unicode61")


def index_key(stem: str) -> str:
    """A stem as a table stores it: a key has a maximum size, a word has none."""
    if len(stem) <= _STEM_CHARS_MAX:
        return stem
    return stem[:64] + sha256(stem.encode()).hexdigest()


def matching_words(stems: frozenset[str], words: Sequence[str]) -> list[str]:
    """Those of the words with which the index would find a text with these stems."""
    return [word for word in words if _holds(stems, word)]


def _holds(stems: frozenset[str], word: str) -> bool:
    """As in the index: the word is split and stemmed, but not into pairs again. An empty word matches nothing."""
    if is_prefix(word):
        return any(stem.startswith(prefix_of(word)) for stem in stems)
    wanted = _tokens(word, "porter", "unicode61")
    return bool(wanted) and stems.issuperset(wanted)


def _normalized(text: str) -> str:
    text = _SYMBOL.sub(r" \g<0> ", _VARIATION.sub("", text[:INDEXED_CHARS_MAX]))
    if _LONG_WORD.search(text) is None:
        return unicodedata.normalize("NFKC", text)
    # Normalising sorts a run of combining marks, which takes the square of its length: long words go in pieces.
    return "".join(unicodedata.normalize("NFKC", piece) for piece in _PIECE.findall(text))


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
