"""What a document says, in a few of its own sentences: of each section, and of the whole. Extractive: every sentence
stands in the document, and the same document always gives the same.

A sentence is central if it shares words with many others, weighed by how rare they are; the first ones of a section
count a little more, and none says what another one said. A section of a thousand pages costs no more than one of
twenty: only so much of each is read, and of all of them together.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import islice

import msgspec

from memplane.enrich.passages import Passage, on_one_line, passages_of, words_in
from memplane.recall.relevance import STOP_WORDS
from memplane.storage.words import stems_of
from memplane.types import Section

SECTION_WORDS_MAX = 60
WHOLE_WORDS_MAX = 150
SECTION_CHARS_MAX = 600
TITLE_CHARS_MAX = 200

_CHARS_READ = 600_000
"""Of all sections together; each has its share, within these bounds."""
_SHARE_MIN, _SHARE_MAX = 600, 16_000
_SENTENCES_READ = 60
_SECTIONS_WEIGHED = 1_000
"""So many sections are weighed; of the others the first sentence is told."""
_SECTIONS_READ = 5_000
"""So many sections are read; of the others the title is told."""
_CANDIDATES_EACH = 3
_CANDIDATES_MAX = 600
_FROM_ONE_SECTION = 2
_TITLES_TOLD = 12
_TITLES_WORDS = 50
_LIKENESS_MAX = 0.6
_LENGTH_USUAL = 8
_ALONE = 0.2
"""What a word counts that no other sentence has."""


class Distillation(msgspec.Struct, frozen=True):
    """A document in short, and each of its sections."""

    whole: str
    sections: tuple[str, ...]
    """By ordinal."""


class _Weighed(msgspec.Struct, frozen=True):
    """A sentence, where it stands, and the words it is weighed by, each once and in order."""

    said: str
    section: int
    place: int
    stems: tuple[str, ...]
    words: int


def distil(sections: Sequence[tuple[Section, str]], name: str) -> Distillation:
    """Sections with their texts, in order; `name` is the document's."""
    name = shortened_title(name)
    share = max(_SHARE_MIN, min(_SHARE_MAX, _CHARS_READ // max(1, len(sections))))
    step = math.ceil(len(sections) / _SECTIONS_READ) or 1
    read = [
        _read(section, text, share) if place % step == 0 else []
        for place, (section, text) in enumerate(sections)
    ]
    stride = step * (math.ceil(len(sections) / step / _SECTIONS_WEIGHED) or 1)
    weighed = {place: _weighed(place, passages) for place, passages in enumerate(read) if place % stride == 0}
    rarity = _rarity(weighed.values())
    told: list[str] = []
    candidates: list[_Weighed] = []
    for place, (section, _) in enumerate(sections):
        chosen = _chosen_of_section(weighed[place], rarity, section.title) if weighed.get(place) else []
        candidates += chosen[:_CANDIDATES_EACH]
        told.append(_told(chosen, SECTION_WORDS_MAX) or _beginning(read[place], section, name))
    whole = _whole(candidates, rarity, name, len(sections))
    titles = _titles([section for section, _ in sections])
    if not whole:
        whole = next((text for text in told if text != name), name)
    return Distillation(f"{whole} {titles}" if titles else whole, tuple(told))


def shortened_title(title: str) -> str:
    """A heading, or a name, on one line; some headings are paragraphs that somebody made bold."""
    return _cut_at_word(on_one_line(title), TITLE_CHARS_MAX)


def _cut_at_word(text: str, chars_max: int) -> str:
    """At most so many characters, ending with a whole word where there are any; a mark says that there was more."""
    if len(text) <= chars_max:
        return text
    cut = text[: chars_max - 1]
    return f"{cut.rpartition(' ')[0] if ' ' in cut[chars_max // 2 :] else cut}…"


def bounded(text: str, words_max: int) -> str:
    """At most so many words."""
    if words_in(text) <= words_max:
        return text
    words = text.split()[:words_max]
    while words and words_in(" ".join(words)) > words_max:
        words = words[: len(words) * 3 // 4] if len(words) > 1 else [words[0][: len(words[0]) * 3 // 4]]
        if words == [""]:
            break
    return f"{' '.join(words)}…"


def _read(section: Section, text: str, share: int) -> list[Passage]:
    beginning = text[:share]
    cut = len(text) > share
    found = list(islice(passages_of(beginning, section.title, cut=cut), _SENTENCES_READ))
    return found if found or not cut else list(islice(passages_of(beginning, section.title), 1))


def _weighed(section: int, passages: Sequence[Passage]) -> tuple[_Weighed, ...]:
    stop = _stop_stems()
    return tuple(
        _Weighed(
            passage.said,
            section,
            place,
            tuple(dict.fromkeys(stem for stem in stems_of(passage.said) if stem not in stop)),
            words_in(passage.said),
        )
        for place, passage in enumerate(passages)
        if passage.tells
    )


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(stem for word in STOP_WORDS for stem in stems_of(word))


def _rarity(weighed: Iterable[Sequence[_Weighed]]) -> dict[str, float]:
    """How telling a word is in this document: the square, since it counts in both of two sentences that share it."""
    holding: Counter[str] = Counter()
    count = 0
    for sentences in weighed:
        for sentence in sentences:
            holding.update(sentence.stems)
            count += 1
    return {stem: math.log(1 + count / held) ** 2 for stem, held in holding.items()}


def _chosen_of_section(
    sentences: Sequence[_Weighed], rarity: Mapping[str, float], title: str | None
) -> list[_Weighed]:
    """The best first."""
    titled = frozenset(stems_of(title or ""))
    return _chosen(
        sentences,
        rarity,
        words_max=SECTION_WORDS_MAX,
        prior=lambda sentence: (
            1 + 0.5 / (1 + sentence.place) + 0.3 * bool(titled.intersection(sentence.stems))
        ),
    )


def _whole(candidates: Sequence[_Weighed], rarity: Mapping[str, float], name: str, sections: int) -> str:
    stride = math.ceil(len(candidates) / _CANDIDATES_MAX) or 1
    named = frozenset(stems_of(name))
    chosen = _chosen(
        candidates[::stride],
        rarity,
        words_max=WHOLE_WORDS_MAX,
        prior=lambda sentence: (
            (1 + 0.5 / (1 + sentence.section))
            * (1 + 0.3 / (1 + sentence.place))
            * (1 + 0.3 * bool(named.intersection(sentence.stems)))
        ),
        each_max=_FROM_ONE_SECTION if sections > _FROM_ONE_SECTION else None,
    )
    return _told(chosen, WHOLE_WORDS_MAX)


def _chosen(
    sentences: Sequence[_Weighed],
    rarity: Mapping[str, float],
    *,
    words_max: int,
    prior: Callable[[_Weighed], float],
    each_max: int | None = None,
) -> list[_Weighed]:
    """The most central sentences that fit together, the best first. What one said already adds nothing to the next."""
    holding = Counter(stem for sentence in sentences for stem in sentence.stems)
    priors = [prior(sentence) for sentence in sentences]
    left = list(range(len(sentences)))
    chosen: list[_Weighed] = []
    each: Counter[int] = Counter()
    told: set[str] = set()
    words = 0
    while left:
        best = max(left, key=lambda at: (priors[at] * _centrality(sentences[at], holding, rarity, told), -at))
        left.remove(best)
        sentence = sentences[best]
        full = each_max is not None and each[sentence.section] >= each_max
        if full or words + sentence.words > words_max or any(_alike(sentence, other) for other in chosen):
            continue
        chosen.append(sentence)
        told.update(sentence.stems)
        each[sentence.section] += 1
        words += sentence.words
        left = [at for at in left if words + sentences[at].words <= words_max]
    return chosen


def _centrality(
    sentence: _Weighed, holding: Mapping[str, int], rarity: Mapping[str, float], told: set[str]
) -> float:
    """How much of what others say it says, too."""
    shared = sum((holding[stem] - 1 + _ALONE) * rarity[stem] for stem in sentence.stems if stem not in told)
    return shared / (len(sentence.stems) + _LENGTH_USUAL)


def _alike(left: _Weighed, right: _Weighed) -> bool:
    mine, other = set(left.stems), set(right.stems)
    if not mine or not other:
        return left.said == right.said
    return len(mine & other) / min(len(mine), len(other)) > _LIKENESS_MAX


def _told(chosen: Sequence[_Weighed], words_max: int) -> str:
    """In the order in which they stand."""
    ordered = sorted(chosen, key=lambda sentence: (sentence.section, sentence.place))
    return bounded(" ".join(sentence.said for sentence in ordered), words_max)


def _beginning(passages: Sequence[Passage], section: Section, name: str) -> str:
    """What there is to say where no sentence stands out: the first thing that is said, or else what it is called."""
    first = next((passage for passage in passages if passage.tells), passages[0] if passages else None)
    if first is None:
        return shortened_title(section.title or name)
    return bounded(_cut_at_word(first.said, SECTION_CHARS_MAX), SECTION_WORDS_MAX)


def _titles(sections: Sequence[Section]) -> str:
    """What the parts of a document are called: those of the highest level of which there are several."""
    titled = [section for section in sections if section.title]
    levels = Counter(section.level for section in titled)
    level = next((level for level in sorted(levels) if levels[level] > 1), None)
    if level is None:
        return ""
    titles = list(
        dict.fromkeys(shortened_title(section.title or "") for section in titled if section.level == level)
    )
    told: list[str] = []
    words = 0
    for title in titles[:_TITLES_TOLD]:
        words += words_in(title)
        if words > _TITLES_WORDS:
            break
        told.append(title)
    if len(told) < 2:  # noqa: PLR2004
        return ""
    more = len(titles) - len(told)
    return f"Sections: {'; '.join(told)}{f'; and {more:,} more' if more else ''}."
