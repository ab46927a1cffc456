"""`memplane serve`, with a clock on the engine's calls: their milliseconds are written to the file named first, one a line.

Started by `benchmarks.server`, to tell apart what the engine and what the server needs within the same request.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from memplane import Space
from memplane.__main__ import run

CALLS = ("recall", "put", "retain_entry")


def timed(call: Callable[..., Any], file: TextIO) -> Callable[..., Any]:
    def timed_call(*arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            return call(*arguments, **options)
        finally:
            file.write(f"{(time.perf_counter() - started) * 1_000}\n")
            file.flush()

    return timed_call


if __name__ == "__main__":
    with Path(sys.argv.pop(1)).open("w", encoding="ascii") as opened:
        for name in CALLS:
            setattr(Space, name, timed(getattr(Space, name), opened))
        run()
