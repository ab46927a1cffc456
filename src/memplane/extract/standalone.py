"""Whether a note can be read by a stranger: complete, and without words that point outside it.

`I love it`, `I painted this` and `I thought a lot about how` say nothing a month later. The turn remains searchable, so a note that
does not stand alone is dropped.
"""

import re

from memplane.extract.english import (
    BE,
    DETERMINERS,
    MODALS,
    PRONOUNS,
    STOP_WORDS,
    base_form,
    is_finite,
    word_class,
)

_WORDS = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_POINTING = word_class("pointing")
_THIRD = word_class("third_person")
_PEOPLE = word_class("people")
_OPEN = word_class("prepositions") - {"about", "over", "last", "this"} | DETERMINERS | word_class("open_ends")
_CLOSING = frozenset({"to", "how", "what", "why", "if", "as", "like", "too", "such", "both"})
_COUNTING = frozenset({"one", "other", "another", "both", "same", "such", "else"})
"""They point only if no noun follows."""


def stands_alone(note: str) -> bool:
    """Only words that mean the same without the conversation."""
    words = _WORDS.findall(note)
    plain = [word.lower().replace("\u2019", "'") for word in words]
    last = len(plain) - 1
    if not plain or ((plain[last] in _OPEN or plain[last] in _CLOSING) and not _is_name(words, last)):
        return False
    objects = range(2 if len(plain) > _INTRANSITIVE else 1, len(plain))
    if not any(_is_name(words, at) or _has_content(plain[at]) for at in objects):
        return False
    return not any(_points_outside(words, plain, at) for at in range(len(plain)))


_INTRANSITIVE = 2
"""`I swim` has no object; `I love me` has none that says something."""


def _is_name(words: list[str], at: int) -> bool:
    """`US`, `IT` and `May` are names, `us`, `it` and `may` are not."""
    return at > 0 and words[at][:1].isupper() and words[at] != "I"


def _has_content(word: str) -> bool:
    return word not in STOP_WORDS and word not in _POINTING


def _points_outside(words: list[str], plain: list[str], at: int) -> bool:
    if _is_name(words, at):
        return False
    word = plain[at].partition("'")[0]
    if word == "that":
        return not _introduces_clause(plain, at)
    if word in _THIRD:
        return not _is_named_before(words, plain, at)
    following = plain[at + 1] if at + 1 < len(plain) else ""
    if word in _COUNTING:
        return not following or following in STOP_WORDS
    return word in _POINTING and not (word in {"those", "people"} and following in {"who", "with"})


def _introduces_clause(plain: list[str], at: int) -> bool:
    """`A job that pays well`, `I think that we will`; but not `I like that` or `that book`."""
    if at in {0, len(plain) - 1}:
        return False
    following = plain[at + 1].partition("'")[0]
    if plain[at - 1] in BE or following in {"one", "kind", "way", "time"}:
        return False
    return (
        following in PRONOUNS
        or following in DETERMINERS
        or following in MODALS
        or following in {"i", "we"}
        or is_finite(following)
        or base_form(following) == following
    )


def _is_named_before(words: list[str], plain: list[str], at: int) -> bool:
    """Whether a person or animal precedes a pronoun: `my sister and her kids`, `I helped Ana with her thesis`."""
    return any(
        plain[before] in _PEOPLE
        or (words[before][:1].isupper() and plain[before] not in STOP_WORDS and plain[before] != "i")
        for before in range(at)
    )
