"""The directory of a pod: its pod file and the compiled files."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from memplane.adapters.clawdapus.pod.podfile import FILE_BYTES_MAX, load_yaml
from memplane.adapters.clawdapus.session_history import agent_directory_name
from memplane.errors import InvalidRequest, StorageUnavailable
from memplane.safety.safe_directory import SafeDirectory, translated

POD_FILE = "claw-pod.yml"
GENERATED = "compose.generated.yml"
CONTEXTS = (".claw-runtime", "context")
HISTORIES = ".claw-session-history"
TOMBSTONES = ".claw-memory-tombstones"
BACKFILLS = ".claw-memory-backfill"
SERVICE_AUTH = "service-auth"

CONTEXT_MODE = 0o700


class PodDirectory:
    """A pod directory, opened once. No path below it may lead outside."""

    def __init__(self, pod_file: Path) -> None:
        self.file = pod_file
        self.path = pod_file.parent
        self.folder = SafeDirectory.root(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.folder.close()

    def read_pod(self) -> bytes:
        """The pod file. It may be a symbolic link, because an operator named it."""
        try:
            with self.file.open("rb") as file:
                raw = file.read(FILE_BYTES_MAX + 1)
        except OSError as exc:
            raise InvalidRequest(f'cannot read "{self.file}": {exc.strerror}', field="file") from exc
        if len(raw) > FILE_BYTES_MAX:
            raise InvalidRequest(f'"{self.file}" is longer than {FILE_BYTES_MAX} bytes', field="file")
        return raw

    def check_generated(self) -> None:
        """Check that the compiled files exist and are not older than their sources."""
        if not self.folder.has(GENERATED):
            raise InvalidRequest(
                f'no {GENERATED} found in "{self.path}" '
                f"(rerun from pod directory or pass --file <path-to-{POD_FILE}>)"
            )
        with translated(self.path / GENERATED):
            generated = (self.path / GENERATED).lstat().st_mtime_ns
            newer = self.file.exists() and self.file.stat().st_mtime_ns > generated
        if newer:
            raise InvalidRequest(
                f"{self.file.name} is newer than {GENERATED} — run 'memplane up' to regenerate"
            )

    def generated(self) -> dict[str, Any]:
        raw = self.folder.read(GENERATED, bytes_max=FILE_BYTES_MAX)
        return {} if raw is None else load_yaml(raw, GENERATED)

    def contexts(self) -> Iterator[tuple[str, SafeDirectory]]:
        """Agents by id, each with its context directory, which is closed before the next one is opened."""
        try:
            root = self.folder.below(*CONTEXTS)
        except StorageUnavailable:
            return
        with root:
            for name in root.names():
                with _opened(root, name) as folder:
                    if folder is not None:
                        yield name, folder

    def history(self, agent: str) -> SafeDirectory | None:
        """The session history of an agent; None if there is none."""
        return self._existing(HISTORIES, agent_directory_name(agent))

    def history_path(self, agent: str) -> Path:
        return self.path / HISTORIES / agent_directory_name(agent) / "history.jsonl"

    def tombstones(self, agent: str, *, create: bool = False) -> SafeDirectory | None:
        return self._existing(TOMBSTONES, agent_directory_name(agent), create=create)

    def backfills(self, service: str) -> SafeDirectory:
        return self.folder.below(BACKFILLS, agent_directory_name(service), create=True, mode=0o700)

    def _existing(self, *names: str, create: bool = False) -> SafeDirectory | None:
        if not create and not os.path.lexists(self.path.joinpath(*names)):
            return None
        return self.folder.below(*names, create=create)


def _opened(root: SafeDirectory, name: str) -> AbstractContextManager[SafeDirectory | None]:
    """Ignore plain files among the directories."""
    try:
        return root.below(name)
    except StorageUnavailable:
        return nullcontext()
