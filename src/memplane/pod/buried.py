"""Tombstones of a pod: what each memory service was told to forget, kept by the operator so that no replay brings it back."""

from collections.abc import Sequence

from memplane.errors import InvalidRequest
from memplane.ledger.history import BadLine
from memplane.ledger.tombstones import Tombstone, compose_tombstone, parse_tombstone
from memplane.pod.directory import PodDirectory

TOMBSTONES_NAME = "tombstones.jsonl"
_FILE_BYTES_MAX = 1024 * 1024 * 1024


def buried_ids(directory: PodDirectory, agent: str, service: str) -> set[str]:
    """Ids that this service must not be told again. A line that cannot be read is an error: it may name one of them."""
    folder = directory.tombstones(agent)
    if folder is None:
        return set()
    with folder:
        raw = folder.read(TOMBSTONES_NAME, bytes_max=_FILE_BYTES_MAX) or b""
    return {it.entry_id for it in _parsed(raw) if it.memory_service == service}


def bury(directory: PodDirectory, agent: str, tombstones: Sequence[Tombstone]) -> None:
    """On disk when this returns."""
    folder = directory.tombstones(agent, create=True)
    assert folder is not None
    with folder, folder.locked():
        raw = folder.read(TOMBSTONES_NAME, bytes_max=_FILE_BYTES_MAX) or b""
        known = {(it.memory_service, it.entry_id) for it in _parsed(raw)}
        lines = [
            compose_tombstone(it) + b"\n"
            for it in tombstones
            if (it.memory_service, it.entry_id) not in known
        ]
        if lines:
            glue = b"" if not raw or raw.endswith(b"\n") else b"\n"
            folder.append(TOMBSTONES_NAME, glue + b"".join(lines), durable=True)


def _parsed(raw: bytes) -> list[Tombstone]:
    try:
        return [parse_tombstone(line) for line in raw.splitlines() if line.strip()]
    except BadLine as exc:
        raise InvalidRequest(exc.reason) from exc
