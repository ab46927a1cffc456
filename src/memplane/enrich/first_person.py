"""What people say about themselves and what is theirs: `I live in Rome`, `my wife works as a nurse`."""

import re
from typing import NamedTuple

from memplane.enrich.catalog import Catalog
from memplane.enrich.parse import Parsed
from memplane.enrich.phrase import trim
from memplane.enrich.proposition import USER, Polarity, Proposition, Tense
from memplane.enrich.wordlists import word_class

_FROM_TO = re.compile(
    r"(?P<before>.*?)\b(?:away )?from (?P<old>[\w' .+#-]+?) (?:over |back )?to (?P<new>.+)", re.IGNORECASE
)
_TO = re.compile(r"(?P<before>.*?)\b(?:back |over |on )?(?:to|onto) (?P<new>.+)", re.IGNORECASE)
_INSTEAD = re.compile(r"(?P<new>.+?) (?:instead of|rather than|over) (?P<old>.+)", re.IGNORECASE)
_REPLACED = re.compile(r"(?P<old>.+?) (?:with|for|by) (?P<new>.+)", re.IGNORECASE)
_CHANGING = word_class("changing")
_EXCHANGING = word_class("exchanging")
_ENDING = word_class("ending")
_ENDING_PHRASES = re.compile(r"(?:up|out|away|down on|back on) (.+)", re.IGNORECASE)
_MY = re.compile(r"(?:my|our) ", re.IGNORECASE)
_NEW = re.compile(r"(?:new|current|latest) (?=\w)", re.IGNORECASE)
"""Who has a new manager no longer has the old one: it is the same place, filled again."""
_BASE_CONFIDENCE = 0.6
_KNOWN_CONFIDENCE = 0.85
_ASSISTANT_SHARE = 0.6


_HAPPENING = frozenset({"experienced", "does", "owns"})
_COMPANY = re.compile(
    r"(?<=\w),? (?:(?:with (?:my|our|a|an|the|two|three)|since|and (?:it|i|we|my|have|am)) .*"
    r"|(?:(?:right )?now|currently|nowadays|these days|at the moment|at present)$)",
    re.IGNORECASE,
)
"""What goes beyond the value of a one-valued predicate: `Berlin with my two dogs`, `Berlin now`."""


class Reading(NamedTuple):
    """A predicate and a value for a clause, before it is filed."""

    predicate: str
    value: str
    topic: str
    replaces: str
    negative: bool
    relation: str
    of_user: bool = False


def read_clause(parsed: Parsed, catalog: Catalog) -> Reading:
    """The best reading of one clause."""
    rest = _untimed(trim(parsed.rest), parsed.when)
    ended = _ended(parsed, rest)
    if ended is not None:
        return _with_catalog(parsed, catalog, ended, negative=True)
    old, new = _replacement(parsed, rest)
    reading = _with_catalog(parsed, catalog, rest, negative=parsed.negative)
    if not old and not new:
        return reading
    topic = catalog.class_of(new) or reading.topic
    relation = f"{parsed.group} to" if parsed.verb in _CHANGING else parsed.group
    return reading._replace(value=new, topic=topic, replaces=old, relation=relation)


def propose(
    parsed: Parsed, reading: Reading, *, start: int, end: int, role: str, ordinal: int | None, known: bool
) -> Proposition | None:
    """The reading as a proposition; None when it says nothing."""
    if not reading.value and parsed.verb in {"be", "have", "do", "get", "go", "make", "take"}:
        return None
    confidence = _KNOWN_CONFIDENCE if known else _BASE_CONFIDENCE
    if parsed.modal in {"could", "may", "might", "should"}:
        confidence -= 0.2
    return Proposition(
        subject=USER if reading.of_user else _subject(parsed.owner),
        predicate=reading.predicate,
        object_text=reading.value,
        relation_phrase=reading.relation,
        start=start,
        end=end,
        confidence=round(confidence * (1 if role == USER else _ASSISTANT_SHARE), 2),
        polarity=Polarity.NEGATIVE if reading.negative else Polarity.POSITIVE,
        update=parsed.update or _NEW.match(parsed.owner, 3) is not None,
        topic=reading.topic,
        replaces=reading.replaces,
        tense=parsed.tense,
        when=parsed.when,
        ordinal=ordinal,
        role=role,
    )


def _subject(owner: str) -> str:
    if owner in {"I", "we"}:
        return USER
    return f"{USER}'s {_NEW.sub('', _MY.sub('', owner, count=1), count=1)}"


def _with_catalog(parsed: Parsed, catalog: Catalog, rest: str, *, negative: bool) -> Reading:
    if parsed.owner not in {"I", "we"}:
        mine = _of_mine(parsed, catalog, rest, negative=negative)
        if mine:
            return mine
    said = catalog.said_with(parsed.verb, rest)
    if said is None:
        name, value = ("is" if parsed.verb == "be" else "does"), rest
    else:
        name, value = said
    relation = parsed.group
    at = rest.find(value) if value else -1
    if at > 0:
        relation = f"{relation} {rest[:at].strip()}"
    if parsed.tense is Tense.FUTURE and name in _HAPPENING:
        name = "plans"
    if catalog[name].one:
        topic, value = "", _COMPANY.sub("", value)
    else:
        topic = catalog.class_of(value)
    return Reading(name, value, topic, "", negative or _denies(name), relation)


def _denies(name: str) -> bool:
    return name == "dislikes"


def _of_mine(parsed: Parsed, catalog: Catalog, rest: str, *, negative: bool) -> Reading | None:
    """`My favorite color is blue` is about the user; `my wife is a nurse` is about her."""
    noun = _MY.sub("", parsed.owner, count=1)
    found = catalog.said_of_mine(noun)
    if found is None or parsed.verb not in {"be", "become", "change"}:
        return None
    name, topic = found
    if not catalog[name].one:
        return None
    called = re.match(r"(?:called|named|to) (.+)", rest, re.IGNORECASE)
    value = called.group(1) if called else rest
    if topic:
        relation = f"{parsed.owner} {parsed.group}"
    else:
        relation = f"{parsed.owner} {parsed.group}{' ' + rest[: -len(value)].strip() if called else ''}"
    return Reading(name, value, topic.lower(), "", negative, relation, of_user=True)


def _untimed(rest: str, when: str) -> str:
    """Without the time expression at its end, which is kept apart."""
    return rest[: -len(when)].rstrip(" ,") if when and rest.endswith(when) else rest


def _ended(parsed: Parsed, rest: str) -> str | None:
    """What no longer holds, in `I quit smoking`, `I gave up bread`, `I used to smoke`."""
    if parsed.tense is Tense.PAST and parsed.group.startswith("used to"):
        return rest
    if parsed.verb in _ENDING and parsed.update:
        return re.sub(r"^(?:eating|drinking|using|doing|playing|going to) (?=\w)", "", rest)
    if parsed.verb in {"give", "cut"}:
        found = _ENDING_PHRASES.match(rest)
        return rest if found else None
    return None


def _replacement(parsed: Parsed, rest: str) -> tuple[str, str]:
    """Old and new value of a change."""
    if parsed.verb in _CHANGING:
        both = _FROM_TO.match(rest)
        if both:
            return both["old"].strip(), both["new"].strip()
        one = _TO.match(rest)
        return ("", one["new"].strip()) if one else ("", "")
    if parsed.verb in _EXCHANGING:
        both = _REPLACED.match(rest)
        return (both["old"].strip(), both["new"].strip()) if both else ("", "")
    instead = _INSTEAD.match(rest)
    return (instead["old"].strip(), instead["new"].strip()) if instead and "over" not in rest else ("", "")
