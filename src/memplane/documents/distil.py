"""Extractive summaries of a document and its sections. Every sentence is from the document, and the same document
always gives the same summary.

A sentence is central if it shares words with many others, weighted by rarity; the first sentences of a section count
a little more, and sentences that repeat others are skipped. The cost is bounded: only a limited amount of each
section, and of all together, is read.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

import msgspec

from memplane.extract.relevance import STOP_WORDS
from memplane.extract.sentences import is_inside
from memplane.storage.words import stems_of
from memplane.types import Section

# Sentences of a document. Paragraphs may wrap over lines and lists have items; table rows, code, headings and rules
# are not sentences.


SENTENCE_CHARS_MAX = 500
"""Longer text is not used as one sentence."""

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FENCE = re.compile(r"\s*(```|~~~)")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*$")
_RULE = re.compile(r"\W*$")
_APART = re.compile(r"\s*(?:<!--|<[/a-zA-Z][^>]*>\s*$|\[[^\]]+\]:\s)")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦]|\(?\d{1,6}[.)])\s+(?=\S)")
_QUOTED = re.compile(r"\s*>+\s?")
# A run of marks is only tried from its first one, so a wall of dots stays linear. Marks of scripts without spaces end
# a sentence whatever follows.
_END = re.compile(
    "(?<![.!?…])[.!?…]++[\"'”\u2019)\\]]*+(?=\\s|\\Z)|[。！？｡؟۔।॥።፧།༎។៕။]++[\"'”\u2019)\\]」』）】]*+"  # noqa: RUF001  # the marks of other scripts
)
_BROKEN = re.compile(r"\s*\n[\s>]*|\s+")
_UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u2e80-\ud7ff\U00020000-\U0003ffff]")
_LETTERS = re.compile(r"[^\W\d_]")
_LETTERS_SHARE_MIN = 0.5
_WORDS_MIN = 4
_HEADING_CHARS_MAX = 200


class Passage(NamedTuple):
    """A sentence: `text[start:end]` on one line."""

    start: int
    end: int
    text: str

    @property
    def is_informative(self) -> bool:
        """Whether it is a statement of some length, in words."""
        letters = len(_LETTERS.findall(self.text))
        return (
            len(self.text) <= SENTENCE_CHARS_MAX
            and words_in(self.text) >= _WORDS_MIN
            and not self.text.endswith((":", "："))  # noqa: RUF001  # it leads to what follows and says nothing
            and letters >= _LETTERS_SHARE_MIN * len(self.text.replace(" ", ""))
        )


def words_in(text: str) -> int:
    """The number of words; in a script without spaces, two characters count as one."""
    return len(text.split()) + (0 if text.isascii() else len(_UNSPACED.findall(text)) // 2)


def on_one_line(text: str) -> str:
    """The words without line breaks and leading quotation marks."""
    return _BROKEN.sub(" ", text).strip()


def passages_of(text: str, title: str | None = None, *, cut: bool = False) -> Iterator[Passage]:
    """The sentences of a section in order, without its heading `title`. If the text was `cut`, the incomplete last
    sentence is dropped."""
    for start, end in _paragraphs(text, title):
        yield from _sentences(text, start, end, cut=cut and end >= len(text.rstrip()))


def _paragraphs(text: str, title: str | None) -> Iterator[tuple[int, int]]:
    begun: int | None = None
    end = 0
    fence = ""
    heading = on_one_line(title or "")
    for found in _LINE.finditer(text):
        line = found.group()
        kind = _kind(line, fence, begun is not None)
        is_title = bool(heading) and kind in {"text", "item"} and _is_heading(line, heading)
        heading = "" if line.strip() else heading
        if is_title:
            continue
        if kind == "fence":
            fence = "" if fence else line.strip()[:3]
        elif kind == "underline" and begun is not None and end - begun <= _HEADING_CHARS_MAX:
            begun = None  # the line above is a heading
        elif kind == "text":
            if begun is None:
                quoted = _QUOTED.match(line)
                begun = found.start() + (quoted.end() if quoted else 0)
            end = found.end()
            continue
        if begun is not None:
            yield begun, end
            begun = None
        if kind == "item":
            item = _ITEM.match(line)
            assert item is not None
            begun, end = found.start() + item.end(), found.end()
    if begun is not None:
        yield begun, end


def _kind(line: str, fence: str, inside: bool) -> str:  # noqa: FBT001
    """The type of a line, given the previous one: `inside` a paragraph or a code fence."""
    opens = _FENCE.match(line)
    if fence:
        return "fence" if opens and opens[1] == fence else "code"
    if opens:
        return "fence"
    if inside and _UNDERLINE.match(line) and line.strip():
        return "underline"
    if _RULE.match(line) or _HEADING.match(line) or _APART.match(line) or _is_row(line):
        return "apart"
    if _ITEM.match(line):
        return "item"
    return "code" if not inside and _INDENTED.match(line) else "text"


def _is_row(line: str) -> bool:
    """Whether a line is a table row: cells separated by bars or tabs."""
    inner = line.strip()
    return inner.startswith("|") or " | " in inner or inner.count("|") > 1 or "\t" in inner


def _is_heading(line: str, heading: str) -> bool:
    return on_one_line(line).strip("#* _").casefold() == heading.strip("#* _").casefold()


def _sentences(text: str, start: int, end: int, *, cut: bool) -> Iterator[Passage]:
    at = start
    for mark in _END.finditer(text, start, end):
        if mark.group() == "." and is_inside(text, at, mark.start()):
            continue
        if passage := _passage(text, at, mark.end()):
            yield passage
        at = mark.end()
    if not cut and (passage := _passage(text, at, end)):
        yield passage


def _passage(text: str, start: int, end: int) -> Passage | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Passage(start, end, on_one_line(text[start:end])) if start < end else None


SECTION_WORDS_MAX = 60
WHOLE_WORDS_MAX = 150
SECTION_CHARS_MAX = 600
TITLE_CHARS_MAX = 200

_CHARS_READ = 600_000
"""The limit of all sections together; each gets its share, within these bounds."""
_SHARE_MIN, _SHARE_MAX = 600, 16_000
_SENTENCES_READ = 60
_SECTIONS_WEIGHED = 1_000
"""The number of scored sections; the others are summarised by their first sentence."""
_SECTIONS_READ = 5_000
"""The number of sections that are read; the others are summarised by their title."""
_CANDIDATES_EACH = 3
_CANDIDATES_MAX = 600
_FROM_ONE_SECTION = 2
_TITLES_LISTED = 12
_TITLES_WORDS = 50
_LIKENESS_MAX = 0.6
_LENGTH_USUAL = 8
_ALONE = 0.2
"""The weight of a word that occurs in no other sentence."""


class Distillation(msgspec.Struct, frozen=True):
    """The summary of a document and of each section."""

    whole: str
    sections: tuple[str, ...]
    """By ordinal."""


class _Weighed(msgspec.Struct, frozen=True):
    """A sentence, its position, and its distinct words in order."""

    text: str
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
    chosen_text: list[str] = []
    candidates: list[_Weighed] = []
    for place, (section, _) in enumerate(sections):
        chosen = _chosen_of_section(weighed[place], rarity, section.title) if weighed.get(place) else []
        candidates += chosen[:_CANDIDATES_EACH]
        chosen_text.append(_joined(chosen, SECTION_WORDS_MAX) or _beginning(read[place], section, name))
    whole = _whole(candidates, rarity, name, len(sections))
    titles = _titles([section for section, _ in sections])
    if not whole:
        whole = next((text for text in chosen_text if text != name), name)
    return Distillation(f"{whole} {titles}" if titles else whole, tuple(chosen_text))


def shortened_title(title: str) -> str:
    """A heading or name on one line; some headings are bold paragraphs."""
    return _cut_at_word(on_one_line(title), TITLE_CHARS_MAX)


def _cut_at_word(text: str, chars_max: int) -> str:
    """At most this many characters, cut at a word if possible; an ellipsis shows the cut."""
    if len(text) <= chars_max:
        return text
    cut = text[: chars_max - 1]
    return f"{cut.rpartition(' ')[0] if ' ' in cut[chars_max // 2 :] else cut}…"


def bounded(text: str, words_max: int) -> str:
    """At most this many words."""
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
            passage.text,
            section,
            place,
            tuple(dict.fromkeys(stem for stem in stems_of(passage.text) if stem not in stop)),
            words_in(passage.text),
        )
        for place, passage in enumerate(passages)
        if passage.is_informative
    )


@cache
def _stop_stems() -> frozenset[str]:
    return frozenset(stem for word in STOP_WORDS for stem in stems_of(word))


def _rarity(weighed: Iterable[Sequence[_Weighed]]) -> dict[str, float]:
    """The weight of a word in this document, squared because it counts in both sentences that share it."""
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
    return _joined(chosen, WHOLE_WORDS_MAX)


def _chosen(
    sentences: Sequence[_Weighed],
    rarity: Mapping[str, float],
    *,
    words_max: int,
    prior: Callable[[_Weighed], float],
    each_max: int | None = None,
) -> list[_Weighed]:
    """The most central sentences that fit, best first. What an earlier one covers adds nothing."""
    holding = Counter(stem for sentence in sentences for stem in sentence.stems)
    priors = [prior(sentence) for sentence in sentences]
    left = list(range(len(sentences)))
    chosen: list[_Weighed] = []
    each: Counter[int] = Counter()
    chosen_text: set[str] = set()
    words = 0
    while left:
        best = max(
            left, key=lambda at: (priors[at] * _centrality(sentences[at], holding, rarity, chosen_text), -at)
        )
        left.remove(best)
        sentence = sentences[best]
        full = each_max is not None and each[sentence.section] >= each_max
        if full or words + sentence.words > words_max or any(_alike(sentence, other) for other in chosen):
            continue
        chosen.append(sentence)
        chosen_text.update(sentence.stems)
        each[sentence.section] += 1
        words += sentence.words
        left = [at for at in left if words + sentences[at].words <= words_max]
    return chosen


def _centrality(
    sentence: _Weighed, holding: Mapping[str, int], rarity: Mapping[str, float], chosen_text: set[str]
) -> float:
    """How much of the other sentences it covers."""
    shared = sum(
        (holding[stem] - 1 + _ALONE) * rarity[stem] for stem in sentence.stems if stem not in chosen_text
    )
    return shared / (len(sentence.stems) + _LENGTH_USUAL)


def _alike(left: _Weighed, right: _Weighed) -> bool:
    mine, other = set(left.stems), set(right.stems)
    if not mine or not other:
        return left.text == right.text
    return len(mine & other) / min(len(mine), len(other)) > _LIKENESS_MAX


def _joined(chosen: Sequence[_Weighed], words_max: int) -> str:
    """In document order."""
    ordered = sorted(chosen, key=lambda sentence: (sentence.section, sentence.place))
    return bounded(" ".join(sentence.text for sentence in ordered), words_max)


def _beginning(passages: Sequence[Passage], section: Section, name: str) -> str:
    """The fallback without a central sentence: the first sentence, else the title."""
    first = next(
        (passage for passage in passages if passage.is_informative), passages[0] if passages else None
    )
    if first is None:
        return shortened_title(section.title or name)
    return bounded(_cut_at_word(first.text, SECTION_CHARS_MAX), SECTION_WORDS_MAX)


def _titles(sections: Sequence[Section]) -> str:
    """The titles of the highest level that has several."""
    titled = [section for section in sections if section.title]
    levels = Counter(section.level for section in titled)
    level = next((level for level in sorted(levels) if levels[level] > 1), None)
    if level is None:
        return ""
    titles = list(
        dict.fromkeys(shortened_title(section.title or "") for section in titled if section.level == level)
    )
    chosen_text: list[str] = []
    words = 0
    for title in titles[:_TITLES_LISTED]:
        words += words_in(title)
        if words > _TITLES_WORDS:
            break
        chosen_text.append(title)
    if len(chosen_text) < 2:  # noqa: PLR2004
        return ""
    more = len(titles) - len(chosen_text)
    return f"Sections: {'; '.join(chosen_text)}{f'; and {more:,} more' if more else ''}."
