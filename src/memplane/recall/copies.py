"""Whether two texts say the same in the same words."""

import re
from collections.abc import Sequence

from memplane.recall.turn_embedding import is_question

_WORD = re.compile(r"\w+")
_FILLERS = frozenset(["a", "an", "the", "please", "just", "so", "very"])
_QUESTION_FILLERS = _FILLERS | frozenset(
    ["is", "are", "am", "be", "been", "being", "do", "does", "s", "re", "m", "again", "now", "then", "ever"]
)
"""Words that a question may be asked with or without. Not `my`, `not` or `before`: they make another question."""
_ASKING = frozenset(
    [
        "what",
        "who",
        "whom",
        "whose",
        "when",
        "where",
        "which",
        "why",
        "how",
        "do",
        "does",
        "did",
        "is",
        "are",
        "was",
        "were",
        "can",
        "could",
    ]
)
_SPLIT_CHARS_MAX = 4_000
_ACKNOWLEDGEMENT_CHARS_MAX = 60
_ACKNOWLEDGEMENT = re.compile(
    r"\W*(?:(?:ok(?:ay)?|noted|understood|sure(?: thing)?|got (?:it|that)|will do|done|great|perfect|cool|nice|awesome|excellent"
    r"|wonderful|lovely|fantastic|congratulations|congrats|alright|all right|right|of course|sounds good|good|thanks|thank you|thx"
    r"|so much|very much|a lot"
    r"|you['\u2019]?re welcome|you are welcome|welcome|my pleasure|no problem|no worries|anytime|hello|hi|hey|bye|goodbye"
    r"|verstanden|notiert|danke|gerne|alles klar|merci|entendu|d['\u2019]accord|gracias|vale|entendido|obrigad[oa]|certo"
    r"|\u0441\u043f\u0430\u0441\u0438\u0431\u043e|\u043f\u043e\u043d\u044f\u0442\u043d\u043e"
    r"|\u8c22\u8c22|\u597d\u7684|\u660e\u767d\u4e86?|\u4e86\u89e3(?:\u3057\u307e\u3057\u305f)?|\u3042\u308a\u304c\u3068\u3046)(?!\w)\W*)+",
    re.IGNORECASE,
)


def acknowledges(text: str) -> bool:
    """Whether a turn only acknowledges another: `Noted.`, `OK, got it!` Not `yes` or `no`, which answer a question."""
    return len(text) <= _ACKNOWLEDGEMENT_CHARS_MAX and _ACKNOWLEDGEMENT.fullmatch(text) is not None


def same_words(text: str) -> tuple[str, ...]:
    """Equal for texts that say the same in the same words. Only words that carry no meaning may differ: two reports that differ
    in one number are two reports, and `I eat meat` is neither `I do not eat meat` nor `do I eat meat?`. A long text is the same as
    its exact copies only: a recall compares each candidate several times, and splitting a megabyte takes 40 ms."""
    if _is_long(text):
        return (text.strip(),)
    words = _words(text)
    if _is_question(text, words):
        return (*_without(words, _QUESTION_FILLERS), "?")
    return _without(words, _FILLERS)


def repeats(text: str, query: str) -> bool:
    """Whether a turn is the query itself, said earlier. A query may lack its question mark."""
    if _is_long(text) or _is_long(query):
        return text.strip() == query.strip()
    words = _words(text)
    if _is_question(text, words):
        return _without(words, _QUESTION_FILLERS) == _without(_words(query), _QUESTION_FILLERS)
    return same_words(text) == same_words(query)


def _is_long(text: str) -> bool:
    return len(text) > _SPLIT_CHARS_MAX


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _without(words: Sequence[str], fillers: frozenset[str]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in fillers) or tuple(words)


def _is_question(text: str, words: Sequence[str]) -> bool:
    return is_question(text) or (bool(words) and words[0] in _ASKING)
