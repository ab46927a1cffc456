"""The engine's speed, in one run and as ratios: `python -m benchmarks.engine [--quick] [--json]`.

Every ratio compares things measured in turn within seconds of each other, because the machine is shared: rounds
alternate, and the median round counts.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from benchmarks.measure import (
    Figure,
    arguments_of,
    at_least,
    at_most,
    latencies_ms,
    median,
    peak_mib,
    percentile,
    rate,
    report,
)
from memplane import Memplane, Space
from memplane.adapters.clawdapus.importer import append_history
from memplane.ledger.history import Payload, compose_line
from memplane.ledger.ids import new_id, new_memory_id
from memplane.ledger.payloads import StorePayload, TurnPayload, encode
from memplane.types import Kind, NewEntry, Op

_WRITERS = 16
_START = 1_790_000_000_000_000
_VOCABULARY = 20_000


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    rounds: int
    retains: int
    imported: int
    searched: tuple[int, ...]
    queries: int
    briefed: int


FULL = Sizes(9, 640, 200_000, (1_000, 10_000, 100_000, 1_000_000), 300, 10_000)
QUICK = Sizes(3, 320, 20_000, (1_000, 10_000), 100, 1_000)
TINY = Sizes(1, 32, 200, (50, 100), 5, 50)


class Speech:
    """Made-up turns: a few words everyone uses, many that are rare, as in real speech."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._words = [
            f"{stem}{number}" for number in range(_VOCABULARY // 4) for stem in ("tal", "mor", "quin", "bex")
        ]

    def turn(self) -> str:
        # A power law: word n comes up about 1/n as often as the first.
        picks = (int(len(self._words) ** self._random.random()) - 1 for _ in range(14))
        return " ".join(self._words[pick] for pick in picks)


def run(sizes: Sizes, folder: Path) -> list[Figure]:
    return [
        *retains(sizes, folder),
        *imports(sizes, folder),
        *searches(sizes, folder),
        *briefs(sizes, folder),
        Figure("peak memory of this process", peak_mib(), "MiB"),
    ]


# ── durable retains against a bare insert ────────────────────────────────────────────────────────────────────────


def retains(sizes: Sizes, folder: Path) -> list[Figure]:
    bare, single, shared = [], [], []
    speech = Speech()
    with Memplane.open(folder / "retains") as plane, _bare_table(folder / "bare.db") as insert:
        space = plane.space("bench")
        space.retain("warm up")
        for _ in range(sizes.rounds):
            texts = [speech.turn() for _ in range(sizes.retains)]
            many = [speech.turn() for _ in range(sizes.retains * _WRITERS // 4)]
            bare.append(rate(lambda texts=texts: [insert(text) for text in texts], len(texts)))
            single.append(rate(lambda texts=texts: [space.retain(text) for text in texts], len(texts)))
            shared.append(rate(lambda many=many: _in_threads(space, many), len(many)))
    return [
        Figure("bare SQLite insert, durable, one writer", median(bare), "/s"),
        Figure("retain, one writer", median(single), "/s"),
        Figure(f"retain, {_WRITERS} writers", median(shared), "/s"),
        at_least("one writer / bare", _median_ratio(single, bare), 0.5, "x"),
        at_least(f"{_WRITERS} writers / bare", _median_ratio(shared, bare), 4, "x"),
    ]


@contextmanager
def _bare_table(path: Path) -> Iterator[Callable[[str], object]]:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute("CREATE TABLE turn (n INTEGER PRIMARY KEY, text TEXT)")
    try:
        yield lambda text: connection.execute("INSERT INTO turn (text) VALUES (?)", (text,))
    finally:
        connection.close()


def _in_threads(space: Space, texts: list[str]) -> None:
    shares = [texts[number::_WRITERS] for number in range(_WRITERS)]
    threads = [
        threading.Thread(target=lambda share=share: [space.retain(text) for text in share])
        for share in shares
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _median_ratio(above: list[float], below: list[float]) -> float:
    return median([one / other for one, other in zip(above, below, strict=True)])


# ── bulk import ──────────────────────────────────────────────────────────────────────────────────────────────────


def imports(sizes: Sizes, folder: Path) -> list[Figure]:
    speech = Speech()
    drafts = [_turn_draft(speech, number) for number in range(sizes.imported)]
    path = folder / "history.jsonl"
    path.write_bytes(b"".join(_history_line(speech, number) + b"\n" for number in range(sizes.imported)))
    with Memplane.open(folder / "imports") as plane:
        batch = plane.space("batch")
        acknowledged = rate(lambda: _load(batch, drafts), sizes.imported)
        searchable = rate(batch.ledger.catch_up, sizes.imported)
        history = plane.space("history")
        lines = rate(lambda: append_history(history, path), sizes.imported)
        lines_searchable = rate(history.ledger.catch_up, sizes.imported)
    return [
        at_least("batch import, durable", acknowledged, 50_000, "entries/s"),
        Figure("batch import, durable and searchable", _both(acknowledged, searchable), "entries/s"),
        Figure("history.jsonl, ids checked, durable", lines, "lines/s"),
        Figure("history.jsonl, durable and searchable", _both(lines, lines_searchable), "lines/s"),
    ]


def _both(first: float, then: float) -> float:
    """The rate of two steps one after the other."""
    return 1 / (1 / first + 1 / then)


def _load(space: Space, drafts: list[NewEntry]) -> None:
    for start in range(0, len(drafts), 5_000):
        space.ledger.load(drafts[start : start + 5_000])


def _turn_draft(speech: Speech, number: int) -> NewEntry:
    at = _START + number * 1_000_000
    said = TurnPayload(role="user", content=speech.turn(), at=at, conversation=f"c{number // 50}")
    return NewEntry(new_id("turn", at), Op.TURN, encode(said))


def _history_line(speech: Speech, number: int) -> bytes:
    request = {"model": "m", "messages": [{"role": "user", "content": speech.turn()}]}
    answer = {"choices": [{"message": {"role": "assistant", "content": speech.turn()}}]}
    return compose_line(
        at=_START + number * 1_000_000,
        claw_id="bench",
        path="/v1/chat/completions",
        requested_model="m",
        effective_provider="p",
        effective_model="m",
        request_original=request,
        response=Payload(json=answer),
    ).line


# ── search ───────────────────────────────────────────────────────────────────────────────────────────────────────


def searches(sizes: Sizes, folder: Path) -> list[Figure]:
    """The same space grows; a selective query names a word that a handful of turns hold at every size."""
    figures: list[Figure] = []
    p95: dict[int, float] = {}
    speech = Speech()
    root = folder / "searches"
    filled = 0
    for size in sizes.searched:
        with Memplane.open(root) as plane:
            space = plane.space("bench")
            _fill(space, speech, range(filled, size))
            filled = size
            p95[size], common = _search_p95(space, size, sizes.queries)
        figures.append(Figure(f"search by words p95 at {size:,} entries, selective", p95[size], "ms"))
        figures.append(Figure(f"search by words p95 at {size:,} entries, common words", common, "ms"))
    figures.append(_cold_open(root))
    small = 10_000 if 10_000 in p95 else min(p95)
    growth = p95[max(p95)] / p95[small]
    figures.append(at_most(f"search growth from {small:,} to {max(p95):,}", growth, 4, "x"))
    return figures


def _fill(space: Space, speech: Speech, numbers: range) -> None:
    _load(space, [_needle(speech, n) if n % 10 == 0 else _turn_draft(speech, n) for n in numbers])
    space.ledger.catch_up()


def _search_p95(space: Space, size: int, queries: int) -> tuple[float, float]:
    """(with a rare word, with common words only)"""
    selective = latencies_ms(
        lambda number: space.search(_needle_query(number, size), words_only=True), queries
    )
    common = latencies_ms(lambda _: space.search("tal0 mor0 quin0", words_only=True), max(3, queries // 30))
    return percentile(selective, 0.95), percentile(common, 0.95)


def _needle(speech: Speech, number: int) -> NewEntry:
    """Every tenth turn names one of the needles, each of which so many turns share: one per 500 turns of the space's
    first thousand, so that a query finds a few turns at any size."""
    at = _START + number * 1_000_000
    content = f"{speech.turn()} needle{number // 50}"
    return NewEntry(new_id("turn", at), Op.TURN, encode(TurnPayload(role="user", content=content, at=at)))


def _needle_query(number: int, size: int) -> str:
    return f"where was needle{(number * 7_919) % max(1, size // 50)} seen"


def _cold_open(root: Path) -> Figure:
    def first_answer(_: int) -> None:
        with Memplane.open(root) as plane:
            plane.space("bench").search("needle1", words_only=True)

    return Figure(
        "open of a cold space, first search included, p50", median(latencies_ms(first_answer, 7)), "ms"
    )


# ── brief ────────────────────────────────────────────────────────────────────────────────────────────────────────


def briefs(sizes: Sizes, folder: Path) -> list[Figure]:
    speech = Speech()
    kinds = [kind for kind in Kind if kind is not Kind.EPISODE]
    with Memplane.open(folder / "briefs") as plane:
        space = plane.space("bench")
        space.ledger.load(
            [
                NewEntry(
                    new_memory_id(),
                    Op.STORE,
                    encode(StorePayload(kind=kinds[number % 5], content=speech.turn(), at=_START + number)),
                )
                for number in range(sizes.briefed)
            ]
        )
        samples = latencies_ms(lambda _: space.brief().markdown, max(20, sizes.queries))
    return [at_most(f"brief p95 at {sizes.briefed:,} entries", percentile(samples, 0.95), 5, "ms")]


def main() -> None:
    parser = arguments_of(__doc__)
    parts = {"retains": retains, "imports": imports, "searches": searches, "briefs": briefs}
    parser.add_argument("--only", choices=list(parts), help="one part alone")
    arguments = parser.parse_args()
    work = parts.get(arguments.only, run)
    report("memplane engine", arguments, lambda folder: work(QUICK if arguments.quick else FULL, folder))


if __name__ == "__main__":
    main()
