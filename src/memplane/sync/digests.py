"""Weekly digests as files: `compacted/YYYY-WW.md`.

A file is generated from the space's digest lines and is the same on every machine. It grows at its end, except for
a day that is compacted later than the days after it.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import groupby
from typing import Final

from memplane.compaction.retention import last_day_of, week_of
from memplane.safety.sanitize import encodable, one_line
from memplane.space import Space
from memplane.storage.compaction import CompactionLine

# Other programs write digests and summaries too. Only files with this note are rewritten.

NOTE: Final = (
    "Memplane writes this file anew whenever its memory changes. Without this note it is left as it is."
)
COMMENT: Final = f"<!-- {NOTE} -->"
"""The note, in Markdown and HTML."""

_HEAD_BYTES = 400


def is_generated(data: bytes) -> bool:
    """Whether one of us wrote it, so that everything in it is in the ledger."""
    return NOTE.encode() in data[:_HEAD_BYTES]


PREFIX = "compacted/"

_MARKDOWN = re.compile(r"[\\`*_\[\]<>|~&#]")
_SHORT = 12
"""Of the digits of an id; `memplane compact review` takes as many."""


def digest_files(space: Space) -> Iterator[tuple[str, bytes]]:
    """(path, bytes) of every week that has a digest, the oldest first."""
    for week, lines in groupby(space.overview.digest_lines(), key=lambda line: week_of(line.day)):
        yield f"{PREFIX}{week}.md", _file(week, lines)


def _file(week: str, lines: Iterable[CompactionLine]) -> bytes:
    last = last_day_of(week)
    parts = [f"# Week {week}\n\n{last - timedelta(days=6)} to {last}, in UTC.\n{COMMENT}\n"]
    for day, said in groupby(lines, key=lambda line: line.day):
        parts.append(f"\n## {day}\n\n" + "".join(_merged_lines(said)))
    return "".join(parts).encode()


def _merged_lines(lines: Iterable[CompactionLine]) -> Iterator[str]:
    """A statement repeated on the same day appears once, with all ids."""
    ids: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        ids.setdefault((line.kind, line.text), []).append(line.id)
    for (kind, text), of in ids.items():
        yield f"- {_plain(kind)}: {_plain(text)} ({', '.join(map(shorter, of))})\n"


def shorter(id_: str) -> str:
    """The shortest prefix of an id that is unique among the others."""
    prefix, _, digits = id_.partition("-")
    return f"{prefix}-{digits[:_SHORT]}"


def _plain(text: str) -> str:
    """Content is data: on one line, and nothing in it is a heading, a link or a tag."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", encodable(one_line(text)))
