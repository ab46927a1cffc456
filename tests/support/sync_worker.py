"""A machine as a process of its own: it writes, forgets and syncs, and tells on a pipe what was acknowledged to it, one
JSON list a line, written in one piece, so that a line is there or is not."""

import json
import os
import random
from pathlib import Path
from typing import Any

from memplane import Memplane
from memplane.errors import RemoteUnavailable
from memplane.sync.opening import open_store
from memplane.sync.sync import Sync

OWNER = "alice"


def work(
    folder: str, url: str, environment: dict[str, str], name: str, rounds: int | None, pipe: Any
) -> None:
    """So many rounds, or until somebody ends the process."""

    def tell(*what: Any) -> None:
        os.write(pipe.fileno(), json.dumps(what).encode() + b"\n")

    rng = random.Random(name)
    with Memplane.open(folder, embedder=None) as plane:
        space = plane.space(OWNER)
        sync = Sync(space, open_store(url, environment), Path(folder))
        number = 0
        while rounds is None or number < rounds:
            number += 1
            word = f"{name}x{number}x"
            kept = space.retain(f"I said {word}", conversation=name)
            tell("said", word)
            if rng.random() < 0.3:
                space.store("preference", f"Likes {word}tea")
                tell("said", f"{word}tea")
            if rng.random() < 0.2:
                tell("forgets", word)
                space.forget(entries=[kept.id])
                tell("forgot", word)
            if rng.random() < 0.6:
                try:
                    (sync.push if rng.random() < 0.8 else sync.pull)()
                    tell("synced")
                except RemoteUnavailable as exc:
                    tell("failed", str(exc))
    tell("done")
