"""Programs that the attack tests kill. Each runs in a process of its own and reports on a pipe, one JSON list per line."""

import json
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from memplane import Memplane
from memplane.storage.postgres.database import PostgresDatabase
from memplane.storage.sqlite.database import SqliteDatabase
from stub_embedder_enrich import BagOfWords

OWNER = "victim"


def reporter(pipe: Connection) -> Callable[..., None]:
    def report(*what: Any) -> None:
        os.write(pipe.fileno(), json.dumps(what).encode() + b"\n")

    return report


def forget_and_die(data: str, key: str | None, scope: dict[str, Any], pipe: Connection) -> None:
    """Commit a forget, and be killed before its bytes leave the disk."""
    report = reporter(pipe)

    def die(*_: object, **__: object) -> bool:
        report("committed")
        os.kill(os.getpid(), signal.SIGKILL)
        return False

    SqliteDatabase.wipe = PostgresDatabase.wipe = die  # type: ignore[method-assign]
    Memplane.open(data, key=key, embedder=None).space(OWNER).forget(**scope)


def work(data: str, run: int, pipe: Connection) -> None:
    """Retain, store, put, enrich and forget in turn until killed. Every text holds a word that nothing else holds."""
    report = reporter(pipe)
    space = Memplane.open(data, embedder=BagOfWords(dimension=4)).space(OWNER)
    number = 0
    while True:
        number += 1
        word = f"q{run}x{number}z"
        report("writing", word)
        match number % 4:
            case 0:
                id_ = space.store("preference", f"Prefers the lantern {word}").id
            case 1:
                id_ = space.put(f"lamp/{number % 5}", f"lantern {word}").id
            case _:
                id_ = space.retain(f"I live in {word.title()}", id=f"given-{run}-{number}").id
        report("written", id_, word)
        if number % 5 == 0:
            space.enrich()
        if number % 3 == 0:
            report("forgetting", id_, word)
            space.forget(entries=[id_])
            report("forgotten", id_, word)
