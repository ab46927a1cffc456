"""Ways to cut a document, by what comes back: `python -m benchmarks.chunking FILE [--limit N] [--tokens N] [--json]`.

FILE is MultiHop-RAG. Every cutter cuts the same articles; the same ranking by words, of the span under its title and of its
article, then fills the same budget of tokens, so what differs is where the cuts are. Told are, over all questions with
evidence: the share of it that comes back whole, and by words how much of it comes back, how much of what comes back is
evidence, and what both have in common (IoU). No model is needed; cutters that ask one for sentences' vectors cost, for
each document, what embedding it costs, which is why the one for topics here goes by words.
"""

import argparse
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Figure, report
from memplane.documents.chunk import ChunkSizes, chunks_of, sections_of
from memplane.documents.parsed import BlockKind
from memplane.documents.text import parse_plain
from memplane.extract.relevance import Question
from memplane.recall.tokens import tokens_of
from memplane.storage.words import stems_of
from memplane_eval.files import read_json

Cutter = Callable[[str], list[tuple[int, int]]]
Floats = NDArray[np.float64]

_K1, _B = 1.2, 0.75
_DOCUMENT_SHARE = 0.5
_WORD = re.compile(r"\S+\s*")
_SENTENCE = re.compile(r"(?<=[.!?])[\"'\u201d\u2019)]*\s+")
_TOPIC_SENTENCES = 3
_TOPIC_WORDS_MAX = 150
_TOPIC_WORDS_MIN = 40


def packed(enough: int, most: int) -> Cutter:
    """As the product does it."""

    def cut(text: str) -> list[tuple[int, int]]:
        parsed = parse_plain(text)
        sizes = ChunkSizes(enough=enough, most=most, whole=max(most, 150))
        return [(piece.start, piece.end) for piece in chunks_of(parsed, sections_of(parsed), sizes)]

    return cut


def windows(words: int) -> Cutter:
    """So many words, wherever that is."""

    def cut(text: str) -> list[tuple[int, int]]:
        starts = [match.start() for match in _WORD.finditer(text)][::words]
        return list(pairwise([0, *starts[1:], len(text)]))

    return cut


def paragraphs(text: str) -> list[tuple[int, int]]:
    """One a paragraph, however short or long."""
    blocks = [block for block in parse_plain(text).blocks if block.kind is not BlockKind.BREAK]
    return list(pairwise([0, *(block.start for block in blocks[1:]), len(text)]))


def halves(most: int) -> Cutter:
    """What is too long is parted at its middle paragraph, else its middle sentence, else its middle word, and again."""

    def cut(text: str) -> list[tuple[int, int]]:
        return list(_halved(text, 0, len(text), most))

    return cut


def topics(text: str) -> list[tuple[int, int]]:
    """Sentences until the words change: where those before and after a border share least, as far as sizes allow."""
    ends = [match.end() for match in _SENTENCE.finditer(text) if match.end() < len(text)]
    sentences = list(pairwise([0, *ends, len(text)]))
    stems = [Counter(stems_of(text[start:end])) for start, end in sentences]
    counts = [len(text[start:end].split()) for start, end in sentences]
    likeness = [
        _cosine(
            _summed(stems[max(0, place - _TOPIC_SENTENCES) : place]),
            _summed(stems[place : place + _TOPIC_SENTENCES]),
        )
        for place in range(len(sentences))
    ]
    usual = sum(likeness[1:]) / max(len(likeness) - 1, 1)
    cuts, words = [0], counts[0] if counts else 0
    for place in range(1, len(sentences)):
        changed = likeness[place] < usual and words >= _TOPIC_WORDS_MIN
        if changed or words + counts[place] > _TOPIC_WORDS_MAX:
            cuts.append(sentences[place][0])
            words = 0
        words += counts[place]
    return list(pairwise([*cuts, len(text)]))


CUTTERS: dict[str, Cutter] = {
    "packed sentences, 20 to 40 words": packed(20, 40),
    "packed sentences, 30 to 60 words": packed(30, 60),
    "packed sentences, 60 to 100 words": packed(60, 100),
    "packed sentences, 100 to 150 words": packed(100, 150),
    "packed sentences, 150 to 200 words": packed(150, 200),
    "windows of 85 words": windows(85),
    "windows of 150 words": windows(150),
    "paragraphs": paragraphs,
    "halves down to 100 words": halves(100),
    "topics by words": topics,
}


class Found(msgspec.Struct, frozen=True):
    """What one question gave."""

    evidence: float
    recall: float
    precision: float
    iou: float


class Library:
    """Articles cut by one cutter, ranked by words."""

    def __init__(self, corpus: Sequence[Mapping[str, Any]], cutter: Cutter) -> None:
        self.pieces: list[tuple[int, int, int]] = []
        texts = []
        for place, article in enumerate(corpus):
            for start, end in cutter(article["body"]):
                self.pieces.append((place, start, end))
                texts.append(f"{article['title']} ({article['source']})\n{article['body'][start:end]}")
        self.tokens = np.array(
            [tokens_of(corpus[place]["body"][start:end]) for place, start, end in self.pieces]
        )
        self._of = np.array([place for place, _, _ in self.pieces])
        held: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = np.zeros(len(texts))
        for place, text in enumerate(texts):
            stems = Counter(stems_of(text))
            lengths[place] = stems.total()
            for stem, count in stems.items():
                held[stem].append((place, count))
        self._held = {stem: np.array(places, np.int64).T for stem, places in held.items()}
        self._lengths = lengths
        self._article_lengths = np.bincount(self._of, lengths, len(corpus))

    def best(self, query: str) -> NDArray[np.int64]:
        stems = dict.fromkeys(Question(query).stems.values())
        words, articles = np.zeros(len(self._lengths)), np.zeros(len(self._article_lengths))
        for stem in stems:
            if stem not in self._held:
                continue
            places, counts = self._held[stem]
            words[places] += _bm25(counts, self._lengths[places], self._lengths)
            summed = np.bincount(self._of[places], counts, len(articles))
            there = np.flatnonzero(summed)
            articles[there] += _bm25(summed[there], self._article_lengths[there], self._article_lengths)
        scores = _standard(words) + _DOCUMENT_SHARE * _standard(articles)[self._of]
        order: NDArray[np.int64] = np.argsort(-scores, kind="stable")
        return order

    def found(self, query: str, facts: Sequence[tuple[int, int, int]], tokens_max: int) -> Found:
        """`facts` are evidence: article, start, end."""
        order = self.best(query)
        told = order[: int(np.searchsorted(np.cumsum(self.tokens[order]), tokens_max, "right"))]
        pieces = sorted(self.pieces[place] for place in told)
        whole = common = 0
        for article, start, end in facts:
            held = sum(
                max(0, min(end, until) - max(start, begin))
                for place, begin, until in pieces
                if place == article
            )
            whole += held == end - start
            common += held
        asked = sum(end - start for _, start, end in facts)
        given = sum(until - begin for _, begin, until in pieces)
        return Found(
            whole / len(facts), common / asked, common / max(given, 1), common / (asked + given - common)
        )


def run(path: Path, *, tokens_max: int, limit: int | None, cutters: Mapping[str, Cutter]) -> list[Figure]:
    data = read_json(path)
    corpus = data["corpus"]
    places = {article["url"]: place for place, article in enumerate(corpus)}
    asked = [question for question in data["questions"][:limit] if question["evidence_list"]]
    facts = [
        [
            (place, start, start + len(cited["fact"]))
            for cited in question["evidence_list"]
            if (start := corpus[place := places[cited["url"]]]["body"].find(cited["fact"])) >= 0
        ]
        for question in asked
    ]
    figures = []
    for name, cutter in cutters.items():
        library = Library(corpus, cutter)
        found = [
            library.found(question["query"], cited, tokens_max)
            for question, cited in zip(asked, facts, strict=True)
            if cited
        ]
        figures.append(Figure(f"{name}: spans", len(library.pieces), digits=0))
        for part in Found.__struct_fields__:
            mean = sum(getattr(one, part) for one in found) / max(len(found), 1)
            figures.append(Figure(f"… {part} of {name}", mean, digits=3))
    return figures


def _halved(text: str, start: int, end: int, most: int) -> Iterator[tuple[int, int]]:
    if len(text[start:end].split()) <= most:
        yield start, end
        return
    middle = (start + end) // 2
    for pattern in (re.compile(r"\n\s*\n\s*"), _SENTENCE, re.compile(r"\s+")):
        borders = [match.end() for match in pattern.finditer(text, start, end) if start < match.end() < end]
        if borders:
            middle = min(borders, key=lambda border: abs(border - (start + end) // 2))
            break
    yield from _halved(text, start, middle, most)
    yield from _halved(text, middle, end, most)


def _bm25(counts: NDArray[Any], lengths: Floats, all_lengths: Floats) -> Floats:
    rarity = math.log(1 + (len(all_lengths) - len(counts) + 0.5) / (len(counts) + 0.5))
    scores: Floats = rarity * counts / (counts + _K1 * (1 - _B + _B * lengths / all_lengths.mean()))
    return scores


def _standard(values: Floats) -> Floats:
    scaled: Floats = (values - values.mean()) / (values.std() or 1.0)
    return scaled


def _summed(counters: Sequence[Counter[str]]) -> Counter[str]:
    whole: Counter[str] = Counter()
    for counter in counters:
        whole.update(counter)
    return whole


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    product = sum(count * other[stem] for stem, count in one.items())
    size = math.sqrt(sum(count**2 for count in one.values()) * sum(count**2 for count in other.values()))
    return product / size if size else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--limit", type=int, help="only so many questions")
    parser.add_argument("--tokens", type=int, default=2_000, help="the budget")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    arguments.dir = None
    report(
        f"cutters, within {arguments.tokens:,} tokens",
        arguments,
        lambda _: run(arguments.file, tokens_max=arguments.tokens, limit=arguments.limit, cutters=CUTTERS),
    )


if __name__ == "__main__":
    main()
