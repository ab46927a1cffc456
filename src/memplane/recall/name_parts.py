"""Which documents a question names, or the makers of which: `what did The Verge report …` is about documents whose names
say `(The Verge)`. A part of a name has to stand in the question word for word; single words of it may be anything's."""

import re
from collections.abc import Iterable, Iterator, Sequence

from memplane.recall.relevance import STOP_WORDS
from memplane.storage.words import words_of

_PARTING = re.compile(r"[()\[\]{}|:;/\\\"“”]|\s[-–—]\s|\.[A-Za-z]\w{0,4}$")  # noqa: RUF001
_CHARS_MIN = 3
_WORDS_MAX = 12
_NAME_CHARS_MAX = 300
_QUESTION_WORDS_MAX = 200


class NameParts:
    """The parts of names, and whose they are."""

    def __init__(self, names: Iterable[str]) -> None:
        self._holders: dict[str, list[int]] = {}
        count = 0
        for place, name in enumerate(names):
            count = place + 1
            for part in dict.fromkeys(_parts(name)):
                self._holders.setdefault(part, []).append(place)
        self._most = max(1, count // 2)

    def named_in(self, question: str) -> set[int]:
        """The places of the names that a question says a part of. What more than half of them have in common names
        none."""
        words = words_of(question)[:_QUESTION_WORDS_MAX]
        said = (self._holders.get(run, ()) for run in _runs(words))
        return {place for places in said if len(places) <= self._most for place in places}


def _parts(name: str) -> Iterator[str]:
    for part in _PARTING.split(name[:_NAME_CHARS_MAX]):
        words = words_of(part or "")
        said = " ".join(words)
        if len(said) >= _CHARS_MIN and not all(word in STOP_WORDS or word.isdigit() for word in words):
            yield said


def _runs(words: Sequence[str]) -> Iterator[str]:
    for start in range(len(words)):
        for end in range(start + 1, min(len(words), start + _WORDS_MAX) + 1):
            yield " ".join(words[start:end])
