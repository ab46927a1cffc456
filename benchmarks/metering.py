"""What metering, limits and the directory cost: `python -m benchmarks.metering [--quick] [--json]`.

Uploads are measured with and without the directory in turn, because the machine is shared; the median round counts.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from benchmarks.measure import Figure, arguments_of, at_most, latencies_ms, median, rate, report
from memplane import Memplane, Settings, Space
from memplane.auth.limits import QuotaResource
from memplane.storage.catalog.directory import ResourceKind

_TENANT = "default"
_TEXT = "The quick memory of an agent jumps over what was said before. " * 32
"""Two kilobytes."""


@dataclass(frozen=True)
class Sizes:
    """How much work a run does."""

    rounds: int
    counts: int
    takes: int
    uploads: int


FULL = Sizes(7, 100_000, 1_000, 200)
QUICK = Sizes(3, 20_000, 300, 60)
TINY = Sizes(1, 100, 10, 3)


def run(sizes: Sizes, folder: Path) -> list[Figure]:
    with Memplane.open(folder / "free", embedder=None) as plane:
        figures = [*_counting(sizes, plane), *_noting(sizes, plane), *_uploading(sizes, plane)]
    limits = Settings(quota_ingest_events=1 << 40, ingest_per_minute=1 << 30)
    with Memplane.open(folder / "limited", embedder=None, settings=limits) as plane:
        return figures + _taking(sizes, plane)


def _counting(sizes: Sizes, plane: Memplane) -> list[Figure]:
    def count() -> None:
        for _ in range(sizes.counts):
            plane.meter.count(_TENANT, "POST /v6/recall", seconds=0.01, request_bytes=200, tokens=300)

    each = [1e6 / rate(count, sizes.counts) for _ in range(sizes.rounds)]
    return [at_most("counting a request", median(each), 20, "µs")]


def _noting(sizes: Sizes, plane: Memplane) -> list[Figure]:
    directory, now = plane._parts.directory, plane.clock()  # noqa: SLF001 - the part that is measured

    def note(number: int) -> None:
        directory.note(_TENANT, ResourceKind.DOCUMENT, f"noted-{number}", "alice", now=now)

    note(-1)  # the file comes into being
    return [Figure("noting where a thing lives", 1_000 * median(latencies_ms(note, sizes.takes)), "µs")]


def _uploading(sizes: Sizes, plane: Memplane) -> list[Figure]:
    space = plane.space("alice")
    number = itertools.count()

    def upload(space: Space) -> None:
        for _ in range(sizes.uploads):
            space.documents.upload(_TEXT, name=f"document {next(number)}")

    upload(space)
    noted, bare = [], []
    for _ in range(sizes.rounds):
        noted.append(rate(lambda: upload(space), sizes.uploads))
        with patch.object(plane._parts.directory, "note", _nothing):  # noqa: SLF001 - what is left out
            bare.append(rate(lambda: upload(space), sizes.uploads))
    return [
        Figure("uploads of 2 KB by one caller", median(noted), "/s", digits=0),
        Figure("… without the directory", median(bare), "/s", digits=0),
    ]


def _taking(sizes: Sizes, plane: Memplane) -> list[Figure]:
    def take(_: int) -> None:
        with plane.quota.using(_TENANT, QuotaResource.INGEST):
            pass

    take(0)
    taken = 1_000 * median(latencies_ms(take, sizes.takes))
    told = 1_000 * median(latencies_ms(lambda _: plane.quota.status(_TENANT), sizes.takes))
    return [
        Figure("an ingest under a quota and a rate", taken, "µs"),
        Figure("… and what its answer says of the quota", told, "µs"),
    ]


def _nothing(*_: str, **_named: Mapping[str, int]) -> None:
    pass


def main() -> None:
    arguments = arguments_of(__doc__).parse_args()
    sizes = QUICK if arguments.quick else FULL
    report("memplane metering", arguments, lambda folder: run(sizes, folder))


if __name__ == "__main__":
    main()
