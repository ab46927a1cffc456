"""The exit status of a command, and how it reports an error on stderr."""

import sys

import msgspec

from memplane.errors import InvalidRequest, MemplaneError, RemoteDenied
from memplane.models.embedding import EmbeddingFailed
from memplane.models.llm import LLMFailed
from memplane.safety.sanitize import encodable, one_line

MENDABLE = 1
USAGE = 2
FOUND_WRONG = 3
BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

_OWN: dict[type[MemplaneError], int] = dict.fromkeys((EmbeddingFailed, LLMFailed, RemoteDenied), MENDABLE)
"""Errors whose exit status differs from that of their category: a wrong key or address of a service is in the user's
settings."""


class SpaceMissing(InvalidRequest):
    """A read-only command was given a space that does not exist."""

    code = "not_found"


class NothingToImport(InvalidRequest):
    """An import command was given an empty location."""

    code = "not_found"


def exit_code(error: MemplaneError) -> int:
    own = next((_OWN[kind] for kind in type(error).__mro__ if kind in _OWN), None)
    return error.category.exit_status if own is None else own


def report(code: str, message: str, *, json: bool) -> None:
    """Print an error to stderr: one line for people and, with --json, one JSON line for programs."""
    sys.stderr.write(f"memplane: {one_line(message)}\n")
    if json:
        document = msgspec.json.encode({"error": {"code": code, "message": encodable(message)}})
        sys.stderr.write(f"{document.decode()}\n")
