"""Sentences of a message, as spans, without code, quotes, tables and links."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memplane.extract.english import word_class

SENTENCE_CHARS_MAX = 500
"""A longer sentence is a paste; the limit also keeps every pattern below linear."""

# A run of marks is only tried from its first character, so a wall of dots stays linear.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”\u2019)\]]*+(?=\s|\Z|[A-Z])|\n")
_ABBREVIATIONS = word_class("abbreviations")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_NUMBER = re.compile(r"\s*(\d{1,6})[.)]\s+")
_BULLET = re.compile(r"\s*(?:[-*•>]|\d{1,6}[.)])\s+")
_CODE_LIKE = re.compile(r"[{}<>|=]{2}|</|https?://|^\s*[{|#$>]")


class Sentence(NamedTuple):
    """`text[start:end]` without surrounding whitespace."""

    start: int
    end: int
    question: bool
    ordinal: int | None


def split_sentences(text: str) -> Iterator[Sentence]:
    for start, end in _prose(text):
        yield from _split(text, start, end)


def _prose(text: str) -> Iterator[tuple[int, int]]:
    """The parts outside fenced code."""
    if "```" not in text:
        yield 0, len(text)
        return
    at = 0
    for block in _CODE.finditer(text):
        yield at, block.start()
        at = block.end()
    yield at, len(text)


def _split(text: str, start: int, end: int) -> Iterator[Sentence]:
    at = start
    ordinal: int | None = None
    for mark in _END.finditer(text, start, end):
        if mark.group() == "." and is_inside(text, at, mark.start()):
            continue
        if at == start or text[at - 1] == "\n":
            at, ordinal = _skip_number(text, at, mark.start())
        sentence = _trim(text, at, mark.end(), question="?" in mark.group(), ordinal=ordinal)
        if sentence:
            yield sentence
        at = mark.end()
        if mark.group() == "\n":
            ordinal = None
    if at < end:
        at, ordinal = _skip_number(text, at, end) if at == start or text[at - 1] == "\n" else (at, ordinal)
        sentence = _trim(text, at, end, question=False, ordinal=ordinal)
        if sentence:
            yield sentence


def is_inside(text: str, start: int, dot: int) -> bool:
    """Whether a dot belongs to a number, an initial, an abbreviation or a list number."""
    word_start = dot
    while word_start > start and not text[word_start - 1].isspace() and dot - word_start < 12:  # noqa: PLR2004
        word_start -= 1
    word = text[word_start:dot].strip("(\"'").lower()
    if word in _ABBREVIATIONS:
        return True
    if len(word) == 1 and word.isalpha() and word != "i":
        return True
    return word.isdigit() and not text[start:word_start].strip()


def _skip_number(text: str, at: int, end: int) -> tuple[int, int | None]:
    number = _NUMBER.match(text, at, end)
    if number:
        return number.end(), int(number.group(1))
    bullet = _BULLET.match(text, at, end)
    return (bullet.end() if bullet else at), None


def _trim(text: str, start: int, end: int, *, question: bool, ordinal: int | None) -> Sentence | None:
    if end - start > SENTENCE_CHARS_MAX:
        return None
    piece = text[start:end]
    stripped = piece.strip()
    if not stripped or _CODE_LIKE.search(stripped):
        return None
    start += len(piece) - len(piece.lstrip())
    return Sentence(start, start + len(stripped), question, ordinal)
