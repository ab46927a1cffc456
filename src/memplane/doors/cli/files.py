"""Files the CLI writes: private, and either whole or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from memplane.errors import InvalidRequest

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_OWNER_ONLY = 0o600


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name when the block ends well; what was there before stays until then."""
    target = path.resolve()
    special = target.exists() and not target.is_file()
    aside = target if special else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(aside, _FLAGS, _OWNER_ONLY), "wb") as file:
            yield file
        if not special:
            aside.replace(target)
    except OSError as exc:
        raise InvalidRequest(f"{path} cannot be written: {exc.strerror or exc}") from exc
    finally:
        if not special:
            with suppress(OSError):
                aside.unlink()
