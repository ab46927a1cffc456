"""Segments: immutable objects with runs of ledger lines.

`ledger/<replica>/<first>-<digest>.jsonl` contains entries and tombstones as `transfer/full.py` writes them. The
name ends with a digest of the content, so a reader can verify it, and writing one twice is harmless. Plain text: it
can be read, searched and repaired without Memplane (docs/internals/sync.md measures compression).
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import pairwise

import msgspec

from memplane.errors import RemoteError
from memplane.transfer.full import UNREADABLE, ExportLine, decoded, encoded

# Sets of positions in a replica's own chain, kept as runs: what is pushed and pulled in order is one run, however long.


Run = tuple[int, int]
"""The first and the last of positions without a gap."""


class Positions:
    """A set of positive whole numbers. Never changed: what is added or taken away gives another one."""

    __slots__ = ("_runs",)

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        """Runs in any order, and they may overlap."""
        self._runs = _joined(sorted(runs))

    @classmethod
    def of(cls, numbers: Iterable[int]) -> "Positions":
        return cls((number, number) for number in numbers)

    @property
    def runs(self) -> Sequence[Run]:
        """In order, apart from each other."""
        return self._runs

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._runs, number, key=lambda run: run[0]) - 1
        return place >= 0 and number <= self._runs[place][1]

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self._runs)

    def __iter__(self) -> Iterator[int]:
        for first, last in self._runs:
            yield from range(first, last + 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Positions) and self._runs == other._runs

    def __hash__(self) -> int:
        return hash(self._runs)

    def __or__(self, other: "Positions") -> "Positions":
        return Positions((*self._runs, *other._runs))

    def missing(self, last: int) -> "Positions":
        """Those from 1 to `last` that are not among these."""
        ends = ((0, 0), *self._runs, (last + 1, last + 1))
        return Positions(
            (before[1] + 1, min(after[0] - 1, last))
            for before, after in pairwise(ends)
            if before[1] + 1 <= min(after[0] - 1, last)
        )

    def __sub__(self, other: "Positions") -> "Positions":
        last = self._runs[-1][1] if self._runs else 0
        return self & other.missing(last)

    def __and__(self, other: "Positions") -> "Positions":
        found: list[Run] = []
        left, right = 0, 0
        while left < len(self._runs) and right < len(other._runs):
            mine, theirs = self._runs[left], other._runs[right]
            first, last = max(mine[0], theirs[0]), min(mine[1], theirs[1])
            if first <= last:
                found.append((first, last))
            if mine[1] < theirs[1]:
                left += 1
            else:
                right += 1
        return Positions(found)

    def __repr__(self) -> str:
        return f"Positions({list(self._runs)!r})"


def _joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    found: list[Run] = []
    for first, last in runs:
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def union(sets: Iterable[Positions]) -> Positions:
    """All of them in one."""
    return Positions(run for one in sets for run in one.runs)


PREFIX = "ledger/"
BYTES_MAX = 4 * 1024 * 1024
"""What a segment holds at most, unless a single line is larger: one request each, and little lost with one that fails."""

_DIGEST_HEX = 32
_KEY = re.compile(r"ledger/(?P<replica>[0-9a-z-]{1,64})/(?P<first>\d{1,19})-(?P<digest>[0-9a-f]{32})\.jsonl")


class SegmentDamaged(RemoteError):
    """A segment's content is not what its name says, or its name is none that Memplane gives."""

    code = "segment_damaged"

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key!r} cannot be imported: {why}")
        self.key = key
        self.why = why


class Segment(msgspec.Struct, frozen=True):
    """One as it is to be written."""

    key: str
    data: bytes
    count: int


class SegmentLine(msgspec.Struct, frozen=True):
    """A line of a segment."""

    raw: bytes
    line: ExportLine | None
    """None for a line of an unknown format, which is kept and skipped."""


def is_segment(key: str) -> bool:
    return key.startswith(PREFIX)


def written(line: ExportLine) -> SegmentLine:
    return SegmentLine(encoded(line), line)


def make(replica: str, first: int, lines: Iterable[SegmentLine]) -> Segment:
    """A segment with these lines; `first` is the position of the first one in the replica's chain."""
    raws = [line.raw for line in lines]
    data = b"".join(raw + b"\n" for raw in raws)
    digest = sha256(data).hexdigest()[:_DIGEST_HEX]
    return Segment(f"{PREFIX}{replica}/{first:012d}-{digest}.jsonl", data, len(raws))


def checked(key: str) -> str:
    """The key itself; raises `SegmentDamaged` for a key that is not a segment's."""
    if _KEY.fullmatch(key) is None:
        raise SegmentDamaged(key, "no segment is called like that")
    return key


def read(key: str, data: bytes) -> list[SegmentLine]:
    """Raises `SegmentDamaged` where the content is not what the name says."""
    named = _KEY.fullmatch(checked(key))
    assert named is not None
    if sha256(data).hexdigest()[:_DIGEST_HEX] != named["digest"]:
        raise SegmentDamaged(key, "its content is not what was written")
    # A line ends with a line feed and nothing else: JSON may hold whatever else breaks a line.
    return [SegmentLine(raw, _line(raw)) for raw in data.split(b"\n") if raw]


def loose_id(raw: bytes) -> str | None:
    """The id of a line that cannot be read otherwise."""
    try:
        return _loose(raw).id
    except UNREADABLE:
        return None


def replica_of(key: str) -> str | None:
    """Who wrote it; None where it is no segment's name."""
    named = _KEY.fullmatch(key)
    return None if named is None else named["replica"]


def first_of(key: str) -> int:
    """The position of its first line; 0 for a key that is not a segment's."""
    named = _KEY.fullmatch(key)
    return 0 if named is None else int(named["first"])


class _Loose(msgspec.Struct):
    id: str


_loose = msgspec.json.Decoder(_Loose).decode


def _line(raw: bytes) -> ExportLine | None:
    try:
        return decoded(raw)
    except UNREADABLE:
        return None
