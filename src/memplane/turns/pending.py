"""Turns that could not be written yet: each waits in a file of its own, so that the next process finds it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from memplane.entropy import random_bytes
from memplane.types import Pins

FOLDER = "proxy-pending"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A turn on its way into the ledger."""

    tenant: str
    owner: str
    actor: str
    conversation: str
    model: str = ""
    """As the agent named it."""
    line: bytes
    """As the ledger keeps it: without what went upstream, which holds memories that may have to be forgotten."""
    history: bytes
    """As the session history has it. Both have the same id."""
    pins: Pins | None = None
    """What was told for it and must be told again in the same words. Not in the file: by the time somebody finds that,
    the conversation is over."""


_FILE: msgspec.msgpack.Decoder[Kept] = msgspec.msgpack.Decoder(Kept)
_encode = msgspec.msgpack.Encoder().encode


class Pending:
    """The files of one data directory. Nothing in here raises: a turn that cannot wait in a file waits in memory."""

    def __init__(self, folder: Path | None) -> None:
        """None keeps no files, for a directory in which everything is encrypted."""
        self._folder = folder

    def put(self, kept: Kept) -> Path | None:
        """A file for a turn that waits; None where that is not possible either."""
        folder = self._folder
        if folder is None:
            return None
        name = folder / f"{os.getpid()}-{random_bytes(8).hex()}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(name.with_suffix(".new"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:  # noqa: PTH123
                file.write(_encode(msgspec.structs.replace(kept, pins=None)))
                file.flush()
                os.fsync(file.fileno())
            name.with_suffix(".new").rename(name)
        except OSError:
            return None
        return name

    def drop(self, file: Path) -> None:
        with suppress(OSError):  # what is written twice is kept once
            file.unlink(missing_ok=True)

    def left_over(self) -> Iterator[tuple[Path, Kept]]:
        """Files whose process is gone; they are ours from now on."""
        folder = self._folder
        if folder is None or not folder.is_dir():
            return
        for file in sorted(folder.iterdir()):
            pid = file.name.partition("-")[0]
            if file.suffix or not pid.isdecimal() or _lives(int(pid)):
                continue
            try:
                taken = file.rename(file.with_name(f"{os.getpid()}-{file.name.partition('-')[2]}"))
                yield taken, _FILE.decode(taken.read_bytes())
            except (OSError, msgspec.DecodeError):
                continue


def _lives(pid: int) -> bool:
    """Whether another process has this number; our own had nothing to keep before now."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
