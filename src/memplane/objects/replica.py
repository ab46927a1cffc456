"""Which replica of a space this is: the name under which it writes segments.

Only one may write under a name, because it alone knows which of its segments nobody needs. The name is made once and
kept in the space, together with the home it was made in: a copy of a data directory is another home, and becomes another
replica with its first push. Nothing is lost by that, since what a segment holds is found by content.
"""

import os
from hashlib import sha256
from pathlib import Path

import msgspec

from memplane.entropy import random_bytes
from memplane.space import Space

_NAME = "replica"
_NAME_BYTES = 8


class Replica(msgspec.Struct, frozen=True):
    """The name, and a digest of where it was given."""

    name: str
    home: str


def replica_of_space(space: Space, data: Path) -> Replica:
    """The one that is kept in the space, if it was made in this data directory; otherwise a new one, kept from now on."""
    home = _home(data)
    kept = space.bookmark(_NAME)
    if kept is not None:
        found = msgspec.json.decode(kept, type=Replica)
        if found.home == home:
            return found
    made = Replica(random_bytes(_NAME_BYTES).hex(), home)
    space.set_bookmark(_NAME, msgspec.json.encode(made).decode())
    return made


def _home(data: Path) -> str:
    """The directory itself and the path to it: a copy has another inode, or stands somewhere else."""
    path = data.expanduser().resolve()
    try:
        inode = path.stat().st_ino
    except OSError:
        inode = 0
    return sha256(f"{os.fspath(path)}\x00{inode}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
