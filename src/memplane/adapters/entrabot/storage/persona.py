"""Claude Code's memory of a project, copied between its directory and `claude_memory/` in a backend."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memplane.adapters.entrabot.storage.local import LocalBackend, files_in
from memplane.sync.backend import TextBackend

PERSONA_PREFIX: Final = "claude_memory"

_ERRORS_LOGGED_MAX = 5

OpenBackend = Callable[[], AbstractContextManager[TextBackend]]


def claude_code_memory_dir(project_root: Path, *, home: Path | None = None) -> Path:
    """Claude Code's memory directory of a project; it may not exist yet."""
    slug = "".join("-" if letter in "/\\ " else letter for letter in str(project_root))
    return (Path.home() if home is None else home) / ".claude" / "projects" / slug / "memory"


@dataclass
class PersonaReport:
    """Copied files and errors by key."""

    copied: int = 0
    skipped: int = 0
    pulled: int = 0
    errors: list[tuple[str, str]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


class PersonaBackend:
    """Copy whole files in either direction, one or all of them."""

    def __init__(self, backend: TextBackend, *, local_root: Path) -> None:
        self._backend = backend
        self._root = Path(local_root)

    @property
    def prefix(self) -> str:
        return f"{PERSONA_PREFIX}/"

    def push_one(self, path: Path) -> None:
        """Upload one file and replace the cloud's version. Raises `ValueError` for a file outside the directory;
        does nothing for a file that no longer exists."""
        full = Path(path).resolve()
        root = self._root.resolve()
        if not full.is_relative_to(root):
            raise ValueError(f"{path} is outside {self._root}, so it is not uploaded")
        if full.is_file():
            self._backend.write_text(
                f"{self.prefix}{full.relative_to(root).as_posix()}", full.read_bytes().decode("utf-8")
            )

    def push_all(self) -> PersonaReport:
        """Upload every file that the cloud does not have. Existing ones are not replaced."""
        report = PersonaReport()
        for path in files_in(self._root):
            key = f"{self.prefix}{path.relative_to(self._root).as_posix()}"
            try:
                if self._backend.exists(key):
                    report.skipped += 1
                    continue
                self.push_one(path)
            except Exception as exc:  # noqa: BLE001 - one file that cannot be copied must not keep the others
                report.errors.append((key, str(exc)))
                continue
            report.copied += 1
            report.keys.append(key)
        return report

    def pull_all(self) -> PersonaReport:
        """Replace local files with the cloud's. A key that leads out of the directory is rejected."""
        report = PersonaReport()
        local = LocalBackend(self._root)
        for key in sorted(self._backend.list(self.prefix)):
            if not key.startswith(self.prefix):
                continue
            try:
                content = self._backend.read_text(key)
                if content is None:
                    continue
                local.write_text(key.removeprefix(self.prefix), content)
            except Exception as exc:  # noqa: BLE001 - as above
                report.errors.append((key, str(exc)))
                continue
            report.pulled += 1
            report.keys.append(key)
        return report


# The commands for Claude Code's hooks. A failure must not stop a session, so it is logged and nothing else.


def log(message: str) -> None:
    sys.stderr.write(f"[persona-sync] {message}\n")


def pull(backend: OpenBackend, folder: Callable[[], Path]) -> None:
    """Replace local files with the cloud's."""
    try:
        memory = folder()
        with backend() as cloud:
            report = PersonaBackend(cloud, local_root=memory).pull_all()
    except Exception as exc:  # noqa: BLE001 - a hook must not stop Claude Code
        log(f"pull: {exc}")
        return
    log(f"pull: {report.pulled} files into {memory}")
    _report(report.errors)


def push(backend: OpenBackend, folder: Callable[[], Path]) -> None:
    """Upload files that the cloud does not have."""
    try:
        memory = folder()
        with backend() as cloud:
            report = PersonaBackend(cloud, local_root=memory).push_all()
    except Exception as exc:  # noqa: BLE001 - as above
        log(f"push: {exc}")
        return
    log(f"push: {report.copied} copied, {report.skipped} skipped (from {memory})")
    _report(report.errors)


def push_one(backend: OpenBackend, folder: Callable[[], Path], path: Path) -> None:
    """Upload one file and replace the cloud's version."""
    try:
        with backend() as cloud:
            PersonaBackend(cloud, local_root=folder()).push_one(path)
    except Exception as exc:  # noqa: BLE001 - as above
        log(f"push-one: {path} was not copied: {exc}")


def _report(errors: list[tuple[str, str]]) -> None:
    for key, message in errors[:_ERRORS_LOGGED_MAX]:
        log(f"error: {key}: {message}")
    if len(errors) > _ERRORS_LOGGED_MAX:
        log(f"error: and {len(errors) - _ERRORS_LOGGED_MAX} more")
