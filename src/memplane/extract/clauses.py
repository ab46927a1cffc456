"""Clauses of a sentence, as spans, and which of them are not asserted: questions, conditions, reported speech."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memplane.extract.english import BE, MODALS, base_form, is_past, word_class
from memplane.extract.parse import ParsedClause
from memplane.extract.sentences import Sentence

_SUBJECT = r"(?:i|i['\u2019](?:m|ve|d|ll)|im|ive|my|we|we['\u2019](?:re|ve|d|ll)|our|he|she|they|it|it['\u2019]s|he['\u2019]s|she['\u2019]s)\b"
_QUESTION_START = (
    r"(?:what|how|where|who|which|why|when|do|does|did|are|is|have|has|can|could|would|will|any)"
    r"(?:['\u2019]s|\s+(?:about|is|are|do|does|did|was|were|kind|type|sort|you|your|long|many|old|of|else|would|is))"
)
_CONTINUING = (
    r"(?:(?:also|now|then|never|really|just|currently|still)\s+)?(?:love|like|hate|enjoy|prefer|dislike|have|own|live"
    r"|want|need|am|was|speak|work|collect|now\s+\w+|do(?:\s+not|n['\u2019]?t)|can(?:not|['\u2019]?t))\s"
)
_ADVERB = r"(?:\w+ly\s+|also\s+|now\s+|then\s+|sometimes\s+)?"
_BOUNDARY = re.compile(
    rf"""
    ;|:\s|\s-+\s|—|\.\.+|…|[!?]+\s
  | ,\s*(?:(?:and|but|so|or|yet|because|since|although|though|while|whereas|plus|as|except|cause|cuz|then)\s+)?
      (?={_ADVERB}{_SUBJECT}|{_QUESTION_START})
  | \s(?:and|but|so|because|since|although|though|while|whereas|plus|cause|cuz|except)\s+(?:that\s+)?
      (?={_ADVERB}{_SUBJECT}|{_QUESTION_START})
  | \s(?:and|but|or)\s+(?={_CONTINUING})
  | \s(?=(?:what|how)(?:\s+about|['\u2019]s|\s+(?:do|are|is|did|kind|type))\b)
  | \s(?=(?:when|if|unless|until|whenever|before|after)\s+{_SUBJECT})
    """,
    re.IGNORECASE | re.VERBOSE,
)
_QUOTED = re.compile(r"[\"“][^\"“”]*[\"”]")
_QUESTION_OPENING = re.compile(rf"(?:and\s+|so\s+|but\s+)?{_QUESTION_START}", re.IGNORECASE)
_CONDITION = re.compile(r"(?:if|unless|whether|suppose|imagine|should)\b", re.IGNORECASE)
_UNTIL_THEN = re.compile(
    r"(?:when|whenever|until|till|before|once(?= (?:i|we|he|she|it|they|my|our|the)\b)|as (?:soon|long) as|wherever|since (?:i|we) (?:was|were))\b",
    re.IGNORECASE,
)
"""A time, not a statement: `when I was a kid`, `once I have kids`."""
_WHOLE_IF = re.compile(r"\bif\s+(?:i|we|my|you|it|he|she|they|only)\b|\bas\s+if\b", re.IGNORECASE)
_REPORTS = re.compile(
    r"\b(?:he|she|they|people|everyone|someone|[a-z]+)\s+"
    r"(?:say|says|said|told\s+\w+|tells\s+\w+|thinks|thought|claims|claimed|asked|asks|believes|wrote)"
    r"(?:\s+that)?[\s,:]*\Z",
    re.IGNORECASE,
)
_FIRST_REPORTS = re.compile(
    r"\bi\s+(?:have\s+)?(?:say|said|told|thought|tell|think|asked|claimed?)\b", re.IGNORECASE
)


class Clause(NamedTuple):
    """`text[start:end]`, trimmed; `asserted` is False for questions, conditions and reported speech."""

    start: int
    end: int
    asserted: bool
    hypothetical: bool
    continues: bool
    """It may continue with the subject of the previous clause: `I like tea and hate coffee`."""


def split_clauses(text: str, sentence: Sentence) -> Iterator[Clause]:
    """In order; a question's earlier clauses may still assert (`I love it, what about you?`)."""
    quotes = _quotes(text, sentence)
    hypothetical = "f " in text and _WHOLE_IF.search(text, sentence.start, sentence.end) is not None
    pieces = list(_pieces(text, sentence))
    for place, (start, end) in enumerate(pieces):
        asked = _QUESTION_OPENING.match(text, start, end) is not None
        last = place == len(pieces) - 1
        question = asked or (sentence.question and last)
        conditional = (_CONDITION.match(text, start, end) or _UNTIL_THEN.match(text, start, end)) is not None
        reported = place > 0 and _is_reported(text[pieces[place - 1][0] : pieces[place - 1][1]])
        quoted = any(first <= start and end <= after for first, after in quotes)
        yield Clause(start, end, not (question or conditional or reported or quoted), hypothetical, place > 0)


def second_verb(text: str, clause: Clause, parsed: ParsedClause) -> tuple[int, int] | None:
    """Where the first statement ends and the second begins in `I feed the cats and milk the cows`: after `and` comes
    a verb of the same form. Verbs after `to` belong together: `I want to travel and see the world`."""
    if text.find(" and ", clause.start, clause.end) < 0:
        return None
    last = parsed.group.rpartition(" ")[2]
    for found in _AND_WORD.finditer(text, clause.start, clause.end):
        word = found.group(1).lower()
        if base_form(word) and _alike(last, word) and " to " not in text[clause.start : found.start()]:
            return found.start(), found.start(1)
    return None


_AND_WORD = re.compile(r",? and (?:then |also )?([a-z]+)(?= [a-z])")


def _alike(one: str, other: str) -> bool:
    if one in BE or one in MODALS or other in BE:
        return False
    if one.endswith("ing") or other.endswith("ing"):
        return one.endswith("ing") and other.endswith("ing")
    if base_form(one) == one:
        return base_form(other) == other and other in _ALWAYS_VERBS
    return is_past(one) and is_past(other)


_ALWAYS_VERBS = word_class("always_verbs")


def _is_reported(before: str) -> bool:
    return _REPORTS.search(before) is not None and _FIRST_REPORTS.search(before) is None


def _quotes(text: str, sentence: Sentence) -> list[tuple[int, int]]:
    if '"' not in text and "“" not in text:
        return []
    return [found.span() for found in _QUOTED.finditer(text, sentence.start, sentence.end)]


def _pieces(text: str, sentence: Sentence) -> Iterator[tuple[int, int]]:
    at = sentence.start
    for found in _BOUNDARY.finditer(text, sentence.start, sentence.end):
        if found.start() > at:
            yield from _trimmed(text, at, found.start())
        at = max(at, found.end())
    yield from _trimmed(text, at, sentence.end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and (text[start].isspace() or text[start] in ",.;:!?-—…)(*\"'"):
        start += 1
    while end > start and (text[end - 1].isspace() or text[end - 1] in ",.;:!?-—…(*"):
        end -= 1
    if start < end:
        yield start, end
