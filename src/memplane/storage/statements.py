"""Named statements: read from `queries/`, and written out in an engine's dialect."""

import re
from collections.abc import Mapping, Sequence
from importlib import resources

from memplane.storage import conditions, rows
from memplane.storage.engine import Dialect
from memplane.storage.numbers import SPANS_PER_DOCUMENT_MAX, TURNS_PER_ENTRY_MAX
from memplane.storage.session import ALL
from memplane.storage.state import CLEARING
from memplane.storage.tables import CATALOG_MOVES, SPACE_MOVES

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
    "not_unnoted": conditions.NOT_UNNOTED,
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

Source = tuple[str, Sequence[str]] | Mapping[str, str]
"""Files of a package, or statements by name."""

_SAVEPOINTS = {
    "savepoint": "SAVEPOINT work",
    "release_savepoint": "RELEASE SAVEPOINT work",
    "rollback_to_savepoint": "ROLLBACK TO SAVEPOINT work",
}
SPACE: tuple[Source, ...] = (
    (
        "memplane.storage.queries",
        (
            "audit.sql",
            "claims.sql",
            "compaction.sql",
            "documents.sql",
            "episodes.sql",
            "ledger.sql",
            "memories.sql",
            "overview.sql",
            "replica.sql",
            "review.sql",
            "state.sql",
            "turns.sql",
            "vectors.sql",
            "words.sql",
        ),
    ),
    SPACE_MOVES,
    CLEARING,
    _SAVEPOINTS,
)
"""The statements of a space."""
CATALOG: tuple[Source, ...] = (("memplane.storage.queries", ("catalog.sql",)), CATALOG_MOVES, _SAVEPOINTS)
"""The statements of the catalog."""


def load(dialect: Dialect, *sources: Source) -> dict[str, str]:
    """The statements of these sources; in a file, one named block each. Of two with one name, the last."""
    return {name: dialect.finish(assembled(sql, dialect)) for name, sql in named(*sources).items()}


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
    """With every `{part}` written out, except `{where}`, which each call brings."""

    def written(match: re.Match[str]) -> str:
        name, *arguments = match.group().strip("{}").split(":")
        if name == "where":
            return match.group()
        if name in _PARTS:
            return assembled(_PARTS[name], dialect)
        template: str = getattr(dialect, name)
        return template.format(*arguments)

    return _MACRO.sub(written, sql)
