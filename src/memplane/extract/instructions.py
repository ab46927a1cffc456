"""Instructions and corrections: `always …`, `never …`, `… from now on`, `call me …`, `no, I meant …`.

An instruction applies to later turns, so it must be meant to last: `answer in French` may be meant for this answer alone.
English is read by its grammar. Other languages need a verb about answering or addressing, and a word such as `always`; only a form of
address needs no such word.
"""

import re
import tomllib
from enum import Enum, auto
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from memplane.extract.english import base_form, word_class
from memplane.extract.proposition import USER, Proposition
from memplane.extract.sentences import Sentence
from memplane.types import Role

_CONFIDENCE = 0.75
_CHATTY = word_class("chatty")
_INFORMS = frozenset(
    {"know", "understand", "see", "hear", "imagine", "believe", "feel", "think", "realize", "realise"}
)
_OPENINGS = (
    word_class("openings")
    | word_class("agent_verbs")
    | {"when", "whenever", "every", "each", "henceforth", "stop", "call"}
)
_FIRST_WORD = re.compile(r"[ ,.:]")
_AGENT_VERB = "|".join(sorted(word_class("agent_verbs")))
_POLITE = r"(?:please[ ,]+|and |so |also[ ,]+|ok(?:ay)?[ ,]+|hey[ ,]+|remember(?: to|:)? |make sure (?:to |you )?|be sure to )*"
_LASTING = r"(?:from now on|from here on|going forward|henceforth|in (?:the )?future)"
_STANDING = re.compile(
    rf"{_POLITE}"
    rf"(?:{_LASTING}[ ,]+(?:(?:please|always|never|only) )*(?P<now>.+)"
    r"|(?P<always>always|never|do not ever|don['\u2019]t ever) (?!have (?:i|we)\b)(?P<what>[a-z]+)\b.*"
    r"|(?:do not|don['\u2019]t) (?P<dont>[a-z]+)\b.*"
    r"|(?:i(?: want| need| would like|['\u2019]d like) you to) (?P<you>.+))",
    re.IGNORECASE,
)
_NOT_CALLED = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november"
    r"|december|today|tomorrow|tonight|later|back|when|if|maybe|anytime|sometime|crazy|old|asap|now|on|at|in|after|before"
)
_STYLE = "short|shorter|brief|concise|terse|long|longer|detailed|thorough|simple|plain|formal|informal|casual|friendly|polite|direct"
_IMPERATIVE = re.compile(
    rf"{_POLITE}(?:"
    # Keep answers under 100 words from now on
    rf"(?:{_AGENT_VERB})\b.* {_LASTING}(?:,? please)?"
    # Keep your answers short; give me detailed explanations. One answer would be this one, so only the plural
    r"|(?:keep|make)(?: all)?(?: of)?(?: your| the| my)? (?:answers|replies|responses|explanations)"
    rf" (?:{_STYLE}|under|below|within|in|to)\b.*"
    rf"|give me(?: always)? (?:{_STYLE}),?(?: (?:and )?(?:{_STYLE}))? (?:answers|replies|responses|explanations)(?:,? please)?"
    # Reply to me only in German
    r"|(?:answer|reply|respond|write|speak|talk)(?: to me| me)? (?:always|only)\b.+"
    # Call me Captain; but not: call me tomorrow
    rf"|(?:call me|refer to me as|address me as) (?!(?:{_NOT_CALLED})\b)(?-i:[A-Z])\w+(?: (?-i:[A-Z])\w+)?(?:,? (?:please|from now on))*"
    # Stop using emojis
    r"|stop (?:using|saying|writing|adding|putting|repeating|apologi[sz]ing|calling me|starting your|ending your)\b(?! (?:my|our|his|her|their)\b).*"
    # No emojis please
    r"|no (?:more )?(?:emojis?|emoticons?|smileys|markdown|bullet points|bullets|jargon|small talk|disclaimers|exclamation marks|headings)"
    r"(?: in (?:your|the|any) (?:answers?|replies|responses?|messages?))?(?:,? (?:please|ever|from now on))*"
    # When I ask about flights, prefer aisle seats
    r"|(?:when(?:ever)?|every time|each time) (?:i|we|you) (?:ask|want|need|request|mention|talk|write|answer|reply|explain|send|give)"
    rf"\b[^,]*, (?:please )?(?:always |never )?(?:{_AGENT_VERB})\b.+"
    r")[ .!]*",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"(?:(?:actually|(?:on|upon) second thoughts?|i changed my mind)[ ,:;]+|(?:well|no)[,:;] *)",
    re.IGNORECASE,
)
_PERMITTED_VERB = f"(?:{_AGENT_VERB}|commit|delete|deploy|edit|install|merge|modify|post|publish|push|rebase|release|run|send|share|touch)"
_MANNER = (
    r"(?:emojis?|emoticons?|smileys|markdown|bullet points|bullets|lists|tables|headings|bold|jargon|jokes|small talk|disclaimers"
    r"|exclamation marks|tabs|spaces|prose|(?:long|longer|short|shorter|detailed|brief|formal|informal|casual) (?:answers|replies|responses))"
)
_AGAIN = r"(?:again|now|any ?more|any longer)"
_WITHDRAWAL = re.compile(
    rf"{_POLITE}(?:"
    # You don't need to answer in French any more; no need to be brief any longer
    r"(?:you (?:do not|don't) (?:need|have) to|you needn't|(?:there is |there's )?no need to) "
    r"(?P<release>.+?) (?:any ?more|any longer|now|from now on)"
    r"|(?:you no longer (?:need|have) to|(?:there is |there's )?no longer (?:any |a )?need to) (?P<no_longer>.+?)"
    # Stop answering in French
    r"|stop (?P<stop>(?:answering|replying|responding|talking|speaking|calling me|addressing me|keeping|limiting|being)\b.+?)(?: now)?"
    # You may push to main now; you can write longer answers again
    rf"|(?:you (?:can|may)|(?:it is|it's) (?:fine|ok|okay|all right|alright) to) "
    rf"(?:(?P<permit>{_PERMITTED_VERB}\b.+?) {_AGAIN}|(?:now|again) (?P<now_permit>{_PERMITTED_VERB}\b.+?))"
    # Emojis are fine again
    rf"|(?P<thing>{_MANNER}) (?:is|are) (?:now )?(?:fine|ok|okay|all right|alright|allowed|welcome) {_AGAIN}"
    r")(?:,? please)?[ .!]*",
    re.IGNORECASE,
)
_UNSPACED_NO = re.compile("不用再|不要再|别再|하지.*")
_CORRECTION = re.compile(
    r"(?:(?:no|nope|sorry|wait|actually)[ ,.]+)+(?:i (?:meant|mean|said)|(?:it|that|this)(?:['\u2019]s| is| was| should be)"
    r"|not)\b.+|(?:that['\u2019]s|that is|this is|you['\u2019]re|you are) (?:wrong|incorrect|not right|mistaken)\b.*"
    r"|correction[ :,].+|i meant .+",
    re.IGNORECASE,
)


class Ending(Enum):
    """How an instruction is withdrawn."""

    RELEASE = auto()
    """What was asked for need not be done."""
    PERMISSION = auto()
    """What was forbidden may be done."""


class Withdrawal(NamedTuple):
    """The end of an earlier instruction."""

    what: str
    ending: Ending
    forbids: bool = False
    """Whether it instructs by itself, if there was no such instruction."""


def withdrawal_of(said: str) -> Withdrawal | None:
    """What a sentence withdraws, if it does."""
    said = said.strip().replace("\u2019", "'")
    lead = _CHANGE.match(said)
    found = _WITHDRAWAL.fullmatch(said, lead.end() if lead else 0)
    if found is None:
        other = _foreign_withdrawal().fullmatch(said)
        if other is None:
            return None
        return Withdrawal(other["what"] or _UNSPACED_NO.sub("", said), Ending.RELEASE, forbids=True)
    if found["stop"]:
        return Withdrawal(found["stop"], Ending.RELEASE, forbids=True)
    if released := found["release"] or found["no_longer"]:
        return Withdrawal(released, Ending.RELEASE)
    return Withdrawal(found["permit"] or found["now_permit"] or found["thing"], Ending.PERMISSION)


def _languages() -> dict[str, dict[str, str]]:
    return tomllib.loads((files(__package__) / "instructions.toml").read_text("utf-8"))


@cache
def _foreign_withdrawal() -> re.Pattern[str]:
    """The beginnings by which other languages withdraw how to answer."""
    languages = _languages()
    unspaced = languages.pop("unspaced_withdrawing").values()
    languages.pop("unspaced")
    begins: list[str] = []
    for lists in languages.values():
        words = {name: "|".join(map(_spaced, entries.split())) for name, entries in lists.items()}
        begin = rf"(?:(?:{words['polite']})[ ,]+)?(?:{words['withdrawing']})"
        # The beginning first, since most sentences have none.
        begins.append(rf"(?={begin} )(?=.*\b(?:{words['answering']})){begin}")
    return re.compile(rf"(?:{'|'.join(begins)}) (?P<what>.+)|(?:{'|'.join(unspaced)}).*", re.IGNORECASE)


@cache
def _foreign() -> re.Pattern[str]:
    """One pattern for the other languages: a verb and a word for lasting, in either order, or how to address the user."""
    languages = _languages()
    languages.pop("unspaced_withdrawing")
    readings = [rf"{pattern}.*" for pattern in languages.pop("unspaced").values()]
    for lists in languages.values():
        words = {name: "|".join(map(_spaced, entries.split())) for name, entries in lists.items()}
        begin, lasting = rf"(?:(?:{words['polite']})[ ,]+)?", words["lasting"]
        readings += [
            rf"{begin}(?:{words['verbs']})\b.*\b(?:{lasting})\b.*",
            rf"{begin}(?:{lasting})[ ,]+(?:{words['verbs']}|{words['calling']})\b.+",
            rf"{begin}(?:{words['calling']})\b.*\b(?:{lasting})\b.*",
            rf"{begin}(?:{words['calling']}) (?-i:[^\W\d_a-zà-þа-я])\w+[ .!]*",
            rf"{begin}(?:{words['naming']})\b.*",
        ]
    return re.compile("|".join(readings), re.IGNORECASE)


def _spaced(entry: str) -> str:
    return re.escape(entry.replace("_", " "))


def read_instruction(text: str, sentence: Sentence, role: str) -> Proposition | None:
    """Only a user instructs; advice of an assistant or a tool is not an instruction."""
    if role != Role.USER or sentence.question:
        return None
    said = text[sentence.start : sentence.end]
    predicate = _predicate_of(said)
    if predicate is None:
        return None
    return Proposition(
        subject=USER,
        predicate=predicate,
        object_text=" ".join(said.split()).rstrip(" .!\u3002"),
        relation_phrase="says" if predicate == "corrects" else "asks",
        start=sentence.start,
        end=sentence.end,
        confidence=_CONFIDENCE,
        update=predicate == "corrects",
        ordinal=sentence.ordinal,
        role=role,
    )


def _predicate_of(said: str) -> str | None:
    if _FIRST_WORD.split(said, maxsplit=1)[0].lower().replace("\u2019", "'") in _OPENINGS:
        if _CORRECTION.match(said):
            return "corrects"
        if _instructs(said):
            return "instructs"
    return "instructs" if withdrawal_of(said) or _foreign().fullmatch(said) else None


def _instructs(said: str) -> bool:
    """A changed mind is no order by itself: after `actually`, only what is said to last instructs."""
    lead = _CHANGE.match(said)
    said = said[lead.end() :] if lead else said
    if _IMPERATIVE.fullmatch(said):
        return True
    found = _STANDING.match(said)
    if not found:
        return False
    if found["now"]:
        return base_form(found["now"].split()[0].strip(",")) is not None
    if lead and not found["always"]:
        return False
    if found["you"]:
        return found["you"].split()[0].lower() not in _INFORMS
    verb = (found["what"] or found["dont"] or "").lower()
    return base_form(verb) == verb and not (verb in _CHATTY and not found["always"])
