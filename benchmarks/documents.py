"""Documents: how fast they come in and how fast their spans are found, `python -m benchmarks.documents [--quick] [--json]`.

What is uploaded is made up, from a seed. Uploads are timed as a caller sees them, each durable when it returns, with no
model: vectors and distillations follow in the background. Where recall is timed, the vectors of spans are random, since
embedding 100,000 of them takes an hour; only questions are really embedded.
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Figure, arguments_of, at_least, at_most, median, peak_mib, percentile, report
from benchmarks.recall import MadeUp
from memplane import Memplane, Settings, Space
from memplane.documents.chunk import SIZES
from memplane.models.embedding import Embedder
from memplane.models.local import LocalEmbedder
from memplane_eval.cache import Stopwatch

_TEXT_CHARS = 2_000
_UPLOADS_A_SECOND = 200
_RECALL_MS = {100_000: 30.0}
_SPANS_PER_DOCUMENT = 100
_VOCABULARY = 20_000
_SENTENCE_WORDS = (6, 22)
_SENTENCES_PER_PARAGRAPH = 5
_SYLLABLES = "ba ko ri mu sel tan vor ney dal pim gru lo fe shi qua zen".split()  # noqa: SIM905  # a list of words


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    uploads: int
    spans: tuple[int, ...]
    queries: int


FULL = Sizes(1_000, (10_000, 100_000), 200)
QUICK = Sizes(300, (10_000,), 100)
TINY = Sizes(5, (30,), 5)


class Prose:
    """Text out of many words, of which a few are on every line and most are rare, as in any language."""

    def __init__(self, seed: int = 17) -> None:
        self._random = random.Random(seed)

    def word(self) -> str:
        """The n-th word is about n times as rare as the first."""
        number = int(_VOCABULARY ** self._random.random())
        return "".join(_SYLLABLES[int(digit, 16)] for digit in f"{number:x}")

    def sentence(self) -> str:
        count = self._random.randint(*_SENTENCE_WORDS)
        return " ".join(self.word() for _ in range(count)).capitalize() + "."

    def text(self, chars: int) -> str:
        paragraphs: list[str] = []
        left = chars
        while left > 0:
            paragraph = " ".join(self.sentence() for _ in range(_SENTENCES_PER_PARAGRAPH))[:left]
            paragraphs.append(paragraph)
            left -= len(paragraph) + 2
        return "\n\n".join(paragraphs)

    def question(self) -> str:
        return f"What is said about {self.word()} {self.word()} and {self.word()}, and when did {self.word()} {self.word()}?"


def run(sizes: Sizes, folder: Path) -> list[Figure]:
    model = LocalEmbedder()
    model.embed_query("warm up")
    return [
        uploads(sizes.uploads, folder),
        *(figure for size in sizes.spans for figure in recalls(size, sizes.queries, model, folder)),
        Figure("peak memory of this process", peak_mib(), "MiB"),
    ]


def uploads(count: int, folder: Path) -> Figure:
    prose = Prose()
    texts = [prose.text(_TEXT_CHARS) for _ in range(count)]
    with Memplane.open(folder / "uploads", embedder=None, settings=Settings(recall_work_ms=0)) as plane:
        space = plane.space("bench")
        space.documents.upload(texts[0], name="warm up")
        started = time.perf_counter()
        for number, text in enumerate(texts):
            space.documents.upload(text, name=f"document {number}")
        taken_s = time.perf_counter() - started
    return at_least("documents of 2 KB", count / taken_s, _UPLOADS_A_SECOND, "a second", digits=0)


def recalls(size: int, queries: int, model: Embedder, folder: Path) -> list[Figure]:
    watch = Stopwatch(MadeUp(model))
    prose = Prose()
    with Memplane.open(folder / f"recall-{size}", embedder=watch) as plane:
        space = plane.space("bench")
        spans = fill(space, prose, size)
        space.enrich()
        space.recall("warm up")
        totals, stages, embeddings = [], [], []
        for _ in range(queries):
            question, embedded_s = prose.question(), watch.queries_s
            started = time.perf_counter()
            told = space.recall(question)
            totals.append((time.perf_counter() - started) * 1_000)
            embeddings.append((watch.queries_s - embedded_s) * 1_000)
            stages.append(told.timings["documents"])
    at = f"at {size:,} spans"
    asked = _RECALL_MS.get(size)
    slow = percentile(totals, 0.95)
    return [
        Figure(f"spans uploaded for {size:,}", spans, digits=0),
        Figure(f"recall p50 {at}", median(totals), "ms"),
        Figure(f"recall p95 {at}", slow, "ms")
        if asked is None
        else at_most(f"recall p95 {at}", slow, asked, "ms"),
        Figure(f"… its question's embedding p50 {at}", median(embeddings), "ms"),
        Figure(f"… its question's embedding p95 {at}", percentile(embeddings, 0.95), "ms"),
        Figure(f"… of it documents p50 {at}", median(stages), "ms"),
        Figure(f"… of it documents p95 {at}", percentile(stages, 0.95), "ms"),
    ]


def fill(space: Space, prose: Prose, size: int) -> int:
    """Documents until there are so many spans."""
    spans = number = 0
    while spans < size:
        wanted = min(_SPANS_PER_DOCUMENT, size - spans)
        text = prose.text(wanted * SIZES.most * 6)
        spans += space.documents.upload(text, name=f"document {number}").spans
        number += 1
    return spans


def main() -> None:
    arguments = arguments_of(__doc__).parse_args()
    sizes = QUICK if arguments.quick else FULL
    report(
        "memplane documents (vectors of spans made up, questions really embedded)",
        arguments,
        lambda folder: run(sizes, folder),
    )


if __name__ == "__main__":
    main()
