"""Sync: `python -m benchmarks.sync [--quick] [--json]`.

The place is a directory behind a counter, so that requests and bytes are those that any object store would see, and the
time is our own: a request to a cloud adds its round trip. Turns are of the length that agents' turns have.
"""

import random
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.counting import Counting
from benchmarks.measure import Figure, arguments_of, at_most, report
from memplane import Memplane, Space
from memplane.clock import DAY, SECOND, to_instant
from memplane.ledger.payloads import StorePayload, TurnPayload, encode
from memplane.sync.local import LocalObjects
from memplane.sync.sync import Sync
from memplane.types import Caller, Kind, NewEntry, Op

_OWNER = "alice"
_BEGIN = to_instant(datetime(2026, 1, 1, tzinfo=UTC))
_WORDS = [
    "the",
    "build",
    "failed",
    "again",
    "after",
    "the",
    "change",
    "to",
    "the",
    "parser",
    "so",
    "we",
    "looked",
    "at",
    "the",
    "trace",
    "and",
    "found",
    "that",
    "a",
    "table",
    "was",
    "empty",
    "please",
    "remember",
    "that",
    "releases",
    "go",
    "out",
    "on",
    "thursday",
    "and",
    "that",
    "nobody",
    "merges",
    "on",
    "friday",
    "evening",
    "my",
    "flight",
    "to",
    "lisbon",
    "leaves",
    "early",
    "and",
    "the",
    "hotel",
    "wants",
    "the",
    "passport",
    "number",
    "can",
    "you",
    "move",
    "the",
    "meeting",
    "with",
    "the",
    "vendor",
    "to",
    "next",
    "week",
]
_DAYS = 90
_CHUNK = 5_000
_NEWS = 100
"""Entries that come in beside a history."""
_MORE = 10
"""Entries of a usual push."""


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    entries: int
    histories: tuple[int, ...]
    """Lengths of ledgers that others' entries are merged into."""


FULL = Sizes(100_000, (1_000, 10_000, 100_000))
QUICK = Sizes(5_000, (500, 2_000))
TINY = Sizes(60, (20,))


def run(sizes: Sizes, folder: Path) -> list[Figure]:
    store = Counting(LocalObjects(folder / "place"))
    with Memplane.open(folder / "desk", embedder=None) as plane:
        space = plane.space(_OWNER)
        _fill(space, sizes.entries)
        sync = Sync(space, store, folder / "desk")
        figures = [*_pushing(sizes, space, sync, store), *_compressing(store)]
    figures += _starting(sizes, store, folder / "lap")
    for length in sizes.histories:
        figures += _merging(length, folder / f"merge-{length}")
    return figures


def _pushing(sizes: Sizes, space: Space, sync: Sync, store: Counting) -> Iterator[Figure]:
    yield from _synced(f"push of {sizes.entries:,} entries", sync.push, store)
    store.reset()
    sync.push()
    yield at_most("push of an unchanged space", store.total, 1, "requests")
    store.reset()
    sync.pull()
    yield at_most("pull of an unchanged space", store.total, 1, "requests")
    for number in range(_MORE):
        space.retain(_text(random.Random(number)), conversation="more")
    yield from _synced(f"push of {_MORE} more", sync.push, store)


def _starting(sizes: Sizes, store: Counting, folder: Path) -> Iterator[Figure]:
    """A machine that has nothing but the address."""
    with Memplane.open(folder, embedder=None) as plane:
        space = plane.space(_OWNER)
        sync = Sync(space, store, folder)
        began = time.perf_counter()
        yield from _synced(f"pull of {sizes.entries:,} entries", sync.pull, store)
        pulled = time.perf_counter()
        space.recall("when do releases go out?")
        done = time.perf_counter()
        yield Figure("… the first recall after it", done - pulled, "s")
        yield Figure("cold start to the first recall", done - began, "s")


def _synced(name: str, work: Callable[[], object], store: Counting) -> list[Figure]:
    store.reset()
    began = time.perf_counter()
    work()
    seconds = time.perf_counter() - began
    return [
        Figure(name, seconds, "s"),
        Figure("… requests", store.total, digits=0),
        Figure("… bytes moved", store.moved.total() / 1e6, "MB"),
    ]


def _compressing(store: Counting) -> Iterator[Figure]:
    """What segments would be if they were not plain text."""
    data = b"".join(got.data for item in store.list("ledger/") if (got := store.get(item.key)))
    began = time.perf_counter()
    packed = zlib.compress(data, 6)
    yield Figure("segments, plain", len(data) / 1e6, "MB")
    yield Figure("… if they were compressed", len(packed) / 1e6, "MB")
    yield Figure("… and the time that takes", time.perf_counter() - began, "s")


def _merging(length: int, folder: Path) -> Iterator[Figure]:
    """The same number of entries, recorded after all that is there, in the middle of it, and before it."""
    with Memplane.open(folder, embedder=None) as plane:
        space = plane.space(_OWNER)
        _fill(space, length)
        for name, begin in (
            ("in order", _BEGIN + (_DAYS + 1) * DAY),
            ("into the last tenth", _BEGIN + _DAYS * DAY * 9 // 10),
            ("before all of it", _BEGIN - DAY),
        ):
            drafts = [_draft(f"{name}-{number}", begin + number * SECOND, number) for number in range(_NEWS)]
            space.enrich()
            began = time.perf_counter()
            space.ledger.merge(drafts, {})
            yield Figure(
                f"merge of {_NEWS} into {length:,}, {name}", 1_000 * (time.perf_counter() - began), "ms"
            )


def _fill(space: Space, count: int) -> None:
    """Most of it is said, some of it stored."""
    step = _DAYS * DAY // max(1, count)
    for first in range(0, count, _CHUNK):
        last = min(count, first + _CHUNK)
        space.ledger.load(
            [_draft(f"e{number}", _BEGIN + number * step, number) for number in range(first, last)]
        )
    space.ledger.catch_up()


def _draft(id_: str, at: int, number: int) -> NewEntry:
    rng = random.Random(id_)
    if number % 50 == 0:
        body = encode(StorePayload(kind=Kind.PREFERENCE, content=_text(rng, 12), at=at))
        return NewEntry(id_, Op.STORE, body, Caller("", "benchmark"), None, at)
    said = TurnPayload(role="user", content=_text(rng), at=at, conversation=f"c{number // 40}")
    return NewEntry(id_, Op.TURN, encode(said), Caller("", "benchmark"), None, at)


def _text(rng: random.Random, count: int = 30) -> str:
    return " ".join(rng.choices(_WORDS, k=count))


def main() -> None:
    arguments = arguments_of(__doc__).parse_args()
    sizes = QUICK if arguments.quick else FULL
    report("memplane sync", arguments, lambda folder: run(sizes, folder))


if __name__ == "__main__":
    main()
