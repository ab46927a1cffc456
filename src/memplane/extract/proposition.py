"""A claim of one message, before it is judged or stored."""

from enum import StrEnum

import msgspec

USER = "user"
"""The subject of a speaker's statements about themselves; `user's wife` is the subject of statements about her."""


class Polarity(StrEnum):
    """Whether something is claimed or denied."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Tense(StrEnum):
    """When it is true, as far as the grammar says."""

    PRESENT = "present"
    PAST = "past"
    FUTURE = "future"


class Proposition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A subject, a predicate and an object, with their exact source: `text[start:end]`."""

    subject: str
    predicate: str
    object_text: str
    relation_phrase: str
    """The verb as said of the subject: `live in`, `used to work at`, `don't like`."""
    start: int
    end: int
    confidence: float
    polarity: Polarity = Polarity.POSITIVE
    update: bool = False
    """It marks a change: `actually`, `switched to`, `no longer`."""
    topic: str = ""
    """What the value is a value of (`favorite color`, `editor`, `capital`): two values compete within one topic."""
    adds: bool = False
    """It is said beside what is known, and replaces nothing: `I also speak Spanish`."""
    replaces: str = ""
    """The old value, if the statement names it: `from coffee` in `I switched from coffee to tea`."""
    tense: Tense = Tense.PRESENT
    when: str = ""
    """The time expression as written: `last week`, `until June 1`; `extract.time` resolves it."""
    ordinal: int | None = None
    """Its number in a numbered list, where a higher one is more recent."""
    note: str = ""
    """The learned wording of the statement; otherwise it is rendered from the triple."""
    noted: float | None = None
    """How likely a person would write it down, 0 to 1; None if unknown."""
    completed: bool = False
    """Some of its words are from the previous message: `yes` after `do you have a dog?`."""
    role: str = USER
    """The speaker's role. Only a user's statements are taken as true."""
    flagged: bool = False
    """It was said in a flagged turn, so it overrules no one."""

    @property
    def trusted(self) -> bool:
        return self.role == USER and not self.flagged
