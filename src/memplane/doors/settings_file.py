"""Files of settings that belong to somebody else: whole or as they were, and as private as before."""

import os
import tempfile
from pathlib import Path

_OWNER_ONLY = 0o600


def replace_file(path: Path, data: bytes) -> None:
    """Put this in the place of what is there. A file that was not there is its owner's alone."""
    mode = path.stat().st_mode & 0o777 if path.exists() else _OWNER_ONLY
    descriptor, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).chmod(mode)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
