"""The program that the crash tests of a move kill: it kills itself, after so many steps."""

import os
import signal
from multiprocessing.connection import Connection

from memplane import Memplane
from memplane.transfer import tables as compare
from memplane.transfer.move import MoveProgress

OWNERS = ("alice", "bob")
ROWS = 10
"""A transaction has no more than this, so that there are many of them."""


def fill(data: str) -> None:
    with Memplane.open(data, embedder=None) as plane:
        for owner in OWNERS:
            space = plane.space(owner)
            for number in range(12):
                space.retain(f"I like jazz and number {number}", conversation=f"c{number % 3}")
            space.documents.upload("One.\n\nTwo words.", name="d", id="d")
            space.put("k", "v")
            space.enrich()
            space.forget(conversation="c1")


def change(data: str) -> None:
    """So that a later run has something to take out, too."""
    with Memplane.open(data, embedder=None) as plane:
        for owner in OWNERS:
            space = plane.space(owner)
            space.retain("I live in Rome")
            space.put("k", "w")
            space.forget(conversation="c2")
            space.enrich()


def move(source: str, target: str, steps: int, pipe: Connection) -> None:
    compare.PAGE_ROWS = ROWS
    left = steps

    def count(_: MoveProgress) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with Memplane.open(source, embedder=None) as here, Memplane.open(target, embedder=None) as there:
        here.move_to(there, count)
        os.write(pipe.fileno(), b'["done"]\n')
