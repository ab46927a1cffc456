"""A text as it may be shown, and the way back: who edits what they see changes what is kept, and what they could not see
stays as it was."""

from collections.abc import Iterable, Sequence

import msgspec

from memplane.governance.neutral import harmful_spans
from memplane.governance.redact import NATIVE, Finding, redact


class Splice(msgspec.Struct, frozen=True):
    """Put `text` in the place of what stands from `start` to `end`."""

    start: int
    end: int
    text: str


class _Cut(msgspec.Struct, frozen=True):
    """A part of the text below, and what stands for it above."""

    above: tuple[int, int]
    below: tuple[int, int]


class Veil:
    """Invisible characters are taken out first, since one of them could hide a secret from the redactor."""

    def __init__(self, text: str) -> None:
        self._kept = text
        seen, hidden = _without(text, harmful_spans(text))
        redacted = redact(seen)
        self._layers = (_redaction(redacted.findings), hidden)
        self.text = redacted.text

    def spliced(self, splices: Iterable[Splice]) -> str:
        """What is kept, after the shown text was changed so. A splice that touches a placeholder takes all of what it
        stands for."""
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


def _redaction(findings: Iterable[Finding]) -> list[_Cut]:
    """Where the placeholders stand."""
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
