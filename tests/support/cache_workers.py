"""What processes do that share a directory or a cache, and one that is killed at a given step of all it does to files.
Each function runs in a process of its own."""

import json
import os
import signal
from contextlib import contextmanager
from unittest.mock import patch

from memplane.clock import SECOND
from memplane.errors import Changed
from memplane.sync.cached import CachedBackend
from memplane.sync.local import LocalObjects

DAY = "interactions/2026-04-17.jsonl"
STEPS = ("fsync", "rename", "unlink", "write", "mkdir")


def script():
    """What is done, in order: batches, appends at once, with ids and without, and a text that is replaced."""
    for number in range(2):
        yield "append", DAY, json.dumps({"id": f"id-{number}", "summary": "hello"}) + "\n"
        yield "append", DAY, f"plain {number}\n"
        yield "append", "log.txt", f"line {number}\n"
    yield "write", "state.txt", "first"
    yield "write", "state.txt", "second"


def perform(store, cache, acknowledge):
    """The script, on a clock of its own."""
    now = [0]
    backend = CachedBackend(LocalObjects(store), cache, clock=lambda: now[0], pause=lambda _: None)
    for do, key, text in script():
        now[0] += 2 * SECOND
        (backend.append_text if do == "append" else backend.write_text)(key, text)
        acknowledge(text)
    backend.close()


@contextmanager
def stepping(on_step):
    """Calls `on_step` before everything that is done to a file."""

    def counted(call):
        def counting(*arguments, **options):
            on_step()
            return call(*arguments, **options)

        return counting

    with patch.multiple(os, **{name: counted(getattr(os, name)) for name in STEPS}):
        yield


def killed_at(step, store, cache, told):
    left = [step]

    def on_step():
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with open(told, "ab", buffering=0) as file, stepping(on_step):  # noqa: PTH123 - unbuffered, and not by os.write
        perform(store, cache, lambda text: file.write(b"."))
        file.write(b"!")


def write_lines(store, cache, name, count):
    with CachedBackend(LocalObjects(store), cache, batch_s=0 if name == "eager" else 5) as backend:
        for number in range(count):
            backend.append_text(DAY, f"{name} {number}\n")
            backend.append_text("log.txt", f"{name} {number}\n")
            assert f"{name} {number}\n" in backend.read_text(DAY)


def count_up(root, times):
    store = LocalObjects(root)
    for _ in range(times):
        while True:
            got = store.get("count")
            try:
                store.put("count", str(int(got.data) + 1).encode(), expect=got.version)
                break
            except Changed:
                continue
