"""Copying Claude Code's memory of a project, told to people. Nothing that goes wrong here may stop a session, so it is
said and nothing more."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from memplane.adapters.entrabot.storage.persona import PersonaBackend
from memplane.sync.backend import TextBackend as Cloud

_ERRORS_NAMED_MAX = 5

Backend = Callable[[], AbstractContextManager[Cloud]]
Folder = Callable[[], Path]


def log(message: str) -> None:
    sys.stderr.write(f"[persona-sync] {message}\n")


def pull(backend: Backend, folder: Folder) -> None:
    """Everything from the cloud into the directory."""
    try:
        memory = folder()
        with backend() as cloud:
            report = PersonaBackend(cloud, local_root=memory).pull_all()
    except Exception as exc:  # noqa: BLE001 - a hook must not stop Claude Code
        log(f"pull: {exc}")
        return
    log(f"pull: {report.pulled} files into {memory}")
    _report(report.errors)


def push(backend: Backend, folder: Folder) -> None:
    """Whatever the cloud does not have."""
    try:
        memory = folder()
        with backend() as cloud:
            report = PersonaBackend(cloud, local_root=memory).push_all()
    except Exception as exc:  # noqa: BLE001 - as above
        log(f"push: {exc}")
        return
    log(f"push: {report.copied} copied, {report.skipped} skipped (from {memory})")
    _report(report.errors)


def push_one(backend: Backend, folder: Folder, path: Path) -> None:
    """One file, over what the cloud has."""
    try:
        with backend() as cloud:
            PersonaBackend(cloud, local_root=folder()).push_one(path)
    except Exception as exc:  # noqa: BLE001 - as above
        log(f"push-one: {path} was not copied: {exc}")


def _report(errors: list[tuple[str, str]]) -> None:
    for key, message in errors[:_ERRORS_NAMED_MAX]:
        log(f"error: {key}: {message}")
    if len(errors) > _ERRORS_NAMED_MAX:
        log(f"error: and {len(errors) - _ERRORS_NAMED_MAX} more")
