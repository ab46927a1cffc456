"""Segments: runs of ledger lines as objects that never change.

`ledger/<replica>/<first>-<digest>.jsonl` holds lines as `transfer/full.py` writes them, entries and tombstones. The name
ends with a digest of the content, so whoever reads one knows whether it is what was written, and whoever writes one
twice writes the same. Plain text: it can be read, searched and mended without Memplane (docs/internals/sync.md has what
compressing them would save).
"""

import re
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from memplane.errors import RemoteError
from memplane.transfer.full import UNREADABLE, Line, decoded, encoded

PREFIX = "ledger/"
BYTES_MAX = 4 * 1024 * 1024
"""What a segment holds at most, unless a single line is larger: one request each, and little lost with one that fails."""

_DIGEST_HEX = 32
_KEY = re.compile(r"ledger/(?P<replica>[0-9a-z-]{1,64})/(?P<first>\d{1,19})-(?P<digest>[0-9a-f]{32})\.jsonl")


class SegmentDamaged(RemoteError):
    """A segment's content is not what its name says, or its name is none that Memplane gives."""

    code = "segment_damaged"

    def __init__(self, key: str, why: str) -> None:
        super().__init__(f"{key!r} is not taken in: {why}")
        self.key = key
        self.why = why


class Segment(msgspec.Struct, frozen=True):
    """One as it is to be written."""

    key: str
    data: bytes
    count: int


class Written(msgspec.Struct, frozen=True):
    """A line as it stands in a segment."""

    raw: bytes
    line: Line | None
    """None where it is no line of this version's: it is kept, and passed over."""


def is_segment(key: str) -> bool:
    return key.startswith(PREFIX)


def written(line: Line) -> Written:
    return Written(encoded(line), line)


def make(replica: str, first: int, lines: Iterable[Written]) -> Segment:
    """One segment of these lines; `first` is where in the replica's own chain the first of them stands."""
    raws = [line.raw for line in lines]
    data = b"".join(raw + b"\n" for raw in raws)
    digest = sha256(data).hexdigest()[:_DIGEST_HEX]
    return Segment(f"{PREFIX}{replica}/{first:012d}-{digest}.jsonl", data, len(raws))


def checked(key: str) -> str:
    """The key itself; `SegmentDamaged` where no segment is called like that, so that nobody asks for it."""
    if _KEY.fullmatch(key) is None:
        raise SegmentDamaged(key, "no segment is called like that")
    return key


def read(key: str, data: bytes) -> list[Written]:
    """Raises `SegmentDamaged` where the content is not what the name says."""
    named = _KEY.fullmatch(checked(key))
    assert named is not None
    if sha256(data).hexdigest()[:_DIGEST_HEX] != named["digest"]:
        raise SegmentDamaged(key, "its content is not what was written")
    # A line ends with a line feed and nothing else: JSON may hold whatever else breaks a line.
    return [Written(raw, _line(raw)) for raw in data.split(b"\n") if raw]


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
    """Where its first line stands; 0 where it is no segment's name."""
    named = _KEY.fullmatch(key)
    return 0 if named is None else int(named["first"])


class _Loose(msgspec.Struct):
    id: str


_loose = msgspec.json.Decoder(_Loose).decode


def _line(raw: bytes) -> Line | None:
    try:
        return decoded(raw)
    except UNREADABLE:
        return None
