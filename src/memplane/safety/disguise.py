"""What a text says under a disguise: letters apart or run together, digits for letters, tags inside words, and layers
of encoding. Every step is linear in the text, and what is decoded is bounded."""

import re
from base64 import b64decode
from binascii import Error as NoBase64
from codecs import decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from html import unescape
from urllib.parse import unquote

from memplane.safety.fold import fold
from memplane.safety.vocabulary import WORD, vocabulary

BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}")
_BLOBS_MAX = 8
_BLOB_CHARS_MAX = 4_096
_RUN_CHARS_MIN = 12
"""Encoded text has a run of at least this many letters and digits."""
_LAYERS_MAX = 3

_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});", re.IGNORECASE)
_PERCENT = re.compile(r"(?:%[0-9a-f]{2}){2}|%[0-9a-f]{2}[^\s%]{1,24}%[0-9a-f]{2}", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2}))", re.IGNORECASE)
_ESCAPES_MIN = 4
_TAG_IN_WORD = re.compile(r"(?<=\w)(?:<[/!]?[a-z-][^<>]{0,60}>){1,4}(?=\w)", re.IGNORECASE)
_HEX_PAIRS = re.compile(r"(?:(?:0x|\\x)?[0-9a-f]{2}[ ,:]{1,2}){11,2000}(?:0x)?[0-9a-f]{2}\b", re.IGNORECASE)
_HEX = re.compile(r"\b(?:[0-9a-f]{2}){12,2000}\b", re.IGNORECASE)
_PAIR = re.compile(r"[0-9a-f]{2}", re.IGNORECASE)
_APART = re.compile(r"(?<!\w)\w(?:[ .*~|+/_-]{1,3}\w(?!\w)){5,400}")
_BETWEEN = re.compile(r"[ .*~|+/_-]")
_APART_WORDS = re.compile(r" {2,3}")
_LETTERS_APART_MIN = 8
_LEET_WORD = re.compile(r"[a-z0134578@$!|]{4,24}")
_LEET = str.maketrans("0134578@$!|", "oieastbasii")
_LONG_WORD_CHARS = 14
_LONG_WORD = re.compile(r"[^\W_]{14,}")


def is_plain(text: str, words: Sequence[str], lengths: Sequence[int]) -> bool:
    """Whether a text seems to wear no disguise and to carry nothing encoded, as almost every text."""
    return not (
        max(lengths, default=0) >= _RUN_CHARS_MIN
        or lengths.count(1) >= _LETTERS_APART_MIN
        or lengths.count(2) > _LETTERS_APART_MIN
        or not "".join(words).isalpha()
        or "%" in text
        or "&" in text
        or "<" in text
        or "\\" in text
        or "@" in text
        or "$" in text
        or not _mirrored().isdisjoint(words)
        or not vocabulary().typos.keys().isdisjoint(words)
    )


def undisguised(text: str, folded: str, words: Sequence[str], lengths: Sequence[int]) -> Iterator[str]:
    """The folded text without each disguise it seems to wear; nothing for ordinary text. `lengths` are those of the words."""
    if "&" in text and _ENTITY.search(text):
        yield fold(unescape(text))
    if "<" in text and _TAG_IN_WORD.search(text):
        yield fold(_TAG_IN_WORD.sub("", text))
    if not (typos := vocabulary().typos).keys().isdisjoint(words):
        yield WORD.sub(lambda found: typos.get(found.group(), found.group()), folded)
    if lengths.count(1) >= _LETTERS_APART_MIN:
        together = _APART.sub(_together, folded)
        if together != folded:
            yield together
    if words and max(lengths) >= _LONG_WORD_CHARS:
        apart = _split_long(folded, words)
        if apart != folded:
            yield apart
    if not "".join(words).isalpha() or "@" in folded or "$" in folded:
        plain = _LEET_WORD.sub(_unleet, folded)
        if plain != folded:
            yield plain


def _together(match: re.Match[str]) -> str:
    parts = _APART_WORDS.split(match.group())
    return _with_spaces(" ".join(_BETWEEN.sub("", part) for part in parts))


def _split_long(folded: str, words: Iterable[str]) -> str:
    """With spaces around the key words inside long words."""
    joined = vocabulary().joined
    long = [
        word
        for word in words
        if len(word) >= _LONG_WORD_CHARS and joined.search(word) and word not in vocabulary().keys
    ]
    split = {word: _with_spaces(word) for word in dict.fromkeys(long)}
    if not split:
        return folded
    return _LONG_WORD.sub(lambda found: split.get(found.group(), found.group()), folded)


def _with_spaces(text: str) -> str:
    return " ".join(vocabulary().joined.sub(lambda found: f" {found.group()} ", text).split())


def _unleet(match: re.Match[str]) -> str:
    """A word with digits or signs for letters, if that makes it a key word; others stay as they are."""
    word = match.group()
    if word.isalpha() or word.isdigit():
        return word
    plain = word.strip("!|").translate(_LEET)
    for each in (plain, word.strip("!|").replace("1", "l").translate(_LEET)):
        if vocabulary().concept(each) is not None:
            return each
    return word


def decoded(text: str, folded: str, words: Sequence[str], lengths: Sequence[int]) -> Iterator[str]:
    """The texts that this one carries in encoded form."""
    if "%" in text and _PERCENT.search(text):
        yield unquote(text)
    if "\\" in text and len(_ESCAPE.findall(text)) >= _ESCAPES_MIN:
        yield _ESCAPE.sub(lambda found: chr(int(found.group(1) or found.group(2), 16)), text)
    if words and max(lengths) >= _RUN_CHARS_MIN:
        yield from _blob_texts(text)
    if not _mirrored().isdisjoint(words):
        yield decode(folded, "rot13")
        yield folded[::-1]
    if lengths.count(2) > _LETTERS_APART_MIN:  # pairs of digits
        for found in _HEX_PAIRS.finditer(text):
            if (said := _from_hex(found.group())) is not None:
                yield said


def _blob_texts(text: str) -> Iterator[str]:
    for blob in blobs(text):
        said = _from_hex(blob.group()) if _HEX.fullmatch(blob.group()) else None
        said = decoded_base64(blob.group()) if said is None else said
        for _ in range(_LAYERS_MAX):
            if said is None:
                break
            yield said
            inner = BLOB.search(said)
            said = None if inner is None else decoded_base64(inner.group())


@cache
def _mirrored() -> frozenset[str]:
    """Key words as rot13 and backwards."""
    keys = vocabulary().keys
    return frozenset([decode(key, "rot13") for key in keys] + [key[::-1] for key in keys])


def blobs(text: str) -> Iterator[re.Match[str]]:
    for number, blob in enumerate(BLOB.finditer(text)):
        if number == _BLOBS_MAX:
            return
        yield blob


def _from_hex(text: str) -> str | None:
    pairs = _PAIR.findall(text.replace("0x", "").replace("\\x", ""))[:_BLOB_CHARS_MAX]
    return _as_text(bytes(int(pair, 16) for pair in pairs))


_from_base64: Callable[..., bytes] = b64decode


def decoded_base64(blob: str) -> str | None:
    """The decoded base64; None if that is not text."""
    bare = blob[:_BLOB_CHARS_MAX].rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    bare = bare[: len(bare) - len(bare) % 4] if len(bare) % 4 == 1 else bare
    try:
        return _as_text(_from_base64(bare + "=" * (-len(bare) % 4)))
    except (NoBase64, ValueError):
        return None


def _as_text(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8")
    except ValueError:
        return None
    return text if text.isprintable() or "\n" in text else None
