"""How well a text answers a query, 0 to 1, on a corpus of three texts or of a million.

Every significant word of the query counts by its rarity; a text gets its share of that weight, a little less if it is
long and a little more if a word repeats. FTS5's rank cannot do this: on a small corpus it is almost zero for
everything.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from memplane.storage.words import is_prefix, stems_of, words_of

_SATURATION = 0.3
_LENGTH_SHARE = 0.3
_LENGTH_USUAL = 25
_WORDS_MAX = 48
_SCORED_CHARS_MAX = 100_000
_BEGUN_SHARE = 0.5
_BEGINNING_CHARS = 3
"""Two words with the same stem begin with the same letters."""
_TEXTS_ADDED = 200
_GREETING_CHARS_MAX = 2

STOP_WORDS = frozenset(
    resources.files("memplane.extract").joinpath("stop_words.txt").read_text("utf-8").split()
)
"""Words of a query that say nothing about its answer."""


@cache
def _stop_stems() -> frozenset[str]:
    """Stems of stop words that are words of their own: the index holds `his` as `hi`, and `does` as `doe`."""
    return frozenset(stem for word in STOP_WORDS for stem in stems_of(word)) - STOP_WORDS


class Question:
    """A query reduced to its search words."""

    def __init__(self, text: str) -> None:
        words = list(dict.fromkeys(words_of(text)))
        content = [word for word in words if word not in STOP_WORDS] or words
        self.words: Sequence[str] = content[:_WORDS_MAX]
        self.stems: dict[str, str] = {word: (stems_of(word) or [word])[0] for word in self.words}
        self.ambiguous: frozenset[str] = frozenset(
            stem for word, stem in self.stems.items() if stem in _stop_stems() and word not in STOP_WORDS
        )
        """Stems that the index has mostly from stop words; only the text shows which word it contains."""

    @property
    def lookups(self) -> list[str]:
        """The stems worth looking up in an index without its texts: `hi` would find every `his`."""
        stems = dict.fromkeys(self.stems[word] for word in self.words)
        return [stem for stem in stems if stem not in self.ambiguous or len(stem) > _GREETING_CHARS_MAX]


class Relevance:
    """Scores texts for one query."""

    def __init__(
        self, question: Question, frequencies: Mapping[str, int], corpus_size: int, *, begun: str = ""
    ) -> None:
        """`begun` is a word still being typed: words that begin with it count half."""
        self._begun = begun
        self._begun_stem = question.stems.get(begun)
        self._ambiguous = question.ambiguous
        self._weights: dict[str, float] = {}
        for word, stem in question.stems.items():
            count = frequencies.get(stem, 0)
            total = max(corpus_size, count, 1)
            self._weights[word if is_prefix(word) else stem] = math.log(
                1 + (total - count + 0.5) / (count + 0.5)
            )
        self._holders = min((frequencies.get(stem, 0) for stem in question.stems.values()), default=0)
        self._corpus_size = max(corpus_size, self._holders)
        words = [word.rstrip("*") for word in question.stems]
        self._beginnings = [word[:_BEGINNING_CHARS] for word in words] if "".join(words).isascii() else []
        self._whole = sum(self._weights.values()) or 1.0
        self._scores: dict[str, tuple[float, bool]] = {}

    @property
    def distinctiveness(self) -> float:
        """How rare the rarest word of the query is: 1 if no text contains it, near 0 if most do. A few texts cannot show that a
        word is common, so some texts without it are added."""
        total = self._corpus_size + _TEXTS_ADDED
        rarity = math.log(1 + (total - self._holders + 0.5) / (self._holders + 0.5))
        return rarity / math.log(1 + (total + 0.5) / 0.5)

    def score(self, text: str) -> float:
        return self._known(text)[0]

    def has_all(self, text: str) -> bool:
        """Whether the text contains every word that counts."""
        return self._known(text)[1]

    def _known(self, text: str) -> tuple[float, bool]:
        known = self._scores.get(text)
        if known is None:
            known = self._scores[text] = self._score(text)
        return known

    def _score(self, text: str) -> tuple[float, bool]:
        if self._beginnings and text.isascii():
            lowered = text.lower()
            if not any(beginning in lowered for beginning in self._beginnings):
                return 0.0, False  # most texts share no word with the query, and finding stems is slow
        stems = Counter(stems_of(text[:_SCORED_CHARS_MAX]))
        length = sum(stems.values())
        if self._ambiguous and not self._ambiguous.isdisjoint(stems):
            told = [word for word in words_of(text[:_SCORED_CHARS_MAX]) if word not in STOP_WORDS]
            other = Counter(stem for word in told for stem in stems_of(word))
            stems.update({stem: other[stem] - stems[stem] for stem in self._ambiguous})
        slack = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / _LENGTH_USUAL)
        gained, has_all = 0.0, True
        for stem, weight in self._weights.items():
            count = stems[stem]
            if not count and is_prefix(stem):
                count = sum(number for other, number in stems.items() if other.startswith(stem))
            if count:
                gained += weight * count / (count + slack)
            elif stem == self._begun_stem and self._begins(text):
                gained += weight * _BEGUN_SHARE
            else:
                has_all = False
        return gained / self._whole, has_all

    def _begins(self, text: str) -> bool:
        return any(word.startswith(self._begun) for word in words_of(text[:_SCORED_CHARS_MAX]))
