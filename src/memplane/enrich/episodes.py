"""A conversation cut into episodes, each told in a few of its own sentences. Extractive: every word was said."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from memplane.enrich.english import content_stems
from memplane.enrich.sentences import split_sentences
from memplane.memory.sitting import PAUSE
from memplane.types import Role

TURNS_MIN = 4
TURNS_MAX = 40
SENTENCES = 3
_WINDOW = 3
_SHIFT = 0.05
"""Below this likeness of the turns before and after a place, the topic changed there."""
_WORDS_MIN = 4
_WORDS_FULL = 8


class Spoken(msgspec.Struct, frozen=True, gc=False):
    """One turn, as far as an episode needs it."""

    text: str
    at: datetime
    role: str = Role.USER


class Quote(msgspec.Struct, frozen=True, gc=False):
    """A sentence of a turn: `turns[turn].text[start:end]`, exactly."""

    turn: int
    start: int
    end: int
    text: str


class Episode(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Turns `first` up to, not including, `after`, and what stands for them."""

    first: int
    after: int
    quotes: tuple[Quote, ...]

    @property
    def summary(self) -> str:
        return " ".join(quote.text for quote in self.quotes)


def tell_episodes(turns: Sequence[Spoken], *, sentences: int = SENTENCES) -> list[Episode]:
    """In order and without gaps: every turn is in exactly one episode."""
    stems = [content_stems(turn.text) for turn in turns]
    return [
        Episode(first=first, after=after, quotes=_most_central(turns, first, after, sentences))
        for first, after in _segments(turns, stems)
    ]


def _segments(turns: Sequence[Spoken], stems: Sequence[frozenset[str]]) -> Iterator[tuple[int, int]]:
    first = 0
    for at in range(1, len(turns)):
        paused = turns[at].at - turns[at - 1].at >= PAUSE
        long_enough = at - first >= TURNS_MIN and len(turns) - at >= TURNS_MIN
        if paused or at - first >= TURNS_MAX or (long_enough and _shifts(stems, at)):
            yield first, at
            first = at
    if turns:
        yield first, len(turns)


def _shifts(stems: Sequence[frozenset[str]], at: int) -> bool:
    """Whether what is said from here on shares next to nothing with what was said just before."""
    before = Counter(stem for words in stems[max(0, at - _WINDOW) : at] for stem in words)
    after = Counter(stem for words in stems[at : at + _WINDOW] for stem in words)
    if before.total() < _WORDS_FULL or after.total() < _WORDS_FULL:
        return False
    shared = sum(before[stem] * after[stem] for stem in before.keys() & after.keys())
    return shared / (_length(before) * _length(after)) < _SHIFT


def _length(counts: Counter[str]) -> float:
    return math.sqrt(sum(count * count for count in counts.values()))


def _most_central(turns: Sequence[Spoken], first: int, after: int, count: int) -> tuple[Quote, ...]:
    """The sentences whose words the episode uses most, none of them saying what another said, in their order."""
    quotes, words = _quotes(turns, first, after)
    weight = Counter(stem for stems in words for stem in stems)
    chosen: list[int] = []
    told: set[str] = set()
    while len(chosen) < min(count, len(quotes)):
        best = max(
            (place for place in range(len(quotes)) if place not in chosen),
            key=lambda place: (
                _centrality(words[place], weight, told, turns[quotes[place].turn].role),
                -place,
            ),
        )
        chosen.append(best)
        told |= words[best]
    return tuple(quotes[place] for place in sorted(chosen))


def _quotes(turns: Sequence[Spoken], first: int, after: int) -> tuple[list[Quote], list[frozenset[str]]]:
    quotes: list[Quote] = []
    words: list[frozenset[str]] = []
    for turn in range(first, after):
        if turns[turn].role == Role.SYSTEM:
            continue
        text = turns[turn].text
        for sentence in split_sentences(text):
            said = text[sentence.start : sentence.end]
            if not sentence.question and len(said.split()) >= _WORDS_MIN:
                quotes.append(Quote(turn, sentence.start, sentence.end, said))
                words.append(content_stems(said))
    return quotes, words


def _centrality(words: frozenset[str], weight: Counter[str], told: set[str], role: str) -> float:
    new = words - told
    share = sum(weight[stem] - 1 for stem in new) / max(len(words), _WORDS_FULL)
    spread = len(new) / (len(words) + _WORDS_FULL)
    return (share + spread) * (1.0 if role == Role.USER else 0.7)
