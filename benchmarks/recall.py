"""Recall's speed, end to end and in parts: `python -m benchmarks.recall [--quick] [--large] [--json]`.

What is searched is made up, from a seed, and so are its vectors: only questions are really embedded, since what is
measured is asking. The embedding of the question and the rest are told apart by a stopwatch around the model; what is done
while it embeds is no part of the rest, which is what a recall takes beyond it.
Enrichment, which is mostly embedding, is compared with the bare model on the very same texts in the same minute.
"""

import random
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import Figure, arguments_of, at_least, at_most, median, peak_mib, percentile, report
from memplane import Memplane, Settings, Space
from memplane.ledger.ids import new_id, new_memory_id
from memplane.ledger.payloads import StorePayload, TurnPayload, encode
from memplane.models.embedding import Embedder, Vector, Vectors, normalised
from memplane.models.local import LocalEmbedder
from memplane.types import Kind, NewEntry, Op
from memplane_eval.cache import Stopwatch

_START = 1_790_000_000_000_000
_BATCH = 5_000
_TURNS_PER_CONVERSATION = 20
_STORED_EVERY = 10
_LARGE = 1_000_000
_ASKED_MS = {10_000: 15.0, 100_000: 30.0}
_ASKED_REST_MS = {10_000: 3.0}


def _words(text: str) -> list[str]:
    return text.split()


_COMMON = _words(
    "the a to and of in it is was for on that with my we you at this have had be not they as but so when there from"
    " day week time work home people friend family new good really last next before after about some more very just"
)
_THINGS = _words(
    "garden kitchen bicycle guitar report invoice meeting flight hotel recipe dentist marathon library festival"
    " laptop camera contract budget birthday wedding holiday museum lecture project server password painting river"
)
_DOINGS = _words(
    "bought visited finished cancelled moved repaired planned painted lost found sold borrowed wrote read watched"
    " cooked booked missed started joined left signed opened closed broke cleaned sent answered called met"
)
_SYLLABLES = _words("ba ko ri mu sel tan vor ney dal pim")


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    memories: tuple[int, ...]
    queries: int
    enriched: int
    rounds: int


FULL = Sizes((10_000, 100_000), 200, 200, 5)
QUICK = Sizes((10_000,), 100, 60, 3)
TINY = Sizes((40,), 5, 4, 1)


class Talk:
    """Sentences out of a small grammar: a few words everyone uses, and names that a handful of turns share."""

    def __init__(self, seed: int = 11) -> None:
        self._random = random.Random(seed)

    def turn(self, number: int) -> str:
        pick = self._random.choice
        filling = " ".join(pick(_COMMON) for _ in range(self._random.randrange(4, 14)))
        return f"I {pick(_DOINGS)} the {pick(_THINGS)} with {self.name(number)} {filling} {pick(_THINGS)}."

    def question(self, number: int) -> str:
        pick = self._random.choice
        return (
            f"When did I say that {self.name(number * 7_919)} {pick(_DOINGS)} the {pick(_THINGS)} {number}?"
        )

    @staticmethod
    def name(number: int) -> str:
        """One of 9,973, so that even of 100,000 turns few hold it."""
        return "".join(_SYLLABLES[int(digit)] for digit in str(number % 9_973)).capitalize()


class MadeUp:
    """`Embedder` whose vectors of texts are random and free; only a question goes through the model."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def model_id(self) -> str:
        return "made-up"

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        rows = [
            np.random.default_rng(zlib.crc32(text.encode())).standard_normal(self.dimension) for text in texts
        ]
        return normalised(np.stack(rows)) if rows else np.empty((0, self.dimension), np.float32)

    def embed_query(self, text: str) -> Vector:
        return self._embedder.embed_query(text)


class Recorder:
    """`Embedder` that remembers which texts it was given."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.texts: list[str] = []

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return self._embedder.embed_texts(texts)

    def embed_query(self, text: str) -> Vector:
        return self._embedder.embed_query(text)


def run(sizes: Sizes, folder: Path, *, large: bool = False) -> list[Figure]:
    model = LocalEmbedder()
    model.embed_query("warm up")
    return [
        *(figure for size in sizes.memories for figure in recalls(size, sizes.queries, model, folder)),
        *enrichment(sizes, model, folder),
        *(common_words(_LARGE, sizes.queries // 4, folder) if large else ()),
        Figure("peak memory of this process", peak_mib(), "MiB"),
    ]


# ── recall ───────────────────────────────────────────────────────────────────────────────────────────────────────


def recalls(size: int, queries: int, model: Embedder, folder: Path) -> list[Figure]:
    watch = Stopwatch(MadeUp(model))
    talk = Talk()
    with Memplane.open(folder / f"recall-{size}", embedder=watch) as plane:
        space = plane.space("bench")
        fill(space, talk, size)
        space.recall("warm up")
        totals, embeddings, timings = [], [], []
        for number in range(queries):
            question, embedded_s = talk.question(number), watch.queries_s
            started = time.perf_counter()
            told = space.recall(question)
            totals.append((time.perf_counter() - started) * 1_000)
            embeddings.append((watch.queries_s - embedded_s) * 1_000)
            timings.append(told.timings)
    rests = [total - embedding for total, embedding in zip(totals, embeddings, strict=True)]
    at = f"at {size:,} memories"
    return [
        Figure(f"recall p50 {at}", median(totals), "ms"),
        _asked(f"recall p95 {at}", percentile(totals, 0.95), _ASKED_MS.get(size)),
        Figure(f"… its question's embedding p50 {at}", median(embeddings), "ms"),
        Figure(f"… its question's embedding p95 {at}", percentile(embeddings, 0.95), "ms"),
        Figure(f"… the rest p50 {at}", median(rests), "ms"),
        _asked(f"… the rest p95 {at}", percentile(rests, 0.95), _ASKED_REST_MS.get(size)),
        *(
            Figure(f"… of it {stage} p50 {at}", median([one.get(stage, 0.0) for one in timings]), "ms")
            for stage in timings[0]
            if stage not in {"embed", "total"}
        ),
    ]


def _asked(name: str, value: float, ceiling: float | None) -> Figure:
    return Figure(name, value, "ms") if ceiling is None else at_most(name, value, ceiling, "ms")


def fill(space: Space, talk: Talk, size: int) -> None:
    """Turns of many conversations, every tenth a memory stored on purpose; searchable and enriched in the end."""
    load(space, talk, size)
    space.enrich()


def load(space: Space, talk: Talk, size: int) -> None:
    """The same, searchable by their words."""
    for start in range(0, size, _BATCH):
        space.ledger.load([_draft(talk, number) for number in range(start, min(start + _BATCH, size))])
        space.ledger.catch_up()


def _draft(talk: Talk, number: int) -> NewEntry:
    at = _START + number * 1_000_000
    if number % _STORED_EVERY == 0:
        return NewEntry(
            new_memory_id(), Op.STORE, encode(StorePayload(kind=Kind.FACT, content=talk.turn(number), at=at))
        )
    said = TurnPayload(
        role="assistant" if number % 2 else "user",
        content=talk.turn(number),
        at=at,
        conversation=f"c{number // _TURNS_PER_CONVERSATION}",
    )
    return NewEntry(new_id("turn", at), Op.TURN, encode(said))


# ── enrichment against the bare model ────────────────────────────────────────────────────────────────────────────


def enrichment(sizes: Sizes, model: Embedder, folder: Path) -> list[Figure]:
    """Each round: enrich new turns, then let the model alone embed what enrichment gave it, and each turn once."""
    talk = Talk(seed=12)
    rates, against_same, against_once = [], [], []
    with Memplane.open(folder / "enrichment", embedder=(recorder := Recorder(model))) as plane:
        space = plane.space("bench")
        for number in range(sizes.rounds):
            turns = [talk.turn(number * sizes.enriched + place) for place in range(sizes.enriched)]
            for turn in turns:
                space.retain(turn, conversation=f"c{number}")
            recorder.texts.clear()
            enriched_s = _seconds(space.enrich)
            same_s = _seconds(lambda: model.embed_texts(list(recorder.texts)))
            once_s = _seconds(lambda turns=turns: model.embed_texts(turns))
            rates.append(len(turns) / enriched_s)
            against_same.append(same_s / enriched_s)
            against_once.append(once_s / enriched_s)
    return [
        Figure("enrichment", median(rates), "turns/s"),
        at_least("enrichment / bare embedding of the same texts", median(against_same), 0.8, "x"),
        Figure("enrichment / bare embedding of each turn once", median(against_once), "x"),
    ]


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


# ── common words ─────────────────────────────────────────────────────────────────────────────────────────────────


def common_words(size: int, queries: int, folder: Path) -> list[Figure]:
    """A question made of words that nearly every turn holds, found by their words alone: without an embedding model, and
    before anything is read for facts."""
    talk = Talk(seed=13)
    with Memplane.open(folder / "common", embedder=None, settings=Settings(recall_work_ms=0)) as plane:
        space = plane.space("bench")
        load(space, talk, size)
        space.recall("warm up")
        samples = []
        for number in range(max(queries, 3)):
            words = random.Random(number).sample(_COMMON, 6)
            started = time.perf_counter()
            space.recall(" ".join(words))
            samples.append((time.perf_counter() - started) * 1_000)
    return [
        Figure(f"recall p50 at {size:,} rows, common words", median(samples), "ms"),
        Figure(f"recall p95 at {size:,} rows, common words", percentile(samples, 0.95), "ms"),
    ]


def main() -> None:
    parser = arguments_of(__doc__)
    parser.add_argument("--large", action="store_true", help="also common words at a million rows")
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    report("memplane recall", arguments, lambda folder: run(sizes, folder, large=arguments.large))


if __name__ == "__main__":
    main()
