"""Copy local files to a backend. The local files stay, so that the migration can be undone."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from memplane.adapters.entrabot.storage.local import files_in
from memplane.sync.backend import TextBackend


@dataclass
class MigrationReport:
    """Copied and skipped files, and errors by key."""

    copied: int = 0
    skipped: int = 0
    bytes_copied: int = 0
    """Characters, not bytes: EntraBot counts and prints them like this."""
    keys_copied: list[str] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)


def migrate_local_to_backend(sources: Iterable[tuple[Path, str]], target: TextBackend) -> MigrationReport:
    """Copy every file of every (directory, prefix) that the target does not have. It can be interrupted and run
    again."""
    report = MigrationReport()
    for root, prefix in sources:
        for path in files_in(Path(root)):
            _migrate(path, Path(root), prefix, target, report)
    return report


def key_for(path: Path, root: Path, prefix: str) -> str:
    """The key of a file."""
    relative = path.relative_to(root).as_posix()
    return f"{prefix}/{relative}" if prefix else relative


def _migrate(path: Path, root: Path, prefix: str, target: TextBackend, report: MigrationReport) -> None:
    key = key_for(path, root, prefix)
    try:
        if target.exists(key):
            report.skipped += 1
            return
        content = text_of(path, root)
        if not _create(target, key, content):
            report.skipped += 1
            return
    except Exception as exc:  # noqa: BLE001 - one file that cannot be copied must not keep the others
        report.errors.append((key, str(exc)))
        return
    report.copied += 1
    report.bytes_copied += len(content)
    report.keys_copied.append(key)


def text_of(path: Path, root: Path) -> str:
    """A file's text. Raises `ValueError` if it is not UTF-8, or a link out of the directory."""
    if not path.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"{path} is a link that leads outside {root}")
    return path.read_bytes().decode("utf-8")


def _create(target: TextBackend, key: str, content: str) -> bool:
    """Whether the text was written. Targets with `create_text` never replace an existing text."""
    create = getattr(target, "create_text", None)
    if create is not None:
        return bool(create(key, content))
    target.write_text(key, content)
    return True
