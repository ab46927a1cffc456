"""Weekly digests as files: `compacted/YYYY-WW.md`, what raw days came to.

A file is made from the lines that the space holds, the same on every machine. A day that is compacted later than those
after it goes to its place; other than that the file only grows at its end."""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import groupby
from typing import Final

from memplane.compaction.retention import last_day_of, week_of
from memplane.safety.sanitize import encodable, one_line
from memplane.space import Space
from memplane.storage.compaction import CompactionLine

# Files that are made out of the ledger for people to read: digests and summaries. Other programs write such files too; the
# note tells ours from theirs, so that ours can be written anew, and theirs stay as they are.


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
    """What was said several times that day is told once, with the ids of all."""
    ids: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        ids.setdefault((line.kind, line.text), []).append(line.id)
    for (kind, text), of in ids.items():
        yield f"- {_plain(kind)}: {_plain(text)} ({', '.join(map(shorter, of))})\n"


def shorter(id_: str) -> str:
    """As many digits of an id as tell it from others."""
    prefix, _, digits = id_.partition("-")
    return f"{prefix}-{digits[:_SHORT]}"


def _plain(text: str) -> str:
    """Content is data: on one line, and nothing in it is a heading, a link or a tag."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", encodable(one_line(text)))
