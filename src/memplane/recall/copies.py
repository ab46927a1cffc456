"""Whether two texts say the same in the same words."""

import re
from collections.abc import Sequence

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
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")


def same_words(text: str) -> tuple[str, ...]:
    """Equal for texts that say the same in the same words. Only words that carry no meaning may differ: two reports that differ
    in one number are two reports, and `I eat meat` is neither `I do not eat meat` nor `do I eat meat?`."""
    words = _words(text)
    if _is_question(text, words):
        return (*_without(words, _QUESTION_FILLERS), _QUESTION_MARKS[0])
    return _without(words, _FILLERS)


def repeats(text: str, query: str) -> bool:
    """Whether a turn is the query itself, said earlier. A query may lack its question mark."""
    words = _words(text)
    if _is_question(text, words):
        return _without(words, _QUESTION_FILLERS) == _without(_words(query), _QUESTION_FILLERS)
    return same_words(text) == same_words(query)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _without(words: Sequence[str], fillers: frozenset[str]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in fillers) or tuple(words)


def _is_question(text: str, words: Sequence[str]) -> bool:
    return text.rstrip().endswith(_QUESTION_MARKS) or (bool(words) and words[0] in _ASKING)
