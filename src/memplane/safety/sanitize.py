"""Make text safe to show: control characters, line breaks, secrets and flags; and map edits of shown text back to the
stored text."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from memplane.clock import Instant, to_instant
from memplane.safety.fence import strip_injected
from memplane.safety.injection import flags_of
from memplane.safety.redact import NATIVE, SecretFinding, find_secrets, redact
from memplane.types import Memory, State, Tier, Turn

# Content is data, never formatting: characters that could break out of a line, a list or a fence are neutralised.

# One space for a run of anything that ends a line.
_NEWLINES = re.compile("[\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029]+")
# Control characters, direction overrides and isolates, invisible tags, interlinear marks, the byte-order mark.
# Joiners stay: Indic scripts, Persian and emoji need them.
_HARMFUL = re.compile(
    "[\\x00-\\x08\\x0e-\\x1b\\x1f\\x7f-\\x84\\x86-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e"
    "\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0e\\ufeff\\uffa0\\ufff9-\\ufffb"
    "\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]+"
)


def visible(text: str) -> str:
    """The text without invisible characters; line breaks stay."""
    return text if text.isprintable() else _HARMFUL.sub("", text)


def harmful_spans(text: str) -> list[tuple[int, int]]:
    """The spans `visible` removes."""
    return [] if text.isprintable() else [found.span() for found in _HARMFUL.finditer(text)]


def one_line(text: str) -> str:
    """The text on one line, without characters that control a terminal, the reading direction or a parser."""
    return _HARMFUL.sub("", _NEWLINES.sub(" ", text)).replace("\t", " ")


def shortened(text: str, chars_max: int) -> str:
    """At most this many characters; the last one shows that there were more."""
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def encodable(text: str) -> str:
    """A lone surrogate is valid in a Python string but in no encoding; it is shown as its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def printable(text: str) -> str:
    """Like `one_line`, but keeps ordinary line breaks."""
    return "\n".join(one_line(line) for line in text.splitlines())


# Memories and turns as they leave a space: redaction rules may have been added, and time has passed, since they were
# derived.


def sanitized_memory(memory: Memory, now: Instant) -> Memory:
    memory = with_flags(memory)
    state = memory.state
    if has_expired(memory, now) and state is not State.SUPERSEDED:
        state = State.EXPIRED
    texts = [part for part in (memory.text, memory.quote, memory.object_text, memory.subject) if part]
    if not find_secrets("\n\n".join(texts)):  # a fast path for the usual case
        if state is memory.state and memory.claim is None:
            return memory
        return msgspec.structs.replace(memory, state=state, claim=None)
    return msgspec.structs.replace(
        memory,
        text=redact(memory.text).text,
        quote=_redacted(memory.quote),
        object_text=_redacted(memory.object_text),
        subject=_redacted(memory.subject),
        state=state,
        claim=None,
    )


def with_flags(memory: Memory) -> Memory:
    """With its flags, also if it was stored before flagging existed."""
    if memory.flags is not None:
        return memory
    flags = flags_of(memory.line, memory.quote, *memory.tags)
    hot = memory.tier is Tier.HOT and flags and not memory.released
    return msgspec.structs.replace(memory, flags=flags, tier=Tier.WARM if hot else memory.tier)


def _redacted(text: str | None) -> str | None:
    return None if text is None else redact(text).text


def turn_with_flags(turn: Turn) -> Turn:
    """With its flags, also if it was stored before flagging existed."""
    if turn.flags is not None:
        return turn
    return msgspec.structs.replace(turn, flags=flags_of(turn.text, turn.speaker))


def sanitized_turn(turn: Turn) -> Turn:
    turn = turn_with_flags(turn)
    text = redact(turn.text).text
    return turn if text == turn.text else msgspec.structs.replace(turn, text=text)


def has_expired(memory: Memory, now: Instant) -> bool:
    return memory.expires_at is not None and to_instant(memory.expires_at) <= now


class Splice(msgspec.Struct, frozen=True):
    """Replace the text from `start` to `end`."""

    start: int
    end: int
    text: str


class _Cut(msgspec.Struct, frozen=True):
    """A part of the stored text, and its replacement in the shown text."""

    above: tuple[int, int]
    below: tuple[int, int]


class SanitizedText:
    """Invisible characters are removed first, since one could hide a secret from the redactor."""

    def __init__(self, text: str) -> None:
        self._kept = text
        seen, hidden = _without(text, harmful_spans(text))
        redacted = redact(seen)
        self._layers = (_redaction(redacted.findings), hidden)
        self.text = redacted.text

    def spliced(self, splices: Iterable[Splice]) -> str:
        """The stored text after this edit of the shown text. An edit that touches a placeholder replaces everything
        it covers."""
        text = self._kept
        for splice in sorted(splices, key=lambda splice: splice.start, reverse=True):
            start, end = splice.start, splice.end
            for cuts in self._layers:
                moved = _below_start(cuts, start)
                end = moved if start == end else _below_end(cuts, end)
                start = moved
            text = text[:start] + splice.text + text[end:]
        return text


def _without(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, list[_Cut]]:
    parts: list[str] = []
    cuts: list[_Cut] = []
    at = gone = 0
    for start, end in spans:
        parts.append(text[at:start])
        cuts.append(_Cut((start - gone, start - gone), (start, end)))
        at, gone = end, gone + end - start
    return "".join([*parts, text[at:]]), cuts


def _redaction(findings: Iterable[SecretFinding]) -> list[_Cut]:
    """The spans of the placeholders."""
    cuts: list[_Cut] = []
    shift = 0
    for finding in findings:
        start = finding.start + shift
        end = start + len(NATIVE.placeholder.format(type=finding.type))
        cuts.append(_Cut((start, end), (finding.start, finding.end)))
        shift = end - finding.end
    return cuts


def _below_start(cuts: Sequence[_Cut], offset: int) -> int:
    shift = 0
    for cut in cuts:
        if offset <= cut.above[0]:
            break
        if offset < cut.above[1]:
            return cut.below[0]
        shift = cut.below[1] - cut.above[1]
    return offset + shift


def _below_end(cuts: Sequence[_Cut], offset: int) -> int:
    shift = 0
    for cut in cuts:
        if offset < cut.above[0] or (offset == cut.above[0] and cut.above[0] < cut.above[1]):
            break
        if offset < cut.above[1]:
            return cut.below[1]
        shift = cut.below[1] - cut.above[1]
    return offset + shift


def clean(text: str) -> str:
    """Text that may reach derived memory: without injected memory, invisible characters or secrets. Invisible
    characters are removed first, because one could hide a secret from the redactor."""
    return redact(visible(strip_injected(text))).text
