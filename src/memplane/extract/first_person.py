"""Statements of people about themselves and what is theirs: `I live in Rome`, `my wife works as a nurse`."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from memplane.extract.catalog import PredicateCatalog
from memplane.extract.english import PRONOUNS, STOP_WORDS, base_form, expand, is_finite, stem, word_class
from memplane.extract.parse import ParsedClause
from memplane.extract.proposition import USER, Polarity, Proposition, Tense

# Trim a phrase to what a person would write down.


_CUT = re.compile(
    r"""(?<!\s)(?:\s*,)?\s+(?:because|since|which|although|though|unless|whereas|if|so\ that|so\ (?:i|we|it|my|you)|but|cause
        |while|where\ i|when\ (?:i|we|he|she|it|they|my|you)|as\ (?:i|it|well)|too|either|lol|haha|right\ now
        |at\ the\ moment|at\ all|anyway|(?:and|or)$|just\ like\ you|like\ you|with\ you|you\ know|of\ course)(?=\s|,|$).*"""
    r"""|(?<!\s)\s*[,(]\s*(?:what|how|do|are|is|did|have|lol|haha|and|but|so|it|that|though|too|right|as|which|who)\b.*""",
    re.IGNORECASE | re.VERBOSE,
)
_EDGE = ' ,.;:!?-\u2014\u2026()"*'


def trim(phrase: str) -> str:
    """Without subordinate clauses and trailing words."""
    return _CUT.sub("", phrase, count=1).strip(_EDGE)


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
"""A new manager replaces the old one: the same role, filled again."""
_BASE_CONFIDENCE = 0.6
_KNOWN_CONFIDENCE = 0.85
_ASSISTANT_SHARE = 0.6


_HAPPENING = frozenset({"experienced", "does", "owns"})
_COMPANY = re.compile(
    r"(?<=\w),? (?:(?:with (?:my|our|a|an|the|two|three)|since|and (?:it|i|we|my|have|am)) .*"
    r"|(?:(?:right )?now|currently|nowadays|these days|at the moment|at present)$)",
    re.IGNORECASE,
)
"""What exceeds the value of a one-valued predicate: `Berlin with my two dogs`, `Berlin now`."""


class ClauseReading(NamedTuple):
    """A predicate and a value for a clause, before mapping."""

    predicate: str
    value: str
    topic: str
    replaces: str
    negative: bool
    relation: str
    of_user: bool = False
    ended: bool = False
    """Something was so until now."""


def read_clause(parsed: ParsedClause, catalog: PredicateCatalog) -> ClauseReading:
    """The best reading of one clause."""
    rest = _untimed(trim(parsed.rest), parsed.when)
    lost = _lost(parsed, catalog, rest)
    if lost is not None:
        return lost
    ended = _ended(parsed, rest)
    if ended is not None:
        return _with_catalog(parsed, catalog, ended, negative=True)._replace(ended=True)
    none = _NONE.match(rest) if parsed.verb in _HAVING and not parsed.negative else None
    if none and len(none["what"].split()) == 1:  # no pets; but not: no dog food
        return _with_catalog(parsed, catalog, none["what"], negative=True)
    old, new = _replacement(parsed, rest)
    reading = _with_catalog(parsed, catalog, rest, negative=parsed.negative)
    if not old and not new:
        return reading
    topic = catalog.class_of(new) or reading.topic
    relation = f"{parsed.group} to" if parsed.verb in _CHANGING else parsed.group
    if parsed.verb in _EXCHANGING:
        relation = "now use" if reading.predicate.startswith("uses") else "now have"
        old = "" if old.lower() in PRONOUNS else old
    return reading._replace(value=new, topic=topic, replaces=old, relation=relation)


_HAVING = frozenset({"have", "own", "speak", "eat", "drink", "take", "use", "play", "get", "keep"})
_NONE = re.compile(
    r"(?:no|zero) (?!longer\b|idea\b|clue\b|problem|doubt\b|choice\b|interest\b|need\b|reason\b|one\b|matter\b|way\b|time\b|plans?\b)(?P<what>.+)",
    re.IGNORECASE,
)


def _lost(parsed: ParsedClause, catalog: PredicateCatalog, rest: str) -> ClauseReading | None:
    """Who or what is no longer there: `my dog Rex died`, `our cat passed away`."""
    if parsed.negative or parsed.modal or parsed.owner in {"I", "we"} or _NEARLY.search(parsed.group):
        return None
    noun = _MY.sub("", parsed.owner, count=1)
    topic = catalog.class_of(noun)
    died = parsed.verb == "die" and topic in _LIVING
    if not died and _GONE.match(f"{parsed.verb} {rest}") is None:
        return None
    predicate = _PLACES.get(topic, "owns")
    return ClauseReading(
        predicate, noun, topic, "", negative=True, relation="no longer have", of_user=True, ended=True
    )


_LIVING = frozenset({"pet", "family"})
"""A car or a laptop that died is repaired."""
_NEARLY = re.compile(r"\b(?:almost|nearly)\b", re.IGNORECASE)
_GONE = re.compile(
    r"(?:pass away|run away|be (?:gone|dead|put (?:down|to sleep)|stolen|no longer (?:with us|alive)))\b",
    re.IGNORECASE,
)


def propose(
    parsed: ParsedClause,
    reading: ClauseReading,
    *,
    start: int,
    end: int,
    role: str,
    ordinal: int | None,
    known: bool,
) -> Proposition | None:
    """The reading as a proposition; None if it says nothing."""
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
        update=parsed.update or reading.ended or _NEW.match(parsed.owner, 3) is not None,
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


def _with_catalog(
    parsed: ParsedClause, catalog: PredicateCatalog, rest: str, *, negative: bool
) -> ClauseReading:
    if parsed.owner not in {"I", "we"}:
        mine = _of_mine(parsed, catalog, rest, negative=negative)
        if mine:
            return mine
    said = catalog.by_verb(parsed.verb, rest)
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
    return ClauseReading(name, value, topic, "", negative or _denies(name), relation)


def _denies(name: str) -> bool:
    return name == "dislikes"


def _of_mine(
    parsed: ParsedClause, catalog: PredicateCatalog, rest: str, *, negative: bool
) -> ClauseReading | None:
    """`My favorite color is blue` is about the user; `my wife is a nurse` is about her."""
    noun = _NEW.sub("", _MY.sub("", parsed.owner, count=1), count=1)
    found = catalog.by_noun(noun)
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
    return ClauseReading(name, value, topic.lower(), "", negative, relation, of_user=True)


def _untimed(rest: str, when: str) -> str:
    """Without the time expression at its end, which is kept separately."""
    return rest[: -len(when)].rstrip(" ,") if when and rest.endswith(when) else rest


def _ended(parsed: ParsedClause, rest: str) -> str | None:
    """What has ended, in `I quit smoking`, `I gave up bread`, `I used to smoke`."""
    if parsed.negative:
        return None
    if parsed.tense is Tense.PAST and parsed.group.startswith("used to"):
        return rest
    sure = parsed.verb in _SURE_ENDING and parsed.tense is Tense.PAST
    if parsed.verb in _ENDING and (parsed.update or sure):
        return re.sub(r"^(?:eating|drinking|using|doing|playing|going to) (?=\w)", "", rest)
    if parsed.verb in {"give", "cut"}:
        found = _ENDING_PHRASES.match(rest)
        return rest if found else None
    parted = _PARTED.match(f"{parsed.verb} {rest}")
    return parted["what"] if parted else None


_SURE_ENDING = frozenset({"quit", "cancel", "sell", "uninstall", "delete", "donate"})
_PARTED = re.compile(
    r"(?:get rid of|break up with|split (?:up )?(?:with|from)|part (?:ways )?with|let go of|call off|throw (?:out|away)|say goodbye to) (?P<what>.+)",
    re.IGNORECASE,
)


def _replacement(parsed: ParsedClause, rest: str) -> tuple[str, str]:
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


# Statements about the speaker with another subject: `Pizza is my favorite`, `there are five of us`.


_MINE = re.compile(r"\b(?:i|my|mine|me|our|ours|us|myself)\b", re.IGNORECASE)
_ADDRESSED = re.compile(
    r"\b(?:you|your|let me|tell me|excuse me|thank|thanks|help me|let us|sounds|said|says|say|told|asked|asks|claims|if)\b|\bme (?:too|either|neither|as well)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"\A(?:(?:yes|yeah|no|oh|well|so|and|but|ok|okay|wow|haha|lol|also|actually)\b[ ,.!]*)+", re.IGNORECASE
)
_WORDS_MIN = 3
_CONFIDENCE = 0.45


def read_mention(text: str, start: int, end: int, role: str, ordinal: int | None) -> Proposition | None:
    said = text[start:end]
    if role != USER or '"' in said or "\u201c" in said or not _MINE.search(said) or _ADDRESSED.search(said):
        return None
    value = trim(_LEAD.sub("", expand(said), count=1))
    words = value.split()
    if len(words) < _WORDS_MIN or not any(base_form(word) for word in words):
        return None
    return Proposition(
        subject=USER,
        predicate="mentions",
        object_text=value,
        relation_phrase="",
        start=start,
        end=end,
        confidence=_CONFIDENCE,
        ordinal=ordinal,
        role=role,
    )


# Possessions mentioned in passing: someone who walks `my dog` has a dog.


_WORDS = re.compile(r"\b(?:my|our) +((?:[\w-]+ *){1,4})", re.IGNORECASE)
_NAME = re.compile(r"(?:,? named |,? called |,? )(?P<name>[A-Z][a-z]+)\b")
_NAMED_ALREADY = re.compile(r"['\u2019]s name\b")
_THINGS = word_class("belongings")
_EVERYBODY = word_class("relatives_of_everybody")
_PLACES = {"family": "has_family", "pet": "has_pet", "vehicle": "owns"}
_OPENING = word_class("belonging_openings")
_FORMER = word_class("former")
_ENDS = word_class("ending") | word_class("parting")


class Belonging(NamedTuple):
    """A possession, its predicate, and its position in the text."""

    predicate: str
    noun: str
    phrase: str
    """With its article: `a dog named Rex`."""
    topic: str
    start: int
    end: int


def describes_end(parsed: ParsedClause) -> bool:
    """Whether a clause describes an end, so that the possession may be gone: `I sold my car`."""
    return parsed.verb in _ENDS or (parsed.verb == "give" and "up" in parsed.rest)


def belongings(text: str, start: int, end: int, catalog: PredicateCatalog) -> Iterator[Belonging]:
    for found in _WORDS.finditer(text, start, end):
        kept: list[str] = []
        at = found.start(1)
        for word in found.group(1).split():
            at = text.index(word, at) + len(word)
            noun = stem(word)
            topic = catalog.class_of(word)
            if topic in _PLACES or noun in _THINGS:
                if noun in _EVERYBODY or at > end or _NAMED_ALREADY.match(text, at, end):
                    break
                if _is_compound(text, at, end):
                    break
                kept.append(word.lower() if word.islower() or word.isupper() else word)
                phrase = _with_article(kept)
                name = _NAME.match(text, at, end) if topic in {"family", "pet"} else None
                if name:
                    phrase, at = f"{phrase} named {name['name']}", name.end()
                yield Belonging(_PLACES.get(topic, "owns"), noun, phrase, topic, found.start(), at)
                break
            if word.lower() in _FORMER:
                break
            if word.lower() in _OPENING:
                continue
            if word.lower() in STOP_WORDS or not word.isalpha() or word.lower().endswith("s"):
                break
            kept.append(word)


def _is_compound(text: str, at: int, end: int) -> bool:
    """Whether the noun only describes the next one: `my horse painting`, `my dog walker`."""
    found = _NEXT.match(text, at, end)
    if found is None:
        return False
    word = found.group(1)
    if word.endswith("ing"):
        return True
    return word not in STOP_WORDS and not is_finite(word) and base_form(word) is None


_NEXT = re.compile(r" ([a-z]{3,})\b")


def _with_article(words: list[str]) -> str:
    phrase = " ".join(words)
    last = words[-1].lower()
    if (last.endswith("s") and not last.endswith("ss")) or last in {
        "children",
        "grandchildren",
        "fish",
        "sheep",
    }:
        return phrase
    return f"{'an' if phrase[0].lower() in 'aeiou' else 'a'} {phrase}"
