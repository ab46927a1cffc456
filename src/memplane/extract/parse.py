"""Parse a clause: subject, verb, object, negation, time, and whether it describes a change."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from memplane.extract.english import (
    BE,
    EMPTY_FILLERS,
    FILLERS,
    MODALS,
    NEGATIONS,
    PRONOUNS,
    base_form,
    is_finite,
    is_past,
    word_class,
)
from memplane.extract.proposition import Tense

_LEADS = word_class("leads")
_PREPOSITIONS = word_class("prepositions")
_FIRST = frozenset({"i", "we"})
_THIRD = frozenset({"he", "she", "they"})
_OWNERS = frozenset({"my", "our"})
_MATRIX = word_class("matrix")
_MATRIX_BE = word_class("matrix_be")
_NOUN_PHRASE_WORDS_MAX = 7
_OWNER_WITHIN = 9
_PUNCTUATION = ',.!?;:()"'
_FIRST_OWNERS = frozenset({"I", "we"})
_PRESENT_TOO = word_class("present_too")
"""Past forms that look like the present: `I have cut flowers` means owning some."""
_NOT_ING = word_class("not_ing")

_UPDATE = re.compile(
    r"""\b(?:actually|no\ longer|any\ ?more|switch(?:ed|ing)?|migrat(?:ed|ing)|upgrad(?:ed|ing)|replac(?:ed|ing)
    |instead|correction|i\ meant|mov(?:ed|ing)\ (?:to|back|in|out|from|away|on|entirely|fully|over|across|my|our)
    |(?:have|has|just)\ moved|chang(?:ed|ing)|rebranded|renamed|convert(?:ed|ing)|now|nowadays|these\ days|lately
    |from\ now\ on|quit|gave\ up|give\ up|given\ up|giving\ up|stopped|left|cut\ out|cutting\ out|cut\ back
    |just\ (?:bought|got|turned|started|adopted|became|finished|sold|accepted|joined)|turned\ \w+\b|became|become
    |got\ (?:married|divorced|engaged|promoted|fired|hired|a\ new)|adopted|promoted|divorced|raised\ (?:the|our)
    |went\ (?:back\ to|vegan|vegetarian|up\ to|down\ to)|pushed|rescheduled|postponed|give\ away|gave\ away|turns\ out|again|ended\ up|started|joined|took\ (?:a|the|on)|sold|as\ of|avoiding|swapped|traded|ditched|dropped)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_UPDATE_WORDS = word_class("update_words")
"""Every match of the pattern contains one of these, and checking them first is faster."""
_WHEN = re.compile(
    r"""\b(?:yesterday|today|tonight|tomorrow|right\ now
    |(?:last|next|this|every|earlier\ this|later\ this)\ (?:night|day|morning|evening|afternoon|week|weekend|month|year
       |spring|summer|fall|autumn|winter|monday|tuesday|wednesday|thursday|friday|saturday|sunday|quarter|semester)
    |(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,3}|a\ few|a\ couple(?:\ of)?|several)
       \ (?:minutes?|hours?|days?|weeks?|months?|years?|decades?)\ (?:ago|from\ now|later)
    |for\ (?:the\ (?:next|past|last)\ )?(?:a|an|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,3}|several|a\ few)
       \ (?:days?|weeks?|months?|years?|hours?)
    |(?:since|until|till|by|before|after|in|on|starting|from)\ (?:next\ |last\ )?
       (?:january|february|march|april|may|june|july|august|september|october|november|december
       |monday|tuesday|wednesday|thursday|friday|saturday|sunday|(?:19|20)\d\d|\d{4}-\d\d-\d\d|q[1-4])
       (?:\ \d{1,2}(?:st|nd|rd|th)?)?(?:,?\ (?:19|20)\d\d)?)\b""",
    re.IGNORECASE | re.VERBOSE,
)


_WHEN_WORDS = word_class("when_words")


class ParsedClause(NamedTuple):
    """One clause: `owner` is I, we, or a noun phrase such as `my wife`."""

    owner: str
    verb: str
    group: str
    """The verb group with its auxiliaries: `am going to`, `do not like`."""
    rest: str
    negative: bool
    tense: Tense
    modal: str
    update: bool
    when: str


def parse(clause: str, *, inherited: str | None = None, antecedent: str | None = None) -> ParsedClause | None:
    """The clause as a statement of the first person, or about someone or something of theirs; None otherwise.

    `clause` has its contractions expanded. `inherited` is the owner for a verb without one, `antecedent` the person
    `he`, `she` and `they` refer to.
    """
    words = clause.split()
    plain = [word.strip(_PUNCTUATION) for word in clause.lower().split()]
    owner, after = _possessor(words, plain, inherited, antecedent)
    if owner is None or after >= len(words):
        return None
    found = _verb_group(plain, after, known_only=owner not in _FIRST_OWNERS)
    if found is None:
        return None
    rest = words[found.end :]
    if owner in _FIRST_OWNERS:
        inner_at = _matrix_end(found.verb, plain, found.end)
        inner = parse(" ".join(words[inner_at:])) if inner_at else None
        if inner:
            return _denied(inner) if found.negative else inner
    seen = frozenset(plain)
    when = None if seen.isdisjoint(_WHEN_WORDS) else _WHEN.search(clause)
    return ParsedClause(
        owner=owner,
        verb=found.verb,
        group=found.group,
        rest=" ".join(rest),
        negative=found.negative,
        tense=found.tense,
        modal=found.modal,
        update=not seen.isdisjoint(_UPDATE_WORDS) and _UPDATE.search(clause) is not None,
        when=when.group() if when else "",
    )


def _denied(inner: ParsedClause) -> ParsedClause:
    """`I don't think I like it`, as one would write it down."""
    if inner.negative or inner.verb == "be":
        return inner._replace(negative=not inner.negative)
    return inner._replace(negative=True, group=f"do not {inner.verb}")


# ── whose statement ──────────────────────────────────────────────────────────────────────────────────────────────


def _possessor(
    words: Sequence[str], plain: Sequence[str], inherited: str | None, antecedent: str | None
) -> tuple[str | None, int]:
    """The owner, and where the verb may begin."""
    start = 0
    while start < len(plain) and (plain[start] in _LEADS or not plain[start]):
        start += 1
    at = _find_owner(words, plain, start)
    if at is not None:
        return _owner(words, plain, at)
    if start == len(plain):
        return None, start
    if antecedent and plain[start] in _THIRD:
        inherited, start = antecedent, start + 1
    if inherited is None or start == len(plain) or not _is_verbal(plain[start]):
        return None, start
    return inherited, start


def _find_owner(words: Sequence[str], plain: Sequence[str], start: int) -> int | None:
    """Where the first person begins, if only lead-ins and adverbial phrases precede it."""
    for at in range(start, min(len(plain), start + _OWNER_WITHIN)):
        word = plain[at]
        if word in _FIRST or word in _OWNERS:
            if word in _OWNERS and at > start and plain[at - 1] in _PREPOSITIONS:
                continue
            return at if at == start or _is_adverbial(words[start : at + 1], plain[start:at]) else None
    return None


def _is_adverbial(words: Sequence[str], plain: Sequence[str]) -> bool:
    first = plain[0]
    if first in PRONOUNS or any('"' in word or "\u201c" in word for word in words):
        return False
    return (
        first in _PREPOSITIONS
        or first in FILLERS
        or words[-2].endswith(",")
        or not any(map(base_form, plain))
    )


def _owner(words: Sequence[str], plain: Sequence[str], at: int) -> tuple[str | None, int]:
    word = plain[at]
    if word in _FIRST:
        return ("I" if word == "i" else "we"), at + 1
    for end in range(at + 2, min(len(plain), at + 2 + _NOUN_PHRASE_WORDS_MAX)):
        if is_finite(plain[end]) and plain[end - 1] not in _PREPOSITIONS:
            verb = end
            while verb > at + 2 and plain[verb - 1] in FILLERS:
                verb -= 1
            return " ".join([word, *words[at + 1 : verb]]), verb
    return None, len(plain)


def _is_verbal(word: str) -> bool:
    return word in FILLERS or word in NEGATIONS or word in MODALS or base_form(word) is not None


# ── the verb and its helpers ─────────────────────────────────────────────────────────────────────────────────────


class VerbGroup(NamedTuple):
    """`am not going to move`: the verb is move, and the rest begins at `end`."""

    group: str
    verb: str
    end: int
    negative: bool
    modal: str
    tense: Tense


def _verb_group(plain: Sequence[str], at: int, *, known_only: bool) -> VerbGroup | None:
    group: list[str] = []
    while at < len(plain):
        word = plain[at]
        if word in FILLERS:
            if word not in EMPTY_FILLERS:
                group.append(word)
        elif pair := _pair(plain, at, group):
            group.append(pair)
            at += 1
        elif word in NEGATIONS or word in MODALS or _is_helper(word, _next_word(plain, at + 1)):
            group.append(word)
        else:
            break
        at += 1
    if at == len(plain):
        return None
    word = plain[at]
    verb = base_form(word)
    group.append(word)
    if verb == "be":
        at = _take_denial(plain, at, group)
    if verb is None and (known_only or not word.isalpha()):
        return None
    return VerbGroup(
        group=" ".join(group),
        verb=verb or word,
        end=at + 1,
        negative=not NEGATIONS.isdisjoint(group) or "no longer" in group,
        modal=next((helper for helper in group if helper in MODALS), ""),
        tense=_tense(group, word, verb),
    )


def _take_denial(plain: Sequence[str], at: int, group: list[str]) -> int:
    """`not` after a form of be joins the group, and so does `no longer`."""
    after = at + 1
    while after < len(plain) and plain[after] in FILLERS:
        after += 1
    if after < len(plain) and plain[after] in NEGATIONS:
        group.append(plain[after])
        return after
    if plain[after : after + 2] == ["no", "longer"]:
        group.append("no longer")
        return after + 1
    return at


def _tense(group: Sequence[str], word: str, verb: str | None) -> Tense:
    if not _FUTURE.isdisjoint(group):
        return Tense.FUTURE
    if not _PAST.isdisjoint(group[:-1]):
        return Tense.PAST
    perfect = not _PERFECT.isdisjoint(group[:-1])
    return Tense.PAST if word != verb and is_past(word) and not perfect else Tense.PRESENT


_BEFORE_TO = frozenset({"used", "going", "have", "has", "had"})
_PERFECT = frozenset({"have", "has"})
_FUTURE = frozenset({"will", "shall", "going to"})
_PAST = frozenset({"was", "were", "did", "had", "used to", "had to"})


def _pair(plain: Sequence[str], at: int, group: Sequence[str]) -> str:
    """Two words that form one auxiliary: `no longer`, `used to smoke`, `am going to move`; not `going to Rome`."""
    word = plain[at]
    following = plain[at + 1] if at + 1 < len(plain) else ""
    if word == "no" and following == "longer":
        return "no longer"
    if word not in _BEFORE_TO or following != "to" or (word == "going" and not group):
        return ""
    verb = _next_word(plain, at + 2)
    return f"{word} to" if base_form(verb) == verb and verb not in {"work", "school"} else ""


def _next_word(plain: Sequence[str], at: int) -> str:
    """The next word that is neither an adverb nor a negation."""
    while at < len(plain) and (plain[at] in FILLERS or plain[at] in NEGATIONS):
        at += 1
    return plain[at] if at < len(plain) else ""


def _is_helper(word: str, following: str) -> bool:
    """Whether a form of be, have or do is an auxiliary of the next verb."""
    if word in BE:
        return following.endswith("ing") and following not in _NOT_ING and base_form(following) is not None
    if word in {"have", "has", "had"}:
        return following in BE or (is_past(following) and following not in _PRESENT_TOO)
    if word in {"do", "does", "did"}:
        return base_form(following) == following
    return False


def _matrix_end(verb: str, plain: Sequence[str], at: int) -> int | None:
    """Where the statement inside `I think (that) I …` begins; None if there is none."""
    if verb == "be":
        if plain[at : at + 1] == [] or plain[at] not in _MATRIX_BE:
            return None
        at += 1
    elif verb not in _MATRIX:
        return None
    for place in range(at, min(at + 2, len(plain))):
        if plain[place] in _FIRST or plain[place] in _OWNERS:
            return place
    return None
