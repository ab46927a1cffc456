"""How well a text answers a question, between 0 and 1, on a corpus of three or of a million.

Every word of the question that means something counts by its rarity; a text gets the share it holds of that
weight, a little less where it is long and a little more where a word comes back. So 0 is nothing, about a half is
half of what was asked, and above 0.75 is all of it. FTS5's own rank cannot say this: on a small corpus it is
almost zero for everything.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from memplane.storage.words import is_prefix, stems_of, words_of

_SATURATION = 0.3
_LENGTH_SHARE = 0.3
_LENGTH_USUAL = 25
_WORDS_MAX = 48

STOP_WORDS = frozenset(
    "a about after again all also am an and any are aren as at be because been before being but by can could couldn d "
    "did didn do does doesn doing don down during each few for from further had hadn has hasn have haven having he her "
    "here hers herself him himself his how i if in into is isn it its itself just ll m me might more most must my "
    "myself no nor not now of off on once only or other our ours ourselves out over own re s same shall she should "
    "shouldn so some such t than that the their theirs them themselves then there these they this those through to "
    "too under until up ve very was wasn we were weren what when where which while who whom whose why will with won "
    "would wouldn you your yours yourself yourselves".split()
)


class Question:
    """A question reduced to the words worth looking for."""

    def __init__(self, text: str) -> None:
        words = list(dict.fromkeys(words_of(text)))
        telling = [word for word in words if word not in STOP_WORDS] or words
        self.words: Sequence[str] = telling[:_WORDS_MAX]
        self.stems: dict[str, str] = {word: (stems_of(word) or [word])[0] for word in self.words}


class Relevance:
    """Scores texts for one question."""

    def __init__(self, question: Question, frequencies: Mapping[str, int], corpus_size: int) -> None:
        self._weights: dict[str, float] = {}
        for word, stem in question.stems.items():
            count = frequencies.get(stem, 0)
            total = max(corpus_size, count, 1)
            self._weights[word if is_prefix(word) else stem] = math.log(1 + (total - count + 0.5) / (count + 0.5))
        self._whole = sum(self._weights.values()) or 1.0

    def score(self, text: str) -> float:
        stems = Counter(stems_of(text))
        length = sum(stems.values())
        slack = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / _LENGTH_USUAL)
        gained = 0.0
        for stem, weight in self._weights.items():
            count = stems[stem]
            if not count and is_prefix(stem):
                count = sum(number for other, number in stems.items() if other.startswith(stem))
            if count:
                gained += weight * count / (count + slack)
        return gained / self._whole
