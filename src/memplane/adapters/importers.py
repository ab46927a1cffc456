"""Import and export memory in other formats: session histories, whole spaces, Carapace files."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from memplane.adapters.carapace.importer import MAGIC, import_carapace
from memplane.adapters.clawdapus.importer import entries_of, history_lines, import_history, scrubbed_lines
from memplane.errors import InvalidRequest
from memplane.space import Space
from memplane.transfer.full import MARK, ImportReport, full_lines, import_full
from memplane.types import Op

__all__ = [
    "FORMATS",
    "ImportReport",
    "count_excluded",
    "export_lines",
    "import_file",
    "scrubbed_lines",
]

FORMATS: dict[str, Callable[[Space], Iterator[bytes]]] = {"history": history_lines, "full": full_lines}

_NO_TURNS = (Op.STORE, Op.PUT, Op.RUN)


def import_file(
    space: Space,
    path: Path,
    *,
    trust_ids: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> ImportReport:
    """Import a file of any supported format: a session history (file or directory), a full export, or a Carapace
    memory file."""
    report = _import(space, path, trust_ids=trust_ids, progress=progress)
    detail = f"{report.format}: {report.added} added, {report.rejected_count} rejected"
    name = os.fsencode(path.name).decode("utf-8", "replace")
    space.ledger.add_audit("import", target=name, outcome="ok", detail=detail)
    return report


def export_lines(space: Space, format: str = "history") -> Iterator[bytes]:  # noqa: A002 - public parameter name
    """Lines without their newline. The export is recorded in the space's audit log."""
    if format not in FORMATS:
        raise InvalidRequest(f"unknown format {format!r}; use one of {', '.join(FORMATS)}", field="format")
    space.ledger.add_audit("export", target=format, outcome="ok")
    return FORMATS[format](space)


def count_excluded(space: Space) -> int:
    """How many memories and facts a history export leaves out because they are not turns."""
    return sum(entry.op in _NO_TURNS and entry.body is not None for entry in entries_of(space))


def _import(
    space: Space, path: Path, *, trust_ids: bool, progress: Callable[[int, int], None]
) -> ImportReport:
    start = b"" if path.is_dir() else _start_of(path)
    if start.startswith(MAGIC):
        return import_carapace(space, path)
    if start.startswith(MARK):
        return import_full(space, path, progress=progress)
    return import_history(space, path, trust_ids=trust_ids, progress=progress)


def _start_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC))
    except OSError as exc:
        raise InvalidRequest(f"{path} cannot be read: {exc.strerror}", field="path") from exc
