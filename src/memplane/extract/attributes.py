"""Attributes of a person and their values, in whatever form they are said.

`My rent is $1500`, `the rent went up to $1800`, `I changed my email to …` and `Jordan is my new boss` all fill a slot: whose attribute it
is, and which. Two values of one slot compete, also for attributes that no catalog lists.
"""

import re
from typing import NamedTuple

from memplane.extract.english import DETERMINERS, PRONOUNS, STOP_WORDS, base_form, is_finite, word_class

_NOUN = r"[a-z][\w'&/-]*(?: [a-z][\w'&/-]*){0,3}"
_ADVERBS = r"(?:(?:just|recently|now|finally|also|already|officially|actually|currently|then) )*"
_SET = (
    r"(?:(?:went|gone|go|goes) (?:up|down)|rose|risen|increased|decreased|dropped|fell|fallen|jumped|climbed|changed|switched|moved|shifted|grew|grown|shrank"
    r"|(?:was|got|is|are|were|been|being|gets) (?:just |now |recently )?(?:raised|increased|bumped|cut|lowered|moved|pushed|changed|reduced"
    r"|upgraded|renamed|switched|extended|shortened|updated|set|reset|rescheduled|postponed|delayed|brought forward))"
)
_FROM_TO = r"(?: from (?P<old>[^,;]{1,60}?))?"
_CHANGED = re.compile(
    rf"(?P<owner>my|our|the) (?P<new>new |current |latest )?(?P<noun>{_NOUN}?) (?:has |have |had )?{_ADVERBS}{_SET}"
    rf"(?: all the way)?(?: up| down| back| over| out)?(?: by [\w$€£.,%]+)?{_FROM_TO} (?:to|until|till) (?P<value>.{{1,120}})",
    re.IGNORECASE,
)
_IS_NOW = re.compile(
    rf"(?P<owner>the) (?P<new>new |current |latest )?(?P<noun>{_NOUN}?) (?:is|are)(?P<now> now| currently)?(?: set (?:to|for|at))? (?P<value>.{{1,120}})",
    re.IGNORECASE,
)
_I_CHANGE = re.compile(
    rf"(?:i|we|they|he|she|(?:my|our|the) [\w'-]+(?: [\w'-]+)?) (?:have |has |had )?{_ADVERBS}(?:changed|updated|set|reset|renamed|raised|lowered|increased|reduced|bumped|upped|cut|moved|switched"
    rf"|pushed|shifted|upgraded|extended) (?P<owner>my|our|the) (?P<noun>{_NOUN}?)(?: up| down| back| over)?{_FROM_TO} (?:to|until|till) (?P<value>.{{1,120}})",
    re.IGNORECASE,
)
_VALUE_IS_MY = re.compile(
    r"(?P<value>(?:(?:the|a|an) )?[A-Z0-9$€£][^\s,]*(?: [A-Z0-9&][^\s,]*){0,4}|(?:[\w'-]+ ){0,3}[\w'-]+) (?:is|are|became|has become|will be)"
    rf"(?P<also> also| still)?(?: now| currently| officially)? (?P<owner>my|our) (?P<new>new |current |latest )?(?P<noun>{_NOUN}?)(?P<now> now| these days| from now on)?",
)
_PEOPLE = word_class("people")
_EDGE = " ,.;:!?-\u2014\u2026()\"'*"
_END = re.compile(
    r"(?:,\s|;|\s\(|\s[-\u2013\u2014]\s).*|\s+(?:because|since|so|but|and (?:i|we|it|my|they|that|he|she)|which|who|where|when|while|after|before|if|starting|from"
    r"|as of|effective|thanks to|due to|for now|these days|now|instead|last|this (?:week|month|year|morning)|today|yesterday|already|anymore|again)\b.*",
    re.IGNORECASE,
)


class Attribute(NamedTuple):
    """A slot and its value."""

    owner: str
    """`my`, `our` or `the`."""
    noun: str
    value: str
    old: str = ""
    """The value it replaces, if said."""
    changed: bool = False
    """It is said that the value is new."""
    adds: bool = False
    """It is said beside another: `Ana is also my neighbour`."""


def read_attribute(said: str) -> Attribute | None:
    """The slot a clause fills with a new value, or by naming the value first. `My rent is …` is a clause like others."""
    said = _LEAD.sub("", said.strip(_EDGE), count=1)
    found = _CHANGED.fullmatch(said) or _I_CHANGE.fullmatch(said)
    if found is not None:
        moved = _MOVED.search(said[: found.start("value")]) is not None
        return None if moved and not _is_fixed(found["value"]) else _attribute(found, changed=True)
    found = _IS_NOW.fullmatch(said)
    if found is not None:
        changed = bool(found["now"] or found["new"])
        told = changed or (_is_fixed(found["value"]) and value_type(_trimmed(found["value"])) != "number")
        return _attribute(found, changed=changed) if told else None
    found = _VALUE_IS_MY.fullmatch(said)
    if (
        found is not None
        and not _is_pointing(found["value"])
        and not found["noun"].endswith((" too", " either"))
    ):
        named = _attribute(found, changed=bool(found["new"] or found["now"]))
        return named and named._replace(adds=bool(found["also"]))
    return None


_MOVED = re.compile(r"\b(?:moved|shifted|pushed)\b", re.IGNORECASE)
"""A car that was moved to Berlin is not called Berlin; a meeting that was moved to Friday is on Friday."""
_LEAD = re.compile(
    r"\A(?:(?:well|oh|yes|yeah|no|ok|okay|so|and|but|also|actually|hey|hi|update|correction|fyi|btw|by the way|turns out|unfortunately|sadly|luckily"
    r"|as of \w+|today|yesterday|now)[,:.!]* )+",
    re.IGNORECASE,
)


def _attribute(found: re.Match[str], *, changed: bool) -> Attribute | None:
    groups = found.groupdict()
    noun, value = found["noun"].lower(), _trimmed(found["value"])
    shared = found["owner"].lower() == "the"
    if not value or not is_attribute(noun) or not _is_value(value, typed=shared):
        return None
    if shared and (found["noun"] != noun or " of " in noun or any(map(is_finite, value.lower().split()))):
        return None
    old = (groups.get("old") or "").strip(_EDGE)
    return Attribute(found["owner"].lower(), noun, value, old, changed)


def _is_fixed(value: str) -> bool:
    """A value that says of itself that it is one: an amount, a date, an address."""
    return value_type(_trimmed(value)) in {"email", "address", "money", "clock", "date", "number"}


def _is_value(value: str, *, typed: bool) -> bool:
    """`$40` or `dark roast`; not `reflect my job`. Of `the car`, only what can be a value: not `the left lane`."""
    if value_type(value):
        return True
    words = value.lower().split()
    if typed or len(words) > _WORDS_MAX or not DETERMINERS.isdisjoint(words[1:]):
        return False
    return base_form(words[0]) != words[0] and words[0] not in PRONOUNS


_WORDS_MAX = 5


def _trimmed(value: str) -> str:
    return _END.sub("", value.strip(_EDGE), count=1).strip(_EDGE)


def is_attribute(noun: str) -> bool:
    """Whether something has such a value: a rent, a boss, a bedtime; not a sister, who moves to Rome, nor a verb."""
    words = noun.split()
    if any(word in PRONOUNS or word in DETERMINERS or is_finite(word) for word in words):
        return False
    return words[-1] not in _PEOPLE or words[-1] in _ROLES


_ROLES = word_class("roles")


def _is_pointing(value: str) -> bool:
    words = value.lower().split()
    return any(word in PRONOUNS or base_form(word) == "be" for word in words) or words[0] in STOP_WORDS - {
        "the",
        "a",
        "an",
    }


# What sort of value it is. Values of one sort compete in a slot: two prices, two dates, two names.


_TYPES = (
    ("email", re.compile(r"\S+@\S+\.\w+")),
    ("address", re.compile(r"(?:https?://|www\.)\S+|\S+\.(?:com|org|net|io|dev|de|co|app)\b")),
    ("money", re.compile(r"(?:about |around |roughly |over |under |almost )?(?:[$€£¥]\s?\d[\d.,]*\s?[km]?|\d[\d.,]*\s?[km]?\s?(?:[$€£¥]|dollars?|euros?|pounds?|bucks|usd|eur|gbp))(?:\W.*)?", re.IGNORECASE)),
    ("clock", re.compile(r"(?:at |around |about )?(?:\d{1,2}(?::\d\d)? ?(?:am|pm|o'clock)|\d{1,2}:\d\d|noon|midnight|half past \w+|quarter (?:to|past) \w+)(?:\W.*)?", re.IGNORECASE)),
    ("date", re.compile(
        r"(?:on |in |by |next |this |the |early |late |mid-?)*(?:(?:\d{1,2}(?:st|nd|rd|th)? (?:of )?)?(?:january|february|march|april|may|june|july|august|september|october"
        r"|november|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)|(?:mon|tues|wednes|thurs|fri|satur|sun)day|\d{4}-\d\d-\d\d|tomorrow|\d{1,2}(?:st|nd|rd|th)|week|month|year|q[1-4])\b.*", re.IGNORECASE)),
    ("number", re.compile(r"(?:about |around |roughly |over |under |almost |only |now |at )?(?:\d[\d.,]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty)\b.*", re.IGNORECASE)),
    ("colour", re.compile(r"(?:\w+ )?(?:red|blue|green|yellow|black|white|purple|pink|orange|brown|gr[ae]y|teal|navy|beige|gold|silver)", re.IGNORECASE)),
    ("name", re.compile(r"(?:(?:the|a|an|called|named) )?(?:dr\.? |mr\.? |ms\.? |mrs\.? |prof\.? )?(?-i:[A-Z0-9])[^\s,]*(?: .*)?", re.IGNORECASE)),
)  # fmt: skip
_VALUE_CHARS_MAX = 120


def value_type(value: str) -> str:
    """The sort of a value; empty for descriptions such as `very nice`."""
    value = value[:_VALUE_CHARS_MAX].strip(_EDGE)
    return next((name for name, pattern in _TYPES if pattern.fullmatch(value)), "")
