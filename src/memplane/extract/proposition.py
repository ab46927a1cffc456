"""What one message claims, before anyone decided whether to believe or to keep it."""

from enum import StrEnum

import msgspec

USER = "user"
"""The subject of what a speaker says about themself; `user's wife` is the subject of what they say of her."""


class Polarity(StrEnum):
    """Whether something is claimed or denied."""

    POSITIVE = "positive"
    NEGATIVE = "negative"


class Tense(StrEnum):
    """When it holds, as far as the grammar says."""

    PRESENT = "present"
    PAST = "past"
    FUTURE = "future"


class Proposition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A subject, a predicate and an object, with the words they were read from: `text[start:end]`, exactly."""

    subject: str
    predicate: str
    object_text: str
    relation_phrase: str
    """The verb as it is said of the subject: `live in`, `used to work at`, `don't like`."""
    start: int
    end: int
    confidence: float
    polarity: Polarity = Polarity.POSITIVE
    update: bool = False
    """It says of itself that something changed: `actually`, `switched to`, `no longer`."""
    topic: str = ""
    """What the value is a value of (`favorite color`, `editor`, `capital`): two values compete within one topic."""
    replaces: str = ""
    """The old value, where the statement names it: `from coffee` in `I switched from coffee to tea`."""
    tense: Tense = Tense.PRESENT
    when: str = ""
    """The time expression as written: `last week`, `until June 1`; resolving it is for `temporal/`."""
    ordinal: int | None = None
    """The number it stood under in a numbered list, where a higher one is the later word."""
    note: str = ""
    """The statement as people would write it down, where that was learned; otherwise it is told from the triple."""
    noted: float | None = None
    """How likely a person would write it down, from 0 to 1; None for what nothing was learned about."""
    completed: bool = False
    """Some of its words are the message's before this one: `yes` after `do you have a dog?`."""
    role: str = USER
    """Who said it. Only a user's word is taken for the truth."""
    flagged: bool = False
    """It was said in a turn that is flagged: whoever's word it is, it overrules nobody's."""

    @property
    def trusted(self) -> bool:
        return self.role == USER and not self.flagged
