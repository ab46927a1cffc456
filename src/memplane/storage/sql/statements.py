"""What an SQL engine brings: a way to run the named statements, its words for what dialects say differently, and its
own full-text index. Everything else about rows is written once, in this package."""

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, Literal, Protocol

from memplane.storage.index import TURNS_PER_ENTRY_MAX
from memplane.storage.library import SPANS_PER_DOCUMENT_MAX
from memplane.storage.sql import conditions, rows

Row = rows.Row
Parameters = Mapping[str, Any]
Indexed = Literal["turn", "memory", "span"]
"""What has an index of words."""

ALL = (1 << 63) - 1
"""A limit that limits nothing."""

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_MACRO = re.compile(r"\{(\w+)((?::[^{}:]+)*)\}")
_PARTS = {
    "columns": rows.MEMORY_COLUMNS,
    "turn_columns": rows.TURN_COLUMNS,
    "turns_per_entry": str(TURNS_PER_ENTRY_MAX),
    "live": conditions.LIVE,
    "not_reserved": conditions.NOT_RESERVED,
    "reserved": conditions.RESERVED,
    "not_faded": conditions.NOT_FADED,
    "quarantined": conditions.QUARANTINED,
    "not_quarantined": conditions.NOT_QUARANTINED,
    "turn_quarantined": conditions.TURN_QUARANTINED,
    "erasable": conditions.ERASABLE,
    "line_columns": rows.LINE_COLUMNS,
    "document_columns": rows.DOCUMENT_COLUMNS,
    "section_columns": rows.SECTION_COLUMNS,
    "span_columns": rows.SPAN_COLUMNS,
    "collection_columns": rows.COLLECTION_COLUMNS,
    "spans_per_document": str(SPANS_PER_DOCUMENT_MAX),
    "all": str(ALL),
}
SHARED = (
    "memplane.storage.sql",
    ("queries.sql", "library.sql", "compaction.sql", "overview.sql", "rulings.sql"),
)


class Dialect(Protocol):
    """How an engine says it. In a file, `{texts:ids:each}` is such a place: a list of texts as a table `each (value)`."""

    def texts(self, parameter: str, alias: str) -> str:
        """A list of texts as a table with one column, `value`."""

    def numbers(self, parameter: str, alias: str) -> str:
        """The same of integers."""

    def list_of(self, column: str) -> str:
        """All values of a column as one JSON array."""

    def larger(self, left: str, right: str) -> str:
        """The larger of two values."""

    def place_of(self, part: str, text: str) -> str:
        """Where in a text another one is; 0 if it is not."""

    def member(self, column: str, name: str) -> str:
        """A member of a JSON object, as text."""

    def entry_of(self, turn: str) -> str:
        """The place in the ledger of what holds this turn."""

    def document_of(self, part: str) -> str:
        """The same of a section or a span of a document."""

    def no_bytes(self) -> str:
        """An empty sequence of bytes."""

    def statement(self, sql: str) -> str:
        """The whole of it as the driver wants it."""


Source = tuple[str, Sequence[str]] | Mapping[str, str]
"""Files of a package, or statements by name."""


def load(dialect: Dialect, *sources: Source) -> dict[str, str]:
    """The statements of these sources; in a file, one named block each. Of two with one name, the last."""
    return {name: dialect.statement(assembled(sql, dialect)) for name, sql in named(*sources).items()}


def named(*sources: Source) -> dict[str, str]:
    """The blocks as they are written."""
    found: dict[str, str] = {}
    for source in sources:
        if isinstance(source, Mapping):
            found.update(source)
            continue
        package, files = source
        for file in files:
            text = resources.files(package).joinpath(file).read_text(encoding="utf-8")
            parts = _NAME.split(text)[1:]
            found.update((name, sql.strip()) for name, sql in zip(parts[::2], parts[1::2], strict=True))
    return found


def assembled(sql: str, dialect: Dialect) -> str:
    """With every `{part}` written out, but for `{where}`, which each call brings."""

    def written(match: re.Match[str]) -> str:
        name, *arguments = match.group().strip("{}").split(":")
        if name == "where":
            return match.group()
        if name in _PARTS:
            return assembled(_PARTS[name], dialect)
        said: str = getattr(dialect, name)(*arguments)
        return said

    return _MACRO.sub(written, sql)


class Words(Protocol):
    """An index of words; no two engines have the same."""

    def add(self, sort: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        """These numbers have these texts."""

    def drop(self, sort: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        """They do not any more; the texts are those they were added with."""

    def clear(self) -> None:
        """Nothing is indexed."""

    def matching(self, sort: Indexed, words: Sequence[str]) -> Any:
        """What stands for any of these words in a statement: its `:match`. Nothing a user types is an operator."""

    def holding(self, sort: Indexed, stem: str) -> list[int]:
        """The numbers that hold the stem, once for each time they do. One that `is_prefix` stands for all it begins."""

    def holding_each(self, sort: Indexed, stems: Sequence[str]) -> dict[str, list[int]]:
        """The same of each of these."""

    def common(self, sort: Indexed, words: Sequence[str], beyond: int) -> set[str]:
        """Of these words, those that more than so many hold; looks no further."""

    def frequencies(self, stems: Sequence[str]) -> Iterable[tuple[str, int]]:
        """How many memories, and how many turns, hold each: a stem may come twice."""


class Statements(Protocol):
    """The named statements over one connection, inside a transaction."""

    @property
    def words(self) -> Words:
        """The index of words."""

    def all(self, query: str, parameters: Parameters | Row = ()) -> list[Any]:
        """Every row."""

    def one(self, query: str, parameters: Parameters | Row = ()) -> Any:
        """The first row, or None."""

    def filtered(self, query: str, where: str, parameters: Parameters) -> list[Any]:
        """Every row, with conditions in place of `{where}`."""

    def run(self, query: str, parameters: Parameters | Row = ()) -> int:
        """How many rows it changed."""

    def many(self, query: str, values: Sequence[Row]) -> None:
        """Once for each of these; nothing where there are none."""

    def listed(self, values: Iterable[Any]) -> Any:
        """A list as a parameter."""

    def clear(self, tables: Sequence[str]) -> None:
        """Delete every row of the space from these."""

    def save(self) -> None:
        """From here on it can be undone."""

    def keep(self) -> None:
        """It is not going to be undone any more."""

    def undo(self) -> None:
        """Back to where it was saved."""
