"""What an agent receives for a turn: the text of a recall, and the blocks of `POST /recall`."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from memplane.adapters.clawdapus.recall import answer_of, plane_limits
from memplane.adapters.clawdapus.wire import PlaneRecallResponse
from memplane.clock import Moment
from memplane.config import Settings
from memplane.recall.render import Sanitizer
from memplane.recall.request import RecallRequest
from memplane.recall.result import Limits, Recall
from memplane.recall.tokens import tokens_of
from memplane.space import Space
from memplane_eval.retrieval import EvalTurn

_SHORT_CHARS = 40
_FRAME_CHARS = 80
"""Room in a line beside a short text: kind, date, speaker."""
_WINDOW_CHARS, _WINDOW_STEP = 100, 25
"""A text is shown as an excerpt if this many consecutive characters of it are in one line."""
_WORD = re.compile(r"\w+")
_WORD_CHARS_MIN = 3


def recalled(
    space: Space, query: str, *, tokens: int | None = None, reference_time: Moment | None = None
) -> Recall:
    """A recall as an agent makes it. It is not counted, so one question does not change the answer to the next."""
    limits = None if tokens is None else Limits(tokens=tokens)
    return space.recall(query, counted=False, reference_time=reference_time, limits=limits)


def plane_blocks(
    space: Space, query: str, settings: Settings, *, reference_time: Moment | None = None
) -> list[str]:
    """The texts of the blocks that `POST /recall` returns, within the limits of its response."""
    request = RecallRequest(query=query, limits=plane_limits(settings), reference_time=reference_time)
    found = space.recall(request, counted=False)
    answer = msgspec.json.decode(answer_of(found.blocks, ()), type=PlaneRecallResponse)
    return [block.text for block in answer.memories]


class Shown:
    """Tells whether a turn or memory is in a returned text, without relying on how lines are rendered."""

    def __init__(self, text: str | Iterable[str]) -> None:
        texts = [text] if isinstance(text, str) else text
        self._lines = [_folded(line) for each in texts for line in each.splitlines()]
        self._whole = "\n".join(self._lines)

    def has(self, text: str) -> bool:
        """A short text must be most of its line; a long one may be shown as an excerpt."""
        wanted = _wanted(text)
        if not wanted:
            return False
        if len(wanted) < _SHORT_CHARS:
            return any(wanted in line and len(line) <= len(wanted) + _FRAME_CHARS for line in self._lines)
        if wanted in self._whole:
            return True
        starts = range(0, len(wanted) - _WINDOW_CHARS + 1, _WINDOW_STEP)
        return any(wanted[start : start + _WINDOW_CHARS] in self._whole for start in starts)

    def copies(self, text: str) -> int:
        """The number of lines with the text."""
        wanted = _wanted(text)
        return sum(wanted in line for line in self._lines)

    def share_of_words(self, answer: str) -> float | None:
        """The share of an answer's words in the text; None for an answer without words."""
        wanted = _words(answer)
        return len(wanted & _words(self._whole)) / len(wanted) if wanted else None


def _folded(line: str) -> str:
    return " ".join(line.casefold().split())


def _wanted(text: str) -> str:
    return _folded(Sanitizer()(text)).rstrip(".!?\u3002\uff01\uff1f ")


def _words(text: str) -> set[str]:
    found = _WORD.findall(text.casefold())
    return {word for word in found if len(word) >= _WORD_CHARS_MIN or not word.isascii() or word.isdigit()}


class PlainLines:
    """Turns as a baseline would put them into a prompt: `- date speaker: text`, best first, up to a budget."""

    def __init__(self, turns: Sequence[EvalTurn]) -> None:
        self.lines = [
            f"- {turn.at.date().isoformat()} {turn.speaker}: {' '.join(turn.text.split())}" for turn in turns
        ]
        self.costs = [tokens_of(f"{line}\n") for line in self.lines]
        self._least = min(self.costs, default=0)

    def filled(self, ranked: Sequence[int], tokens: float) -> list[int]:
        """The places that fit; a line that does not fit is skipped for a shorter one after it."""
        kept, left = [], tokens
        for place in ranked:
            if self.costs[place] <= left:
                kept.append(place)
                left -= self.costs[place]
                if left < self._least:
                    break
        return kept

    def tokens(self, places: Iterable[int]) -> int:
        return sum(self.costs[place] for place in places)

    def text(self, places: Iterable[int]) -> str:
        return "\n".join(self.lines[place] for place in places)
