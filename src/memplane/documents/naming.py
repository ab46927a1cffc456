"""Detect which section or document a query names. Strict patterns only: a question about tea in general must not be
limited to the one section with that title."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

import msgspec

from memplane.extract.relevance import STOP_WORDS
from memplane.storage.words import stems_of, words_of
from memplane.types import Section

# Documents, or their publishers, named in a query: `what did The Verge report …` is about documents whose names
# contain `(The Verge)`. A part of a name must occur in the query word for word, because single words are too common.


_PARTING = re.compile(r"[()\[\]{}|:;/\\\"“”]|\s[-–—]\s|\.[A-Za-z]\w{0,4}$")  # noqa: RUF001
_CHARS_MIN = 3
_WORDS_MAX = 12
_NAME_CHARS_MAX = 300
_QUESTION_WORDS_MAX = 200


class NameParts:
    """Parts of names, and the documents they belong to."""

    def __init__(self, names: Iterable[str]) -> None:
        self._holders: dict[str, list[int]] = {}
        count = 0
        for place, name in enumerate(names):
            count = place + 1
            for part in dict.fromkeys(_parts(name)):
                self._holders.setdefault(part, []).append(place)
        self._most = max(1, count // 2)

    def named_in(self, question: str) -> set[int]:
        """The documents of which the query contains a part of the name. A part common to more than half of them names
        none."""
        words = words_of(question)[:_QUESTION_WORDS_MAX]
        said = (self._holders.get(run, ()) for run in _runs(words))
        return {place for places in said if len(places) <= self._most for place in places}


def _parts(name: str) -> Iterator[str]:
    for part in _PARTING.split(name[:_NAME_CHARS_MAX]):
        words = words_of(part or "")
        said = " ".join(words)
        if len(said) >= _CHARS_MIN and not all(word in STOP_WORDS or word.isdigit() for word in words):
            yield said


def _runs(words: Sequence[str]) -> Iterator[str]:
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + _WORDS_MAX) + 1):
            yield " ".join(words[start:end])


NAMES_CACHED = 20_000
"""The number of document names whose stems are cached; checking more would take a second."""
_CHARS_READ_MAX = 500
_WORDS_BEFORE_MAX = 8
_BEGINNING_MIN, _ENDING = 3, 3
"""Endings vary; a word is looked up without this many letters."""
_LIKENESS_MIN = 0.84
_SHARE_OF_TITLE_MIN = 0.5
_SHARE_OF_PHRASE_MIN = 0.6
_PLACE = (
    r"(?:sub)?sections?|chapters?|appendix|annex|paragraph|abschnitte?|kapitel|anhang|secci[oó]n|cap[ií]tulo|apartado"
    r"|chapitre|annexe|sezione|capitolo|se[cç][aã]o|hoofdstuk"
)
_NUMBERED = re.compile(rf"(?:\b(?:{_PLACE})\s+|§\s*)(\d+(?:\.\d+)*|[ivxlc]+|[a-z])(?![\w.])", re.IGNORECASE)
_PLACED = re.compile(rf"\b(?:{_PLACE})\b", re.IGNORECASE)
_PLACE_AFTER = re.compile(rf"[\s\"”’'](?:{_PLACE})\b", re.IGNORECASE)  # noqa: RUF001
_AFTER = re.compile(
    rf"\b(?:{_PLACE})\s+(?:(?:called|named|titled|entitled|headed|on|about|über|sobre|sur)\s+)?([^?!;:]+)",
    re.IGNORECASE,
)
# What follows reads a query whose blanks are single: one of several would be tried at every length of the name.
_SHOWN = re.compile(
    r"^\W*(?:(?:please|can you|could you|would you) )*(?:show|give|read|open|quote|display|print|recite|summari[sz]e)"
    r"(?: (?:me|us|out))* (?:the |what (?:is )?in the )?(.+?)\W*$",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"^\W*what (?:does|do) (?:the )?(.+?) (?:say|tell|cover|describe|contain|state|explain|mention|include)\b",
    re.IGNORECASE,
)
_QUOTES = "\"“”\u2018\u2019' ."
_FURTHER = re.compile(
    r"(?<!\s)\s+(?:of|in|from|say|says|tell|tells|cover|covers|describe|describes|and|about|mean|to)\s",
    re.IGNORECASE,
)
_QUESTION_WORDS = re.compile(
    r"(?:(?:show|give|read|open|quote|display|print|recite|summari[sz]e|please|find|get|tell|explain|me|us|what|does|do|is|in"
    r"|about|can|could|would|you|entire|whole|full|complete)\s+)+",
    re.IGNORECASE,
)
_DETERMINER = re.compile(
    r"\A.*\b(?:the|this|that|a|an|its|der|die|das|den|dem|la|le|les|el|los|las|il|lo|o|os)\s+", re.IGNORECASE
)
_NUMBER = re.compile(
    rf"\W*(?:(?:{_PLACE}|part)\s+)?((?:\d+|[ivxlc]+|[a-z])(?:\.\d+)*)(?:[.):\s\-–—]|$)",  # noqa: RUF001
    re.IGNORECASE,
)
_SUMMARY_CUE = re.compile(
    r"\b(?:summari[sz]e|sum up|summary|overview|gist|outline|tl;?dr|abstract|digest)\b", re.IGNORECASE
)
_ABOUT = re.compile(r"\bwhat\b.{0,40}\babout\b", re.IGNORECASE)
_DOCUMENT = re.compile(
    r"\b(?:document|file|paper|report|manual|pdf|handbook|guide|article|book|text|essay|contract|agreement|policy"
    r"|spec(?:ification)?|page|upload|attachment)\b",
    re.IGNORECASE,
)
_TITLE_CHARS_MAX = 400
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,4}$")


class Phrase(msgspec.Struct, frozen=True):
    """How a query names a section."""

    text: str
    number: bool = False
    exact: bool = False
    """The query did not say it is a section, so only an exact title matches."""


def phrases_of(question: str) -> list[Phrase]:
    """Possible section names in a query, most certain first; empty for almost every query."""
    question = " ".join(question[:_CHARS_READ_MAX].split())
    return list(dict.fromkeys(_phrases(question)))


def _phrases(question: str) -> Iterator[Phrase]:
    for found in _NUMBERED.finditer(question):
        yield Phrase(found[1], number=True)
    placed = _PLACED.search(question) is not None
    for before in _before_places(question) if placed else ():
        text = _QUESTION_WORDS.sub("", f"{_DETERMINER.sub('', before).strip(_QUOTES)} ", count=1).strip()
        if text and len(text.split()) <= _WORDS_BEFORE_MAX:
            yield Phrase(text)
    for found in _AFTER.finditer(question) if placed else ():
        whole = found[1].strip(_QUOTES)
        first = _FURTHER.split(f"{whole} ", maxsplit=1)[0].strip(_QUOTES)
        for text in (whole, first):
            if text and len(text.split()) <= _WORDS_BEFORE_MAX:
                yield Phrase(text)
    for pattern in (_SAYS, _SHOWN):
        named = pattern.match(question)
        if named and len(named[1].split()) <= _WORDS_BEFORE_MAX:
            yield Phrase(named[1].strip(_QUOTES), exact=True)


def _before_places(question: str) -> Iterator[str]:
    """What stands before each word for a part of a document, since the last one, within its sentence."""
    begin = 0
    for place in _PLACE_AFTER.finditer(question):
        sentence = max(question.rfind(mark, begin, place.start()) for mark in "?!;:") + 1
        before = question[max(begin, sentence) : place.start()]
        if before:
            begin = place.end()
            yield before


def asks_for_document(question: str) -> bool:
    """Whether a query asks for a whole document: `summarise this document`."""
    question = question[:_CHARS_READ_MAX]
    return _DOCUMENT.search(question) is not None and (
        _SUMMARY_CUE.search(question) is not None or _ABOUT.search(question) is not None
    )


def asks_for_summary(question: str) -> bool:
    """Whether a query asks for a summary of something; it means a document if it names one."""
    return _SUMMARY_CUE.search(question[:_CHARS_READ_MAX]) is not None


def named_in(question: str, names: Sequence[str]) -> list[int]:
    """The documents whose names occur completely in the query; the file extension may be missing."""
    said = frozenset(stems_of(question[:_CHARS_READ_MAX]))
    return [place for place, name in enumerate(names) if (stems := _stems_of_name(name)) and stems <= said]


def of_the_kind_in(question: str, names: Sequence[str]) -> list[int]:
    """The documents whose names match the query's description: `the manual` may be `Toaster manual`."""
    kinds = frozenset(
        stem for found in _DOCUMENT.findall(question[:_CHARS_READ_MAX]) for stem in stems_of(found)
    )
    return [place for place, name in enumerate(names) if kinds & _stems_of_name(name)]


@lru_cache(NAMES_CACHED)
def _stems_of_name(name: str) -> frozenset[str]:
    """Cached, since every query for a summary checks every name."""
    return frozenset(stems_of(_EXTENSION.sub("", name)))


def bare(text: str) -> str:
    """Only letters and digits, so that punctuation, spaces and line ends do not matter."""
    return "".join(sign for sign in text.lower() if sign.isalnum())


def is_title(text: str, path: Sequence[str]) -> bool:
    """Whether a text is only the title of its section."""
    return bool(path) and len(text) <= _TITLE_CHARS_MAX and bare(text) in ("", bare(path[-1]))


def without_title(text: str, path: Sequence[str]) -> str:
    """The text of a section without its leading title; unchanged if there is nothing else."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if is_title(first, path) and bare(rest) else text


def significant_stems(text: str) -> list[str]:
    """The significant stems of a phrase; all of them if none is."""
    words = words_of(text)
    telling = [word for word in words if word not in STOP_WORDS] or words
    return list(dict.fromkeys(stem for word in telling for stem in stems_of(word)))


def title_parts(phrase: Phrase) -> list[str]:
    """What a title must contain to be checked: the number, or the beginnings of the significant words."""
    if phrase.number:
        return [phrase.text]
    words = words_of(phrase.text)
    telling = [word for word in words if word not in STOP_WORDS] or words
    return [word[: max(_BEGINNING_MIN, len(word) - _ENDING)] for word in telling]


def likeness(phrase: Phrase, title: str) -> float:
    """How well a section's title matches its name in the query, 0 to 1."""
    number = _NUMBER.match(title)
    if phrase.number:
        return 1.0 if number and number[1].lower() == phrase.text.lower() else 0.0
    bare = title[number.end() :] if number and number[1][0].isdigit() else title
    wanted, there = significant_stems(phrase.text), significant_stems(bare)
    if wanted == there:
        return 1.0 if wanted else 0.0
    if set(wanted) == set(there):
        return 0.99
    return 0.0 if phrase.exact or not wanted or not there else _nearly(wanted, there)


def _nearly(wanted: Sequence[str], there: Sequence[str]) -> float:
    """A part of the title, a title with an addition, or a spelling variant."""
    shared = len(set(wanted) & set(there))
    if shared == len(wanted) and shared / len(there) >= _SHARE_OF_TITLE_MIN:
        return 0.5 + 0.45 * shared / len(there)
    if shared == len(there) and shared / len(wanted) >= _SHARE_OF_PHRASE_MIN:
        return 0.4 + 0.45 * shared / len(wanted)
    alike = SequenceMatcher(None, " ".join(wanted), " ".join(there)).ratio()
    return 0.9 * alike if alike >= _LIKENESS_MIN else 0.0


def best_sections(phrases: Sequence[Phrase], sections: Sequence[Section]) -> tuple[float, list[Section]]:
    """The best-matching sections, all equally good, and their score; a phrase counts only if earlier ones match
    nothing."""
    for phrase in phrases:
        fits = [(likeness(phrase, section.title), section) for section in sections if section.title]
        best = max((fit for fit, _ in fits), default=0.0)
        if best > 0:
            return best, [section for fit, section in fits if fit == best]
    return 0.0, []
