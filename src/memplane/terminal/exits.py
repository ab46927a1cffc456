"""How the command ends: the table from our errors to exit codes, and how an error reads on stderr."""

import sys

import msgspec

from memplane.errors import (
    Changed,
    CollectionTaken,
    DocumentUnreadable,
    InvalidRequest,
    KeyMismatch,
    LimitReached,
    ManifestUnreadable,
    MemplaneError,
    NotFound,
    PathTaken,
    QuotaExceeded,
    RateLimited,
    RemoteDenied,
    RemoteError,
    RemoteUnavailable,
    SettingsInvalid,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageTooNew,
    StorageUnavailable,
    StorageUncertain,
    StorageUnreachable,
    Unchanged,
)
from memplane.models.embedding import EmbeddingFailed
from memplane.models.llm import LLMFailed
from memplane.safety.sanitize import encodable, one_line

MENDABLE = 1
USAGE = 2
FOUND_WRONG = 3
STORAGE = 4
BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

EXITS: dict[type[MemplaneError], int] = {
    MemplaneError: BUG,
    InvalidRequest: MENDABLE,
    NotFound: MENDABLE,
    PathTaken: MENDABLE,
    CollectionTaken: MENDABLE,
    DocumentUnreadable: MENDABLE,
    LimitReached: MENDABLE,
    RateLimited: MENDABLE,
    QuotaExceeded: MENDABLE,
    SettingsInvalid: MENDABLE,
    EmbeddingFailed: MENDABLE,
    LLMFailed: MENDABLE,
    StorageError: STORAGE,
    StorageUnavailable: STORAGE,
    StorageUnreachable: STORAGE,
    StorageUncertain: STORAGE,
    StorageBusy: STORAGE,
    StorageFull: STORAGE,
    StorageCorrupt: STORAGE,
    StorageTooNew: STORAGE,
    KeyMismatch: STORAGE,
    RemoteError: STORAGE,
    RemoteUnavailable: STORAGE,
    RemoteDenied: MENDABLE,
    ManifestUnreadable: STORAGE,
    Changed: STORAGE,
    Unchanged: STORAGE,
}


class SpaceMissing(InvalidRequest):
    """A command that only reads was pointed at a space that is not there."""

    code = "not_found"


class NothingToImport(InvalidRequest):
    """A command that takes something in was pointed at a place where nothing is."""

    code = "not_found"


def exit_code(error: MemplaneError) -> int:
    """The code of the class itself, or of the nearest class it derives from."""
    return next(EXITS[kind] for kind in type(error).__mro__ if kind in EXITS)


def report(code: str, message: str, *, json: bool) -> None:
    """One line for people and, where JSON was asked for, one line for programs; nothing on stdout."""
    sys.stderr.write(f"memplane: {one_line(message)}\n")
    if json:
        document = msgspec.json.encode({"error": {"code": code, "message": encodable(message)}})
        sys.stderr.write(f"{document.decode()}\n")
