"""What a rule is made of, and what it finds."""

import re
from collections.abc import Callable
from enum import IntEnum
from functools import cached_property
from typing import Final, NamedTuple


class SecretFinding(NamedTuple):
    """One secret: `text[start:end]`, without the name or the quotes around it."""

    type: str
    start: int
    end: int


class Redacted(NamedTuple):
    """A text without its secrets, and where they stood in the text it was made from."""

    text: str
    findings: tuple[SecretFinding, ...]


class Style(NamedTuple):
    """How a secret is written once it is gone. Every placeholder must match `PLACEHOLDER`."""

    placeholder: str
    after_bearer: str | None = None
    """Instead of `placeholder`, for a token that follows the word Bearer and is not an `sk-` key."""
    whole: frozenset[str] = frozenset()
    """Types whose whole URL goes, not only its password."""


NATIVE: Final = Style("[REDACTED:{type}]")
CARAPACE: Final = Style("[REDACTED]", whole=frozenset({"connection-string"}))
CLAWDAPUS: Final = Style("[redacted-secret]", after_bearer="[redacted]")

PLACEHOLDER = re.compile(r"\[(?:REDACTED(?::[a-z0-9-]+)?|redacted(?:-secret)?)\]")

Span = tuple[int, int]
Check = Callable[[re.Match[str]], Span | None]


class Gate(IntEnum):
    """What a text must hold before a rule's hints are looked for, from rarely to often worth the look."""

    OPEN = 0
    """Nothing."""
    OPERATOR = 1
    """One of `=`, `:` and `>`."""
    TEXT = 2
    """A run of letters and digits that looks like no word (`_RUN`), anywhere."""
    RUN = 3
    """Such a run, with the hint beside it: no blank between."""


class Pattern:
    """A regular expression, compiled when it is first tried. Of all rules most never are, and to compile them takes longer
    than most commands."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._source, self._flags)

    def match(self, text: str, at: int) -> re.Match[str] | None:
        return self.compiled.match(text, at)


class Rule(NamedTuple):
    """One kind of secret. `pattern` starts where a hint does, and its last matched group is the secret."""

    type: str
    what: str
    hints: tuple[str, ...]
    pattern: Pattern
    check: Check
    gate: Gate = Gate.RUN
    context: tuple[str, ...] = ()
    """If given, one of these must stand somewhere in the text, in lower case."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())
