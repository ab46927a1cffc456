"""Recall during a backlog: `python -m benchmarks.backlog [--quick] [--json]`.

Many turns are retained at once, half of them long, and recalls are made while none or few of them are enriched. Every
question has words that turns contain, so every answer must have something.

Without a worker, each recall enriches for at most `recall_work_ms`; the CPU time of all threads within its steps is compared
with that. With a worker, a server is asked while its thread embeds: `POST /recall` has 150 ms, and a turn through the proxy
300 ms for its memory.
"""

import asyncio
import json
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.measure import Figure, arguments_of, at_least, at_most, median, percentile, report
from benchmarks.proxy import upstream
from benchmarks.recall import Recorder, Talk
from benchmarks.server import OWNER, Served, serving
from memplane import Memplane, Settings
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import TurnPayload, encode
from memplane.models.local import LocalEmbedder
from memplane.storage.store import Reader, Store
from memplane.types import NewEntry, Op
from memplane.worker.pace import UNHURRIED, Pace
from memplane.worker.pipeline import Worker

_START = 1_790_000_000_000_000
_BATCH = 5_000
_TURNS_PER_CONVERSATION = 20
_LONG_SENTENCES = 8
_PAUSE_S = 0.05
_NEWEST = 64


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    turns: int
    recalls: int
    budgets_ms: tuple[int, ...]
    calls: int
    embedding: str = "local"


FULL = Sizes(50_000, 20, (1, 100, 1_000), 100)
QUICK = Sizes(5_000, 8, (1, 100, 1_000), 40)
TINY = Sizes(60, 2, (20,), 3, "none")


# ── the backlog ──────────────────────────────────────────────────────────────────────────────────────────────────


def retain_all(folder: Path, turns: int) -> Path:
    """A space in which every turn is searchable by its words and waits for everything else."""
    talk = Talk(seed=31)
    with Memplane.open(folder, embedder=None) as plane:
        space = plane.space(OWNER)
        for start in range(0, turns, _BATCH):
            space.ledger.load([_draft(talk, number) for number in range(start, min(start + _BATCH, turns))])
            space.ledger.catch_up()
    return folder


def _draft(talk: Talk, number: int) -> NewEntry:
    at = _START + number * 1_000_000
    sentences = _LONG_SENTENCES if number % 2 else 1
    said = TurnPayload(
        role="assistant" if number % 2 else "user",
        content=" ".join(talk.turn(number) for _ in range(sentences)),
        at=at,
        conversation=f"c{number // _TURNS_PER_CONVERSATION}",
    )
    return NewEntry(new_id("turn", at), Op.TURN, encode(said))


# ── without a worker ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Asked:
    """What some recalls took, which share returned a text and blocks, and how many texts each embedded."""

    enriching_ms: Sequence[float]
    ms: Sequence[float]
    answered: float
    embedded: float


def without_worker(data: Path, sizes: Sizes, folder: Path) -> list[Figure]:
    model = Recorder(LocalEmbedder()) if sizes.embedding == "local" else None
    if model is not None:
        model.embed_texts(["warm up", "warm up with a long text " * 100])  # each kind loads the weights once
    plain = _ask_plane(_copied(data, folder / "plain"), sizes, model, 0)
    figures = [Figure("recall without enrichment p50, no worker", median(plain.ms), "ms")]
    for budget_ms in sizes.budgets_ms:
        asked = _ask_plane(_copied(data, folder / f"budget-{budget_ms}"), sizes, model, budget_ms)
        of_it = f"budget {budget_ms:,} ms, no worker"
        spent = [ms / budget_ms for ms in asked.enriching_ms]
        figures += [
            at_least(f"answers that are not empty / all, {of_it}", asked.answered, 1.0),
            Figure(f"… texts embedded per recall, {of_it}", asked.embedded),
            Figure(f"… CPU time of enrichment p50 / budget, {of_it}", median(spent), "x"),
            at_most(f"… CPU time of enrichment p95 / budget, {of_it}", percentile(spent, 0.95), 1.0, "x"),
            Figure(
                f"… recall p50 / p50 without enrichment, {of_it}", median(asked.ms) / median(plain.ms), "x"
            ),
        ]
    return figures


class Meter:
    """CPU time of the process during steps of enrichment."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._step = Worker.step

    def __enter__(self) -> Self:
        def step(worker: Worker, store: Store, *, reading: bool = True, pace: Pace = UNHURRIED) -> bool:
            begun = time.process_time()
            try:
                return self._step(worker, store, reading=reading, pace=pace)
            finally:
                self.spent_s += time.process_time() - begun

        setattr(Worker, "step", step)  # noqa: B010 - assigning it is an error to the type checker
        return self

    def __exit__(self, *error: object) -> None:
        setattr(Worker, "step", self._step)  # noqa: B010


def _ask_plane(data: Path, sizes: Sizes, model: Recorder | None, budget_ms: int) -> Asked:
    talk = Talk(seed=32)
    before = 0 if model is None else len(model.texts)
    enriching_ms, ms, answered = [], [], 0
    settings = Settings(recall_work_ms=budget_ms)
    with Meter() as meter, Memplane.open(data, embedder=model, settings=settings) as plane:
        space = plane.space(OWNER)
        for number in range(sizes.recalls):
            question = talk.question(number)
            before_s, begun = meter.spent_s, time.perf_counter()
            found = space.recall(question)
            ms.append((time.perf_counter() - begun) * 1_000)
            enriching_ms.append((meter.spent_s - before_s) * 1_000)
            answered += bool(found.text and found.blocks)
    embedded = 0 if model is None else len(model.texts) - before
    return Asked(enriching_ms, ms, answered / sizes.recalls, embedded / sizes.recalls)


def _copied(data: Path, to: Path) -> Path:
    shutil.copytree(data, to)
    return to


# ── with a worker ────────────────────────────────────────────────────────────────────────────────────────────────


def with_worker(data: Path, sizes: Sizes, folder: Path) -> list[Figure]:
    served_data = _copied(data, folder / "served")
    with upstream() as provider:
        environment = {"OPENAI_BASE_URL": f"http://127.0.0.1:{provider}/v1", "OPENAI_API_KEY": "none"}
        with serving(served_data, 1, sizes.embedding, environment=environment) as served:
            recalls = asyncio.run(_ask_server(served, "/recall", sizes.calls))
            turns = asyncio.run(_ask_server(served, "/v1/chat/completions", sizes.calls))
    answers = [{"degraded": [], **json.loads(body)} for _, _, body in recalls]
    by_words = [any(reason.startswith("words:") for reason in answer["degraded"]) for answer in answers]
    remembered = [
        re.search(rb"x-memplane-recall: succeeded; blocks=[1-9]", head) is not None for _, head, _ in turns
    ]
    filled = [bool(answer["memories"]) for answer in answers]
    settings = Settings()
    return [
        at_least("answers of POST /recall that are not empty / all, worker busy", _mean(filled), 1.0),
        Figure("… by words alone / all", _mean(by_words)),
        *_against_limit(recalls, settings.recall_answer_ms),
        at_least("turns of the proxy with memory / all, worker busy", _mean(remembered), 1.0),
        *_against_limit(turns, settings.proxy_recall_ms),
        *_vectors_made(served_data),
    ]


_Answered = tuple[float, bytes, bytes]
"""Milliseconds, head and body."""


async def _ask_server(served: Served, path: str, calls: int) -> list[_Answered]:
    talk = Talk(seed=33)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    answers = []
    for number in range(calls + 1):
        messages = [{"role": "user", "content": talk.question(number)}]
        body = json.dumps({"agent_id": OWNER, "model": "m", "messages": messages}).encode()
        request = served.request(path, body).replace(
            b"\r\n", b"\r\nx-memplane-space: " + OWNER.encode() + b"\r\n", 1
        )
        begun = time.perf_counter()
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
        answer = await reader.readexactly(length)
        answers.append(((time.perf_counter() - begun) * 1_000, head, answer))
        await asyncio.sleep(_PAUSE_S)  # the worker goes on in between
    writer.close()
    return answers[1:]  # the first waits until the server has started


def _mean(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)


def _against_limit(answers: Sequence[_Answered], limit_ms: int) -> list[Figure]:
    took = [ms for ms, _, _ in answers]
    return [
        Figure(f"… p{share} / limit of {limit_ms} ms", percentile(took, share / 100) / limit_ms, "x")
        for share in (50, 95, 99)
    ]


def _vectors_made(data: Path) -> list[Figure]:
    """How many of the newest turns, and of all, have a vector."""
    with Memplane.open(data, embedder=None) as plane, plane.space(OWNER)._context.read() as reader:  # noqa: SLF001 - no interface tells it
        newest, every = reader.turns.newest(limit=_NEWEST), reader.turns.newest(limit=1 << 40)
        return [
            Figure(f"… of the newest {_NEWEST} turns with a vector then", _share(reader, newest)),
            Figure("… of all turns with a vector then", _share(reader, every), digits=4),
        ]


def _share(reader: Reader, numbers: Sequence[int]) -> float:
    model = reader.vectors.current_model()
    return 0.0 if model is None else len(reader.vectors.turns_at(model, numbers)) / len(numbers)


def run(sizes: Sizes, folder: Path) -> list[Figure]:
    data = retain_all(folder / "retained", sizes.turns)
    return [*without_worker(data, sizes, folder), *with_worker(data, sizes, folder)]


def main() -> None:
    arguments = arguments_of(__doc__).parse_args()
    report("memplane backlog", arguments, lambda folder: run(QUICK if arguments.quick else FULL, folder))


if __name__ == "__main__":
    main()
